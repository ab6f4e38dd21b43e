"""Convolutions on channels-first arrays, batched or not, with PyTorch's arguments, parameters and layouts."""
import math

from migrate.support.jax.conv import conv_nd, conv_transpose_nd
from migrate.support.jax.padding import pad_nd
from migrate.support.jax.windows import ntuple
from migrate.support.keras.module import Module, uniform, value_of


class ConvNd(Module):
    """(N, in_channels, *size) -> (N, out_channels, *size'); the weight is (out_channels, in_channels / groups, *kernel_size)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros"
    ):
        super().__init__()
        n = self.rank
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation = ntuple(kernel_size, n), ntuple(stride, n), ntuple(dilation, n)
        self.padding = padding if isinstance(padding, str) else ntuple(padding, n)
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = uniform(shape, math.prod(shape[1:]))
        self.bias = uniform((out_channels,), math.prod(shape[1:])) if bias else None

    def call(self, input):
        return self._conv_forward(input, self.weight.value, value_of(self.bias))

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = pad_nd(input, self.amounts(), self.padding_mode), 0
        return conv_nd(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def amounts(self):
        """The padding as `pad_nd` takes it, the last axis first."""
        if self.padding == "same":
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [a for t in reversed(total) for a in (t // 2, t - t // 2)]
        return [p for p in reversed(ntuple(0 if self.padding == "valid" else self.padding, self.rank)) for _ in range(2)]


class Conv1d(ConvNd):
    """(N, in_channels, L) -> (N, out_channels, L')."""

    rank = 1


class Conv2d(ConvNd):
    """(N, in_channels, H, W) -> (N, out_channels, H', W')."""

    rank = 2


class Conv3d(ConvNd):
    """(N, in_channels, D, H, W) -> (N, out_channels, D', H', W')."""

    rank = 3


class ConvTransposeNd(Module):
    """The transpose of a convolution; the weight is (in_channels, out_channels / groups, *kernel_size)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros",
    ):
        super().__init__()
        n = self.rank
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.padding = ntuple(kernel_size, n), ntuple(stride, n), ntuple(padding, n)
        self.output_padding, self.dilation = ntuple(output_padding, n), ntuple(dilation, n)
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        self.weight = uniform(shape, math.prod(shape[1:]))
        self.bias = uniform((out_channels,), math.prod(shape[1:])) if bias else None

    def call(self, input, output_size=None):
        extra = self.output_padding if output_size is None else self.padding_for(input, output_size)
        return conv_transpose_nd(
            input, self.weight.value, value_of(self.bias), self.stride, self.padding, extra, self.groups, self.dilation
        )

    def padding_for(self, input, output_size):
        """The output padding that gives `output_size`: with a stride, several sizes have the same input."""
        axes = zip(input.shape[-self.rank :], self.stride, self.padding, self.dilation, self.kernel_size)
        least = [(size - 1) * s - 2 * p + d * (k - 1) + 1 for size, s, p, d, k in axes]
        extra = tuple(wanted - size for wanted, size in zip(output_size[-self.rank :], least))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride)):
            raise ValueError(f"output_size {output_size} cannot be made: it must be {least}, or more by less than the stride")
        return extra


class ConvTranspose1d(ConvTransposeNd):
    """(N, in_channels, L) -> (N, out_channels, L')."""

    rank = 1


class ConvTranspose2d(ConvTransposeNd):
    """(N, in_channels, H, W) -> (N, out_channels, H', W')."""

    rank = 2


class ConvTranspose3d(ConvTransposeNd):
    """(N, in_channels, D, H, W) -> (N, out_channels, D', H', W')."""

    rank = 3
