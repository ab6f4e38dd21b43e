"""Pooling over the last axes of channels-first arrays, batched or not, with PyTorch's windows."""
import math

import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.windows import ntuple, window_index


def pool_geometry(input, n, kernel_size, stride, padding, dilation, ceil_mode):
    """What `jax.lax.reduce_window` needs for windows over the last n axes, and the (window, position) table of each of them."""
    kernel, padding, dilation = ntuple(kernel_size, n), ntuple(padding, n), ntuple(dilation, n)
    stride = ntuple(stride, n) if stride else kernel
    sizes, lead = input.shape[input.ndim - n :], (1,) * (input.ndim - n)
    tables = [window_index(*axis, ceil_mode) for axis in zip(sizes, kernel, stride, padding, dilation)]
    after = [max(t.max(initial=0) - s + 1, 0) for t, s in zip(tables, sizes)]
    pads = [(0, 0)] * len(lead) + list(zip(padding, after))
    windows = {"window_dimensions": lead + kernel, "window_strides": lead + stride, "padding": pads, "window_dilation": lead + dilation}
    return windows, tables


def take_windows(input, tables, fill):
    """(*lead, *sizes) -> (*lead, *windows, positions): the values that each window sees, `fill` outside of the array."""
    n = len(tables)
    index, inside = [], np.array(True)
    for i, table in enumerate(tables):
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = table.shape
        size = input.shape[input.ndim - n + i]
        index.append(np.clip(table, 0, size - 1).reshape(shape))
        inside = inside & ((table >= 0) & (table < size)).reshape(shape)
    seen = input[(..., *index)]
    seen = jnp.where(inside, seen, fill) if not inside.all() else seen
    return seen.reshape(*seen.shape[:-n], -1)


def flat_positions(tables, sizes):
    """(*windows, positions): where each value of `take_windows` comes from in the flattened plane."""
    n, flat = len(tables), np.array(0)
    for i, (table, size) in enumerate(zip(tables, sizes)):
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = table.shape
        flat = flat * size + np.clip(table, 0, size - 1).reshape(shape)
    return flat.reshape(*flat.shape[:n], -1)


def lowest(dtype):
    """The value that loses against every other one."""
    return -np.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def window_max(input, tables, return_indices):
    """The largest value of each window, and where asked its position in the plane; the first of equal ones."""
    seen = take_windows(input, tables, lowest(input.dtype))
    best = jnp.argmax(seen, axis=-1, keepdims=True)
    values = jnp.take_along_axis(seen, best, axis=-1)[..., 0]
    if not return_indices:
        return values
    flat = flat_positions(tables, input.shape[input.ndim - len(tables) :])
    return values, jnp.take_along_axis(jnp.broadcast_to(flat, seen.shape), best, axis=-1)[..., 0]


def max_pool_nd(input, n, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    """The largest value of each window over the last n axes."""
    input = jnp.asarray(input)
    windows, tables = pool_geometry(input, n, kernel_size, stride, padding, dilation, ceil_mode)
    if return_indices or max(windows["window_dilation"]) > 1:  # reduce_window has no derivative for dilated windows
        return window_max(input, tables, return_indices)
    return jax.lax.reduce_window(input, np.array(lowest(input.dtype), input.dtype), jax.lax.max, **windows)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """(N, C, L) -> (N, C, L'), and the positions of the maxima."""
    return max_pool_nd(input, 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """(N, C, H, W) -> (N, C, H', W'), and the positions of the maxima in the H * W plane."""
    return max_pool_nd(input, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """(N, C, D, H, W) -> (N, C, D', H', W'), and the positions of the maxima in the D * H * W volume."""
    return max_pool_nd(input, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool_nd(input, n, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
    """The mean of each window over the last n axes; what hangs over the padded end is never counted."""
    input = jnp.asarray(input)
    windows, tables = pool_geometry(input, n, kernel_size, stride, padding, 1, ceil_mode)
    total = jax.lax.reduce_window(input, np.zeros((), input.dtype), jax.lax.add, **windows)
    if divisor_override is not None:
        return total / divisor_override
    count = np.ones(())
    for table, size, p in zip(tables, input.shape[input.ndim - n :], ntuple(padding, n)):
        p = p if count_include_pad else 0
        count = count[..., None] * ((table >= -p) & (table < size + p)).sum(1)
    return total / count.astype(input.dtype)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """(N, C, L) -> (N, C, L')."""
    return avg_pool_nd(input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """(N, C, H, W) -> (N, C, H', W')."""
    return avg_pool_nd(input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""
    return avg_pool_nd(input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def lp_pool_nd(input, n, norm_type, kernel_size, stride, ceil_mode):
    """The p-norm of each window over the last n axes."""
    if math.isinf(norm_type):
        return jnp.sign(norm_type) * max_pool_nd(jnp.sign(norm_type) * jnp.abs(input), n, kernel_size, stride, 0, 1, ceil_mode, False)
    kernel = ntuple(kernel_size, n)
    mean = avg_pool_nd(jnp.power(input, norm_type), n, kernel, stride, 0, ceil_mode, True)
    return (jax.nn.relu(jnp.abs(mean)) * jnp.sign(mean) * math.prod(kernel)) ** (1 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(N, C, L) -> (N, C, L')."""
    return lp_pool_nd(input, 1, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(N, C, H, W) -> (N, C, H', W')."""
    return lp_pool_nd(input, 2, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""
    return lp_pool_nd(input, 3, norm_type, kernel_size, stride, ceil_mode)
