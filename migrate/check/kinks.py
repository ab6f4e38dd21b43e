"""What jumps where values are off by rounding: a unit that switches on or off, another largest element of a window.

A run that is off by +d and one that is off by -d move everything smooth by as much in opposite directions, so that the mean of the two is
the run itself; what is left of the mean is a jump. A converted model may make any jump that lies within the reach of rounding, and one run
of PyTorch in float32 shows few of them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from migrate.check import leaves
from migrate.check.torch_sides import HALF_ULP, Sides

REACH = 16.0  # half units in the last place: what the rounding of weights, inputs and all that is computed of them comes to
PARTS = 4.0  # a jump found counts as so many roundings, since several are found at once


def widen(sides: Sides, task: Any, values: Any, exact: Any, tensors: Callable[[Any], list[Any]], found: list[Any], pairs: int = 2) -> None:
    """Adds to `own` of the leaves in `found` what jumps. `exact` is what `task` gave in float64; `tensors` lists its tensors, one for each leaf."""
    for seed in range(pairs):
        ways = [tensors(sides.only("f64", partial(_off, task, seed, sign), values)[0]) for sign in (1.0, -1.0)]
        for leaf, middle, up, down in zip(found, tensors(exact), *ways, strict=True):
            if leaf is not None:
                leaf["own"] = max(leaf["own"], _jump(middle, up, down) / PARTS)


def _off(task: Any, seed: int, sign: float, model: Any, given: Any) -> Any:
    """`task` with weights, buffers and inputs off in one direction."""
    generator = torch.Generator().manual_seed(seed)

    def shifted(v: Any) -> Any:
        return 1 + sign * REACH * HALF_ULP * (2 * torch.rand(v.shape, generator=generator, dtype=torch.float64) - 1)

    with torch.no_grad():
        for value in [*model.parameters(), *model.buffers()]:
            if value.is_floating_point():
                value.mul_(shifted(value))
    return task(model, leaves.rebuild(given, lambda v: v * shifted(v) if isinstance(v, torch.Tensor) and v.is_floating_point() else v))


def _jump(middle: Any, up: Any, down: Any) -> float:
    """The largest difference between the mean of two and their middle."""
    if not isinstance(middle, torch.Tensor) or not middle.is_floating_point() or not middle.shape == up.shape == down.shape:
        return 0.0
    gap = (up + down - 2 * middle).abs()
    gap = gap[torch.isfinite(gap)]
    return float(gap.max()) if gap.numel() else 0.0
