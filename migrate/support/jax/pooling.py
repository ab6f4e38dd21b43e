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
    tables = [window_index(size, k, s, p, d, ceil_mode) for size, k, s, p, d in zip(sizes, kernel, stride, padding, dilation)]
    after = [max(t.max(initial=0) - s + 1, 0) for t, s in zip(tables, sizes)]
    pads = [(0, 0)] * len(lead) + list(zip(padding, after))
    windows = {"window_dimensions": lead + kernel, "window_strides": lead + stride, "padding": pads, "window_dilation": lead + dilation}
    return windows, tables


def lowest(dtype):
    """The value that loses against every other one."""
    return -np.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def running_max(candidates):
    """The elementwise largest of (values, places), and its place; of equal ones the first, which alone gets the gradient."""
    best, at = None, None
    for value, place in candidates:
        if best is None:
            best, at = value, jnp.broadcast_to(place, value.shape)
            continue
        better = (value > best) | (jnp.isnan(value) & ~jnp.isnan(best))
        best, at = jnp.where(better, value, best), jnp.where(better, place, at)
    return best, at


def window_max(input, tables, windows):
    """The largest value of each window, and its position in the plane."""
    n = len(tables)
    pads, steps, plane = windows["padding"][-n:], windows["window_strides"][-n:], input.shape[input.ndim - n :]
    x = jnp.pad(input, [(0, 0)] * (input.ndim - n) + pads, constant_values=lowest(input.dtype))

    def candidates():
        for offsets in np.ndindex(*(t.shape[1] for t in tables)):  # one place in all windows is one strided slice
            cuts, at = [], np.array(0)
            for i, (table, offset, pad, step, size) in enumerate(zip(tables, offsets, pads, steps, plane)):
                first = table[0, offset] + pad[0]
                cuts.append(slice(first, first + (len(table) - 1) * step + 1, step))
                at = at * size + np.clip(table[:, offset], 0, size - 1).reshape(-1, *[1] * (n - 1 - i))
            yield x[(..., *cuts)], at

    return running_max(candidates())


def max_pool_nd(input, n, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    """The largest value of each window over the last n axes."""
    input = jnp.asarray(input)
    windows, tables = pool_geometry(input, n, kernel_size, stride, padding, dilation, ceil_mode)
    if return_indices:
        return window_max(input, tables, windows)
    if dilation != 1 and max(windows["window_dilation"]) > 1:  # reduce_window has no derivative for dilated windows
        return window_max(input, tables, windows)[0]
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
    norm_type = int(norm_type) if norm_type == int(norm_type) else norm_type  # whole powers are products
    whole = None if ceil_mode else 1  # with `ceil_mode`, PyTorch scales the sums of the windows that hang over
    mean = avg_pool_nd(jnp.power(input, norm_type), n, kernel, stride, 0, ceil_mode, True, whole)
    total = jax.nn.relu(jnp.abs(mean)) * jnp.sign(mean) * (math.prod(kernel) if ceil_mode else 1)
    return jnp.sqrt(total) if norm_type == 2 else total ** (1 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(N, C, L) -> (N, C, L')."""
    return lp_pool_nd(input, 1, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(N, C, H, W) -> (N, C, H', W')."""
    return lp_pool_nd(input, 2, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""
    return lp_pool_nd(input, 3, norm_type, kernel_size, stride, ceil_mode)
