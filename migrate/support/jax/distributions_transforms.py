"""Invertible functions of values, and the distributions that they make of others, after torch.distributions."""
import math

import jax
import jax.numpy as jnp

from migrate.support.jax.distributions import Distribution
from migrate.support.jax.distributions_discrete import Independent


def over_last(values, n):
    """Sum over the last n axes."""
    return values.sum(tuple(range(-n, 0))) if n else values


class Transform:
    """An invertible function of each value, growing where sign is 1. The last event_dim axes count as one event."""

    sign, event_dim = 1, 0

    def __init__(self, cache_size=0):
        self.cache_size, self.cached = cache_size, (None, None)

    def __call__(self, x):
        return self.keep(x, self.forward(x))

    def keep(self, x, y):
        """Remembers what y was made of, where the cache is on; y."""
        self.cached = (x, y) if self.cache_size else self.cached
        return y

    def inv(self, y):
        """What gives y."""
        x, known = self.cached
        return x if known is not None and y is known else self.inverse(y)

    def batch(self, shape):
        """The shape that values of a shape become."""
        return shape


class AffineTransform(Transform):
    """loc + scale * x."""

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def forward(self, x):
        return self.loc + self.scale * x

    def inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        size, shape = jnp.log(jnp.abs(jnp.full_like(x, self.scale) if isinstance(self.scale, (int, float)) else self.scale)), x.shape
        if self.event_dim:  # a scale that is an array counts as often as it has values
            size, shape = size.reshape(*size.shape[: -self.event_dim], -1).sum(-1), shape[: -self.event_dim]
        return jnp.broadcast_to(size, shape)

    @property
    def sign(self):
        return (self.scale > 0) - (self.scale < 0) if isinstance(self.scale, (int, float)) else jnp.sign(self.scale)

    def batch(self, shape):
        return jnp.broadcast_shapes(shape, jnp.shape(self.loc), jnp.shape(self.scale))


class ExpTransform(Transform):
    """exp(x)."""

    def forward(self, x):
        return jnp.exp(x)

    def inverse(self, y):
        return jnp.log(y)

    def log_abs_det_jacobian(self, x, y):
        return x


class SigmoidTransform(Transform):
    """sigmoid(x), kept off 0 and 1."""

    def forward(self, x):
        limits = jnp.finfo(x.dtype)
        return jnp.clip(jax.nn.sigmoid(x), limits.tiny, 1 - limits.eps)

    def inverse(self, y):
        limits = jnp.finfo(y.dtype)
        y = jnp.clip(y, limits.tiny, 1 - limits.eps)
        return jnp.log(y) - jnp.log1p(-y)

    def log_abs_det_jacobian(self, x, y):
        return -jax.nn.softplus(-x) - jax.nn.softplus(x)


class TanhTransform(Transform):
    """tanh(x)."""

    def forward(self, x):
        return jnp.tanh(x)

    def inverse(self, y):
        return jnp.arctanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2 * (math.log(2) - x - jax.nn.softplus(-2 * x))


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    def forward(self, x):
        return jnp.where(x > 20, x, jax.nn.softplus(x))

    def inverse(self, y):
        return jnp.log(-jnp.expm1(-y)) + y

    def log_abs_det_jacobian(self, x, y):
        return -jax.nn.softplus(-x)


class TransformedDistribution(Distribution):
    """What transforms make of the values of another distribution."""

    def __init__(self, base_distribution, transforms, validate_args=None, *, rngs=None):
        base, self.transforms = base_distribution, transforms if isinstance(transforms, list) else [transforms]
        own = shape = (*base.batch_shape, *base.event_shape)
        for t in self.transforms:
            shape = t.batch(shape)
        dims = max([len(base.event_shape), *(t.event_dim for t in self.transforms)])
        if dims > len(base.event_shape):
            if shape != own:
                raise ValueError(f"give the base distribution the shape {shape} of what the transforms make of it")
            base = Independent(base, dims - len(base.event_shape))
        super().__init__(shape[: len(shape) - dims], shape[len(shape) - dims :], rngs=rngs if base.rngs is None else base.rngs)
        self.base_dist, self.has_rsample = base, base.has_rsample

    def draw(self, key, shape):
        x = self.base_dist.draw(key, shape)
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape=()):
        x = jax.lax.stop_gradient(self.base_dist.draw(self.rngs(), (*sample_shape, *self.batch_shape, *self.event_shape)))
        for t in self.transforms:
            x = t.keep(x, jax.lax.stop_gradient(t(x)))
        return x

    def log_prob(self, value):
        dims, found = len(self.event_shape), 0.0
        for t in reversed(self.transforms):
            x = t.inv(value)
            found, value = found - over_last(t.log_abs_det_jacobian(x, value), dims - t.event_dim), x
        return found + over_last(self.base_dist.log_prob(value), dims - len(self.base_dist.event_shape))

    def monotonic(self, share):
        """1 - share where the transforms together turn the values round."""
        sign = math.prod(t.sign for t in self.transforms)
        return share if isinstance(sign, int) and sign == 1 else sign * (share - 0.5) + 0.5

    def cdf(self, value):
        for t in reversed(self.transforms):
            value = t.inv(value)
        return self.monotonic(self.base_dist.cdf(value))

    def icdf(self, value):
        value = self.base_dist.icdf(self.monotonic(value))
        for t in self.transforms:
            value = t(value)
        return value
