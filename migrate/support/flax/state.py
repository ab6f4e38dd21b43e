"""Variables of a module that are not parameters, and second names of attributes."""
from flax import nnx


class Buffer(nnx.Variable):
    """State that is no parameter; with `persistent=False` it is not part of checkpoints."""


def renamed(name):
    """A property that is another name of the attribute `name`."""
    return property(lambda self: getattr(self, name), lambda self, value: setattr(self, name, value))
