"""Sorting and searching, with PyTorch's results."""
import jax
import jax.numpy as jnp

from migrate.support.jax.reductions import ValuesIndices


def sort(input, dim=-1, descending=False):
    """The values along `dim` in order, and their indices."""
    if input.ndim == 0:
        return ValuesIndices(input, jnp.zeros((), int))
    order = jnp.argsort(input, axis=dim, descending=descending)
    return ValuesIndices(jnp.take_along_axis(input, order, axis=dim), order)


def smallest(x, k):
    """Where the `k` smallest of the last axis are, in order; NaN is the largest."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jax.lax.top_k(~x, k)[1]
    return jax.lax.cond(
        jnp.isnan(x).any(), lambda x: jnp.argsort(x, axis=-1)[..., :k].astype(jnp.int32), lambda x: jax.lax.top_k(-x, k)[1].astype(jnp.int32), x
    )


def topk(input, k, dim=-1, largest=True):
    """The `k` largest (or smallest) values along `dim` in order, and their indices."""
    if input.ndim == 0:
        return ValuesIndices(input, jnp.zeros((), int))
    x = jnp.moveaxis(input, dim, -1)
    if largest:
        values, indices = jax.lax.top_k(x, k)
    else:
        indices = smallest(jax.lax.stop_gradient(x), k)
        values = jnp.take_along_axis(x, indices, axis=-1)
    return ValuesIndices(jnp.moveaxis(values, -1, dim), jnp.moveaxis(indices, -1, dim))


def searchsorted(sorted_sequence, input, right=False):
    """Where each value of `input` would go in the sorted last dimension, which may come in rows."""
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return jnp.searchsorted(sorted_sequence, input, side=side)
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    find = jax.vmap(lambda row, values: jnp.searchsorted(row, values, side=side))
    return find(rows, input.reshape(rows.shape[0], -1 if input.size else 0)).reshape(input.shape)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Drops what equals its predecessor. The length depends on the data: not under jit."""
    rows = jnp.ravel(input) if dim is None else jnp.moveaxis(input, dim, 0)
    new = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
    new = jnp.concatenate([jnp.ones(rows[:1].shape[0], bool), new])
    starts = jnp.flatnonzero(new)
    out = rows[starts] if dim is None else jnp.moveaxis(rows[starts], 0, dim)
    inverse = (jnp.cumsum(new) - 1).reshape(input.shape if dim is None else -1)
    found = [out] + [inverse] * return_inverse + [jnp.diff(starts, append=rows.shape[0])] * return_counts
    return tuple(found) if len(found) > 1 else out
