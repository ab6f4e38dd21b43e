"""`migrate check`."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from migrate.check.child import DEFAULT, Limits
from migrate.check.oracle import OracleError
from migrate.check.run import FAST, CheckError, check
from migrate.check.spec import SpecError
from migrate.check.verdict import STAGES, Verdict
from migrate.cli.failure import Failure


@click.command("check", short_help="Run the original and the converted model side by side.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="ORIGINAL CONVERTED")
@click.option("--model", help='What to build, e.g. "Net(num_classes=10)".  [default: make(), or the only class that needs no arguments]')
@click.option("--converted-model", help="The same for the converted file, where it reads otherwise.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    help='An argument of forward, e.g. "f32[2,3,32,32]", "i64[2,12](0,50)", "mask=bool[2,5]". Repeatable.',
)
@click.option("--target", type=click.Choice(["flax", "keras"]), default="flax", show_default=True)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where else the original's imports are found. Repeatable.",
)
@click.option(
    "--oracle", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Use a recorded original; then only CONVERTED is given."
)
@click.option("--stages", help=f"Only these, comma-separated, of {', '.join(STAGES)}.")
@click.option("--fast", is_flag=True, help="Values only: no gradients, no training, no jit.")
@click.option("--timeout", type=float, default=Limits.seconds, show_default=True, help="Seconds for each side.")
@click.option("--memory", type=float, default=Limits.memory_gib, show_default=True, help="GiB of address space for each side.")
@click.option("--format", "style", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True, help="How to report.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--all", "every", is_flag=True, help="Show every submodule, however many there are.")
def command(
    files: tuple[Path, ...],
    model: str | None,
    converted_model: str | None,
    inputs: tuple[str, ...],
    target: str,
    roots: tuple[Path, ...],
    oracle: Path | None,
    stages: str | None,
    fast: bool,
    timeout: float,
    memory: float,
    style: str,
    as_json: bool,
    every: bool,
) -> int:
    """Runs both models on the same inputs and weights, and compares them stage by stage.

    Both are executed, each in a process of its own with limits. Exit code 0 where they agree, 1 where they do not.
    """
    if len(files) != (1 if oracle else 2):
        raise click.UsageError("give CONVERTED alone with --oracle" if oracle else "give two files: ORIGINAL CONVERTED")
    if fast and stages:
        raise click.UsageError("--fast and --stages exclude each other")
    asked = FAST if fast else tuple(s.strip() for s in stages.split(",")) if stages else STAGES
    return run_check(
        None if oracle else files[0],
        files[-1],
        target=target,
        model=model,
        converted_model=converted_model,
        inputs=inputs,
        roots=roots,
        oracle=oracle,
        stages=asked,
        limits=Limits(timeout, memory),
        style="json" if as_json else style,
        every=every,
    )


def run_check(
    original: Path | None,
    converted: Path,
    *,
    target: str,
    model: str | None,
    inputs: Sequence[str],
    roots: Sequence[Path],
    style: str = "text",
    every: bool = False,
    converted_model: str | None = None,
    oracle: Path | None = None,
    stages: Sequence[str] = STAGES,
    limits: Limits = DEFAULT,
    err: bool = False,
) -> int:
    """Checks and prints; returns the exit code."""
    from migrate.cli.console import console
    from migrate.report.check_table import print_verdict, verdict_json
    from migrate.review.store import save_check

    screen = console(stderr=True)
    try:
        with screen.status("running both models"):
            verdict = check(
                original,
                converted,
                model=model,
                converted_model=converted_model,
                inputs=inputs,
                target=target,
                roots=roots,
                oracle=oracle,
                stages=stages,
                limits=limits,
            )
    except CheckError as e:
        raise Failure(str(e), e.file or None, e.line) from None
    except (SpecError, OracleError) as e:
        raise Failure(str(e)) from None
    with contextlib.suppress(OSError):
        save_check(converted, verdict_json(verdict))  # `migrate review` shows it
    if style == "json":
        click.echo(json.dumps(verdict_json(verdict), indent=2))
    elif style == "sarif":
        click.echo(json.dumps(_sarif(verdict, converted), indent=2))
    else:
        print_verdict(console(stderr=err), verdict, every)
    return 0 if verdict.ok else 1


def _sarif(verdict: Verdict, converted: Path) -> dict[str, Any]:
    """A verdict for code review tools: one result where the two differ first."""
    from migrate.cli import files
    from migrate.report import machine

    place = verdict.first.converted if verdict.first is not None else None
    path = files.relative(Path(place.file) if place is not None and place.file else converted)
    message = verdict.first.message if verdict.first is not None else verdict.message
    told = (
        []
        if verdict.ok
        else [{"line": place.line if place is not None and place.file else 1, "column": 1, "code": "MIG401", "message": message}]
    )
    return machine.as_sarif({path: machine.Told(path, told)})
