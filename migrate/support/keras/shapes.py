"""Layers that pad, reshape, resize and rearrange, with PyTorch's arguments."""
from migrate.support.jax.padding import pad_nd
from migrate.support.jax.resize import interpolate
from migrate.support.jax.shapes import flatten, unflatten
from migrate.support.jax.vision import channel_shuffle, fold, pixel_shuffle, pixel_unshuffle, unfold
from migrate.support.jax.windows import ntuple
from migrate.support.keras.module import Module


class Flatten(Module):
    """Makes one axis of the axes start_dim to end_dim."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def call(self, input):
        return flatten(input, self.start_dim, self.end_dim)


class Unflatten(Module):
    """Makes several axes of one."""

    def __init__(self, dim, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def call(self, input):
        return unflatten(input, self.dim, self.unflattened_size)


class PadNd(Module):
    """Pads the last axes, the last one first; a single number pads all of them on both sides."""

    mode = "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = ntuple(padding, 2 * self.rank)

    def call(self, input):
        return pad_nd(input, self.padding, self.mode, getattr(self, "value", None))


class ZeroPad1d(PadNd):
    """(N, C, L) -> (N, C, L')."""

    rank = 1


class ZeroPad2d(PadNd):
    """(N, C, H, W) -> (N, C, H', W')."""

    rank = 2


class ZeroPad3d(PadNd):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""

    rank = 3


class ConstantPadNd(PadNd):
    """Pads with `value`."""

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value


class ConstantPad1d(ConstantPadNd):
    """(N, C, L) -> (N, C, L')."""

    rank = 1


class ConstantPad2d(ConstantPadNd):
    """(N, C, H, W) -> (N, C, H', W')."""

    rank = 2


class ConstantPad3d(ConstantPadNd):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""

    rank = 3


class ReflectionPad1d(PadNd):
    """(N, C, L) -> (N, C, L'), mirrored at the edges."""

    rank, mode = 1, "reflect"


class ReflectionPad2d(PadNd):
    """(N, C, H, W) -> (N, C, H', W'), mirrored at the edges."""

    rank, mode = 2, "reflect"


class ReflectionPad3d(PadNd):
    """(N, C, D, H, W) -> (N, C, D', H', W'), mirrored at the edges."""

    rank, mode = 3, "reflect"


class ReplicationPad1d(PadNd):
    """(N, C, L) -> (N, C, L'), the edges repeated."""

    rank, mode = 1, "replicate"


class ReplicationPad2d(PadNd):
    """(N, C, H, W) -> (N, C, H', W'), the edges repeated."""

    rank, mode = 2, "replicate"


class ReplicationPad3d(PadNd):
    """(N, C, D, H, W) -> (N, C, D', H', W'), the edges repeated."""

    rank, mode = 3, "replicate"


class CircularPad1d(PadNd):
    """(N, C, L) -> (N, C, L'), wrapped around."""

    rank, mode = 1, "circular"


class CircularPad2d(PadNd):
    """(N, C, H, W) -> (N, C, H', W'), wrapped around."""

    rank, mode = 2, "circular"


class CircularPad3d(PadNd):
    """(N, C, D, H, W) -> (N, C, D', H', W'), wrapped around."""

    rank, mode = 3, "circular"


class Upsample(Module):
    """(N, C, *size) -> (N, C, *size')."""

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def call(self, input):
        return interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)


class UpsamplingNearest2d(Upsample):
    """(N, C, H, W) -> (N, C, H', W') by repetition."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """(N, C, H, W) -> (N, C, H', W'), the corners kept."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """(N, C * r * r, H, W) -> (N, C, H * r, W * r)."""

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def call(self, input):
        return pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """(N, C, H * r, W * r) -> (N, C * r * r, H, W)."""

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def call(self, input):
        return pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """(N, C, *): deals the channels of each group out in turn."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def call(self, input):
        return channel_shuffle(input, self.groups)


class Unfold(Module):
    """(N, C, H, W) -> (N, C * kernel places, windows)."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def call(self, input):
        return unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """(N, C * kernel places, windows) -> (N, C, *output_size): overlapping windows are added."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def call(self, input):
        return fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
