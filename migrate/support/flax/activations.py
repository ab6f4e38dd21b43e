"""Activations as layers, with PyTorch's arguments."""
import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.jax.activations import (
    hardshrink,
    hardtanh,
    leaky_relu,
    log_softmax,
    prelu,
    rrelu,
    softmax,
    softplus,
    softshrink,
    tanhshrink,
    threshold_at,
)


class ReLU(nnx.Module):
    """max(x, 0)."""

    def __init__(self, inplace=False, *, rngs=None):
        pass

    def __call__(self, input):
        return jax.nn.relu(input)


class ReLU6(ReLU):
    """min(max(x, 0), 6)."""

    def __call__(self, input):
        return jax.nn.relu6(input)


class LeakyReLU(nnx.Module):
    """x where x > 0, negative_slope * x elsewhere."""

    def __init__(self, negative_slope=0.01, inplace=False, *, rngs=None):
        self.negative_slope = negative_slope

    def __call__(self, input):
        return leaky_relu(input, self.negative_slope)


class PReLU(nnx.Module):
    """x where x > 0, weight * x elsewhere; one weight, or one for each channel (axis 1)."""

    def __init__(self, num_parameters=1, init=0.25, *, rngs=None):
        self.num_parameters = num_parameters
        self.weight = nnx.Param(jnp.full(num_parameters, init))

    def __call__(self, input):
        return prelu(input, self.weight)


class RReLU(nnx.Module):
    """Leaky ReLU with a random slope in training, and the mean slope in evaluation."""

    def __init__(self, lower=1 / 8, upper=1 / 3, inplace=False, *, rngs):
        self.lower, self.upper, self.deterministic, self.rngs = lower, upper, False, rngs.fork()

    def __call__(self, input):
        return rrelu(input, self.lower, self.upper, not self.deterministic, rngs=self.rngs)


class ELU(nnx.Module):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere."""

    def __init__(self, alpha=1.0, inplace=False, *, rngs=None):
        self.alpha = alpha

    def __call__(self, input):
        return jax.nn.elu(input, self.alpha)


class CELU(ELU):
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""

    def __call__(self, input):
        return jax.nn.celu(input, self.alpha)


class SELU(ReLU):
    """The self-normalising ELU."""

    def __call__(self, input):
        return jax.nn.selu(input)


class GELU(nnx.Module):
    """x * Phi(x), exact, or approximated by tanh."""

    def __init__(self, approximate="none", *, rngs=None):
        self.approximate = approximate

    def __call__(self, input):
        return jax.nn.gelu(input, approximate=self.approximate == "tanh")


class SiLU(ReLU):
    """x * sigmoid(x)."""

    def __call__(self, input):
        return jax.nn.silu(input)


class Mish(ReLU):
    """x * tanh(softplus(x))."""

    def __call__(self, input):
        return jax.nn.mish(input)


class Sigmoid(nnx.Module):
    """1 / (1 + exp(-x))."""

    def __init__(self, *args, rngs=None, **kwargs):
        pass

    def __call__(self, input):
        return jax.nn.sigmoid(input)


class LogSigmoid(Sigmoid):
    """log(sigmoid(x))."""

    def __call__(self, input):
        return jax.nn.log_sigmoid(input)


class Tanh(Sigmoid):
    """tanh(x)."""

    def __call__(self, input):
        return jnp.tanh(input)


class Tanhshrink(Sigmoid):
    """x - tanh(x)."""

    def __call__(self, input):
        return tanhshrink(input)


class Softsign(Sigmoid):
    """x / (1 + |x|)."""

    def __call__(self, input):
        return jax.nn.soft_sign(input)


class Softplus(nnx.Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""

    def __init__(self, beta=1.0, threshold=20.0, *, rngs=None):
        self.beta, self.threshold = beta, threshold

    def __call__(self, input):
        return softplus(input, self.beta, self.threshold)


class Hardtanh(nnx.Module):
    """x clipped to [min_val, max_val]."""

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None, *, rngs=None):
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value

    def __call__(self, input):
        return hardtanh(input, self.min_val, self.max_val)


class Hardsigmoid(ReLU):
    """min(max(x + 3, 0), 6) / 6."""

    def __call__(self, input):
        return jax.nn.hard_sigmoid(input)


class Hardswish(ReLU):
    """x * hardsigmoid(x)."""

    def __call__(self, input):
        return jax.nn.hard_swish(input)


class Hardshrink(nnx.Module):
    """0 where |x| <= lambd, x elsewhere."""

    def __init__(self, lambd=0.5, *, rngs=None):
        self.lambd = lambd

    def __call__(self, input):
        return hardshrink(input, self.lambd)


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd; 0 where |x| <= lambd."""

    def __call__(self, input):
        return softshrink(input, self.lambd)


class Threshold(nnx.Module):
    """x where x > threshold, `value` elsewhere."""

    def __init__(self, threshold, value, inplace=False, *, rngs=None):
        self.threshold, self.value = threshold, value

    def __call__(self, input):
        return threshold_at(input, self.threshold, self.value)


class GLU(nnx.Module):
    """The first half along `dim`, times the sigmoid of the second."""

    def __init__(self, dim=-1, *, rngs=None):
        self.dim = dim

    def __call__(self, input):
        return jax.nn.glu(input, self.dim)


class Softmax(nnx.Module):
    """exp(x) / sum(exp(x)) along `dim`."""

    def __init__(self, dim=None, *, rngs=None):
        self.dim = dim

    def __call__(self, input):
        return softmax(input, self.dim)


class Softmin(Softmax):
    """softmax(-x) along `dim`."""

    def __call__(self, input):
        return softmax(-input, self.dim)


class LogSoftmax(Softmax):
    """log(softmax(x)) along `dim`."""

    def __call__(self, input):
        return log_softmax(input, self.dim)


class Softmax2d(Sigmoid):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def __call__(self, input):
        return jax.nn.softmax(input, axis=-3)
