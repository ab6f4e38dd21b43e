"""Pooling layers on channels-first arrays, batched or not."""
from flax import nnx

from migrate.support.jax.pooling import avg_pool_nd, lp_pool_nd, max_pool_nd
from migrate.support.jax.pooling_adaptive import adaptive_avg_pool_nd, adaptive_max_pool_nd, fractional_max_pool_nd, max_unpool_nd


class MaxPoolNd(nnx.Module):
    """The largest value of each window over the last axes, and where asked its position."""

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False, *, rngs=None):
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride or kernel_size, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def __call__(self, input):
        return max_pool_nd(
            input, self.rank, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool1d(MaxPoolNd):
    """(N, C, L) -> (N, C, L')."""

    rank = 1


class MaxPool2d(MaxPoolNd):
    """(N, C, H, W) -> (N, C, H', W')."""

    rank = 2


class MaxPool3d(MaxPoolNd):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""

    rank = 3


class AvgPoolNd(nnx.Module):
    """The mean of each window over the last axes."""

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *, rngs=None
    ):
        self.kernel_size, self.stride, self.padding, self.ceil_mode = kernel_size, stride or kernel_size, padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def __call__(self, input):
        return avg_pool_nd(
            input, self.rank, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )


class AvgPool1d(AvgPoolNd):
    """(N, C, L) -> (N, C, L')."""

    rank = 1


class AvgPool2d(AvgPoolNd):
    """(N, C, H, W) -> (N, C, H', W')."""

    rank = 2


class AvgPool3d(AvgPoolNd):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""

    rank = 3


class LPPoolNd(nnx.Module):
    """The p-norm of each window over the last axes."""

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False, *, rngs=None):
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def __call__(self, input):
        return lp_pool_nd(input, self.rank, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(LPPoolNd):
    """(N, C, L) -> (N, C, L')."""

    rank = 1


class LPPool2d(LPPoolNd):
    """(N, C, H, W) -> (N, C, H', W')."""

    rank = 2


class LPPool3d(LPPoolNd):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""

    rank = 3


class AdaptiveAvgPoolNd(nnx.Module):
    """Means of windows that share the last axes evenly; None keeps a size."""

    def __init__(self, output_size, *, rngs=None):
        self.output_size = output_size

    def __call__(self, input):
        return adaptive_avg_pool_nd(input, self.rank, self.output_size)


class AdaptiveAvgPool1d(AdaptiveAvgPoolNd):
    """(N, C, L) -> (N, C, *output_size)."""

    rank = 1


class AdaptiveAvgPool2d(AdaptiveAvgPoolNd):
    """(N, C, H, W) -> (N, C, *output_size)."""

    rank = 2


class AdaptiveAvgPool3d(AdaptiveAvgPoolNd):
    """(N, C, D, H, W) -> (N, C, *output_size)."""

    rank = 3


class AdaptiveMaxPoolNd(nnx.Module):
    """Maxima of windows that share the last axes evenly, and where asked their positions; None keeps a size."""

    def __init__(self, output_size, return_indices=False, *, rngs=None):
        self.output_size, self.return_indices = output_size, return_indices

    def __call__(self, input):
        return adaptive_max_pool_nd(input, self.rank, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPoolNd):
    """(N, C, L) -> (N, C, *output_size)."""

    rank = 1


class AdaptiveMaxPool2d(AdaptiveMaxPoolNd):
    """(N, C, H, W) -> (N, C, *output_size)."""

    rank = 2


class AdaptiveMaxPool3d(AdaptiveMaxPoolNd):
    """(N, C, D, H, W) -> (N, C, *output_size)."""

    rank = 3


class FractionalMaxPoolNd(nnx.Module):
    """Maxima of windows at random distances, to an output size or to a part of the input's."""

    def __init__(
        self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None, *, rngs
    ):
        self.kernel_size, self.output_size, self.output_ratio, self.return_indices = kernel_size, output_size, output_ratio, return_indices
        self.samples, self.rngs = nnx.data(_random_samples), rngs.fork()

    def __call__(self, input):
        return fractional_max_pool_nd(
            input, self.rank, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self.samples, self.rngs
        )


class FractionalMaxPool2d(FractionalMaxPoolNd):
    """(N, C, H, W) -> (N, C, H', W')."""

    rank = 2


class FractionalMaxPool3d(FractionalMaxPoolNd):
    """(N, C, D, H, W) -> (N, C, D', H', W')."""

    rank = 3


class MaxUnpoolNd(nnx.Module):
    """Puts values back where the `indices` of a max pooling say, into zeros."""

    def __init__(self, kernel_size, stride=None, padding=0, *, rngs=None):
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def __call__(self, input, indices, output_size=None):
        return max_unpool_nd(input, indices, self.rank, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(MaxUnpoolNd):
    """(N, C, L') -> (N, C, L)."""

    rank = 1


class MaxUnpool2d(MaxUnpoolNd):
    """(N, C, H', W') -> (N, C, H, W)."""

    rank = 2


class MaxUnpool3d(MaxUnpoolNd):
    """(N, C, D', H', W') -> (N, C, D, H, W)."""

    rank = 3
