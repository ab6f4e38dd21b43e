"""Normalisation over features or groups of channels."""
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.state import renamed
from migrate.support.jax.norms import cross_map_lrn, group_norm, layer_norm, local_response_norm, rms_norm
from migrate.support.jax.windows import ntuple


class LayerNorm(nnx.LayerNorm):
    """`nnx.LayerNorm` over the last axes, one or several: (*, *normalized_shape) -> the same."""

    torch_state = {"weight": ("scale", None), "bias": ("bias", None)}
    eps = renamed("epsilon")

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, *, rngs):
        self.normalized_shape, self.elementwise_affine = ntuple(normalized_shape, 1), elementwise_affine
        super().__init__(self.normalized_shape[-1], epsilon=eps, use_scale=False, use_bias=False, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(self.normalized_shape)) if elementwise_affine else nnx.data(None)
        self.bias = nnx.Param(jnp.zeros(self.normalized_shape)) if elementwise_affine and bias else nnx.data(None)

    def __call__(self, input):
        return layer_norm(input, self.normalized_shape, self.scale, self.bias, self.epsilon)


class RMSNorm(nnx.RMSNorm):
    """`nnx.RMSNorm` over the last axes, one or several; without `eps` it is the input's machine epsilon."""

    torch_state = {"weight": ("scale", None)}
    eps = renamed("epsilon")

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, *, rngs):
        self.normalized_shape, self.elementwise_affine = ntuple(normalized_shape, 1), elementwise_affine
        super().__init__(self.normalized_shape[-1], epsilon=eps, use_scale=False, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(self.normalized_shape)) if elementwise_affine else nnx.data(None)

    def __call__(self, x):
        return rms_norm(x, self.normalized_shape, self.scale, self.epsilon)


class GroupNorm(nnx.GroupNorm):
    """`nnx.GroupNorm` on channels-first input: (N, num_channels, *) -> the same."""

    torch_state = {"weight": ("scale", None), "bias": ("bias", None)}
    eps = renamed("epsilon")

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, *, bias=True, rngs):
        super().__init__(num_channels, num_groups, epsilon=eps, use_scale=affine, use_bias=affine and bias, rngs=rngs)
        self.num_channels, self.affine = num_channels, affine

    def __call__(self, input):
        return group_norm(input, self.num_groups, self.scale, self.bias, self.epsilon)


class LocalResponseNorm(nnx.Module):
    """Divides each value by a power of the mean square of `size` channels around it: (N, C, *) -> the same."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0, *, rngs=None):
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def __call__(self, input):
        return local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(LocalResponseNorm):
    """(N, C, H, W): the same, but channel 0 counts for all later channels as well."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1, *, rngs=None):
        super().__init__(size, alpha, beta, k)

    def __call__(self, input):
        return cross_map_lrn(input, self.size, self.alpha, self.beta, self.k)

