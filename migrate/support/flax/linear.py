"""Linear layers with PyTorch's arguments."""
import math

import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.jax.distances import bilinear


def uniform_param(rngs, shape, fan_in):
    """A parameter drawn as PyTorch does by default: uniform in +-1 / sqrt(fan_in)."""
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
    return nnx.Param(jax.random.uniform(rngs.params(), shape, minval=-bound, maxval=bound))


class Linear(nnx.Linear):
    """`nnx.Linear` with PyTorch's arguments: (*, in_features) -> (*, out_features)."""

    torch_state = {"weight": ("kernel", (1, 0)), "bias": ("bias", None)}

    def __init__(self, in_features, out_features, bias=True, *, rngs):
        super().__init__(in_features, out_features, use_bias=bias, rngs=rngs)

    def __call__(self, input):
        return super().__call__(input)


class Bilinear(nnx.Module):
    """x1' A x2 + b: (*, in1_features) and (*, in2_features) -> (*, out_features)."""

    def __init__(self, in1_features, in2_features, out_features, bias=True, *, rngs):
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = uniform_param(rngs, (out_features, in1_features, in2_features), in1_features)
        self.bias = uniform_param(rngs, (out_features,), in1_features) if bias else nnx.data(None)

    def __call__(self, input1, input2):
        return bilinear(input1, input2, self.weight[...], self.bias)


class Turned(nnx.Param):
    """A matrix with its axes the other way round; what is written to it goes into the matrix, `source`."""

    def set_value(self, value, **index):
        super().set_value(value, **index)
        self.source.set_value(self[...].T)


class TiedLinear(nnx.Linear):
    """A linear layer whose weight is the table of an embedding: (*, width) -> (*, rows)."""

    torch_state = {"weight": ("embedding", None), "bias": ("bias", None)}
    kernel = property(lambda self: Turned(self.embedding[...].T, source=self.embedding))

    def __init__(self, embed, bias=None):
        self.embedding, self.bias = embed.embedding, nnx.data(bias)
        self.out_features, self.in_features = embed.embedding.shape

    def __call__(self, input):
        out = jnp.matmul(input, self.embedding[...].T)
        return out if self.bias is None else out + self.bias[...]


class Identity(nnx.Module):
    """Gives its input back; takes and forgets any arguments."""

    def __init__(self, *args, rngs=None, **kwargs):
        pass

    def __call__(self, input):
        return input
