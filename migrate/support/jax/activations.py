"""Activations that JAX has not, or has with another derivative at a kink."""
import jax
import jax.numpy as jnp


def leaky_relu(input, negative_slope=0.01):
    """x where x > 0, negative_slope * x elsewhere; the derivative at 0 is the slope (1 in jax.nn)."""
    return jnp.where(input > 0, input, input * negative_slope)


def elu(input, alpha=1.0):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere, whose derivative keeps its precision far below 0."""
    below = jnp.where(input > 0, 0, input)
    exp, stop = jnp.exp(below), jax.lax.stop_gradient
    return jnp.where(input > 0, input, alpha * (stop(jnp.expm1(below)) + (exp - stop(exp))))


def celu(input, alpha=1.0):
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere."""
    return jnp.where(input > 0, input, elu(jnp.where(input > 0, 0, input) / alpha) * alpha)


def selu(input):
    """ELU with the scale and alpha that keep mean 0 and variance 1."""
    return 1.0507009873554805 * elu(input, 1.6732632423543772)


def hardtanh(input, min_val=-1.0, max_val=1.0):
    """x clipped to [min_val, max_val]; the derivative at the bounds is 0."""
    return jnp.where(input <= min_val, min_val, jnp.where(input >= max_val, max_val, input)).astype(input.dtype)


def threshold_at(input, threshold, value):
    """x where x > threshold, `value` elsewhere."""
    return jnp.where(input <= threshold, value, input).astype(input.dtype)


def hardshrink(input, lambd=0.5):
    """0 where |x| <= lambd, x elsewhere."""
    return jnp.where((input >= -lambd) & (input <= lambd), 0, input)


def softshrink(input, lambd=0.5):
    """x moved towards 0 by lambd; 0 where |x| <= lambd."""
    return jnp.where(input > lambd, input - lambd, jnp.where(input < -lambd, input + lambd, input * 0))


def tanhshrink(input):
    """x - tanh(x)."""
    return input - jnp.tanh(input)


def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""
    return jnp.where(input * beta > threshold, input, jax.nn.softplus(input * beta) / beta)


def prelu(input, weight):
    """x where x > 0, weight * x elsewhere; one weight, or one for each channel (axis 1)."""
    input, weight = jnp.asarray(input), jnp.asarray(weight)
    if weight.size > 1:
        weight = weight.reshape(-1, *[1] * (input.ndim - 2))
    return jnp.where(input > 0, input, (weight if weight.size > 1 else weight.reshape(())) * input)


def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, *, rngs=None):
    """Leaky ReLU with a slope drawn from [lower, upper] for each value, their mean in evaluation."""
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slope = jax.random.uniform(rngs.dropout(), jnp.shape(input), input.dtype, lower, upper)
    return jnp.where(input > 0, input, slope * input)


def implicit_dim(input):
    """The axis that softmax and its kin take where none is given."""
    return 0 if jnp.ndim(input) in (0, 1, 3) else 1


def softmax_axis(input, dim):
    """The axis, or none of an array without axes."""
    return () if jnp.ndim(input) == 0 else implicit_dim(input) if dim is None else dim


def softmax(input, dim=None):
    """exp(x) / sum(exp(x)) along `dim`."""
    return jax.nn.softmax(input, axis=softmax_axis(input, dim))


def log_softmax(input, dim=None):
    """The logarithm of softmax along `dim`."""
    return jax.nn.log_softmax(input, axis=softmax_axis(input, dim))


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1, *, rngs):
    """A sample from the Gumbel-softmax distribution; `hard` gives one-hot values with the gradient of the soft ones."""
    soft = jax.nn.softmax((logits + jax.random.gumbel(rngs.dropout(), logits.shape, logits.dtype)) / tau, axis=dim)
    if not hard:
        return soft
    one_hot = jax.nn.one_hot(jnp.argmax(soft, axis=dim), soft.shape[dim], axis=dim, dtype=soft.dtype)
    return one_hot - jax.lax.stop_gradient(soft) + soft
