"""Dropout in its kinds. `train()` and `eval()` switch `deterministic`, as in `nnx.Dropout`."""
from flax import nnx

from migrate.support.flax.state import renamed
from migrate.support.jax.dropout import alpha_dropout, feature_alpha_dropout


class Dropout(nnx.Dropout):
    """`nnx.Dropout` with PyTorch's arguments."""

    p = renamed("rate")

    def __init__(self, p=0.5, inplace=False, *, rngs):
        super().__init__(p, rngs=rngs)

    def __call__(self, input):
        return super().__call__(input)


class Dropout1d(Dropout):
    """Zeroes whole channels of (N, C, L) or (C, L)."""

    def __init__(self, p=0.5, inplace=False, *, rngs):
        super().__init__(p, rngs=rngs)
        self.broadcast_dims = (-1,)


class Dropout2d(Dropout):
    """Zeroes whole channels of (N, C, H, W); of a (N, C, L) input those of axis 1, as PyTorch does."""

    def __init__(self, p=0.5, inplace=False, *, rngs):
        super().__init__(p, rngs=rngs)
        self.broadcast_dims = (-2, -1)

    def __call__(self, input):
        return super().__call__(input[..., None])[..., 0] if input.ndim == 3 else super().__call__(input)


class Dropout3d(Dropout):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    def __init__(self, p=0.5, inplace=False, *, rngs):
        super().__init__(p, rngs=rngs)
        self.broadcast_dims = (-3, -2, -1)


class AlphaDropout(nnx.Module):
    """Dropout for SELU networks, value by value: keeps mean 0 and variance 1."""

    def __init__(self, p=0.5, inplace=False, *, rngs):
        self.p, self.deterministic, self.rngs = p, False, rngs.fork()

    def __call__(self, input):
        return alpha_dropout(input, self.p, not self.deterministic, rngs=self.rngs)


class FeatureAlphaDropout(nnx.Module):
    """Dropout for SELU networks, whole channels of (N, C, *)."""

    def __init__(self, p=0.5, inplace=False, *, rngs):
        self.p, self.deterministic, self.rngs = p, False, rngs.fork()

    def __call__(self, input):
        return feature_alpha_dropout(input, self.p, not self.deterministic, rngs=self.rngs)
