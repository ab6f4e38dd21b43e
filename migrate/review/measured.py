"""What a check measured, for the piece whose submodule it is about."""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from migrate.review.pieces import Piece

Row = Mapping[str, Any]


def rows_for(piece: Piece, verdict: Mapping[str, Any]) -> list[Row]:
    """The submodules that a piece belongs to, the worst first: those it builds (`self.fc = ...`), else those of its class."""
    every: Sequence[Row] = verdict.get("submodules", ())
    owner = piece.place.partition(".")[0]
    mine = [r for r in every if r["cls"] == owner]
    names = {(f"{r['name']}.{n}" if r["name"] else n) for r in mine for n in _built(piece)}
    found = [r for r in every if r["name"] in names] or mine
    return sorted(found, key=lambda r: (r["verdict"] != "differs", -_number(r["units"])))


def _built(piece: Piece) -> set[str]:
    """The attributes that a piece assigns."""
    nodes = [n for h in piece.hunks for s in h.before.statements for n in ast.walk(s)]
    return {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else float("inf")


def said(piece: Piece, verdict: Mapping[str, Any]) -> str:
    """One line; "" where nothing was measured."""
    rows = rows_for(piece, verdict)
    if not rows:
        return ""
    r = rows[0]
    name = r["name"] or "the model"
    more = f" (worst of {len(rows)})" if len(rows) > 1 else ""
    if r["verdict"] == "not separate":
        return f"{name}: not a module of its own in the output, so not measured alone"
    word = "differs" if r["verdict"] == "differs" else "same"
    return f"{name}: {word}, max error {_number(r['error']):.1e}, {_number(r['units']):.2f} units of PyTorch's own error{more}"
