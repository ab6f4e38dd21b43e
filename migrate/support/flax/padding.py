"""Padding layers: (left, right) of the last axis, then of the one before, and so on; an int is for all."""
from flax import nnx

from migrate.support.jax.padding import pad_nd
from migrate.support.jax.windows import ntuple


class PadNd(nnx.Module):
    """Pads the last axes; negative amounts crop."""

    mode = "constant"

    def __init__(self, padding, value=0.0, *, rngs=None):
        self.padding, self.value = ntuple(padding, 2 * self.rank), value

    def __call__(self, input):
        return pad_nd(input, self.padding, self.mode, self.value)


class ConstantPad1d(PadNd):
    """Pads the last axis with a value."""

    rank = 1


class ConstantPad2d(PadNd):
    """Pads the last two axes with a value."""

    rank = 2


class ConstantPad3d(PadNd):
    """Pads the last three axes with a value."""

    rank = 3


class ZeroPad1d(PadNd):
    """Pads the last axis with zeros."""

    rank = 1


class ZeroPad2d(PadNd):
    """Pads the last two axes with zeros."""

    rank = 2


class ZeroPad3d(PadNd):
    """Pads the last three axes with zeros."""

    rank = 3


class ReflectionPad1d(PadNd):
    """Pads the last axis with its mirror image."""

    rank = 1
    mode = "reflect"


class ReflectionPad2d(PadNd):
    """Pads the last two axes with its mirror image."""

    rank = 2
    mode = "reflect"


class ReflectionPad3d(PadNd):
    """Pads the last three axes with its mirror image."""

    rank = 3
    mode = "reflect"


class ReplicationPad1d(PadNd):
    """Pads the last axis with its edge."""

    rank = 1
    mode = "replicate"


class ReplicationPad2d(PadNd):
    """Pads the last two axes with its edge."""

    rank = 2
    mode = "replicate"


class ReplicationPad3d(PadNd):
    """Pads the last three axes with its edge."""

    rank = 3
    mode = "replicate"


class CircularPad1d(PadNd):
    """Pads the last axis with its other end."""

    rank = 1
    mode = "circular"


class CircularPad2d(PadNd):
    """Pads the last two axes with its other end."""

    rank = 2
    mode = "circular"


class CircularPad3d(PadNd):
    """Pads the last three axes with its other end."""

    rank = 3
    mode = "circular"
