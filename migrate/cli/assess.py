"""`migrate assess`."""

import json
import os
from pathlib import Path
from typing import Any

import click

from migrate.cli import files
from migrate.cli.config import Configured
from migrate.cli.failure import Failure


@click.command("assess", cls=Configured, short_help="Say what a migration of a project would take.")
@click.argument("project", type=click.Path(path_type=Path))
@click.option("--target", type=click.Choice(["flax", "keras"]), default="flax", show_default=True)
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: one for each core]")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave these files out (patterns as in .gitignore). Repeatable.")
@click.option("--tests", is_flag=True, help="Count tests too.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write JSON.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to report.")
def command(
    project: Path, target: str, jobs: int | None, exclude: tuple[str, ...], tests: bool, html: Path | None, out: Path | None, style: str
) -> int:
    """Converts PROJECT in memory and says what would convert today, what would not and why, and what runs badly on a TPU.

    Nothing is written but what --html and --out name.
    """
    from migrate.assess.assessment import assess
    from migrate.cli.port import progress_bar
    from migrate.port import Options
    from migrate.port.discover import Choice
    from migrate.port.pool import Processes
    from migrate.port.report import html as page

    if not project.is_dir():
        raise Failure("no such folder" if not project.exists() else "is not a folder", project)
    engine = Processes(jobs or len(os.sched_getaffinity(0)))
    try:
        with progress_bar() as progress:
            found = assess(project, Options(target, Choice((), exclude, tests)), engine, progress)
    finally:
        engine.close()
    if html is not None:
        files.write(html, page(found, "assess.html").encode())
    if out is not None:
        files.write(out, (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())
    if style == "json":
        click.echo(json.dumps(found, indent=2))
    else:
        _print(found)
    return 0


def _print(found: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from migrate.cli.console import console

    screen = console()
    totals, share = found["totals"], found["share"]
    size = f"{totals['files']} files and {totals['lines']} lines of Python, {totals['modules']} modules"
    screen.print(f"[bold]{escape(found['project'])}[/] to {found['target']}: {size}")
    screen.print(
        f"converts today: {share['constructs']:.1%} of {totals['constructs']} constructs; {share['files']:.0%} of the files"
        f" and {share['lines']:.0%} of the lines have nothing left"
    )
    screen.print(f"work left: about {totals['minutes'] / 60:.1f} hours")
    if found["blockers"]:
        table = Table("code", "what", "times", "hours", "most of them", box=None, header_style="bold", pad_edge=False)
        for b in found["blockers"]:
            most = "; ".join(f"{a['message']} ({a['times']})" for a in b["about"][:2])
            table.add_row(b["code"], b["title"], str(b["times"]), f"{b['minutes'] / 60:.1f}", escape(most))
        screen.print("\n[bold]blockers[/]", table)
    if found["hostile"]:
        table = Table("on a TPU", "times", "first", "way out", box=None, header_style="bold", pad_edge=False)
        for h in found["hostile"]:
            table.add_row(h["kind"], str(h["times"]), escape(f"{h['places'][0]['path']}:{h['places'][0]['line']}"), escape(h["way_out"]))
        screen.print("", table)
    unknown = [o for o in found["operators"] if not o["known"]]
    screen.print(
        f"\n{len(found['operators'])} names of PyTorch are used, {len(unknown)} of them unknown to the conversion: "
        + (escape(", ".join(f"{o['name']} ({o['times']})" for o in unknown[:8])) or "none")
    )
    if found["libraries"]:
        screen.print(
            "libraries that build on PyTorch: " + escape(", ".join(f"{n['name']} ({n['files']} files)" for n in found["libraries"]))
        )
    if found["work"]:
        screen.print("most work: " + escape(", ".join(f"{w['path']} ({w['minutes']} min)" for w in found["work"][:5])))
