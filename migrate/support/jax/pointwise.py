"""Elementwise functions whose values at special points, or whose gradients at kinks, jax.numpy has otherwise."""
import jax
import jax.numpy as jnp


def absolute(input):
    """|input|, with gradient 0 at 0 and at NaN."""
    input = jnp.asarray(input)
    smooth = (input != 0) & (input == input)
    return jnp.abs(jnp.where(smooth, input, jax.lax.stop_gradient(input)))


def sign(input):
    """-1, 0 or 1; 0 for NaN."""
    return jnp.where(jnp.isnan(input), 0, jnp.sign(input))


def clamp(input, min=None, max=None):
    """input within [min, max], numbers or arrays; at a bound the gradient goes to input, at NaN there is none; none to min where it is max."""
    input = jnp.asarray(input)
    if isinstance(min, jax.Array) and max is not None:
        min = jnp.where(min == max, jax.lax.stop_gradient(min), min)
    input = jnp.where(input == input, input, jax.lax.stop_gradient(input))
    if min is not None:  # a bound that is NaN gives NaN
        input = jnp.where((input < min) | jnp.isnan(min) & ~jnp.isnan(input), min, input)
    if max is not None:
        input = jnp.where((input > max) | jnp.isnan(max) & ~jnp.isnan(input), max, input)
    return input


def fmax(input, other):
    """The larger one, or the one that is not NaN; the gradient of equal ones goes to input."""
    input, other = jnp.asarray(input), jnp.asarray(other)
    return jnp.where((input >= other) | jnp.isnan(other), input, other)


def fmin(input, other):
    """The smaller one, or the one that is not NaN; the gradient of equal ones goes to input."""
    input, other = jnp.asarray(input), jnp.asarray(other)
    return jnp.where((input <= other) | jnp.isnan(other), input, other)


def trunc_divide(input, other):
    """input / other, rounded towards zero; whole numbers stay whole."""
    if jnp.issubdtype(jnp.result_type(input, other), jnp.integer):
        return jnp.floor_divide(jnp.subtract(input, jnp.fmod(input, other)), other)
    return jnp.trunc(jnp.divide(input, other))


def power(input, exponent):
    """input ** exponent, with gradient 0 at 0 ** 0."""
    input, exponent = jnp.asarray(input), jnp.asarray(exponent)
    return jnp.where((input == 0) & (exponent == 0), 1, input) ** exponent


def copysign(input, other):
    """|input| with the sign of other; gradient 0 at input 0."""
    return jnp.copysign(1.0, other) * absolute(input)


def atan2(input, other):
    """Angle of the point (other, input), with gradient 0 at the origin."""
    input, other = jnp.asarray(input), jnp.asarray(other)
    origin = (input == 0) & (other == 0)
    y, x = jax.lax.stop_gradient((input, other))
    return jnp.arctan2(jnp.where(origin, y, input), jnp.where(origin, jnp.copysign(1.0, x), other))


def angle(input):
    """Argument of complex numbers, with gradient 0 at 0; 0 or pi for real ones."""
    input = jnp.asarray(input)
    if jnp.iscomplexobj(input):
        return atan2(input.imag, input.real)
    return jnp.where(jnp.isnan(input), input, jnp.where(input < 0, jnp.pi, 0.0))


def heaviside(input, values):
    """0 below zero and for NaN, 1 above zero, values at zero."""
    input = jnp.asarray(input)
    return jnp.where(input == 0, values, input > 0)


def lerp(input, end, weight):
    """input + weight * (end - input), exact at weight 0 and 1."""
    step = jnp.subtract(end, input)
    return jnp.where(jnp.abs(weight) < 0.5, input + weight * step, end - step * (1 - weight))


def ldexp(input, other):
    """input * 2 ** other; other may be fractional."""
    return jnp.multiply(input, jnp.power(2.0, other))


def view_as_real(input):
    """Complex (...) to real (..., 2)."""
    return jnp.stack([jnp.real(input), jnp.imag(input)], axis=-1)


def view_as_complex(input):
    """Real (..., 2) to complex (...)."""
    input = jnp.asarray(input)
    return jax.lax.complex(input[..., 0], input[..., 1])


def polar(abs, angle):
    """Complex numbers of absolute value abs and argument angle."""
    return jax.lax.complex(*jnp.broadcast_arrays(abs * jnp.cos(angle), abs * jnp.sin(angle)))


def nextafter(input, other):
    """The next number after input towards other; the gradient goes to input where they differ."""
    following = jnp.nextafter(*jax.lax.stop_gradient((input, other)))
    moves = jnp.isfinite(input) & jnp.not_equal(input, other)
    return following + jnp.where(moves, input - jax.lax.stop_gradient(input), 0)
