"""`migrate check`."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from migrate.check.child import DEFAULT, ChildError, Limits
from migrate.check.oracle import OracleError
from migrate.check.run import FAST, CheckError, check
from migrate.check.spec import SpecError
from migrate.check.verdict import STAGES, USUAL, Verdict
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
@click.option("--steps", is_flag=True, help="Train both for a few steps as well (the stage steps).")
@click.option("--tpu", is_flag=True, help="Compile for TPU v5e as well (the stage tpu).")
@click.option("--drift", is_flag=True, help="Predict what a TPU's default precision does to each submodule.")
@click.option("--timeout", type=float, default=Limits.seconds, show_default=True, help="Seconds for each side.")
@click.option("--memory", type=float, default=Limits.memory_gib, show_default=True, help="GiB of address space for each side.")
@click.option("--format", "style", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True, help="How to report.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a report: one HTML page that needs nothing else.")
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
    steps: bool,
    tpu: bool,
    drift: bool,
    timeout: float,
    memory: float,
    style: str,
    as_json: bool,
    html: Path | None,
    every: bool,
) -> int:
    """Runs both models on the same inputs and weights, and compares them stage by stage.

    Both are executed, each in a process of its own with limits. Exit code 0 where they agree, 1 where they do not.
    """
    if len(files) != (1 if oracle else 2):
        raise click.UsageError("give CONVERTED alone with --oracle" if oracle else "give two files: ORIGINAL CONVERTED")
    if fast and stages:
        raise click.UsageError("--fast and --stages exclude each other")
    asked = FAST if fast else tuple(s.strip() for s in stages.split(",")) if stages else USUAL
    asked = (*asked, *(name for name, wanted in (("steps", steps), ("tpu", tpu)) if wanted))
    return run_checks(
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
        drift=drift,
        style="json" if as_json else style,
        html=html,
        every=every,
    )


def run_checks(
    original: Path | None, converted: Path, *, model: str | None, inputs: Sequence[str], oracle: Path | None = None, **options: Any
) -> int:
    """Checks what was asked for; where nothing was, every class that can be built and run. Returns the exit code."""
    if original is None or model or inputs:
        return run_check(original, converted, model=model, inputs=inputs, oracle=oracle, **options)
    from migrate.check.plan import plan

    try:
        found = plan(original, options.get("roots", ()), options.get("limits", DEFAULT))
    except CheckError as e:
        raise Failure(str(e), e.file or None, e.line) from None
    except ChildError as e:
        raise Failure(f"the original {e}", exit_code=1) from None
    chosen = [c for c in found if not c.reason and not c.part_of]
    left = [c for c in found if c.reason and not c.part_of]
    err = options.get("err", False) or options.get("style", "text") != "text"
    for c in chosen:
        if c.found:
            parts = [p.name for p in found if p.part_of == c.name]
            with_parts = f", with its parts {', '.join(parts)}" if parts else ""
            click.echo(f"checking {c.model} on {', '.join(c.inputs)} (found by trial){with_parts}", err=err)
    page = options.pop("html", None)
    codes = []
    for c in chosen:  # a page for each, where there are several
        html = page and (page if len(chosen) == 1 else page.with_stem(f"{page.stem}-{c.name}"))
        codes.append(run_check(original, converted, model=c.model, inputs=c.inputs, html=html, **options))
    for c in left:
        click.echo(f"not checked: {c.name}: {c.reason}", err=err)
    if not codes:
        raise Failure('nothing can be checked without being told how: --model "Net(num_classes=10)" --input "f32[2,3,32,32]"', original)
    return max(*codes, 1 if left else 0)


def _write_page(path: Path, verdict: Verdict, original: Path | None, converted: Path, err: bool) -> None:
    from migrate.cli import files
    from migrate.report.html import NoJinja, page

    try:
        files.write(path, page(verdict, original, converted).encode())
    except NoJinja as e:
        raise Failure(str(e)) from None
    click.echo(f"wrote {path}", err=err)


def run_check(
    original: Path | None,
    converted: Path,
    *,
    target: str,
    model: str | None,
    inputs: Sequence[str],
    roots: Sequence[Path],
    style: str = "text",
    html: Path | None = None,
    every: bool = False,
    converted_model: str | None = None,
    oracle: Path | None = None,
    stages: Sequence[str] = USUAL,
    limits: Limits = DEFAULT,
    drift: bool = False,
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
                drift=drift,
                pictures=html is not None,
            )
    except CheckError as e:
        raise Failure(str(e), e.file or None, e.line) from None
    except (SpecError, OracleError) as e:
        raise Failure(str(e)) from None
    with contextlib.suppress(OSError):
        save_check(converted, verdict_json(verdict))  # `migrate review` shows it
    if html is not None:
        _write_page(html, verdict, original, converted, err or style != "text")
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
