"""Options from [tool.migrate] of the nearest pyproject.toml; those of the command line go before."""

from pathlib import Path

import click

NAMES = {"root": "roots"}  # of options whose parameter is called otherwise


class Configured(click.Command):
    """A command whose defaults pyproject.toml may set: that of the folder it is about, or of the current one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Sets the defaults, then reads the arguments."""
        from migrate.settings import options

        place = next((Path(a) for a in args if not a.startswith("-") and Path(a).exists()), Path.cwd())
        known = {p.name for p in self.params}
        found = {NAMES.get(k, k): v for k, v in options(place if place.is_dir() else place.resolve().parent).items()}
        ctx.default_map = {**(ctx.default_map or {}), **{k: v for k, v in found.items() if k in known}}
        return super().parse_args(ctx, args)
