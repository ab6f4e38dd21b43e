"""Sizes and index tables of sliding windows, computed once in numpy: shapes are static."""
import numpy as np


def ntuple(value, n):
    """`n` values: an int is repeated, and so is a sequence of one."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return values * n if len(values) == 1 else values


def window_count(size, kernel, stride, padding, dilation=1, ceil_mode=False):
    """How many windows fit on an axis. With `ceil_mode` the last one may hang over the end, but has to start inside."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= size + padding else count


def window_index(size, kernel, stride, padding=0, dilation=1, ceil_mode=False):
    """(windows, kernel) positions on an axis; those outside of 0..size-1 lie in the padding."""
    starts = np.arange(window_count(size, kernel, stride, padding, dilation, ceil_mode)) * stride - padding
    return starts[:, None] + np.arange(kernel) * dilation


def adaptive_index(size, count):
    """(count, widest) positions of `count` windows that share an axis evenly, and which of them belong to their window."""
    i = np.arange(count)
    starts, ends = i * size // count, -(-(i + 1) * size // count)
    index = starts[:, None] + np.arange((ends - starts).max(initial=0))
    return np.minimum(index, size - 1), index < ends[:, None]
