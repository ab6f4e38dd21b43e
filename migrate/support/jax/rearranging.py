"""The layers of einops, as plain callables: they have no parameters."""
import einops


class Rearrange:
    """`einops.rearrange` with a fixed pattern."""

    def __init__(self, pattern, **axes_lengths):
        axes_lengths.pop("rngs", None)
        self.pattern, self.axes_lengths = pattern, axes_lengths

    def __call__(self, input):
        return einops.rearrange(input, self.pattern, **self.axes_lengths)


class Reduce:
    """`einops.reduce` with a fixed pattern."""

    def __init__(self, pattern, reduction, **axes_lengths):
        axes_lengths.pop("rngs", None)
        self.pattern, self.reduction, self.axes_lengths = pattern, reduction, axes_lengths

    def __call__(self, input):
        return einops.reduce(input, self.pattern, self.reduction, **self.axes_lengths)
