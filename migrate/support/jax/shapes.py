"""Shapes as PyTorch changes them, where jax.numpy is stricter or has nothing."""
import itertools
import math

import jax.numpy as jnp
import numpy as np


def squeeze(input, dim):
    """Removes `dim` (or each of several dimensions) where its size is 1, and leaves it alone elsewhere."""
    dims = (dim,) if np.ndim(dim) == 0 else dim
    return jnp.squeeze(input, tuple(d for d in dims if input.shape[d:][:1] == (1,)))


def expand(input, *size):
    """Broadcasts to `size`; -1 keeps a dimension."""
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    kept = (1,) * (len(size) - input.ndim) + input.shape
    return jnp.broadcast_to(input, tuple(k if n == -1 else n for k, n in zip(kept, size, strict=True)))


def sum_to_size(input, *size):
    """Sums the dimensions away that broadcasting `size` to the shape of `input` would repeat."""
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    extra = input.ndim - len(size)
    repeated = tuple(d for d in range(input.ndim) if d < extra or (size[d - extra] == 1 and input.shape[d] != 1))
    return input.sum(repeated).reshape(size)


def flatten(input, start_dim=0, end_dim=-1):
    """Merges the dimensions from `start_dim` up to and with `end_dim`."""
    if input.ndim == 0:
        return input.reshape(1)
    start, end = start_dim % input.ndim, end_dim % input.ndim + 1
    return input.reshape(*input.shape[:start], math.prod(input.shape[start:end]), *input.shape[end:])


def unflatten(input, dim, sizes):
    """Splits dimension `dim` into `sizes`, one of which may be -1."""
    dim = dim % input.ndim
    known = math.prod(n for n in sizes if n != -1)
    sizes = tuple(input.shape[dim] // known if n == -1 else n for n in sizes)
    return input.reshape(*input.shape[:dim], *sizes, *input.shape[dim + 1 :])


def split(input, split_size_or_sections, dim=0):
    """Pieces of one size (the last may be smaller), or of the sizes of a list."""
    length = input.shape[dim]
    if np.ndim(split_size_or_sections) == 0:
        return tuple(jnp.split(input, list(range(split_size_or_sections, length, split_size_or_sections)), axis=dim))
    ends = list(itertools.accumulate(split_size_or_sections))
    if ends[-1] != length:
        raise ValueError(f"sizes {tuple(split_size_or_sections)} do not add up to {length}, the size of dimension {dim}")
    return tuple(jnp.split(input, ends[:-1], axis=dim))


def chunk(input, chunks, dim=0):
    """At most `chunks` pieces, all but the last of the same size; that many of nothing."""
    size = -(-input.shape[dim] // chunks)
    if size == 0:
        return (input,) * chunks
    return tuple(jnp.split(input, list(range(size, input.shape[dim], size)), axis=dim))


def unfold_dimension(input, dimension, size, step):
    """All windows of `size` elements along `dimension`, every `step`; the window becomes the last dimension."""
    dimension = dimension % max(input.ndim, 1)
    starts = np.arange(0, (input.shape or (1,))[dimension] - size + 1, step)
    windows = jnp.take(jnp.atleast_1d(input), starts[:, None] + np.arange(size), axis=dimension)
    windows = jnp.moveaxis(windows, dimension + 1, -1)
    return windows if input.ndim else windows[0]


def as_strided(input, size, stride, storage_offset=0):
    """Elements of the flattened input: `size` of them along each dimension, `stride` apart."""
    return input.ravel()[strided_positions(size, stride, storage_offset)]


def strided_positions(size, stride, storage_offset=None):
    """The positions in a flat array that `size` and `stride` describe."""
    grid = np.indices(tuple(size))
    return (storage_offset or 0) + sum((g * s for g, s in zip(grid, stride, strict=True)), np.zeros(tuple(size), int))


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices with the last dimension of `input` on a diagonal, the new dimensions at `dim1` and `dim2`."""
    n = input.shape[-1]
    side = n + abs(offset)
    rows, columns = np.arange(n) + max(-offset, 0), np.arange(n) + max(offset, 0)
    out = jnp.zeros((*input.shape[:-1], side, side), input.dtype).at[..., rows, columns].set(input)
    return jnp.moveaxis(out, (-2, -1), (dim1, dim2))


def cartesian_prod(*tensors):
    """All combinations of one element of each vector, one a row."""
    if len(tensors) == 1:
        return tensors[0]
    return jnp.stack([g.ravel() for g in jnp.meshgrid(*tensors, indexing="ij")], axis=-1)


def combinations(input, r=2, with_replacement=False):
    """All combinations of `r` elements of a vector, one a row."""
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(pick(range(input.shape[0]), r)), dtype=int).reshape(-1, r)
    return input[rows]
