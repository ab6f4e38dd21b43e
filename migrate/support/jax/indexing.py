"""Reading by index and by mask."""
import jax.numpy as jnp


def gather(input, dim, index):
    """out[i][j] = input[index[i][j]][j] for dim 0; `index` may be smaller than `input` in the other dimensions."""
    if index.size == 0:
        return jnp.zeros(index.shape, input.dtype)
    if input.ndim == 0:
        return jnp.broadcast_to(input.reshape((1,) * index.ndim), index.shape)
    dim = dim % input.ndim
    region = tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(index.shape))
    return jnp.take_along_axis(input[region], index, axis=dim)


def masked_fill(input, mask, value):
    """`value` where `mask` is true, in the dtype of `input`."""
    return jnp.where(mask, jnp.asarray(value, input.dtype), input)


def masked_select(input, mask):
    """The elements where `mask` is true, in a vector. The length depends on the data: not under jit."""
    input, mask = jnp.broadcast_arrays(input, mask)
    return input[mask]


def masked_scatter(input, mask, source):
    """Where `mask` is true, the elements of `source` in their order; `input` elsewhere."""
    input, mask = jnp.broadcast_arrays(input, mask)
    position = jnp.cumsum(mask.ravel()) - 1
    return jnp.where(mask, source.ravel()[position].reshape(input.shape), input).astype(input.dtype)


def nonzero_static(input, *, size, fill_value=-1):
    """The positions of the first `size` elements that are not zero, one a row, then rows of `fill_value`."""
    if input.ndim == 0:
        return jnp.zeros((size, 0), int)
    return jnp.argwhere(input, size=size, fill_value=fill_value)
