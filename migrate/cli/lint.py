"""`migrate lint`."""

import json
from pathlib import Path
from typing import Any

import click

import migrate
from migrate.cli import files
from migrate.cli.config import Configured
from migrate.cli.failure import Failure
from migrate.cli.show import diagnostics
from migrate.report import machine, text
from migrate.settings import table_for


@click.command("lint", cls=Configured, short_help="Say what would be left or differ, and write nothing.")
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--target", type=click.Choice(["flax", "keras"]), default="flax", show_default=True)
@click.option("--stdin-filename", default="model.py", show_default=True, help="The name of what is read from `-`.")
@click.option("--format", "style", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True, help="How to report.")
@click.option("--strict", is_flag=True, help="Exit code 1 for warnings too.")
@click.option("-v", "--verbose", is_flag=True, help="Report what went well too.")
def command(sources: tuple[Path, ...], target: str, stdin_filename: str, style: str, strict: bool, verbose: bool) -> int:
    """Converts SOURCES (files, folders, `-`) in memory, each file with the local modules beside it, and prints the diagnostics.

    For editors, pre-commit and continuous integration.
    """
    found: dict[str, Any] = {}
    for source in sources:
        if str(source) == "-":
            table = table_for(Path.cwd())
            found[stdin_filename] = migrate.convert_source(files.read_bytes("-"), target=target, filename=stdin_filename, table=table)
        elif not source.exists():
            raise Failure("no such file or folder", source)
        else:
            found.update(_diagnosed(source, target))
    if style == "text":
        diagnostics(found, verbose)
        click.echo(text.summary(found).replace("converted", "read", 1))
    else:
        for_machines = machine.as_sarif(found) if style == "sarif" else machine.as_json(found, written=["nothing"]) | {"written": []}
        click.echo(json.dumps(for_machines, indent=2))
    counts = text.counts(found)
    if any(d.code.startswith("MIG9") for _, d in text.located(found)):
        return 123
    return 1 if counts["error"] or (strict and counts["warning"]) else 0


def _diagnosed(source: Path, target: str) -> dict[str, Any]:
    """The conversions of a file, or of the files of a folder; not those of the modules that it imports."""
    from migrate.project import plan_path

    planned = plan_path(source, target)
    here = source.resolve()
    return {files.relative(p): c for p, c in planned.files.items() if p == here or here.is_dir()}
