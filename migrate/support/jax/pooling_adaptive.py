"""Pooling to a given output size, and the inverse and random kinds of max pooling."""
import math

import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.pooling import lowest, running_max
from migrate.support.jax.windows import adaptive_index, ntuple


def output_sizes(input, n, output_size):
    """The n wanted sizes; None keeps the input's."""
    return [s if o is None else o for s, o in zip(input.shape[input.ndim - n :], ntuple(output_size, n))]


def adaptive_pieces(input, axis, count):
    """The parts of an axis that `count` windows, which share it evenly, see."""
    size = input.shape[axis]
    return [jax.lax.slice_in_dim(input, i * size // count, -(-(i + 1) * size // count), axis=axis) for i in range(count)]


def adaptive_mean(input, axis, count):
    """Means of `count` windows that share an axis evenly."""
    size = input.shape[axis]
    if count and size % count == 0:
        return input.reshape(*input.shape[:axis], count, size // count, *input.shape[axis + 1 :]).mean(axis + 1)
    index, inside = adaptive_index(size, count)
    if index.shape[1] > count:  # few windows
        return jnp.stack([piece.mean(axis) for piece in adaptive_pieces(input, axis, count)], axis)
    shape = (-1, *[1] * (input.ndim - axis - 1))
    total = sum(jnp.take(input, i, axis=axis, mode="clip") * jnp.asarray(known.reshape(shape), input.dtype) for i, known in zip(index.T, inside.T))
    return total / inside.sum(1).astype(input.dtype).reshape(shape)


def adaptive_avg_pool_nd(input, n, output_size):
    """Means of windows that share each of the last n axes evenly."""
    input = jnp.asarray(input)
    for axis, count in enumerate(output_sizes(input, n, output_size), input.ndim - n):
        input = adaptive_mean(input, axis, count)
    return input


def adaptive_avg_pool1d(input, output_size):
    """(N, C, L) -> (N, C, L')."""
    return adaptive_avg_pool_nd(input, 1, output_size)


def adaptive_avg_pool2d(input, output_size):
    """(N, C, H, W) -> (N, C, H', W')."""
    return adaptive_avg_pool_nd(input, 2, output_size)


def adaptive_avg_pool3d(input, output_size):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""
    return adaptive_avg_pool_nd(input, 3, output_size)


def adaptive_max(input, axis, count):
    """Maxima of `count` windows that share an axis evenly; the first of equal ones gets the gradient."""
    shape = [1] * input.ndim
    found = []
    for piece in adaptive_pieces(input, axis, count):
        shape[axis] = piece.shape[axis]
        start = np.array(lowest(input.dtype), input.dtype)
        found.append(jax.lax.reduce_window(piece, start, jax.lax.max, tuple(shape), (1,) * input.ndim, "VALID"))
    return jnp.concatenate(found, axis)


def adaptive_max_of_few(input, lead, counts):
    """`adaptive_max` along all axes after the first `lead`, a window at once: faster, with as many operations as there are windows."""
    axis = input.ndim - len(counts)
    if counts:
        return jnp.concatenate([adaptive_max_of_few(piece, lead, counts[1:]) for piece in adaptive_pieces(input, axis, counts[0])], axis)
    window = (1,) * lead + input.shape[lead:]
    return jax.lax.reduce_window(input, np.array(lowest(input.dtype), input.dtype), jax.lax.max, window, (1,) * input.ndim, "VALID")


def adaptive_max_at(input, places, axis, count):
    """`adaptive_max`, and the places of the maxima."""
    index, inside = adaptive_index(input.shape[axis], count)
    shape = (-1, *[1] * (input.ndim - axis - 1))

    def candidates():
        for i, known in zip(index.T, inside.T):
            seen = jnp.take(input, i, axis=axis, mode="clip")
            yield jnp.where(known.reshape(shape), seen, lowest(input.dtype)), jnp.take(places, i, axis=axis, mode="clip")

    return running_max(candidates())


def adaptive_max_pool_nd(input, n, output_size, return_indices):
    """Maxima of windows that share each of the last n axes evenly."""
    input = jnp.asarray(input)
    axes = list(enumerate(output_sizes(input, n, output_size), input.ndim - n))[::-1]  # the last axis first: the first of equal ones wins
    if not return_indices and math.prod(count for _, count in axes) <= 64:
        return adaptive_max_of_few(input, input.ndim - n, [count for _, count in reversed(axes)])
    plane = input.shape[input.ndim - n :]
    places = jnp.broadcast_to(jnp.arange(math.prod(plane)).reshape(plane), input.shape)
    for axis, count in axes:
        if return_indices:
            input, places = adaptive_max_at(input, places, axis, count)
        else:
            input = adaptive_max(input, axis, count)
    return (input, places) if return_indices else input


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """(N, C, L) -> (N, C, L'), and the positions of the maxima."""
    return adaptive_max_pool_nd(input, 1, output_size, return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """(N, C, H, W) -> (N, C, H', W'), and the positions of the maxima in the H * W plane."""
    return adaptive_max_pool_nd(input, 2, output_size, return_indices)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """(N, C, D, H, W) -> (N, C, D', H', W'), and the positions of the maxima in the D * H * W volume."""
    return adaptive_max_pool_nd(input, 3, output_size, return_indices)


def max_unpool_nd(input, indices, n, kernel_size, stride, padding, output_size):
    """Puts each value back where `indices` says, into zeros."""
    input, indices = jnp.asarray(input), jnp.asarray(indices)
    kernel, padding = ntuple(kernel_size, n), ntuple(padding, n)
    stride = ntuple(stride, n) if stride else kernel
    lead, sizes = input.shape[: input.ndim - n], input.shape[input.ndim - n :]
    full = [(s - 1) * st - 2 * p + k for s, st, p, k in zip(sizes, stride, padding, kernel)]
    full = list(output_size)[-n:] if output_size is not None else full
    flat = math.prod(lead), math.prod(sizes)
    rows, values = flat[0], input.reshape(flat)
    at = (np.arange(rows)[:, None], indices.reshape(flat))
    # every copy of a value that lands in one place twice gets the gradient of that place
    out = jnp.zeros((rows, math.prod(full)), input.dtype).at[at].set(jax.lax.stop_gradient(values))
    return out.at[at].add(values - jax.lax.stop_gradient(values)).reshape(*lead, *full)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """(N, C, L') -> (N, C, L)."""
    return max_unpool_nd(input, indices, 1, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """(N, C, H', W') -> (N, C, H, W)."""
    return max_unpool_nd(input, indices, 2, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """(N, C, D', H', W') -> (N, C, D, H, W)."""
    return max_unpool_nd(input, indices, 3, kernel_size, stride, padding, output_size)


def fractional_starts(samples, size, count, kernel):
    """(rows, count): where the windows of an axis begin, from one random number in [0, 1) for each row."""
    if count == 1:
        return jnp.full((samples.shape[0], 1), size - kernel)
    alpha = (size - kernel) / (count - 1)
    i = jnp.arange(count - 1)
    starts = jnp.floor((i + samples[:, None]) * alpha) - jnp.floor(samples[:, None] * alpha)
    return jnp.append(starts.astype(int), jnp.full((samples.shape[0], 1), size - kernel), axis=1)


def fractional_max_pool_nd(input, n, kernel_size, output_size, output_ratio, return_indices, samples, rngs):
    """Maxima of windows that begin at random places, the same for all of a channel."""
    input, kernel = jnp.asarray(input), ntuple(kernel_size, n)
    lead, sizes = input.shape[: input.ndim - n], input.shape[input.ndim - n :]
    if output_size is None:
        output_size = [int(s * r) for s, r in zip(sizes, ntuple(output_ratio, n))]
    counts = ntuple(output_size, n)
    if samples is None:
        samples = jax.random.uniform(rngs.dropout(), (*lead, n), input.dtype)
    rows = math.prod(lead)
    samples = jnp.reshape(samples, (rows, n))[:, :: -1 if n == 2 else 1]  # in two dimensions PyTorch's first number is for the width
    flat, seen = jnp.zeros((rows, *[1] * (2 * n)), int), input.reshape(rows, *sizes)
    for i in range(n):
        at = fractional_starts(samples[:, i], sizes[i], counts[i], kernel[i])[:, :, None] + jnp.arange(kernel[i])
        shape = [rows] + [1] * (2 * n)
        shape[1 + i], shape[1 + n + i] = counts[i], kernel[i]
        flat = flat * sizes[i] + at.reshape(shape)
        seen = jnp.take_along_axis(seen, at.reshape(rows, *[-1 if a == i else 1 for a in range(n)]), axis=1 + i)
    flat = flat.reshape(rows, math.prod(counts), -1)
    seen = seen.reshape(rows, *(s for pair in zip(counts, kernel) for s in pair))  # (rows, count, kernel, count, kernel ...)
    seen = jnp.moveaxis(seen, range(2, 2 * n + 1, 2), range(n + 1, 2 * n + 1)).reshape(flat.shape)
    best = jnp.argmax(seen, axis=-1, keepdims=True)
    values, indices = (jnp.take_along_axis(a, best, axis=-1).reshape(*lead, *counts) for a in (seen, flat))
    return (values, indices) if return_indices else values


def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, random_samples=None, *, rngs=None
):
    """(N, C, H, W) -> (N, C, H', W'), and the positions of the maxima in the H * W plane."""
    return fractional_max_pool_nd(input, 2, kernel_size, output_size, output_ratio, return_indices, random_samples, rngs)


def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, random_samples=None, *, rngs=None
):
    """(N, C, D, H, W) -> (N, C, D', H', W'), and the positions of the maxima in the D * H * W volume."""
    return fractional_max_pool_nd(input, 3, kernel_size, output_size, output_ratio, return_indices, random_samples, rngs)
