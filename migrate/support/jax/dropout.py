"""Dropout in its kinds; `rngs` is the random stream."""
import jax
import jax.numpy as jnp


def dropout(input, p=0.5, training=True, *, rngs):
    """Zeroes values with probability p and scales the others by 1 / (1 - p)."""
    if not training or p == 0:
        return input
    keep = jax.random.bernoulli(rngs.dropout(), 1 - p, jnp.shape(input))
    return jnp.where(keep, input / (1 - p), 0) if p < 1 else jnp.zeros_like(input)


def channel_dropout(input, spatial, p=0.5, training=True, *, rngs):
    """Zeroes whole channels of (N, C, *spatial) or (C, *spatial) with probability p, and scales the others by 1 / (1 - p)."""
    if not training or p == 0:
        return input
    keep = jax.random.bernoulli(rngs.dropout(), 1 - p, (*input.shape[: input.ndim - spatial], *[1] * spatial))
    return jnp.where(keep, input / (1 - p), 0) if p < 1 else jnp.zeros_like(input)


def dropout1d(input, p=0.5, training=True, *, rngs):
    """Zeroes whole channels of (N, C, L) or (C, L)."""
    return channel_dropout(input, 1, p, training, rngs=rngs)


def dropout2d(input, p=0.5, training=True, *, rngs):
    """Zeroes whole channels of (N, C, H, W); of a (N, C, L) input those of axis 1, as PyTorch does."""
    return channel_dropout(input, input.ndim - 2, p, training, rngs=rngs)


def dropout3d(input, p=0.5, training=True, *, rngs):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return channel_dropout(input, 3, p, training, rngs=rngs)


def selu_dropout(input, shape, p, rngs):
    """Sets values to SELU's lower limit with probability p, then restores mean 0 and variance 1; `shape` is the mask's."""
    low = -1.7580993408473766
    if p == 1:
        return jnp.zeros_like(input)
    scale = ((1 - p) * (1 + p * low**2)) ** -0.5
    keep = jax.random.bernoulli(rngs.dropout(), 1 - p, shape)
    return jnp.where(keep, input, low) * scale - scale * p * low


def alpha_dropout(input, p=0.5, training=False, *, rngs):
    """Dropout for SELU networks, value by value."""
    return selu_dropout(input, jnp.shape(input), p, rngs) if training and p else input


def feature_alpha_dropout(input, p=0.5, training=False, *, rngs):
    """Dropout for SELU networks, whole channels of (N, C, ...)."""
    return selu_dropout(input, (*input.shape[:2], *[1] * (input.ndim - 2)), p, rngs) if training and p else input
