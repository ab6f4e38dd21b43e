"""Instance normalisation."""
import math

import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.state import Buffer
from migrate.support.jax.norms import moments, standardize


class InstanceNorm(nnx.Module):
    """Normalises each channel of each sample: (N, num_features, *) or, without a batch, (num_features, *).

    With `track_running_stats`, evaluation uses the running statistics; their variance is unbiased.
    """

    torch_state = {"num_batches_tracked": None}

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, *, bias=True, rngs=None):
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = nnx.Param(jnp.ones(num_features)) if affine else nnx.data(None)
        self.bias = nnx.Param(jnp.zeros(num_features)) if affine and bias else nnx.data(None)
        self.running_mean = Buffer(jnp.zeros(num_features)) if track_running_stats else nnx.data(None)
        self.running_var = Buffer(jnp.ones(num_features)) if track_running_stats else nnx.data(None)
        self.use_running_average = False

    def __call__(self, input):
        if self.use_running_average and self.track_running_stats:
            mean, var = self.by_channel(self.running_mean), self.by_channel(self.running_var)
        else:
            mean, var = moments(input, tuple(range(-self.rank, 0)))
            if self.track_running_stats:
                self.update(mean, var, math.prod(input.shape[-self.rank :]))
        return standardize(input, mean, var, self.eps, self.by_channel(self.weight), self.by_channel(self.bias))

    def by_channel(self, value):
        """(num_features,) -> (num_features, 1, ...), to be used against the input."""
        return None if value is None else jnp.reshape(value, (-1, *[1] * self.rank))

    def update(self, mean, var, count):
        """Moves the running statistics towards the means over a batch whose channels have `count` values each."""
        mean, var = jax.lax.stop_gradient((mean, var * (count / (count - 1))))
        mean, var = (v.reshape(-1, self.num_features).mean(0) for v in (mean, var))
        self.running_mean[...] = (1 - self.momentum) * self.running_mean[...] + self.momentum * mean
        self.running_var[...] = (1 - self.momentum) * self.running_var[...] + self.momentum * var


class InstanceNorm1d(InstanceNorm):
    """(N, num_features, L) or (num_features, L)."""

    rank = 1


class InstanceNorm2d(InstanceNorm):
    """(N, num_features, H, W) or (num_features, H, W)."""

    rank = 2


class InstanceNorm3d(InstanceNorm):
    """(N, num_features, D, H, W) or (num_features, D, H, W)."""

    rank = 3
