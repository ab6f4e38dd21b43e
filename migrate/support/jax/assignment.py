"""Assignment through a mask, and to what may be a list."""
import jax.numpy as jnp


def where_set(x, mask, value):
    """`x` after `x[mask] = value`; the mask covers the first axes of `x`. A value for each chosen element works outside of jit only."""
    value = jnp.asarray(value, x.dtype)
    if value.ndim > x.ndim - mask.ndim:
        return x.at[mask].set(value)
    return jnp.where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), value, x)


def set_item(x, index, value):
    """`x` after `x[index] = value`; x is an array, or something that can be written to."""
    if hasattr(x, "at"):
        return x.at[index].set(value)
    x[index] = value
    return x
