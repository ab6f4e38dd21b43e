"""Random numbers that both sides share: the n-th draw of a run is the same array on both, so that stochastic models can be
compared by value.

The legacy generator of numpy is used because its streams are frozen. `log` keeps what was drawn; where the two logs differ, values
can't be compared.
"""

import math
from typing import Any

import numpy as np

from migrate.check.stages import Skipped, StageError

Array = np.ndarray[Any, Any]


class Draws:
    """The sequence of draws of one run."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.log: list[list[Any]] = []  # [kind, shape without axes of one] for each draw

    def restart(self) -> None:
        """The next draw is the first again."""
        self.log = []

    def next(self, kind: str, shape: tuple[int, ...]) -> Array:
        """The next array in float64, of values that float32 has: "uniform" in [0, 1) or "normal"; anything else is logged and
        drawn as uniform."""
        draw = np.random.RandomState([self.seed, len(self.log)])
        self.log.append([kind, [n for n in shape if n != 1]])  # with or without an axis for the batch, the numbers are the same
        if kind == "normal":
            return np.asarray(np.asarray(draw.standard_normal(shape), np.float32), np.float64)
        # 24 bits, so that float32 holds it exactly and `u < p` means the same on both sides
        return np.asarray(np.floor(np.asarray(draw.random_sample(shape)) * 2**24) / 2**24)


def same_draws(want: list[Any], got: list[Any]) -> None:
    """Raises StageError where the converted model can't be right: it draws less often than the original, or as often, but other numbers or
    not as many. Raises Skipped where it draws so that values can't be compared."""
    if not want or want == got:
        return
    if len(got) < len(want):
        fewer = f"only {len(got)} times" if got else "none"
        raise StageError(f"the original draws random numbers {len(want)} times, the converted model {fewer}")
    if len(got) == len(want) and not any(kind.startswith("other") for kind, _ in [*want, *got]):
        for (kind, shape), (other, shape_got) in zip(want, got, strict=True):
            if (kind, math.prod(shape)) != (other, math.prod(shape_got)):
                raise StageError(f"the original draws {math.prod(shape)} {kind} numbers, the converted model {math.prod(shape_got)} {other} ones")
    times = f"the original draws random numbers {len(want)} times, the converted model {len(got)} times or in other shapes"
    raise Skipped(f"values can't be compared: {times}")
