"""Lookups in an embedding table, with PyTorch's options; JAX clips ids that are out of range where PyTorch raises."""
import jax
import jax.numpy as jnp

from migrate.support.jax.reductions import vector_norm


def embedding_rows(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    """ids (...) of weight (rows, width) -> (..., width); no gradient at `padding_idx`, or divided by how often an id occurs."""
    out = jnp.take(weight, input, axis=0)
    if max_norm is not None:  # PyTorch also shortens the rows in the table itself
        norm = vector_norm(out, norm_type, -1, keepdim=True)
        short = jnp.where(norm > max_norm, out * (max_norm / (norm + 1e-7)), out)
        out = out + jax.lax.stop_gradient(short - out)
    fixed, share = jax.lax.stop_gradient(out), 1
    if scale_grad_by_freq:
        share = 1 / jnp.bincount(jnp.ravel(input), length=weight.shape[0])[input]
    if padding_idx is not None:
        share = jnp.where(input == padding_idx % weight.shape[0], 0, share)
    return out if isinstance(share, int) else fixed + (out - fixed) * share[..., None].astype(out.dtype)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    """ids (...) of weight (rows, width) -> (..., width)."""
    return embedding_rows(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)


def embedding_bag(
    input, weight, offsets=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", per_sample_weights=None,
    include_last_offset=False, padding_idx=None,
):
    """ids (bags, n), or (ids,) with the bags' `offsets`, of weight (rows, width) -> the sum, mean or maximum of each bag."""
    if jnp.issubdtype(weight.dtype, jnp.integer):  # PyTorch's old order of arguments
        input, weight = weight, input
    if input.ndim == 2:
        count, bag = input.shape[0], jnp.repeat(jnp.arange(input.shape[0]), input.shape[1])
    else:
        count = offsets.shape[0] - int(include_last_offset)
        bag = jnp.searchsorted(offsets[:count], jnp.arange(input.shape[0]), side="right") - 1
    input = jnp.ravel(input)
    rows = embedding_rows(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    kept = jnp.ones(input.shape, bool) if padding_idx is None else input != padding_idx % weight.shape[0]
    if per_sample_weights is not None:
        rows = rows * jnp.ravel(per_sample_weights)[:, None]
    if mode == "max" and len(rows):  # of equal rows the gradient goes to the first
        rows = jnp.where(kept[:, None], rows, -jnp.inf)
        highest = jax.lax.stop_gradient(jax.ops.segment_max(rows, bag, count))
        place = jnp.where(rows == highest[bag], jnp.arange(len(rows))[:, None], len(rows) - 1)
        out = jnp.take_along_axis(rows, jnp.minimum(jax.ops.segment_min(place, bag, count), len(rows) - 1), axis=0)
        return jnp.where(jnp.isneginf(highest), 0, jnp.where(jnp.isnan(highest), highest, out))
    out = jax.ops.segment_sum(jnp.where(kept[:, None], rows, 0), bag, count)
    if mode == "sum":
        return out
    return out / jnp.maximum(jax.ops.segment_sum(kept.astype(out.dtype), bag, count), 1)[:, None]


def one_hot(tensor, num_classes=-1):
    """ids (...) -> (..., num_classes); without a number of classes it is read from the values."""
    return jax.nn.one_hot(tensor, int(tensor.max()) + 1 if num_classes == -1 else num_classes, dtype=int)
