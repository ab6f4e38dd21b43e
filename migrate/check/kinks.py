"""What one run in float32 does not show of its own error.

A sum that cancels to nothing leaves only rounding, of the size of its terms, and in one order of summation perhaps none: PyTorch in float32 runs again
on values that are off by one rounding, and in float64 with what each operator gives rounded by chance. And what jumps: a unit that switches on or
off, another largest element of a window.

A run that is off by +d and one that is off by -d move everything smooth by as much in opposite directions, so that the mean of the two is
the run itself; what is left of the mean is a jump. A converted model may make any jump that lies within the reach of rounding, and one run
of PyTorch in float32 shows few of them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from migrate.check import leaves
from migrate.check.spool import to_numpy
from migrate.check.torch_rounding import PIECE, near_one, shift
from migrate.check.torch_sides import Sides

REACH = 16.0  # half units in the last place: what the rounding of weights, inputs and all that is computed of them comes to
PARTS = 4.0  # a jump found counts as so many roundings, since several are found at once


def widen(sides: Sides, task: Any, values: Any, exact: Any, tensors: Callable[[Any], list[Any]], found: list[Any], large: bool) -> None:
    """Adds to `own` of the leaves in `found`. `exact` is what `task` gave in float64; `tensors` lists its tensors, one for each leaf. A `large`
    model has many of all kinds, and runs less often."""
    middle = tensors(exact)
    for seed in range(1 if large else 2):
        ways = [tensors(sides.only("f64", partial(off, task, seed, sign * REACH), values, True)[0]) for sign in (1.0, -1.0)]
        again = middle if large else tensors(sides.only("f32", partial(off, task, seed, 2.0), values, True)[0])
        rounded = tensors(sides.only("f64", task, values, True, rounding=seed)[0])
        for leaf, here, up, down, *others in zip(found, middle, *ways, again, rounded, strict=True):
            if leaf is not None:
                leaf["own"] = max(leaf["own"], largest(here, up, down) / PARTS, *(largest(here, o) for o in others))


def off(task: Any, seed: int, size: float, model: Any, given: Any) -> Any:
    """`task` with weights, buffers and inputs off by up to so many half units."""
    generator = np.random.default_rng(seed)

    with torch.no_grad():
        for value in [*model.parameters(), *model.buffers()]:
            if value.is_floating_point():
                shift(value, generator, size)

    def shifted(v: Any) -> Any:
        return v * near_one(v.shape, generator, size).to(v.dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v

    return task(model, leaves.rebuild(given, shifted))


def largest(middle: Any, *others: Any) -> float:
    """The largest difference between the others and their middle, summed up with its sign: what is smooth cancels."""
    here, *there = [to_numpy(v) for v in (middle, *others)]
    if here.dtype.kind != "f" or any(a.dtype.kind != "f" or a.shape != here.shape for a in there):
        return 0.0
    most = 0.0
    for start in range(0, here.size, PIECE):
        piece = slice(start, start + PIECE)
        with np.errstate(invalid="ignore"):  # infinity less infinity
            gap = np.abs(sum(a.reshape(-1)[piece].astype(np.float64) for a in there) - len(there) * here.reshape(-1)[piece].astype(np.float64))
        most = max(most, float(gap.max(initial=0.0, where=np.isfinite(gap))))
    return most
