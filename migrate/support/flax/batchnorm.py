"""Batch normalisation with PyTorch's running statistics."""
import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.state import Buffer, renamed
from migrate.support.jax.norms import by_channel, moments, standardize


class BatchNorm(nnx.BatchNorm):
    """`nnx.BatchNorm` over axis 1 as PyTorch's: (N, num_features, *) -> the same.

    `momentum` is the weight of the new batch (None: a plain average of all batches), the running variance is unbiased.
    """

    torch_state = {
        "weight": ("scale", None), "bias": ("bias", None), "running_mean": ("mean", None), "running_var": ("var", None),
        "num_batches_tracked": None,
    }
    eps, running_mean, running_var = renamed("epsilon"), renamed("mean"), renamed("var")

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, *, bias=True, rngs):
        super().__init__(num_features, axis=1, epsilon=eps, use_scale=affine, use_bias=affine and bias, rngs=rngs)
        self.momentum, self.affine, self.track_running_stats = momentum, affine, track_running_stats
        if not track_running_stats:
            self.mean = self.var = nnx.data(None)
        elif momentum is None:
            self.num_batches_tracked = Buffer(jnp.array(0))

    def __call__(self, input):
        n = input.ndim
        if self.use_running_average and self.track_running_stats:
            mean, var = by_channel(self.mean, n), by_channel(self.var, n)
        else:
            mean, var = moments(input, (0, *range(2, n)))
            if self.track_running_stats:
                self.update(mean.ravel(), var.ravel(), input.size // input.shape[1])
        return standardize(input, mean, var, self.epsilon, by_channel(self.scale, n), by_channel(self.bias, n))

    def update(self, mean, var, count):
        """Moves the running statistics towards those of a batch with `count` values a channel."""
        if count == 1:
            raise ValueError("training needs more than one value for each channel")
        weight = self.momentum
        if weight is None:
            self.num_batches_tracked[...] += 1
            weight = 1 / self.num_batches_tracked[...]
        mean, var = jax.lax.stop_gradient((mean, var * (count / (count - 1))))
        self.mean[...] = (1 - weight) * self.mean[...] + weight * mean
        self.var[...] = (1 - weight) * self.var[...] + weight * var


class BatchNorm1d(BatchNorm):
    """(N, num_features) or (N, num_features, L)."""


class BatchNorm2d(BatchNorm):
    """(N, num_features, H, W)."""


class BatchNorm3d(BatchNorm):
    """(N, num_features, D, H, W)."""


class SyncBatchNorm(BatchNorm):
    """(N, num_features, *). Under `jax.jit` a batch spread over devices is one batch: nothing is left to synchronise."""

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, *, bias=True, rngs
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias=bias, rngs=rngs)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """Nothing to convert."""
        return module
