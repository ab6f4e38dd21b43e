"""Linear layers and embeddings with PyTorch's arguments, parameters and layouts."""
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.attention import linear
from migrate.support.jax.distances import bilinear
from migrate.support.jax.embedding import embedding, embedding_bag
from migrate.support.keras.module import Module, Parameter, uniform, value_of


class Linear(Module):
    """(..., in_features) -> (..., out_features); the weight is (out_features, in_features)."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = uniform((out_features, in_features), in_features)
        self.bias = uniform((out_features,), in_features) if bias else None

    def call(self, input):
        return linear(input, self.weight.value, value_of(self.bias))


class Bilinear(Module):
    """(..., in1_features) and (..., in2_features) -> (..., out_features)."""

    def __init__(self, in1_features, in2_features, out_features, bias=True):
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = uniform((out_features, in1_features, in2_features), in1_features)
        self.bias = uniform((out_features,), in1_features) if bias else None

    def call(self, input1, input2):
        return bilinear(input1, input2, self.weight.value, value_of(self.bias))


class Identity(Module):
    """Gives back its input; takes any arguments."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def call(self, input):
        return input


def embedding_table(rows, width, padding_idx, values, trained=True):
    """A table (rows, width) of normally distributed values, zero at `padding_idx`, or of `values`."""
    if values is None:
        values = np.random.normal(size=(rows, width)).astype("float32")
        if padding_idx is not None:
            values[padding_idx] = 0
    return Parameter(values, requires_grad=trained)


class Embedding(Module):
    """ids (...) -> (..., embedding_dim)."""

    def __init__(
        self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False,
        _weight=None, _freeze=False,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.weight = embedding_table(num_embeddings, embedding_dim, padding_idx, _weight, not _freeze)

    @classmethod
    def from_pretrained(
        cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
    ):
        """A layer with the rows of `embeddings`, frozen by default."""
        return cls(*jnp.shape(embeddings), padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)

    def call(self, input):
        return embedding(input, self.weight.value, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)


class EmbeddingBag(Module):
    """ids (bags, n), or (ids,) with the bags' offsets -> (bags, embedding_dim): the sum, mean or maximum of each bag."""

    def __init__(
        self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
        _weight=None, include_last_offset=False, padding_idx=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.include_last_offset = include_last_offset
        self.weight = embedding_table(num_embeddings, embedding_dim, padding_idx, _weight)

    @classmethod
    def from_pretrained(
        cls, embeddings, freeze=True, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
        include_last_offset=False, padding_idx=None,
    ):
        """A layer with the rows of `embeddings`, frozen by default."""
        layer = cls(
            *jnp.shape(embeddings), max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx
        )
        layer.weight.trainable = not freeze
        return layer

    def call(self, input, offsets=None, per_sample_weights=None):
        return embedding_bag(
            input, self.weight.value, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, per_sample_weights,
            self.include_last_offset, self.padding_idx,
        )
