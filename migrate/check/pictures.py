"""Small pictures of the tensors that are furthest off: reference, converted, difference."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from migrate.check.compare import difference, wide
from migrate.check.jax_tasks import Tasks

SIDE, MOST = 40, 4  # cells along an edge; tensors


def pictures(tasks: Tasks) -> list[dict[str, Any]]:
    """The worst few tensors of the run, the largest error in units first; each as three grids of numbers."""
    found = []
    for name, value, leaf in _compared(tasks):
        got, want = np.asarray(value), tasks.reader.get(leaf["key"])
        if got.dtype.kind == "f" and got.shape == want.shape and got.size > 1:
            d = difference(got, want, leaf["dtype"], leaf["own"])
            found.append((d.units, name, got, want, d))
    first = (tasks.result["first"] or {}).get("module")
    found.sort(key=lambda f: (f[1] != (first or "the model") or first is None, -f[0]))
    shown = {(d.error, want.shape): (name, got, want, d) for _, name, got, want, d in reversed(found)}  # what only passes it on is left out
    return [_picture(*f) for f in list(shown.values())[::-1][:MOST]]


def _compared(tasks: Tasks) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    run = tasks.content["runs"][0]
    outcome = tasks.outcomes.get(run["name"])
    if outcome is None:
        return
    wanted = {(e["module"], e["call"]): e["leaves"] for e in run.get("events", ()) if e["at"] == "exit"}
    for at, module, call, values in outcome.seen:
        leaves = wanted.get((module, call), ())
        if at == "exit" and len(leaves) == len(values):
            yield from ((f"{module or 'the model'}{path}", v, leaf) for (path, v), leaf in zip(values, leaves, strict=True))


def _picture(name: str, got: Any, want: Any, d: Any) -> dict[str, Any]:
    a, b = wide(want), wide(got)
    gap = np.where(np.isfinite(a) & np.isfinite(b), b - a, 0.0)
    at = np.unravel_index(int(np.abs(gap).argmax()), gap.shape)
    cut = tuple(at[:-2]) if gap.ndim > 2 else ()
    grids = [_small(np.atleast_2d(v[cut])) for v in (a, b, gap)]
    return {
        "name": name,
        "shape": list(want.shape),
        "cut": [int(i) for i in cut],
        "error": d.error,
        "scale": d.scale,
        "units": d.units,
        "grids": [[[float(f"{x:.4g}") for x in row] for row in np.nan_to_num(g)] for g in grids],
    }


def _small(grid: Any) -> Any:
    """At most SIDE cells along each edge; a cell shows the value of largest size in its block."""
    for axis in (0, 1):
        step = -(-grid.shape[axis] // SIDE)
        if step > 1:
            pad = [(0, 0), (0, 0)]
            pad[axis] = (0, -grid.shape[axis] % step)
            blocks = np.moveaxis(np.pad(grid, pad, mode="edge"), axis, 0)
            blocks = blocks.reshape(-1, step, blocks.shape[1])
            pick = np.abs(blocks).argmax(1)
            grid = np.moveaxis(np.take_along_axis(blocks, pick[:, None], 1)[:, 0], 0, axis)
    return grid
