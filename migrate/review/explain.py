"""Why a piece changes: the rule's own words, the row of the tables and what to know about it."""

import importlib
from functools import cache

from migrate.report.rows import describe
from migrate.tables import Table

FRAME = "The frame of the class: its base, its constructor and the names that the target calls. These lines move together."
HEAD = "The function makes modules or draws random numbers, so it takes the random stream. Its callers pass it, and move together with it."
_OWN = {
    "comments": "Left as it was: nothing equivalent is known. A comment says why.",
    "modules": FRAME,
    "positional": "The target takes this argument by position only.",
}


def short(name: str) -> str:
    """A row's name as people say it: `nn.Linear`, `F.gelu`, `torch.cat`."""
    for long, said in (("torch.nn.functional.", "F."), ("torch.nn.", "nn."), ("torch.Tensor.", ".")):
        if name.startswith(long):
            return said + name[len(long) :]
    return name


@cache
def rule_prose(rule: str) -> str:
    """The first sentence of a rule's own description."""
    if rule in _OWN:
        return _OWN[rule]
    try:
        doc = importlib.import_module(f"migrate.rules.{rule}").__doc__ or ""
    except ImportError:
        return ""
    return " ".join(doc.strip().partition("\n\n")[0].split())


def rows_of(reasons: tuple[tuple[str, str], ...], table: Table) -> list[str]:
    """The rows (or names of PyTorch without one) behind some edits, in order, each once."""
    return list(dict.fromkeys(why for _, why in reasons if why.startswith("torch.") or (why and table.get(why) is not None)))


def row_lines(name: str, table: Table, target: str) -> list[str]:
    """What the tables say of a row for a target."""
    row = table.get(name)
    return [] if row is None else describe(row, [target]).splitlines()


def notes(reasons: tuple[tuple[str, str], ...], frame: bool) -> list[str]:
    """The rules' prose, each once."""
    if frame:
        return [FRAME]
    said = [rule_prose(rule) for rule, _ in reasons if rule]
    return list(dict.fromkeys(s for s in said if s))
