"""Assignment through a mask."""
import jax.numpy as jnp


def where_set(x, mask, value):
    """`x` after `x[mask] = value`; the mask covers the first axes of `x`. A value for each chosen element works outside of jit only."""
    value = jnp.asarray(value, x.dtype)
    if value.ndim > x.ndim - mask.ndim:
        return x.at[mask].set(value)
    return jnp.where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), value, x)
