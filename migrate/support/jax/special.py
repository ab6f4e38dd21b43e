"""Special functions that JAX lacks, or whose special points or gradients it has otherwise."""
import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.pointwise import absolute


def polygamma(n, input):
    """Derivative n of digamma; left of 0 by reflection, where JAX's sum has too few terms."""
    def derivative(f):
        return lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]

    def cot(x):
        return jnp.pi * jnp.cos(jnp.pi * x) / jnp.sin(jnp.pi * x)

    input = jnp.asarray(input)
    left = input < 0
    far = jnp.isposinf(input)
    right_side = jax.scipy.special.polygamma(n, jnp.where(left, 1 - input, jnp.where(far, 1, input)))
    right_side = jnp.where(far, {0: jnp.inf, 1: 0.0}.get(n, jnp.nan), right_side)
    for _ in range(n):
        cot = derivative(cot)
    fraction = jnp.where(left, input - jnp.round(input), 0.25)
    return jnp.where(left, (-1) ** n * right_side - cot(fraction), right_side)


def digamma(input):
    """Derivative of the logarithm of gamma; -inf at 0, inf at -0 and NaN at -1, -2, ..."""

    @jax.custom_jvp
    def value(x):
        return jnp.where(x == 0, jnp.copysign(jnp.inf, -x), jax.scipy.special.digamma(x))

    @value.defjvp
    def tangent(primals, tangents):  # JAX's own has too few terms left of 0
        (x,), (dot,) = primals, tangents
        pole = (x <= 0) & (x == jnp.round(x))
        return value(x), jnp.where(pole, 0, polygamma(1, jnp.where(pole, 1, x))) * dot

    return value(jnp.multiply(input, 1.0))


def zeta(input, other):
    """Hurwitz zeta function; NaN for other below -8, where JAX's sum has too few terms."""
    input, other = jnp.asarray(input), jnp.asarray(other)
    pole = (other <= 0) & (other == jnp.floor(other))
    value = jax.scipy.special.zeta(input, jnp.where(pole, 1, other))
    value = jnp.where(pole, jnp.inf, jnp.where(other < -8, jnp.nan, value))
    return jnp.where(input < 1, jnp.nan, value)


def i0(input):
    """Modified Bessel function of the first kind, order 0; its gradient at 0 is 0."""
    return jnp.exp(absolute(input)) * jax.scipy.special.i0e(input)


def xlogy(input, other):
    """input * log(other), 0 where input is 0."""
    input, other = jnp.asarray(input), jnp.asarray(other)
    return input * jnp.log(jnp.where((input == 0) & ((other <= 0) | jnp.isposinf(other)), 1, other))


def xlog1py(input, other):
    """input * log(1 + other), 0 where input is 0."""
    input, other = jnp.asarray(input), jnp.asarray(other)
    return input * jnp.log1p(jnp.where((input == 0) & ((other <= -1) | jnp.isposinf(other)), 0, other))


def bessel_j(order, x):
    """Bessel functions of the first kind of orders 0 and 1, for 0 <= x."""
    angle = (np.arange(64) + 0.5) * np.pi / 64
    wave = jnp.minimum(x, 25.0)[..., None] * np.sin(angle)
    near = jnp.mean(jnp.cos(wave) if order == 0 else jnp.sin(wave) * np.sin(angle), axis=-1)
    return jnp.where(x < 25, near, bessel_far(order, x, jnp.cos, jnp.sin, -1))


def bessel_far(order, x, along, across, signed):
    """Hankel's expansion for large x: of J with (cos, sin, -1), of Y with (sin, cos, 1)."""
    m, u = 4 * order**2, 1 / (8 * jnp.maximum(x, 25.0))
    p = 1 - (m - 1) * (m - 9) / 2 * u**2 + (m - 1) * (m - 9) * (m - 25) * (m - 49) / 24 * u**4
    q = (m - 1) * u - (m - 1) * (m - 9) * (m - 25) / 6 * u**3
    phase = x - (order / 2 + 0.25) * np.pi
    return jnp.sqrt(2 / np.pi / x) * (p * along(phase) + signed * q * across(phase))


def bessel_y(order, x):
    """Bessel functions of the second kind of orders 0 and 1 (NaN below 0), by Neumann's series of J."""
    angle, k = (np.arange(64) + 0.5) * np.pi / 64, np.arange(1, 24)
    waves = (np.sin if order else np.cos)(angle[:, None] * (2 * k + order))
    weight = np.sum((-1.0) ** k * (2 * k + order) / (k * (k + order)) * waves, axis=-1) / 64
    small = jnp.minimum(x, 25.0)
    series = jnp.sum((jnp.sin if order else jnp.cos)(small[..., None] * np.sin(angle)) * weight, axis=-1)
    near = (jnp.log(small / 2) + np.euler_gamma - order) * bessel_j(order, small) - series
    near = near - bessel_j(0, small) / small if order else near
    return jnp.where(x == 0, -jnp.inf, jnp.where(x >= 25, bessel_far(order, x, jnp.sin, jnp.cos, 1), near * 2 / np.pi))


def bessel_j0(input):
    """Bessel function of the first kind, order 0."""
    return bessel_j(0, jnp.abs(input))


def bessel_j1(input):
    """Bessel function of the first kind, order 1."""
    x = input * 1.0
    return jnp.sign(x) * bessel_j(1, jnp.abs(x))


def bessel_y0(input):
    """Bessel function of the second kind, order 0; NaN below 0."""
    return bessel_y(0, jnp.asarray(input))


def bessel_y1(input):
    """Bessel function of the second kind, order 1; NaN below 0."""
    return bessel_y(1, jnp.asarray(input))


def scaled_bessel_k(order, x):
    """exp(x) * K(x), by the trapezoidal rule on the integral of exp(-x (cosh t - 1)) cosh(order t)."""
    far = jnp.isposinf(x)
    x = jnp.where(far, 1, x)[..., None]
    step = 2 * jnp.arcsinh(jnp.sqrt(10 / x)) / 64
    t = step * jnp.arange(65)
    values = jnp.exp(-2 * (jnp.sqrt(x) * jnp.sinh(t / 2)) ** 2) * jnp.cosh(order * t)
    k = step[..., 0] * (values.sum(-1) - values[..., 0] / 2)
    return jnp.where(x[..., 0] == 0, jnp.inf, jnp.where(far, 0, k))


def scaled_modified_bessel_k0(x):
    """exp(x) * K0(x)."""
    return scaled_bessel_k(0, x)


def scaled_modified_bessel_k1(x):
    """exp(x) * K1(x)."""
    return scaled_bessel_k(1, x)


def modified_bessel_k0(input):
    """Modified Bessel function of the second kind, order 0."""
    return jnp.exp(-1.0 * input) * scaled_bessel_k(0, input)


def modified_bessel_k1(input):
    """Modified Bessel function of the second kind, order 1."""
    return jnp.exp(-1.0 * input) * scaled_bessel_k(1, input)


def by_recurrence(x, n, first, following):
    """Polynomials p(n) of x, elementwise: p(0) = 1, p(1) = first, p(k + 1) = following(k, p(k), p(k - 1))."""
    n = jnp.broadcast_to(jnp.trunc(n).astype(int), jnp.broadcast_shapes(jnp.shape(x), jnp.shape(n)))

    def step(k, state):
        before, now, found = state
        before, now = now, following(k, now, before)
        return before, now, jnp.where(n == k + 1, now, found)

    one = jnp.ones(n.shape, first.dtype)
    start = one, first * one, jnp.where(n == 1, first, jnp.where(n == 0, one, 0))
    return jax.lax.fori_loop(1, n.max(initial=1), step, start)[2]


def chebyshev_polynomial_t(input, n):
    """Chebyshev polynomial of the first kind."""
    return by_recurrence(input, n, input * 1.0, lambda k, p, q: 2 * input * p - q)


def chebyshev_polynomial_u(input, n):
    """Chebyshev polynomial of the second kind."""
    return by_recurrence(input, n, 2.0 * input, lambda k, p, q: 2 * input * p - q)


def chebyshev_polynomial_v(input, n):
    """Chebyshev polynomial of the third kind."""
    return by_recurrence(input, n, 2.0 * input - 1, lambda k, p, q: 2 * input * p - q)


def chebyshev_polynomial_w(input, n):
    """Chebyshev polynomial of the fourth kind."""
    return by_recurrence(input, n, 2.0 * input + 1, lambda k, p, q: 2 * input * p - q)


def hermite_polynomial_h(input, n):
    """Physicist's Hermite polynomial."""
    return by_recurrence(input, n, 2.0 * input, lambda k, p, q: 2 * (input * p - k * q))


def hermite_polynomial_he(input, n):
    """Probabilist's Hermite polynomial."""
    return by_recurrence(input, n, input * 1.0, lambda k, p, q: input * p - k * q)


def laguerre_polynomial_l(input, n):
    """Laguerre polynomial."""
    return by_recurrence(input, n, 1.0 - input, lambda k, p, q: ((2 * k + 1 - input) * p - k * q) / (k + 1))


def legendre_polynomial_p(input, n):
    """Legendre polynomial."""
    return by_recurrence(input, n, input * 1.0, lambda k, p, q: ((2 * k + 1) * input * p - k * q) / (k + 1))
