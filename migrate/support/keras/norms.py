"""Normalisations with PyTorch's arguments, parameters and running statistics."""
import jax
import jax.numpy as jnp

from migrate.support.jax.norms import (
    batch_norm,
    cross_map_lrn,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    moments,
    rms_norm,
)
from migrate.support.keras.module import Buffer, Module, Parameter, value_of


class RunningNorm(Module):
    """What batch and instance normalisation share: (N, num_features, *), its parameters and running statistics.

    `momentum` is the weight of the new batch (None: a plain average of all batches); the running variance is unbiased.
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, *, bias=True):
        super().__init__()
        self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
        self.track_running_stats = track_running_stats
        self.weight = Parameter(jnp.ones(num_features)) if affine else None
        self.bias = Parameter(jnp.zeros(num_features)) if affine and bias else None
        self.running_mean = Buffer(jnp.zeros(num_features)) if track_running_stats else None
        self.running_var = Buffer(jnp.ones(num_features)) if track_running_stats else None
        self.num_batches_tracked = Buffer(jnp.array(0)) if track_running_stats else None

    def statistics(self):
        """The running mean and variance, and the parameters, as arrays."""
        return tuple(map(value_of, (self.running_mean, self.running_var, self.weight, self.bias)))

    def update(self, input, axes, weight):
        """Moves the running statistics by `weight` towards those over `axes` of the input; what is left of the batch is averaged."""
        mean, var = moments(jax.lax.stop_gradient(input), axes)
        size = input.size // mean.size
        if size == 1:
            raise ValueError("a normalisation with running statistics needs more than one value a channel to train")
        for running, new in (self.running_mean, mean), (self.running_var, var * (size / (size - 1))):
            running.assign((1 - weight) * running.value + weight * new.reshape(-1, self.num_features).mean(0))


class BatchNorm(RunningNorm):
    """(N, num_features, *): normalised over all axes but 1, in training with the statistics of the batch."""

    def call(self, input):
        if self.training and self.track_running_stats:
            count = self.num_batches_tracked.assign(self.num_batches_tracked.value + 1)
            self.update(input, (0, *range(2, input.ndim)), 1 / count if self.momentum is None else self.momentum)
        return batch_norm(input, *self.statistics(), self.training or not self.track_running_stats, self.eps)


class BatchNorm1d(BatchNorm):
    """(N, num_features) or (N, num_features, L)."""


class BatchNorm2d(BatchNorm):
    """(N, num_features, H, W)."""


class BatchNorm3d(BatchNorm):
    """(N, num_features, D, H, W)."""


class SyncBatchNorm(BatchNorm):
    """(N, num_features, *). Under `jax.jit` a batch spread over devices is one batch: nothing is left to synchronise."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias=bias)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """Nothing to convert."""
        return module


class InstanceNorm(RunningNorm):
    """(N, num_features, *size) or (num_features, *size): each channel of each sample is normalised."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias=bias)

    def call(self, input):
        x = input if input.ndim == self.rank + 2 else input[None]
        if self.training and self.track_running_stats:
            self.update(x, tuple(range(2, x.ndim)), self.momentum or 0.0)
        out = instance_norm(x, *self.statistics(), self.training or not self.track_running_stats, self.eps)
        return out if input.ndim == self.rank + 2 else out[0]


class InstanceNorm1d(InstanceNorm):
    """(N, num_features, L) or (num_features, L)."""

    rank = 1


class InstanceNorm2d(InstanceNorm):
    """(N, num_features, H, W) or (num_features, H, W)."""

    rank = 2


class InstanceNorm3d(InstanceNorm):
    """(N, num_features, D, H, W) or (num_features, D, H, W)."""

    rank = 3


class LayerNorm(Module):
    """(..., *normalized_shape): normalised over those axes."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Parameter(jnp.ones(self.normalized_shape)) if elementwise_affine else None
        self.bias = Parameter(jnp.zeros(self.normalized_shape)) if elementwise_affine and bias else None

    def call(self, input):
        return layer_norm(input, self.normalized_shape, value_of(self.weight), value_of(self.bias), self.eps)


class RMSNorm(Module):
    """(..., *normalized_shape): divided by the root mean square over those axes."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Parameter(jnp.ones(self.normalized_shape)) if elementwise_affine else None

    def call(self, x):
        return rms_norm(x, self.normalized_shape, value_of(self.weight), self.eps)


class GroupNorm(Module):
    """(N, num_channels, *): normalised over each group of channels."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, *, bias=True):
        super().__init__()
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = Parameter(jnp.ones(num_channels)) if affine else None
        self.bias = Parameter(jnp.zeros(num_channels)) if affine and bias else None

    def call(self, input):
        return group_norm(input, self.num_groups, value_of(self.weight), value_of(self.bias), self.eps)


class LocalResponseNorm(Module):
    """(N, C, *): divided by a power of the mean square over `size` neighbouring channels."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def call(self, input):
        return local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(LocalResponseNorm):
    """(N, C, H, W): the same, but channel 0 counts for all later channels as well."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)

    def call(self, input):
        return cross_map_lrn(input, self.size, self.alpha, self.beta, self.k)
