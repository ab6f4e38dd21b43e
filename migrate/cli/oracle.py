"""`migrate oracle`."""

import shutil
from pathlib import Path

import click

from migrate.check.child import ChildError, Limits
from migrate.check.run import CheckError, make_oracle
from migrate.check.spec import SpecError
from migrate.cli.failure import Failure


@click.command("oracle", short_help="Record what the original computes, for a check elsewhere.")
@click.argument("original", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write.")
@click.option("--model", help='What to build, e.g. "Net(num_classes=10)".')
@click.option("--input", "inputs", multiple=True, help='An argument of forward, e.g. "f32[2,3,32,32]". Repeatable.')
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where else imports are found. Repeatable.",
)
@click.option("--timeout", type=float, default=Limits.seconds, show_default=True, help="Seconds.")
@click.option("--force", is_flag=True, help="Replace an existing folder.")
def command(
    original: Path, output: Path, model: str | None, inputs: tuple[str, ...], roots: tuple[Path, ...], timeout: float, force: bool
) -> int:
    """Runs ORIGINAL and writes a folder of inputs, weights, and what each submodule gave. `migrate check --oracle` reads it; that
    needs no PyTorch."""
    if output.exists() and any(output.iterdir()):
        if not (force and (output / "oracle.json").exists()):
            raise Failure(
                "exists already; --force replaces an oracle" if (output / "oracle.json").exists() else "is not empty and no oracle", output
            )
        shutil.rmtree(output)
    try:
        content = make_oracle(original, output, model=model, inputs=inputs, roots=roots, limits=Limits(timeout))
    except CheckError as e:
        raise Failure(str(e), e.file or None, e.line) from None
    except SpecError as e:
        raise Failure(str(e)) from None
    except ChildError as e:
        raise Failure(f"the original {e}", exit_code=1) from None
    size = sum(p.stat().st_size for p in output.iterdir())
    what = f"{content['model']}, {len(content['modules'])} modules, {len(content['state'])} tensors of state"
    click.echo(f"wrote {output}: {what}, {size / 1e6:.1f} MB")
    for note in content["notes"]:
        click.echo(f"note: {note}")
    return 0
