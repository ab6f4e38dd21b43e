"""`migrate explain`."""

import difflib

import click

from migrate.cli.failure import Failure
from migrate.diagnostics import CODES
from migrate.report.pages import BANDS


@click.command("explain", short_help="Explain a diagnostic code.")
@click.argument("code", required=False)
def command(code: str | None) -> int:
    """Explains CODE (such as MIG302), or lists all codes."""
    if code is None:
        for entry in CODES.values():
            click.echo(f"{entry.code}  {entry.severity:8} {entry.title}")
        return 0
    name = code.upper() if code.upper().startswith("MIG") else f"MIG{code}"
    if name not in CODES:
        near = difflib.get_close_matches(name, CODES, n=3)
        raise Failure(f"no code {code}" + (f"; did you mean {', '.join(near)}?" if near else "; `migrate explain` lists them"))
    entry = CODES[name]
    click.echo(f"{entry.code} {entry.title} ({entry.severity})\n\nWhy:  {entry.why}\nThen: {entry.way_out}\n\n{BANDS[entry.code[3]]}")
    return 0
