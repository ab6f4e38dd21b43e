"""`migrate ops`."""

import difflib
from pathlib import Path

import click

from migrate import tables
from migrate.cli.failure import Failure
from migrate.report.rows import coverage, describe, find
from migrate.settings import table_for


@click.command("ops", short_help="Show what a PyTorch operator or layer becomes.")
@click.argument("name", required=False)
@click.option("--target", type=click.Choice(["flax", "keras"]), help="Only this target.")
@click.option("--coverage", "count", is_flag=True, help="Count the rows instead, by kind and target.")
def command(name: str | None, target: str | None, count: bool) -> int:
    """Shows what NAME (`gelu`, `F.gelu`, `nn.Conv2d`, `torch.cat`) becomes, with the known differences; without NAME, lists what
    is known."""
    table = table_for(Path.cwd())
    if count:
        click.echo(coverage(table, (target,) if target else tuple(tables.TARGETS)))
        return 0
    if name is None:
        for row in sorted(table.rows, key=lambda r: r.torch):
            click.echo(f"{row.torch}{row.signature if row.kind != 'constant' else ''}")
        return 0
    rows = find(table, name)
    if not rows:
        known = {r.torch.rsplit(".", 1)[-1] for r in table.rows}
        near = difflib.get_close_matches(name.rsplit(".", 1)[-1], known, n=4)
        raise Failure(f"nothing is known of {name}" + (f"; did you mean {', '.join(near)}?" if near else ""), exit_code=1)
    targets = (target,) if target else tuple(tables.TARGETS)
    click.echo("\n\n".join(describe(row, targets) for row in rows))
    return 0
