"""Resizing of the last axes of channels-first arrays, as `torch.nn.functional.interpolate` does it."""
import math

import jax.numpy as jnp
import numpy as np

from migrate.support.jax.pooling_adaptive import adaptive_avg_pool_nd
from migrate.support.jax.windows import ntuple


def cubic(x, a):
    """The cubic convolution kernel at distance x, for numpy and JAX arrays."""
    x = abs(x)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a
    return (x <= 1) * near + ((x > 1) & (x < 2)) * far


def nearest_index(size, count, scale, exact):
    """(count,) positions along an axis; PyTorch computes them in float32."""
    i = np.arange(count, dtype=np.float32)
    step = np.float32(1 / scale) if scale else np.float32(size) / np.float32(count)
    if exact:
        at = np.floor(((i + 0.5) * np.float64(step)).astype(np.float32))
    else:
        at = np.floor(i * step)
    return np.minimum(at.astype(int), size - 1)


def smooth_taps(size, count, scale, mode, align_corners, antialias):
    """(count, taps) positions and weights of linear, cubic or Lanczos interpolation along an axis."""
    if align_corners:
        step = (size - 1) / (count - 1) if count > 1 else 0.0
        centre = np.arange(count) * step
    else:
        step = 1 / scale if scale else size / count
        centre = (np.arange(count) + 0.5) * step - 0.5
    if antialias:
        return antialias_taps(size, count, step, mode)
    if mode == "bicubic":
        at = np.floor(centre).astype(int)[:, None] + np.arange(-1, 3)
        return np.clip(at, 0, size - 1), cubic(centre[:, None] - at, -0.75)
    centre = np.clip(centre, 0, size - 1)
    low = np.floor(centre).astype(int)
    part = centre - low
    return np.stack([low, np.minimum(low + 1, size - 1)], 1), np.stack([1 - part, part], 1)


def antialias_taps(size, count, step, mode):
    """(count, taps) positions and weights of a kernel that is widened when the axis shrinks."""
    stretch = max(step, 1.0)
    reach = {"bilinear": 1, "bicubic": 2, "lanczos": 3}[mode]
    centre = (np.arange(count) + 0.5) * step
    first = np.maximum((centre - reach * stretch + 0.5).astype(int), 0)
    last = np.minimum((centre + reach * stretch + 0.5).astype(int), size)
    at = first[:, None] + np.arange(max((last - first).max(initial=1), 1))
    away = (at - centre[:, None] + 0.5) / stretch
    if mode == "bilinear":
        weight = np.maximum(1 - np.abs(away), 0)
    else:
        weight = cubic(away, -0.5) if mode == "bicubic" else np.sinc(away) * np.sinc(away / 3) * (np.abs(away) < 3)
    weight = np.where(at < last[:, None], weight, 0)
    return np.minimum(at, size - 1), weight / weight.sum(1, keepdims=True)


def resample(input, axis, index, weight):
    """Weighted sums of the taps along an axis."""
    weight = weight.astype(input.dtype).reshape(*weight.shape, *[1] * (input.ndim - axis - 1))
    return sum(jnp.take(input, index[:, i], axis=axis, mode="clip") * weight[:, i] for i in range(index.shape[1]))


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False
):
    """(N, C, *size) -> (N, C, *size')."""
    input = jnp.asarray(input)
    n = input.ndim - 2
    scales = ntuple(scale_factor, n)
    if size is None:
        size = [math.floor(s * f) for s, f in zip(input.shape[2:], scales)]
        scales = (None,) * n if recompute_scale_factor else scales
    axes = list(zip(range(2, input.ndim), input.shape[2:], ntuple(size, n), scales))
    if mode == "area":
        return adaptive_avg_pool_nd(input, n, size)
    if mode in ("nearest", "nearest-exact"):
        for axis, old, new, scale in axes:
            index = nearest_index(old, new, scale, mode == "nearest-exact")
            even = new % old == 0 and np.array_equal(index, np.arange(new) // (new // old))
            input = jnp.repeat(input, new // old, axis=axis) if even else jnp.take(input, index, axis=axis, mode="clip")
        return input
    out = input.astype(jnp.promote_types(input.dtype, jnp.float32))
    for axis, old, new, scale in axes:
        out = resample(out, axis, *smooth_taps(old, new, scale, mode, align_corners, antialias))
    if jnp.issubdtype(input.dtype, jnp.integer):
        out = jnp.clip(jnp.round(out), 0, jnp.iinfo(input.dtype).max)
    return out.astype(input.dtype)
