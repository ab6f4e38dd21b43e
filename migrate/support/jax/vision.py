"""Sampling grids, and moves between channels and space."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.resize import cubic
from migrate.support.jax.windows import ntuple, window_count, window_index


def affine_grid(theta, size, align_corners=False):
    """(N, 2, 3) and size (N, C, H, W) -> (N, H, W, 2), or (N, 3, 4) and (N, C, D, H, W) -> (N, D, H, W, 3): x first, in [-1, 1]."""
    steps = [np.linspace(-1, 1, s) * (1 if align_corners else (s - 1) / s) if s > 1 else np.zeros(s) for s in size[2:]]
    base = np.stack([*reversed(np.meshgrid(*steps, indexing="ij")), np.ones(tuple(size[2:]))], axis=-1)
    flat = base.reshape(-1, base.shape[-1]).astype(theta.dtype)
    return jnp.einsum("pk,nik->npi", flat, theta).reshape(-1, *base.shape[:-1], len(steps))


def clip_position(at, size):
    """Positions clipped to the axis; the derivative at the ends and outside is 0."""
    return jnp.where(at <= 0, 0, jnp.where(at >= size - 1, size - 1, at))


def reflect_position(at, size, align_corners):
    """Positions mirrored at the centres of the outer pixels, or at their edges."""
    low, span = (0, size - 1) if align_corners else (-0.5, size)
    if span == 0:
        return jnp.zeros_like(at)
    away = jnp.where(at < low, low - at, at - low)
    turns, rest = jnp.floor(away / span), jnp.fmod(away, span)
    return jnp.where(turns % 2 == 0, rest + low, span - rest + low)


def bring_inside(at, size, padding_mode, align_corners):
    """Positions after the padding mode; with "zeros" they stay outside."""
    if padding_mode == "reflection":
        at = reflect_position(at, size, align_corners)
    return at if padding_mode == "zeros" else clip_position(at, size)


def sample_taps(at, size, mode, padding_mode, align_corners):
    """(index, weight) pairs for the positions on an axis of that size."""
    if mode == "bicubic":
        low = jnp.floor(at)
        taps = [(low + i, cubic(at - low - i, -0.75)) for i in range(-1, 3)]
        return [(bring_inside(index, size, padding_mode, align_corners), weight) for index, weight in taps]
    at = bring_inside(at, size, padding_mode, align_corners)
    if mode == "nearest":
        return [(jnp.round(at), jnp.ones_like(at))]
    low = jnp.floor(at)
    return [(low, low + 1 - at), (low + 1, at - low)]


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """(N, C, *size) at grid (N, *size', dims), x first, in [-1, 1] -> (N, C, *size')."""
    input, sizes = jnp.asarray(input), input.shape[2:]
    combinations = [(jnp.zeros(grid.shape[:-1], int), True, 1.0)]
    for axis, size in enumerate(sizes):
        at = (grid[..., len(sizes) - 1 - axis] + 1) / 2
        at = at * (size - 1) if align_corners else at * size - 0.5
        grown = []
        for index, weight in sample_taps(at, size, mode, padding_mode, align_corners):
            inside = (index >= 0) & (index <= size - 1)
            index = jnp.where(inside, index, 0).astype(int)
            grown += [(flat * size + index, known & inside, product * weight) for flat, known, product in combinations]
        combinations = grown
    flat_input = input.reshape(*input.shape[:2], math.prod(sizes))
    out = 0
    for flat, inside, weight in combinations:
        seen = jnp.take_along_axis(flat_input, flat.reshape(flat.shape[0], 1, math.prod(flat.shape[1:])), axis=2).reshape(*input.shape[:2], *flat.shape[1:])
        out = out + jnp.where(inside[:, None], seen, 0) * weight[:, None]
    return out


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """`grid_sample` with numbers for the modes."""
    mode, padding = ("bilinear", "nearest", "bicubic")[interpolation_mode], ("zeros", "border", "reflection")[padding_mode]
    return grid_sample(input, grid, mode, padding, align_corners)


def pixel_shuffle(input, upscale_factor):
    """(*, C * r * r, H, W) -> (*, C, H * r, W * r)."""
    *lead, c, h, w = input.shape
    r = upscale_factor
    x = jnp.reshape(input, (*lead, c // r**2, r, r, h, w))
    return jnp.moveaxis(x, (-4, -3), (-3, -1)).reshape(*lead, c // r**2, h * r, w * r)


def pixel_unshuffle(input, downscale_factor):
    """(*, C, H * r, W * r) -> (*, C * r * r, H, W)."""
    *lead, c, h, w = input.shape
    r = downscale_factor
    x = jnp.reshape(input, (*lead, c, h // r, r, w // r, r))
    return jnp.moveaxis(x, (-3, -1), (-4, -3)).reshape(*lead, c * r**2, h // r, w // r)


def channel_shuffle(input, groups):
    """(N, C, *): interleaves `groups` groups of channels."""
    n, c, *size = input.shape
    return jnp.reshape(input, (n, groups, c // groups, *size)).swapaxes(1, 2).reshape(input.shape)


def block_index(size, kernel_size, dilation, padding, stride):
    """Rows (kH, 1, H', 1) and columns (1, kW, 1, W') of sliding blocks in the padded (H, W) plane."""
    axes = zip(size, ntuple(kernel_size, 2), ntuple(stride, 2), ntuple(padding, 2), ntuple(dilation, 2))
    h, w = (window_index(*axis).T + axis[3] for axis in axes)
    return h[:, None, :, None], w[None, :, None, :]


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """(N, C, H, W) or (C, H, W) -> (N, C * kH * kW, blocks): sliding blocks as columns."""
    input = jnp.asarray(input)
    x = input if input.ndim == 4 else input[None]
    h, w = block_index(x.shape[2:], kernel_size, dilation, padding, stride)
    ph, pw = ntuple(padding, 2)
    blocks = jnp.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))[:, :, h, w]
    out = blocks.reshape(x.shape[0], x.shape[1] * h.shape[0] * w.shape[1], h.shape[2] * w.shape[3])
    return out if input.ndim == 4 else out[0]


def overlapped(x, places, blocks, size, kernel, stride, padding, dilation):
    """Sums of sliding blocks along an axis: x[place in the block, block] is added at its place in 0..size-1."""
    parts = jnp.moveaxis(x, places, 0)
    axis, total = blocks % parts[0].ndim, size + 2 * padding
    out = 0
    for i, part in enumerate(parts):
        pads = [(0, 0, 0)] * part.ndim
        length = (part.shape[axis] - 1) * stride + 1
        pads[axis] = (i * dilation, total - i * dilation - length, stride - 1)
        out = out + jax.lax.pad(part, jnp.zeros((), x.dtype), pads)
    return jax.lax.slice_in_dim(out, padding, padding + size, axis=axis)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """(N, C * kH * kW, blocks) or without N -> (N, C, H, W): the sum of overlapping blocks."""
    input, (height, width), (ph, pw) = jnp.asarray(input), ntuple(output_size, 2), ntuple(padding, 2)
    x = input if input.ndim == 3 else input[None]
    axes = list(zip((height, width), ntuple(kernel_size, 2), ntuple(stride, 2), (ph, pw), ntuple(dilation, 2)))
    (kh, kw), counts = (a[1] for a in axes), [window_count(*a) for a in axes]
    x = x.reshape(x.shape[0], x.shape[1] // (kh * kw), kh, kw, *counts)
    rows = overlapped(x, 3, -1, *axes[1])
    out = overlapped(rows, 2, -2, *axes[0])
    return out if input.ndim == 3 else out[0]
