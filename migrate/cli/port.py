"""`migrate port`."""

import contextlib
import json
import os
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from migrate.cli.config import Configured
from migrate.cli.failure import Failure
from migrate.cli.show import echo

ROLES = {"python": "converted", "notebook": "converted (notebook)", "copy": "copied"}


@click.command("port", cls=Configured, short_help="Convert a whole project: packages, notebooks, dependencies, with a report.")
@click.argument("project", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write to.")
@click.option("--target", type=click.Choice(["flax", "keras"]), default="flax", show_default=True)
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: one for each core]")
@click.option("--only", multiple=True, metavar="PATTERN", help="Convert only these files (patterns as in .gitignore). Repeatable.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Copy these files as they are. Repeatable.")
@click.option("--tests", is_flag=True, help="Convert tests too; without it they are copied.")
@click.option("--dry-run", is_flag=True, help="Show what would be done and write nothing.")
@click.option("--check", "then_check", is_flag=True, help="Build what can be built and compare both sides. This executes the code.")
@click.option("--force", is_flag=True, help="Write into a folder that holds other files, and over files that were edited since.")
@click.option(
    "--engine", "engine_name", type=click.Choice(["local", "ray"]), default="local", show_default=True, help="Where the work is done."
)
@click.option("--format", "style", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True, help="How to report.")
@click.option("-v", "--verbose", is_flag=True, help="Name every file and diagnostic.")
def command(
    project: Path,
    output: Path,
    target: str,
    jobs: int | None,
    only: tuple[str, ...],
    exclude: tuple[str, ...],
    tests: bool,
    dry_run: bool,
    then_check: bool,
    force: bool,
    engine_name: str,
    style: str,
    verbose: bool,
) -> int:
    """Converts PROJECT, a folder, into OUTPUT: the same files at the same places, and migration-report.html and .json.

    A run that was stopped goes on where it was; files that have not changed are not converted again. Files that you have edited in
    OUTPUT are kept.
    """
    from migrate.port import Busy, Options, port
    from migrate.port.discover import Choice

    if not project.is_dir():
        raise Failure("no such folder" if not project.exists() else "is not a folder; `migrate convert` takes files", project)
    _refuse(project, output, force)
    options = Options(target, Choice(only, exclude, tests))
    start = time.monotonic()
    with _engine(engine_name, jobs) as engine, progress_bar() as progress:
        if dry_run:
            return _dry(project.resolve(), output, options, engine, progress, verbose)
        try:
            done = port(project, output, options, engine, progress, force=force, check=_checker(target) if then_check else None)
        except Busy:
            raise Failure("another run is at work there", output) from None
    _tell(done, output, style, verbose, time.monotonic() - start, engine)
    return exit_code(done.report)


def _refuse(project: Path, output: Path, force: bool) -> None:
    from migrate.port.store import STATE

    if output.resolve() == project.resolve() or project.resolve().is_relative_to(output.resolve()):
        raise Failure("the output can't be the project itself or a folder around it", output)
    if output.is_file():
        raise Failure("is not a folder", output)
    if output.is_dir() and any(output.iterdir()) and not (output / STATE).is_dir() and not force:
        raise Failure("holds other files; --force writes among them", output)


@contextlib.contextmanager
def _engine(name: str, jobs: int | None) -> Iterator[Any]:
    if name == "ray":
        from migrate.port.cluster import Ray, RayMissing

        try:
            engine: Any = Ray(jobs)
        except RayMissing as e:
            raise Failure(str(e)) from None
    else:
        from migrate.port.pool import Processes

        engine = Processes(jobs or len(os.sched_getaffinity(0)))
    try:
        yield engine
    finally:
        engine.close()


@contextlib.contextmanager
def progress_bar() -> Iterator[Any]:
    """Lines done, with an estimate of the time that is left; nothing where nobody looks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal or os.environ.get("TERM") == "dumb":
        yield lambda what, done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("lines"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("looking", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total or None)


def _dry(project: Path, output: Path, options: Any, engine: Any, progress: Any, verbose: bool) -> int:
    from migrate.port.run import look

    plan = look(project, options, engine, None, output, progress)
    roles: dict[str, int] = {}
    others = [e for e in plan.entries if e.is_beside]
    for e in plan.entries:
        if e in others:
            continue
        role = f"copied ({e.why})" if e.why else ROLES.get(e.role, e.role)
        roles[role] = roles.get(role, 0) + 1
        if verbose:
            click.echo(f"{role}: {e.path}")
    lines = sum(p.lines for p in plan.parts)
    supports = ", ".join(sorted({plan.support(p)[1] for p in plan.parts}))
    click.echo(f"{len(plan.entries) - len(others)} files: " + ", ".join(f"{n} {role}" for role, n in sorted(roles.items())) + _beside(others))
    about = "about " if any(e.role == "notebook" for e in plan.entries) else ""  # what is in their cells is not read yet
    click.echo(f"{about}{lines} lines of Python in {len(plan.parts)} parts" + (f"; shared definitions, where there are any, in {supports}" if supports else ""))
    click.echo("nothing was written")
    return 0


def _beside(others: Sequence[Any]) -> str:
    return f"; beside them {len(others)} copied that are no Python" if others else ""


def _checker(target: str) -> Any:
    from migrate.port.checks import checker

    return checker(target)


def exit_code(report: dict[str, Any]) -> int:
    """0 all done, 1 something left or different, 123 a bug of ours."""
    codes = report["totals"]["codes"]
    if any(c.startswith("MIG9") for c in codes):
        return 123
    left = any(c["severity"] == "error" for c in codes.values())
    return 1 if left or any(c["result"] == "different" for c in report["checks"]) else 0


def _tell(done: Any, output: Path, style: str, verbose: bool, seconds: float, engine: Any) -> None:
    from migrate.port.report import HTML
    from migrate.report import machine, text

    files = {f["path"]: machine.Told(f["path"], f["diagnostics"]) for f in done.report["files"]}
    if style == "json":
        click.echo(json.dumps(done.report, indent=2))
        return
    if style == "sarif":
        click.echo(json.dumps(machine.as_sarif(files), indent=2))
        return
    for path, d in text.located(files):
        if verbose or d.severity != "info":
            echo(text.line(path, d), text.COLOURS[d.severity])
    totals = done.report["totals"]
    for path in done.outcome.edited:
        echo(f"{output / path}: kept, as it was edited since; --force replaces it", "yellow")
    told = [f"{n} {s}" for s, n in totals["status"].items() if n]
    click.echo(f"{totals['files']} files: {', '.join(told)}; {totals['lines']} lines of Python{_beside([e for e in done.plan.entries if e.is_beside])}")
    n = text.counts(files)
    work = f"about {totals['minutes'] / 60:.1f} hours of work"
    click.echo(f"{text.plural(n['error'], 'construct')} left, {text.plural(n['warning'], 'warning')}; {work}")
    if checks := done.report["checks"]:
        counted = Counter(c["result"] for c in checks)
        echo(f"{text.plural(len(checks), 'model')} checked: " + ", ".join(f"{k} {r}" for r, k in sorted(counted.items())))
        for c in checks:
            if c["result"] != "equal" and (verbose or c["result"] == "different"):
                echo(f"{c['path']}: {c['model']}: {c['message']}", text.COLOURS["error" if c["result"] == "different" else "warning"])
    memory = max(engine.memory, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024) / 2**20
    again = f", {done.plan.reused} of {len(done.plan.parts)} parts from an earlier run" if done.plan.reused else ""
    click.echo(f"{seconds:.1f} s, at most {memory:.0f} MB a process{again}")
    click.echo(f"report: {output / HTML}")
