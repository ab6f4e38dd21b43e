"""Convolutions on channels-first arrays, with PyTorch's arguments."""
import math
from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.linear import uniform_param
from migrate.support.flax.state import renamed
from migrate.support.jax.conv import conv_nd, conv_transpose_nd
from migrate.support.jax.padding import pad_nd
from migrate.support.jax.windows import ntuple


def conv_padded(input, kernel, strides, padding, *, mode, **options):
    """`jax.lax.conv_general_dilated` on channels-last input that is padded by `jnp.pad` in `mode`."""
    input = jnp.pad(input, [(0, 0), *padding, (0, 0)], mode={"circular": "wrap", "replicate": "edge"}.get(mode, mode))
    return jax.lax.conv_general_dilated(input, kernel, strides, "VALID", **options)


class ConvNd(nnx.Conv):
    """`nnx.Conv` on channels-first input, batched or not, with PyTorch's arguments. The kernel is (*kernel_size, in / groups, out)."""

    in_channels, out_channels = renamed("in_features"), renamed("out_features")
    stride, dilation, groups = renamed("strides"), renamed("kernel_dilation"), renamed("feature_group_count")

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", *, rngs
    ):
        n = self.rank
        super().__init__(
            in_channels, out_channels, ntuple(kernel_size, n), ntuple(stride, n), kernel_dilation=ntuple(dilation, n),
            padding=padding.upper() if isinstance(padding, str) else ntuple(padding, n), feature_group_count=groups, use_bias=bias, rngs=rngs,
        )
        self.padding_mode = padding_mode
        if padding_mode != "zeros" and padding != "valid":
            self.conv_general_dilated = partial(conv_padded, mode=padding_mode)
            if padding == "same":
                self.padding = tuple((d * (k - 1) // 2, (d * (k - 1) + 1) // 2) for d, k in zip(self.kernel_dilation, self.kernel_size))

    def __call__(self, input):
        channels = -1 - self.rank
        return jnp.moveaxis(super().__call__(jnp.moveaxis(input, channels, -1)), -1, channels)

    def _conv_forward(self, input, weight, bias):
        """The convolution by another weight, in PyTorch's layout, and another bias."""
        padding = self.padding.lower() if isinstance(self.padding, str) else self.padding
        if self.padding_mode != "zeros" and padding != "valid":
            pairs = [(p, p) if isinstance(p, int) else p for p in padding]
            input, padding = pad_nd(input, [a for pair in reversed(pairs) for a in pair], self.padding_mode), 0
        return conv_nd(input, weight, bias, self.strides, padding, self.kernel_dilation, self.feature_group_count)


class Conv1d(ConvNd):
    """(N, in_channels, L) -> (N, out_channels, L')."""

    rank = 1
    torch_state = {"weight": ("kernel", (2, 1, 0)), "bias": ("bias", None)}


class Conv2d(ConvNd):
    """(N, in_channels, H, W) -> (N, out_channels, H', W')."""

    rank = 2
    torch_state = {"weight": ("kernel", (2, 3, 1, 0)), "bias": ("bias", None)}


class Conv3d(ConvNd):
    """(N, in_channels, D, H, W) -> (N, out_channels, D', H', W')."""

    rank = 3
    torch_state = {"weight": ("kernel", (2, 3, 4, 1, 0)), "bias": ("bias", None)}


class ConvTransposeNd(nnx.Module):
    """The transpose of a convolution on channels-first input, batched or not. The weight is (in, out / groups, *kernel_size)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros", *, rngs,
    ):
        n = self.rank
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.padding = ntuple(kernel_size, n), ntuple(stride, n), ntuple(padding, n)
        self.output_padding, self.dilation = ntuple(output_padding, n), ntuple(dilation, n)
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        self.weight = uniform_param(rngs, shape, math.prod(shape[1:]))
        self.bias = uniform_param(rngs, (out_channels,), math.prod(shape[1:])) if bias else nnx.data(None)

    def __call__(self, input, output_size=None):
        extra = self.output_padding if output_size is None else self.padding_for(input, output_size)
        return conv_transpose_nd(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def padding_for(self, input, output_size):
        """The output padding that gives `output_size`: a stride has several sizes with the same input."""
        axes = zip(input.shape[-self.rank :], self.stride, self.padding, self.dilation, self.kernel_size)
        least = [(size - 1) * s - 2 * p + d * (k - 1) + 1 for size, s, p, d, k in axes]
        extra = tuple(wanted - size for wanted, size in zip(output_size[-self.rank :], least))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride)):
            raise ValueError(f"output_size {output_size} is not among the sizes that this layer makes: {least} or less than a stride more")
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
