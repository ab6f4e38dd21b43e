"""Random numbers that both sides share: the n-th draw of a run is the same array on both, so that stochastic models can be
compared by value.

The legacy generator of numpy is used because its streams are frozen. `log` keeps what was drawn; where the two logs differ, values
can't be compared.
"""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Draws:
    """The sequence of draws of one run."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.log: list[list[Any]] = []  # [kind, shape] for each draw

    def restart(self) -> None:
        """The next draw is the first again."""
        self.log = []

    def next(self, kind: str, shape: tuple[int, ...]) -> Array:
        """The next array in float64, of values that float32 has: "uniform" in [0, 1) or "normal"; anything else is logged and
        drawn as uniform."""
        draw = np.random.RandomState([self.seed, len(self.log)])
        self.log.append([kind, list(shape)])
        if kind == "normal":
            return np.asarray(draw.standard_normal(shape), np.float32).astype(np.float64)
        # 24 bits, so that float32 holds it exactly and `u < p` means the same on both sides
        return np.floor(np.asarray(draw.random_sample(shape)) * 2**24) / 2**24
