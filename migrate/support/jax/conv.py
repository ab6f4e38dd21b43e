"""Convolutions on channels-first arrays, with PyTorch's arguments and weight layouts."""
import jax
import jax.numpy as jnp

from migrate.support.jax.windows import ntuple


def conv_nd(input, weight, bias, stride, padding, dilation, groups):
    """(N, Cin, *size) or (Cin, *size) by (Cout, Cin / groups, *kernel) -> (N, Cout, *size')."""
    input, weight = jnp.asarray(input), jnp.asarray(weight)
    n = weight.ndim - 2
    dilation = ntuple(dilation, n)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
        padding = [(t // 2, t - t // 2) for t in total]
    else:
        padding = [(p, p) for p in ntuple(0 if padding == "valid" else padding, n)]
    x = input if input.ndim == weight.ndim else input[None]
    axes = "NC" + "DHW"[3 - n :], "OI" + "DHW"[3 - n :], "NC" + "DHW"[3 - n :]
    out = jax.lax.conv_general_dilated(
        x, weight, ntuple(stride, n), padding, rhs_dilation=dilation, dimension_numbers=axes, feature_group_count=groups
    )
    if bias is not None:
        out = out + jnp.reshape(bias, (-1, *[1] * n))
    return out if input.ndim == weight.ndim else out[0]


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """(N, Cin, L) by (Cout, Cin / groups, k) -> (N, Cout, L')."""
    return conv_nd(input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """(N, Cin, H, W) by (Cout, Cin / groups, kH, kW) -> (N, Cout, H', W')."""
    return conv_nd(input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """(N, Cin, D, H, W) by (Cout, Cin / groups, kD, kH, kW) -> (N, Cout, D', H', W')."""
    return conv_nd(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose_nd(input, weight, bias, stride, padding, output_padding, groups, dilation):
    """(N, Cin, *size) or (Cin, *size) by (Cin, Cout / groups, *kernel) -> (N, Cout, *size'). `padding` crops the output."""
    input, weight = jnp.asarray(input), jnp.asarray(weight)
    n, kernel = weight.ndim - 2, weight.shape[2:]
    stride, dilation = ntuple(stride, n), ntuple(dilation, n)
    reach = [d * (k - 1) for d, k in zip(dilation, kernel)]
    padding = [(r - p, r - p + o) for r, p, o in zip(reach, ntuple(padding, n), ntuple(output_padding, n))]
    # the transpose of a convolution is one over the stretched input with the flipped kernel, inputs and outputs swapped in each group
    w = jnp.flip(weight, range(2, 2 + n)).reshape(groups, -1, *weight.shape[1:])
    w = jnp.swapaxes(w, 1, 2).reshape(groups * weight.shape[1], -1, *kernel)
    x = input if input.ndim == weight.ndim else input[None]
    axes = "NC" + "DHW"[3 - n :], "OI" + "DHW"[3 - n :], "NC" + "DHW"[3 - n :]
    out = jax.lax.conv_general_dilated(
        x, w, (1,) * n, padding, lhs_dilation=stride, rhs_dilation=dilation, dimension_numbers=axes, feature_group_count=groups
    )
    if bias is not None:
        out = out + jnp.reshape(bias, (-1, *[1] * n))
    return out if input.ndim == weight.ndim else out[0]


def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """(N, Cin, L) by (Cin, Cout / groups, k) -> (N, Cout, L')."""
    return conv_transpose_nd(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """(N, Cin, H, W) by (Cin, Cout / groups, kH, kW) -> (N, Cout, H', W')."""
    return conv_transpose_nd(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """(N, Cin, D, H, W) by (Cin, Cout / groups, kD, kH, kW) -> (N, Cout, D', H', W')."""
    return conv_transpose_nd(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_tbc(input, weight, bias, pad=0):
    """(time, batch, Cin) by (k, Cin, Cout) -> (time', batch, Cout)."""
    out = conv1d(jnp.transpose(input, (1, 2, 0)), jnp.transpose(weight, (2, 1, 0)), bias, padding=pad)
    return jnp.transpose(out, (2, 0, 1))
