"""A verdict as one HTML page that needs nothing else: no script, no network, everything escaped."""

import difflib
import math
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrate.check.compare import FACTOR
from migrate.check.verdict import Submodule, Verdict

FOLDER = Path(__file__).parent
WIDTH, HEIGHT = 860, 220  # of the plot
LOWEST = 1e-2  # units; what is less is drawn there


class NoJinja(RuntimeError):
    """Jinja2 is not installed."""


def page(verdict: Verdict, original: Path | None, converted: Path | None) -> str:
    """The whole page. Raises NoJinja."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise NoJinja("an HTML report needs Jinja2: pip install 'migrate[html]'") from None
    options: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=FileSystemLoader(FOLDER), **options)
    environment.filters["units"] = lambda x: f"{x:.2f}" if x < 1000 else f"{x:.1e}"
    return environment.get_template("page.html.jinja").render(
        v=verdict,
        factor=FACTOR,
        tree=list(tree(verdict.submodules)),
        plot=plot(verdict),
        pictures=[picture(p) for p in verdict.extra.get("pictures", ())],
        places=_places(verdict),
        lines=list(side_by_side(_read(original), _read(converted), _marked(verdict, original, converted))),
        original=original.name if original else "",
        converted=converted.name if converted else "",
        tensors=sorted((*verdict.outputs, *verdict.gradients, *verdict.state), key=lambda t: -_finite(t.units))[:40],
    )


def tree(rows: tuple[Submodule, ...]) -> Iterator[dict[str, Any]]:
    """The submodules in the order of their names' tree, with depth and the width of their bar."""
    order = {r.name: i for i, r in enumerate(rows)}
    first: dict[str, int] = {}
    for r in rows:
        for above in _above(r.name):
            first[above] = min(first.get(above, order[r.name]), order[r.name])

    def place(row: Submodule) -> tuple[tuple[int, str], ...]:
        return tuple((first[above], above) for above in _above(row.name))

    for row in sorted(rows, key=place):
        worst = max(_finite(row.units), _finite(row.probe or 0.0))
        yield {"row": row, "depth": row.name.count(".") + 1 if row.name else 0, "short": row.name.rpartition(".")[2] or "the model",
               "worst": worst, "bar": _share(worst)}  # fmt: skip


def _above(name: str) -> list[str]:
    """A submodule and those that hold it, the outermost first; the model itself is above all."""
    parts = name.split(".") if name else []
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def _finite(x: float) -> float:
    return x if math.isfinite(x) else 1e9


def _share(units: float) -> float:
    """The width of a bar in percent: logarithmic, the limit at 60."""
    if units <= LOWEST:
        return 1.0
    return min(100.0, 60 * math.log10(units / LOWEST) / math.log10(FACTOR / LOWEST))


def plot(verdict: Verdict) -> dict[str, Any]:
    """Error against depth: a point for each submodule in the order in which they finish, log scale."""
    rows = [r for r in verdict.submodules if r.verdict != "not separate"]
    if not rows:
        return {"points": []}
    values = [max(_finite(r.units), LOWEST) for r in rows]
    top = max(FACTOR * 2, min(max(values), 1e6))

    def y(units: float) -> float:
        units = min(max(units, LOWEST), top)
        return round(HEIGHT - 20 - (HEIGHT - 40) * math.log10(units / LOWEST) / math.log10(top / LOWEST), 1)

    step = (WIDTH - 60) / max(1, len(rows) - 1)
    points = [{"x": round(50 + i * step, 1), "y": y(v), "name": r.name or "the model", "units": r.units, "bad": r.verdict == "differs"}
              for i, (r, v) in enumerate(zip(rows, values, strict=True))]  # fmt: skip
    ticks = [{"y": y(10.0**e), "text": f"{10.0**e:g}"} for e in range(-2, 7) if 10.0**e <= top]
    return {"points": points, "line": " ".join(f"{p['x']},{p['y']}" for p in points), "limit": y(FACTOR), "ticks": ticks, "width": WIDTH,
            "height": HEIGHT}  # fmt: skip


def picture(p: dict[str, Any]) -> dict[str, Any]:
    """The grids of a tensor as cells with colours: both values on one scale, the difference on its own."""
    reference, got, gap = p["grids"]
    shared = max((abs(x) for g in (reference, got) for row in g for x in row), default=0.0)
    own = max((abs(x) for row in gap for x in row), default=0.0)
    size = max(4, min(14, 260 // max(1, len(gap[0]))))

    def cells(grid: Any, scale: float) -> list[dict[str, Any]]:
        at = [(i, j, x) for i, row in enumerate(grid) for j, x in enumerate(row)]
        return [{"x": j * size, "y": i * size, "fill": colour(x / scale if scale else 0.0)} for i, j, x in at]

    maps = [("PyTorch in float64", reference, shared), ("converted", got, shared), ("difference", gap, own)]
    return p | {"size": size, "maps": [{"title": t, "scale": s, "cells": cells(g, s), "width": len(g[0]) * size, "height": len(g) * size}
                                       for t, g, s in maps]}  # fmt: skip


def colour(x: float) -> str:
    """Blue below zero, white at it, red above; `x` from -1 to 1."""
    x = max(-1.0, min(1.0, x))
    pale = round(255 * (1 - abs(x)))
    return f"rgb(255,{pale},{pale})" if x >= 0 else f"rgb({pale},{pale},255)"


def side_by_side(before: list[str], after: list[str], marked: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """Rows of the two sources, aligned; `changed` where they differ, `here` at the first place that differs in numbers."""
    if not before or not after:
        return
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for i in range(max(b - a, d - c)):
            left, right = a + i if a + i < b else None, c + i if c + i < d else None
            yield {
                "left": None if left is None else left + 1, "right": None if right is None else right + 1,
                "before": "" if left is None else before[left], "after": "" if right is None else after[right],
                "changed": kind != "equal",
                "here": (left is not None and left + 1 == marked[0]) or (right is not None and right + 1 == marked[1]),
            }  # fmt: skip


def _marked(verdict: Verdict, *files: Path | None) -> tuple[int, int]:
    """The lines of the first difference in the two files; 0 where it is in another one."""
    first = verdict.first
    at = (first.original, first.converted) if first else ()
    lines = [p.line if f is not None and Path(p.file).name == f.name else 0 for p, f in zip(at, files, strict=False)]
    return (lines[0], lines[1]) if lines else (0, 0)


def _places(verdict: Verdict) -> list[str]:
    first = verdict.first
    found = (("original", first.original), ("converted", first.converted)) if first else ()
    return [f"{side}: {Path(p.file).name}, line {p.line}" for side, p in found if p.line]


def _read(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        with tokenize.open(path) as f:
            return f.read().splitlines()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return []
