"""Layers that move values about: flattening, shuffling, blocks, resizing."""
from flax import nnx

from migrate.support.jax.resize import interpolate
from migrate.support.jax.shapes import flatten, unflatten
from migrate.support.jax.vision import channel_shuffle, fold, pixel_shuffle, pixel_unshuffle, unfold


class Flatten(nnx.Module):
    """Merges the axes from `start_dim` up to and with `end_dim`."""

    def __init__(self, start_dim=1, end_dim=-1, *, rngs=None):
        self.start_dim, self.end_dim = start_dim, end_dim

    def __call__(self, input):
        return flatten(input, self.start_dim, self.end_dim)


class Unflatten(nnx.Module):
    """Splits the axis `dim` into several, one of which may be -1."""

    def __init__(self, dim, unflattened_size, *, rngs=None):
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def __call__(self, input):
        return unflatten(input, self.dim, self.unflattened_size)


class PixelShuffle(nnx.Module):
    """(*, C * r * r, H, W) -> (*, C, H * r, W * r)."""

    def __init__(self, upscale_factor, *, rngs=None):
        self.upscale_factor = upscale_factor

    def __call__(self, input):
        return pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(nnx.Module):
    """(*, C, H * r, W * r) -> (*, C * r * r, H, W)."""

    def __init__(self, downscale_factor, *, rngs=None):
        self.downscale_factor = downscale_factor

    def __call__(self, input):
        return pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(nnx.Module):
    """(N, C, *): interleaves groups of channels."""

    def __init__(self, groups, *, rngs=None):
        self.groups = groups

    def __call__(self, input):
        return channel_shuffle(input, self.groups)


class Unfold(nnx.Module):
    """(N, C, H, W) -> (N, C * kH * kW, blocks): sliding blocks as columns."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1, *, rngs=None):
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def __call__(self, input):
        return unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(nnx.Module):
    """(N, C * kH * kW, blocks) -> (N, C, H, W): the sum of overlapping blocks."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1, *, rngs=None):
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def __call__(self, input):
        return fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Upsample(nnx.Module):
    """(N, C, *size) -> (N, C, *size'), to a size or by a factor."""

    def __init__(
        self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, *, rngs=None
    ):
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def __call__(self, input):
        return interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)


class UpsamplingNearest2d(Upsample):
    """(N, C, H, W) -> (N, C, H', W'), the nearest value."""

    def __init__(self, size=None, scale_factor=None, *, rngs=None):
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """(N, C, H, W) -> (N, C, H', W'), between the corners."""

    def __init__(self, size=None, scale_factor=None, *, rngs=None):
        super().__init__(size, scale_factor, "bilinear", align_corners=True)
