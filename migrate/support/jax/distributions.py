"""Probability distributions, after torch.distributions. Draws need `rngs`; everything else works without."""
import math

import jax
import jax.numpy as jnp

from migrate.support.jax.pointwise import absolute, clamp
from migrate.support.jax.special import xlogy


def as_parameters(*values):
    """Numbers and arrays as arrays of one floating dtype and one shape."""
    dtype = jnp.result_type(*values)
    dtype = dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.float32
    return jnp.broadcast_arrays(*(jnp.asarray(v, dtype) for v in values))


class Distribution:
    """Distributions of shape batch_shape over values of shape event_shape."""

    has_rsample = True
    bounds = -math.inf, math.inf  # of the values

    def __init__(self, batch_shape=(), event_shape=(), *, rngs=None):
        self.batch_shape, self.event_shape, self.rngs = tuple(batch_shape), tuple(event_shape), rngs

    def draw(self, key, shape):
        """Values of the given shape, differentiable by the parameters."""
        raise NotImplementedError

    def rsample(self, sample_shape=()):
        """Values (*sample_shape, *batch_shape, *event_shape) that gradients flow through."""
        return self.draw(self.rngs(), (*sample_shape, *self.batch_shape, *self.event_shape))

    def sample(self, sample_shape=()):
        """Values (*sample_shape, *batch_shape, *event_shape)."""
        return jax.lax.stop_gradient(Distribution.rsample(self, sample_shape))

    @property
    def stddev(self):
        """Standard deviation."""
        return jnp.sqrt(self.variance)

    def prob(self, value):
        """Density or probability of value."""
        return jnp.exp(self.log_prob(value))

    def kl(self, other):
        """Kullback-Leibler divergence from another distribution of the same kind."""
        raise NotImplementedError(f"no divergence of {type(self).__name__}")

    def cross_entropy(self, other):
        """Mean of -log_prob over the values of another distribution."""
        raise NotImplementedError(f"no divergence of {type(other).__name__} and {type(self).__name__}")

    def mean_log(self):
        """Mean of the logarithm of the values; NaN where some are negative."""
        return jnp.nan

    def perplexity(self):
        """exp(entropy)."""
        return jnp.exp(self.entropy())


class LocationScale(Distribution):
    """Distributions made of a standard one by `loc + scale * x`."""

    def __init__(self, loc, scale, validate_args=None, *, rngs=None):
        self.loc, self.scale = as_parameters(loc, scale)
        super().__init__(self.loc.shape, rngs=rngs)

    def standard(self, value):
        """Value in units of the standard distribution."""
        return (value - self.loc) / self.scale

    @property
    def mean(self):
        """Mean, for symmetric distributions that have one."""
        return self.loc

    mode = mean


class Normal(LocationScale):
    """Normal distribution."""

    def draw(self, key, shape):
        return self.loc + self.scale * jax.random.normal(key, shape, self.scale.dtype)

    @property
    def variance(self):
        return jnp.square(self.scale)

    def log_prob(self, value):
        return -jnp.square(self.standard(value)) / 2 - jnp.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + jnp.log(self.scale)

    def cdf(self, value):
        return 0.5 * (1 + jax.scipy.special.erf(self.standard(value) / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * math.sqrt(2) * jax.scipy.special.erfinv(2 * value - 1)

    def kl(self, other):
        ratio = jnp.square(self.scale / other.scale)
        return 0.5 * (ratio + jnp.square((self.loc - other.loc) / other.scale) - 1 - jnp.log(ratio))

    def cross_entropy(self, other):
        square = other.variance + jnp.square(other.mean - self.loc)
        return square / (2 * jnp.square(self.scale)) + jnp.log(self.scale) + 0.5 * math.log(2 * math.pi)

    def mean_exp(self, t):
        """Mean of exp(t * value)."""
        return jnp.exp(self.loc * t + jnp.square(self.scale * t) / 2)

    def mean_distance(self, point):
        """Mean of |value - point|."""
        units = (self.loc - point) / (self.scale * math.sqrt(2))
        return self.scale * math.sqrt(2) * (jnp.exp(-jnp.square(units)) / math.sqrt(math.pi) + units * jax.scipy.special.erf(units))


class LogNormal(Distribution):
    """exp of a normally distributed value."""

    bounds = 0, math.inf

    def __init__(self, loc, scale, validate_args=None, *, rngs=None):
        self.base_dist = Normal(loc, scale)
        self.loc, self.scale = self.base_dist.loc, self.base_dist.scale
        super().__init__(self.loc.shape, rngs=rngs)

    def draw(self, key, shape):
        return jnp.exp(self.base_dist.draw(key, shape))

    @property
    def mean(self):
        return jnp.exp(self.loc + jnp.square(self.scale) / 2)

    @property
    def mode(self):
        return jnp.exp(self.loc - jnp.square(self.scale))

    @property
    def variance(self):
        return jnp.expm1(jnp.square(self.scale)) * jnp.exp(2 * self.loc + jnp.square(self.scale))

    def log_prob(self, value):
        return self.base_dist.log_prob(jnp.log(value)) - jnp.log(value)

    def entropy(self):
        return self.base_dist.entropy() + self.loc

    def kl(self, other):
        return self.base_dist.kl(other.base_dist)

    def mean_log(self):
        return self.loc


class Laplace(LocationScale):
    """Laplace distribution."""

    def draw(self, key, shape):
        return self.loc + self.scale * jax.random.laplace(key, shape, self.scale.dtype)

    @property
    def variance(self):
        return 2 * jnp.square(self.scale)

    def log_prob(self, value):
        return -jnp.log(2 * self.scale) - absolute(self.standard(value))

    def entropy(self):
        return 1 + jnp.log(2 * self.scale)

    def cdf(self, value):
        x = self.standard(value)
        return 0.5 - 0.5 * jnp.sign(x) * jnp.expm1(-jnp.abs(x))

    def kl(self, other):
        ratio, distance = self.scale / other.scale, absolute(self.loc - other.loc)
        return -jnp.log(ratio) + distance / other.scale + ratio * jnp.exp(-distance / self.scale) - 1

    def cross_entropy(self, other):
        return other.mean_distance(self.loc) / self.scale + jnp.log(2 * self.scale)


class Cauchy(LocationScale):
    """Cauchy distribution."""

    def draw(self, key, shape):
        return self.loc + self.scale * jax.random.cauchy(key, shape, self.scale.dtype)

    @property
    def mean(self):
        return jnp.full(self.batch_shape, jnp.nan)

    @property
    def variance(self):
        return jnp.full(self.batch_shape, jnp.inf)

    def log_prob(self, value):
        return -math.log(math.pi) - jnp.log(self.scale) - jnp.log1p(jnp.square(self.standard(value)))

    def entropy(self):
        return math.log(4 * math.pi) + jnp.log(self.scale)

    def kl(self, other):
        square = jnp.square(self.scale + other.scale) + jnp.square(self.loc - other.loc)
        return jnp.log(square) - jnp.log(4 * self.scale * other.scale)


class Gumbel(LocationScale):
    """Gumbel distribution."""

    def draw(self, key, shape):
        return self.loc + self.scale * jax.random.gumbel(key, shape, self.scale.dtype)

    @property
    def mean(self):
        return self.loc + self.scale * jnp.euler_gamma

    @property
    def variance(self):
        return math.pi**2 / 6 * jnp.square(self.scale)

    def log_prob(self, value):
        x = self.standard(value)
        return -x - jnp.exp(-x) - jnp.log(self.scale)

    def entropy(self):
        return jnp.log(self.scale) + 1 + jnp.euler_gamma

    def kl(self, other):
        ratio, moved = self.scale / other.scale, (other.loc - self.loc) / other.scale
        excess = jnp.exp(moved + jax.scipy.special.gammaln(1 + ratio))
        return excess - jnp.log(ratio) - moved + ratio * jnp.euler_gamma - (1 + jnp.euler_gamma)

    def cross_entropy(self, other):
        excess = jnp.exp(self.loc / self.scale) * other.mean_exp(-1 / self.scale)
        return self.standard(other.mean) + excess + jnp.log(self.scale)


class HalfNormal(Distribution):
    """Absolute value of a normally distributed one."""

    bounds = 0, math.inf

    def __init__(self, scale, validate_args=None, *, rngs=None):
        (self.scale,) = as_parameters(scale)
        super().__init__(self.scale.shape, rngs=rngs)

    def draw(self, key, shape):
        return self.scale * jnp.abs(jax.random.normal(key, shape, self.scale.dtype))

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return jnp.square(self.scale) * (1 - 2 / math.pi)

    def log_prob(self, value):
        return jnp.where(value >= 0, Normal(0.0, self.scale).log_prob(value) + math.log(2), -jnp.inf)

    def entropy(self):
        return Normal(0.0, self.scale).entropy() - math.log(2)

    def kl(self, other):
        return Normal(0.0, self.scale).kl(Normal(0.0, other.scale))


class Uniform(Distribution):
    """Uniform distribution on [low, high)."""

    def __init__(self, low, high, validate_args=None, *, rngs=None):
        self.low, self.high = as_parameters(low, high)
        super().__init__(self.low.shape, rngs=rngs)

    def draw(self, key, shape):
        return self.low + jax.random.uniform(key, shape, self.low.dtype) * (self.high - self.low)

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def variance(self):
        return jnp.square(self.high - self.low) / 12

    def log_prob(self, value):
        inside = (self.low <= value) & (self.high > value)
        return jnp.where(inside, 0.0, -jnp.inf) - jnp.log(self.high - self.low)

    def entropy(self):
        return jnp.log(self.high - self.low)

    def cdf(self, value):
        return clamp((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value):
        return self.low + value * (self.high - self.low)

    def kl(self, other):
        outside = (other.low > self.low) | (other.high < self.high)
        return jnp.where(outside, jnp.inf, jnp.log((other.high - other.low) / (self.high - self.low)))

    @property
    def bounds(self):
        return self.low, self.high

    def cross_entropy(self, other):
        inside = jnp.greater_equal(other.bounds[0], self.low) & jnp.less_equal(other.bounds[1], self.high)
        return jnp.where(inside, jnp.log(self.high - self.low), jnp.inf)

    def mean_log(self):
        return (xlogy(self.high, self.high) - xlogy(self.low, self.low)) / (self.high - self.low) - 1

    def mean_exp(self, t):
        """Mean of exp(t * value)."""
        return (jnp.exp(self.high * t) - jnp.exp(self.low * t)) / (t * (self.high - self.low))


class Exponential(Distribution):
    """Exponential distribution."""

    bounds = 0, math.inf

    def __init__(self, rate, validate_args=None, *, rngs=None):
        (self.rate,) = as_parameters(rate)
        super().__init__(self.rate.shape, rngs=rngs)

    def draw(self, key, shape):
        return jax.random.exponential(key, shape, self.rate.dtype) / self.rate

    @property
    def mean(self):
        return 1 / self.rate

    @property
    def variance(self):
        return 1 / jnp.square(self.rate)

    def log_prob(self, value):
        return jnp.log(self.rate) - self.rate * value

    def entropy(self):
        return 1 - jnp.log(self.rate)

    def cdf(self, value):
        return -jnp.expm1(-self.rate * value)

    def kl(self, other):
        ratio = other.rate / self.rate
        return ratio - jnp.log(ratio) - 1

    def cross_entropy(self, other):
        return jnp.where(jnp.less(other.bounds[0], 0), jnp.inf, self.rate * other.mean - jnp.log(self.rate))

    def mean_log(self):
        return -jnp.log(self.rate) - jnp.euler_gamma

    def mean_exp(self, t):
        """Mean of exp(t * value)."""
        return self.rate / (self.rate - t)


class Gamma(Distribution):
    """Gamma distribution."""

    bounds = 0, math.inf

    def __init__(self, concentration, rate, validate_args=None, *, rngs=None):
        self.concentration, self.rate = as_parameters(concentration, rate)
        super().__init__(self.rate.shape, rngs=rngs)

    def draw(self, key, shape):
        return jax.random.gamma(key, self.concentration, shape, self.rate.dtype) / self.rate

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def variance(self):
        return self.concentration / jnp.square(self.rate)

    def log_prob(self, value):
        a, b = self.concentration, self.rate
        return xlogy(a, b) + xlogy(a - 1, value) - b * value - jax.scipy.special.gammaln(a)

    def entropy(self):
        a = self.concentration
        return a - jnp.log(self.rate) + jax.scipy.special.gammaln(a) + (1 - a) * jax.scipy.special.digamma(a)

    def kl(self, other):
        a, b, gammaln = self.concentration, other.concentration, jax.scipy.special.gammaln
        shape_part = gammaln(b) - gammaln(a) + (a - b) * jax.scipy.special.digamma(a)
        return b * jnp.log(self.rate / other.rate) + shape_part + (other.rate - self.rate) * a / self.rate

    def cross_entropy(self, other):
        a, b = self.concentration, self.rate
        log_prob = xlogy(a, b) + (a - 1) * other.mean_log() - b * other.mean - jax.scipy.special.gammaln(a)
        return jnp.where(jnp.less(other.bounds[0], 0), jnp.inf, -log_prob)

    def mean_log(self):
        return jax.scipy.special.digamma(self.concentration) - jnp.log(self.rate)

    def mean_exp(self, t):
        """Mean of exp(t * value)."""
        return (self.rate / (self.rate - t)) ** self.concentration


class Beta(Distribution):
    """Beta distribution."""

    bounds = 0, 1

    def __init__(self, concentration1, concentration0, validate_args=None, *, rngs=None):
        self.concentration1, self.concentration0 = as_parameters(concentration1, concentration0)
        super().__init__(self.concentration1.shape, rngs=rngs)

    def draw(self, key, shape):
        return jax.random.beta(key, self.concentration1, self.concentration0, shape, self.concentration1.dtype)

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (jnp.square(total) * (total + 1))

    def log_prob(self, value):
        a, b = self.concentration1, self.concentration0
        return xlogy(a - 1, value) + xlogy(b - 1, 1 - value) - jax.scipy.special.betaln(a, b)

    def entropy(self):
        a, b, digamma = self.concentration1, self.concentration0, jax.scipy.special.digamma
        return jax.scipy.special.betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)

    def kl(self, other):
        pair = [Dirichlet(jnp.stack([d.concentration1, d.concentration0], -1)) for d in (self, other)]
        return pair[0].kl(pair[1])

    def cross_entropy(self, other):
        a, b = self.concentration1, self.concentration0
        inside = jnp.greater_equal(other.bounds[0], 0) & jnp.less_equal(other.bounds[1], 1)
        mean_log1p = Uniform(1 - other.bounds[1], 1 - other.bounds[0]).mean_log()
        return jnp.where(inside, jax.scipy.special.betaln(a, b) - (a - 1) * other.mean_log() - (b - 1) * mean_log1p, jnp.inf)

    def mean_log(self):
        return jax.scipy.special.digamma(self.concentration1) - jax.scipy.special.digamma(self.concentration1 + self.concentration0)


class Dirichlet(Distribution):
    """Dirichlet distribution over the last axis."""

    def __init__(self, concentration, validate_args=None, *, rngs=None):
        (self.concentration,) = as_parameters(concentration)
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:], rngs=rngs)

    def draw(self, key, shape):
        return jax.random.dirichlet(key, self.concentration, shape[:-1], self.concentration.dtype)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, keepdims=True)

    @property
    def variance(self):
        total = self.concentration.sum(-1, keepdims=True)
        return self.concentration * (total - self.concentration) / (jnp.square(total) * (total + 1))

    def log_norm(self):
        """Logarithm of the normaliser."""
        return jax.scipy.special.gammaln(self.concentration.sum(-1)) - jax.scipy.special.gammaln(self.concentration).sum(-1)

    def log_prob(self, value):
        return xlogy(self.concentration - 1, value).sum(-1) + self.log_norm()

    def entropy(self):
        a, digamma = self.concentration, jax.scipy.special.digamma
        total = a.sum(-1)
        return -self.log_norm() - (a.shape[-1] - total) * digamma(total) - ((a - 1) * digamma(a)).sum(-1)

    def kl(self, other):
        a, digamma = self.concentration, jax.scipy.special.digamma
        weight = digamma(a) - digamma(a.sum(-1, keepdims=True))
        return self.log_norm() - other.log_norm() + ((a - other.concentration) * weight).sum(-1)


class StudentT(LocationScale):
    """Student's t distribution."""

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None, *, rngs=None):
        df, loc, scale = as_parameters(df, loc, scale)
        super().__init__(loc, scale, rngs=rngs)
        self.df = df

    def draw(self, key, shape):
        return self.loc + self.scale * jax.random.t(key, self.df, shape, self.df.dtype)

    @property
    def mean(self):
        return jnp.where(self.df <= 1, jnp.nan, self.loc)

    @property
    def variance(self):
        safe = jnp.where(self.df > 2, self.df, 3)
        return jnp.where(self.df > 2, jnp.square(self.scale) * safe / (safe - 2), jnp.where(self.df > 1, jnp.inf, jnp.nan))

    def log_prob(self, value):
        v, gammaln = self.df, jax.scipy.special.gammaln
        norm = jnp.log(self.scale) + 0.5 * jnp.log(v * math.pi) + gammaln(v / 2) - gammaln((v + 1) / 2)
        return -(v + 1) / 2 * jnp.log1p(jnp.square(self.standard(value)) / v) - norm
