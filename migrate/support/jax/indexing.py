"""Reading by index and by mask."""
import jax
import jax.numpy as jnp
import numpy as np


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
    """The elements where `mask` is true, in a vector. The length depends on the mask: under jit, it must be NumPy's."""
    shape = jnp.broadcast_shapes(input.shape, mask.shape)
    mask = np.broadcast_to(mask, shape) if isinstance(mask, np.ndarray) else jnp.broadcast_to(mask, shape)
    return jnp.broadcast_to(input, shape)[mask]


def fixed(make):
    """What `make()` gives, as a constant: it is the same for every input, and its values are known while tracing."""
    with jax.ensure_compile_time_eval():
        return np.asarray(make())


def masked_scatter(input, mask, source):
    """Where `mask` is true, the elements of `source` in their order; `input` elsewhere."""
    input, mask = jnp.broadcast_arrays(input, mask)
    position = jnp.cumsum(mask.ravel()) - 1
    return jnp.where(mask, source.ravel()[position].reshape(input.shape), input).astype(input.dtype)


def nonzero_static(input, *, size, fill_value=-1):
    """The positions of the first `size` elements that are not zero, one a row, then rows of `fill_value`."""
    if input.ndim == 0:
        return jnp.zeros((size, 0), int)
    if input.size == 0:
        return jnp.full((size, input.ndim), fill_value)
    return jnp.argwhere(input, size=size, fill_value=fill_value)
