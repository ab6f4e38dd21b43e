"""`migrate tpu`."""

import json
from pathlib import Path

import click

from migrate.check.child import ChildError, Limits
from migrate.check.run import CheckError
from migrate.check.spec import SpecError
from migrate.cli.failure import Failure
from migrate.tpu.chips import TopologyError
from migrate.tpu.run import EVERY, compile_for


@click.command("tpu", short_help="Compile a converted model for TPUs, without one.")
@click.argument("converted", type=click.Path(path_type=Path))
@click.option("--model", help='What to build, e.g. "Net(num_classes=10)".  [default: make()]')
@click.option("--input", "inputs", multiple=True, help='An argument of the call, e.g. "f32[8,3,224,224]". Repeatable.')
@click.option(
    "--topology", "topologies", multiple=True, help=f"E.g. v5e:2x2, or v5e:16x16 for 256 chips. Repeatable.  [default: {', '.join(EVERY)}]"
)
@click.option(
    "--mesh", help='Spread it: "data=16,model=16". data spreads the batch, model the parameters, fsdp both.  [default: one device]'
)
@click.option(
    "--dtype", type=click.Choice(["bfloat16", "float16"]), default=None, help="Weights and inputs in this dtype instead of float32."
)
@click.option("--train", is_flag=True, help="A training step (gradients, and an update) instead of the forward pass.")
@click.option("--target", type=click.Choice(["flax", "keras"]), default="flax", show_default=True)
@click.option(
    "--root", "roots", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False), help="Where else imports are found."
)
@click.option("--timeout", type=float, default=1800.0, show_default=True, help="Seconds.")
@click.option("--memory", type=float, default=Limits.memory_gib, show_default=True, help="GiB of address space.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(
    converted: Path,
    model: str | None,
    inputs: tuple[str, ...],
    topologies: tuple[str, ...],
    mesh: str | None,
    dtype: str | None,
    train: bool,
    target: str,
    roots: tuple[Path, ...],
    timeout: float,
    memory: float,
    as_json: bool,
) -> int:
    """Compiles CONVERTED with the real TPU compiler, ahead of time, and reports cost, memory and advice.

    Nothing is computed, and no TPU is needed. The file is executed, in a process of its own. Exit code 1 where it does not compile or fit.
    """
    from migrate.cli.console import console
    from migrate.report.tpu_table import print_report
    from migrate.tpu.meshes import read_mesh

    try:
        axes = read_mesh(mesh) if mesh else {}
        with console(stderr=True).status("compiling"):
            report = compile_for(
                converted, model=model, inputs=inputs, topologies=topologies or EVERY, mesh=axes, dtype=dtype or "", train=train,
                target=target, roots=roots, limits=Limits(timeout, memory),
            )  # fmt: skip
    except CheckError as e:
        raise Failure(str(e), e.file or None, e.line) from None
    except (SpecError, TopologyError) as e:
        raise Failure(str(e)) from None
    except ChildError as e:
        raise Failure(f"the compilation {e}", exit_code=1) from None
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2))
    else:
        print_report(console(), report)
    return 0 if report.compiles else 1
