"""Copies of modules."""
from flax import nnx


def copy_module(module):
    """A copy with parameters and random streams of its own; `nnx.clone` repeats the random numbers."""
    copy = nnx.clone(module)
    streams = [(old, new) for (_, old), (_, new) in zip(nnx.iter_graph(module), nnx.iter_graph(copy)) if isinstance(old, nnx.RngStream)]
    for old, new in streams:
        new.key[...] = old()
    return copy
