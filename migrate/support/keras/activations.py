"""Activations as layers with PyTorch's arguments."""
import jax
import jax.numpy as jnp

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
from migrate.support.keras.module import Module, Parameter, Rngs


class ReLU(Module):
    """max(x, 0)."""

    def __init__(self, inplace=False):
        super().__init__()

    def call(self, input):
        return jax.nn.relu(input)


class ReLU6(ReLU):
    """x clipped to [0, 6]."""

    def call(self, input):
        return hardtanh(input, 0.0, 6.0)


class LeakyReLU(Module):
    """x where x > 0, negative_slope * x elsewhere."""

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope

    def call(self, input):
        return leaky_relu(input, self.negative_slope)


class PReLU(Module):
    """x where x > 0, weight * x elsewhere; one weight, or one for each channel (axis 1)."""

    def __init__(self, num_parameters=1, init=0.25):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(jnp.full(num_parameters, init))

    def call(self, input):
        return prelu(input, self.weight.value)


class RReLU(Module):
    """Leaky ReLU with a random slope for each value in training, the mean slope in evaluation."""

    def __init__(self, lower=1 / 8, upper=1 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper = lower, upper
        self.rngs = Rngs()

    def call(self, input):
        return rrelu(input, self.lower, self.upper, self.training, rngs=self.rngs)


class ELU(Module):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere."""

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha

    def call(self, input):
        return jax.nn.elu(input, self.alpha)


class CELU(ELU):
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere."""

    def call(self, input):
        return jax.nn.celu(input, self.alpha)


class SELU(ReLU):
    """The self-normalising ELU."""

    def call(self, input):
        return jax.nn.selu(input)


class GELU(Module):
    """x times the normal distribution function of x; `approximate` is "none" or "tanh"."""

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def call(self, input):
        return jax.nn.gelu(input, approximate=self.approximate == "tanh")


class SiLU(ReLU):
    """x * sigmoid(x)."""

    def call(self, input):
        return jax.nn.silu(input)


class Mish(ReLU):
    """x * tanh(softplus(x))."""

    def call(self, input):
        return jax.nn.mish(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def call(self, input):
        return jax.nn.sigmoid(input)


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def call(self, input):
        return jax.nn.log_sigmoid(input)


class Tanh(Module):
    """tanh(x)."""

    def call(self, input):
        return jnp.tanh(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def call(self, input):
        return tanhshrink(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def call(self, input):
        return jax.nn.soft_sign(input)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def call(self, input):
        return softplus(input, self.beta, self.threshold)


class Hardtanh(Module):
    """x clipped to [min_val, max_val]."""

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value

    def call(self, input):
        return hardtanh(input, self.min_val, self.max_val)


class Hardsigmoid(ReLU):
    """x / 6 + 1 / 2, clipped to [0, 1]."""

    def call(self, input):
        return hardtanh(input + 3.0, 0.0, 6.0) / 6


class Hardswish(ReLU):
    """x * hardsigmoid(x)."""

    def call(self, input):
        return input * hardtanh(input + 3.0, 0.0, 6.0) / 6


class Hardshrink(Module):
    """0 where |x| <= lambd, x elsewhere."""

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def call(self, input):
        return hardshrink(input, self.lambd)


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd."""

    def call(self, input):
        return softshrink(input, self.lambd)


class Threshold(Module):
    """x where x > threshold, `value` elsewhere."""

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold, self.value = threshold, value

    def call(self, input):
        return threshold_at(input, self.threshold, self.value)


class GLU(Module):
    """The first half of an axis times the sigmoid of the second."""

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def call(self, input):
        return jax.nn.glu(input, axis=self.dim)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def call(self, input):
        return softmax(input, self.dim)


class Softmin(Softmax):
    """Softmax of -x."""

    def call(self, input):
        return softmax(-input, self.dim)


class LogSoftmax(Softmax):
    """log(softmax(x)) along `dim`."""

    def call(self, input):
        return log_softmax(input, self.dim)


class Softmax2d(Module):
    """(N, C, H, W) or (C, H, W): softmax over the channels of each place."""

    def call(self, input):
        return softmax(input, -3)
