"""Normalisations, with statistics as PyTorch takes them; half precision is computed in float32."""
import math

import jax
import jax.numpy as jnp


def standardize(input, mean, var, eps, weight=None, bias=None):
    """(input - mean) / sqrt(var + eps) * weight + bias, in the input's dtype."""
    out = (input - mean) / jnp.sqrt(var + eps)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(input.dtype)


def moments(input, axes):
    """Mean and biased variance over the axes, kept as 1; in float32 at least."""
    x = jnp.asarray(input, jnp.promote_types(input.dtype, jnp.float32))
    return x.mean(axes, keepdims=True), x.var(axes, keepdims=True)


def by_channel(value, ndim):
    """(C,) -> (C, 1, ...), to be used against (N, C, ...) of that many axes; None stays None."""
    return None if value is None else jnp.reshape(value, (-1, *[1] * (ndim - 2)))


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalises over the last axes, those of `normalized_shape`."""
    return standardize(input, *moments(input, tuple(range(-len(normalized_shape), 0))), eps, weight, bias)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divides by the root mean square over the last axes, those of `normalized_shape`."""
    x = jnp.asarray(input, jnp.promote_types(input.dtype, jnp.float32))
    square = (x * x).mean(tuple(range(-len(normalized_shape), 0)), keepdims=True)
    return standardize(input, 0, square, jnp.finfo(x.dtype).eps if eps is None else eps, weight)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalises (N, C, ...) over each group of channels."""
    mean, var = moments(jnp.reshape(input, (*input.shape[:1], num_groups, math.prod(input.shape[1:]) // num_groups)), -1)
    # one value for each channel again
    shape = (input.shape[0], input.shape[1], *[1] * (input.ndim - 2))
    mean, var = (jnp.repeat(v, input.shape[1] // num_groups, axis=1).reshape(shape) for v in (mean, var))
    return standardize(input, mean, var, eps, by_channel(weight, input.ndim), by_channel(bias, input.ndim))


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, eps=1e-5):
    """Normalises (N, C, ...) over all axes but C, with the batch's statistics in training, else with the running ones."""
    if training:
        mean, var = moments(input, (0, *range(2, input.ndim)))
    else:
        mean, var = by_channel(running_mean, input.ndim), by_channel(running_var, input.ndim)
    return standardize(input, mean, var, eps, by_channel(weight, input.ndim), by_channel(bias, input.ndim))


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """`layer_norm`, the mean and 1 / the standard deviation."""
    mean, var = moments(input, tuple(range(-len(normalized_shape), 0)))
    return standardize(input, mean, var, eps, weight, bias), mean, 1 / jnp.sqrt(var + eps)


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """`group_norm`, the means (N, group) and 1 / the standard deviations."""
    mean, var = moments(jnp.reshape(input, (N, group, C // group * HxW)), -1)
    return group_norm(input, group, weight, bias, eps), mean[..., 0], 1 / jnp.sqrt(var[..., 0] + eps)


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """`batch_norm`, and in training the means (C,) and 1 / the standard deviations; the running statistics stay as they are."""
    out = batch_norm(input, running_mean, running_var, weight, bias, training, eps)
    if not training:
        return out, jnp.zeros(0), jnp.zeros(0)
    mean, var = moments(input, (0, *range(2, input.ndim)))
    return out, mean.reshape(-1), 1 / jnp.sqrt(var.reshape(-1) + eps)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, eps=1e-5):
    """Normalises (N, C, ...) over each channel of each sample, or with the running statistics."""
    if use_input_stats:
        mean, var = moments(input, tuple(range(2, input.ndim)))
    else:
        mean, var = by_channel(running_mean, input.ndim), by_channel(running_var, input.ndim)
    return standardize(input, mean, var, eps, by_channel(weight, input.ndim), by_channel(bias, input.ndim))


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divides (N, C, ...) by a power of the mean square over `size` neighbouring channels."""
    pads = [(0, 0)] * input.ndim
    pads[1] = (size // 2, (size - 1) // 2)
    square = jnp.pad(input * input, pads)
    mean = sum(square[:, i : i + input.shape[1]] for i in range(size)) / size
    return input / (mean * alpha + k) ** beta


def cross_map_lrn(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """(N, C, H, W): as PyTorch's CrossMapLRN2d: channel 0 counts for all later ones, but not in the gradient, which has its own neighbours."""
    reach, channels = (size - 1) // 2, input.shape[1]
    before = int(size - (size - 1) / 2)

    def around(x, first, last):
        padded = jnp.pad(x, [(0, 0), (first, last), (0, 0), (0, 0)])
        return sum(padded[:, i : i + channels] for i in range(first + last + 1))

    def scaled(x):
        square = x * x
        return (around(square, reach, reach).at[:, reach + 1 :].add(square[:, :1])) * (alpha / size) + k

    @jax.custom_jvp
    def normalized(x):
        return x / scaled(x) ** beta

    @normalized.defjvp
    def tangent(primals, tangents):
        (x,), (t,) = primals, tangents
        scale = scaled(x)
        out = x / scale**beta
        return out, t / scale**beta - 2 * alpha * beta / size * out / scale * around(x * t, size - 1 - before, before)

    return normalized(input)
