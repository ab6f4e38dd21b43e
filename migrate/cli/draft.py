"""`migrate draft`."""

from pathlib import Path

import click

from migrate.cli.failure import Failure
from migrate.report.draft import ask, draft
from migrate.report.rows import SHORT
from migrate.settings import table_for


@click.command("draft", short_help="Print a row to fill in, for an operator that is missing.")
@click.argument("name")
def command(name: str) -> int:
    """Prints a row of the mapping tables for NAME (`torch.cummax`, `nn.Foo`), with PyTorch's own signature where PyTorch is installed.

    What to do with it: docs/adding-an-operator.md.
    """
    for short, long in SHORT.items():
        if name.startswith(short):
            name = long + name[len(short) :]
    row = table_for(Path.cwd()).get(name)
    asked = ask(name) if name.startswith("torch.") else None
    if asked is not None and not asked.known:
        raise Failure(f"PyTorch {asked.version} has no {name}", exit_code=1)
    if row is not None:
        click.echo(f"# {name} is known already, in {row.file}: migrate ops {name}")
    click.echo(draft(name, asked), nl=False)
    return 0
