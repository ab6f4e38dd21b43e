"""Discrete, joint and composed distributions, and divergences, after torch.distributions."""
import math

import jax
import jax.numpy as jnp

from migrate.support.jax.distributions import Distribution, as_parameters
from migrate.support.jax.special import xlogy


def clamp_probs(probs):
    """Probabilities kept off 0 and 1 by a machine epsilon."""
    eps = jnp.finfo(probs.dtype).eps
    return jnp.clip(probs, eps, 1 - eps)


class Bernoulli(Distribution):
    """1 with probability probs (or sigmoid(logits)), else 0."""

    has_rsample = False

    def __init__(self, probs=None, logits=None, validate_args=None, *, rngs=None):
        if logits is None:
            (self.probs,) = as_parameters(probs)
            safe = clamp_probs(self.probs)
            self.logits = jnp.log(safe) - jnp.log1p(-safe)
        else:
            (self.logits,) = as_parameters(logits)
            self.probs = jax.nn.sigmoid(self.logits)
        super().__init__(self.logits.shape, rngs=rngs)

    def draw(self, key, shape):
        return jax.random.bernoulli(key, self.probs, shape).astype(self.probs.dtype)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return jnp.where(self.probs == 0.5, jnp.nan, (self.probs >= 0.5).astype(self.probs.dtype))

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def log_prob(self, value):
        return value * self.logits - jax.nn.softplus(self.logits)

    def entropy(self):
        return jax.nn.softplus(self.logits) - self.probs * self.logits

    def kl(self, other):
        one = self.probs * (jax.nn.softplus(-other.logits) - jax.nn.softplus(-self.logits))
        return one + (1 - self.probs) * (jax.nn.softplus(other.logits) - jax.nn.softplus(self.logits))


class Geometric(Distribution):
    """Failures before the first success."""

    has_rsample = False

    def __init__(self, probs=None, logits=None, validate_args=None, *, rngs=None):
        trial = Bernoulli(probs, logits)
        self.probs, self.logits = trial.probs, trial.logits
        super().__init__(self.probs.shape, rngs=rngs)

    def draw(self, key, shape):
        return (jax.random.geometric(key, self.probs, shape) - 1).astype(self.probs.dtype)

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def variance(self):
        return (1 / self.probs - 1) / self.probs

    def log_prob(self, value):
        return xlogy(value, 1 - self.probs) + jnp.log(self.probs)

    def entropy(self):
        return Bernoulli(logits=self.logits).entropy() / self.probs

    def kl(self, other):
        return -self.entropy() - jnp.log1p(-other.probs) / self.probs - other.logits


class Poisson(Distribution):
    """Poisson distribution."""

    has_rsample = False

    def __init__(self, rate, validate_args=None, *, rngs=None):
        (self.rate,) = as_parameters(rate)
        super().__init__(self.rate.shape, rngs=rngs)

    def draw(self, key, shape):
        return jax.random.poisson(key, self.rate, shape).astype(self.rate.dtype)

    @property
    def mean(self):
        return self.rate

    variance = mean

    def log_prob(self, value):
        return xlogy(value, self.rate) - self.rate - jax.scipy.special.gammaln(value + 1.0)

    def kl(self, other):
        return self.rate * (jnp.log(self.rate) - jnp.log(other.rate)) - (self.rate - other.rate)

    def cross_entropy(self, other):
        return self.rate - other.probs * jnp.log(self.rate) if isinstance(other, Bernoulli) else super().cross_entropy(other)


class Categorical(Distribution):
    """Indices with probabilities probs (or softmax(logits)) along the last axis."""

    has_rsample = False

    def __init__(self, probs=None, logits=None, validate_args=None, *, rngs=None):
        if logits is None:
            (probs,) = as_parameters(probs)
            self.probs = probs / probs.sum(-1, keepdims=True)
            self.logits = jnp.log(clamp_probs(self.probs))
        else:
            self.logits = jax.nn.log_softmax(*as_parameters(logits))
            self.probs = jax.nn.softmax(self.logits)
        super().__init__(self.logits.shape[:-1], rngs=rngs)

    def draw(self, key, shape):
        return jax.random.categorical(key, self.logits, shape=shape)

    @property
    def mode(self):
        return jnp.argmax(self.probs, axis=-1)

    def log_prob(self, value):
        value = jnp.asarray(value, int)[..., None]
        shape = jnp.broadcast_shapes(value.shape[:-1], self.batch_shape)
        logits = jnp.broadcast_to(self.logits, (*shape, self.logits.shape[-1]))
        return jnp.take_along_axis(logits, jnp.broadcast_to(value, (*shape, 1)), axis=-1)[..., 0]

    def entropy(self):
        return -(jnp.maximum(self.logits, jnp.finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def kl(self, other):
        each = jnp.where(other.probs == 0, jnp.inf, self.probs * (self.logits - other.logits))
        return jnp.where(self.probs == 0, 0, each).sum(-1)


class OneHotCategorical(Distribution):
    """One-hot vectors along the last axis with probabilities probs (or softmax(logits))."""

    has_rsample = False

    def __init__(self, probs=None, logits=None, validate_args=None, *, rngs=None):
        self.categorical = Categorical(probs, logits)
        self.probs, self.logits = self.categorical.probs, self.categorical.logits
        super().__init__(self.probs.shape[:-1], self.probs.shape[-1:], rngs=rngs)

    def draw(self, key, shape):
        return jax.nn.one_hot(self.categorical.draw(key, shape[:-1]), shape[-1], dtype=self.probs.dtype)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return jax.nn.one_hot(self.categorical.mode, self.probs.shape[-1], dtype=self.probs.dtype)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def log_prob(self, value):
        return self.categorical.log_prob(jnp.argmax(value, axis=-1))

    def entropy(self):
        return self.categorical.entropy()

    def kl(self, other):
        return self.categorical.kl(other.categorical)


class MultivariateNormal(Distribution):
    """Normal distribution of vectors, by covariance, precision or lower triangular factor of the covariance."""

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None, *, rngs=None):
        if precision_matrix is not None:
            covariance_matrix = jnp.linalg.inv(precision_matrix)
        scale_tril = jnp.linalg.cholesky(covariance_matrix) if scale_tril is None else jnp.asarray(scale_tril)
        batch = jnp.broadcast_shapes(jnp.shape(loc)[:-1], scale_tril.shape[:-2])
        self.loc = jnp.broadcast_to(loc, (*batch, scale_tril.shape[-1]))
        self.scale_tril = jnp.broadcast_to(scale_tril, (*batch, *scale_tril.shape[-2:]))
        super().__init__(batch, self.loc.shape[-1:], rngs=rngs)

    @property
    def covariance_matrix(self):
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self):
        return jnp.linalg.inv(self.covariance_matrix)

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def variance(self):
        return jnp.square(self.scale_tril).sum(-1)

    def draw(self, key, shape):
        return self.loc + jnp.einsum("...ij,...j->...i", self.scale_tril, jax.random.normal(key, shape, self.loc.dtype))

    def half_log_det(self):
        """Half the logarithm of the determinant of the covariance."""
        return jnp.log(jnp.diagonal(self.scale_tril, axis1=-2, axis2=-1)).sum(-1)

    def log_prob(self, value):
        difference = value - self.loc
        factor = jnp.broadcast_to(self.scale_tril, (*difference.shape, difference.shape[-1]))
        white = jax.lax.linalg.triangular_solve(factor, difference[..., None], left_side=True, lower=True)[..., 0]
        return -0.5 * (difference.shape[-1] * math.log(2 * math.pi) + jnp.square(white).sum(-1)) - self.half_log_det()

    def entropy(self):
        return 0.5 * self.loc.shape[-1] * (1 + math.log(2 * math.pi)) + self.half_log_det()

    def kl(self, other):
        columns = jnp.concatenate([self.scale_tril, (other.loc - self.loc)[..., None]], -1)
        factor = jnp.broadcast_to(other.scale_tril, (*columns.shape[:-1], columns.shape[-2]))
        white = jax.lax.linalg.triangular_solve(factor, columns, left_side=True, lower=True)
        return other.half_log_det() - self.half_log_det() + 0.5 * (jnp.square(white).sum((-2, -1)) - self.loc.shape[-1])


class Independent(Distribution):
    """The last batch axes of a distribution counted as axes of one event."""

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None, *, rngs=None):
        base, n = base_distribution, reinterpreted_batch_ndims
        kept = len(base.batch_shape) - n
        super().__init__(base.batch_shape[:kept], base.batch_shape[kept:] + base.event_shape, rngs=base.rngs)
        self.base_dist, self.reinterpreted_batch_ndims, self.has_rsample = base, n, base.has_rsample

    def draw(self, key, shape):
        return self.base_dist.draw(key, shape)

    def over_event(self, values):
        """Sum over the axes that count as event."""
        return values.sum(tuple(range(-self.reinterpreted_batch_ndims, 0))) if self.reinterpreted_batch_ndims else values

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        return self.over_event(self.base_dist.log_prob(value))

    def entropy(self):
        return self.over_event(self.base_dist.entropy())

    def kl(self, other):
        return self.over_event(self.base_dist.kl(other.base_dist))


class MixtureSameFamily(Distribution):
    """Mixture of the last batch axis of a distribution."""

    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None, *, rngs=None):
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(component_distribution.batch_shape[:-1], component_distribution.event_shape, rngs=rngs)

    def weights(self):
        """Mixture weights with an axis for each event axis."""
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self.event_shape))

    def component_axis(self):
        """The axis of the components in their values."""
        return -1 - len(self.event_shape)

    def draw(self, key, shape):
        keys, batch = jax.random.split(key), shape[: len(shape) - len(self.event_shape)]
        which = self.mixture_distribution.draw(keys[0], batch).reshape(batch + (1,) * (1 + len(self.event_shape)))
        count = self.component_distribution.batch_shape[-1]
        values = self.component_distribution.draw(keys[1], (*batch, count, *self.event_shape))
        return jnp.take_along_axis(values, which, axis=self.component_axis()).squeeze(self.component_axis())

    @property
    def mean(self):
        return (self.weights() * self.component_distribution.mean).sum(self.component_axis())

    @property
    def variance(self):
        spread = jnp.square(self.component_distribution.mean - jnp.expand_dims(self.mean, self.component_axis()))
        return (self.weights() * (self.component_distribution.variance + spread)).sum(self.component_axis())

    def log_prob(self, value):
        each = self.component_distribution.log_prob(jnp.expand_dims(value, self.component_axis()))
        return jax.nn.logsumexp(each + self.mixture_distribution.logits, axis=-1)


def kl_divergence(p, q):
    """Kullback-Leibler divergence of two distributions, where it has a closed form."""
    if type(p) is type(q):
        return p.kl(q)
    if p.event_shape != q.event_shape or p.has_rsample != q.has_rsample:
        raise NotImplementedError(f"no divergence of {type(p).__name__} and {type(q).__name__}")
    return q.cross_entropy(p) - p.entropy()
