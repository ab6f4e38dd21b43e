"""Embedding tables with PyTorch's options."""
import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.state import Buffer, renamed
from migrate.support.jax.embedding import embedding_bag, embedding_rows
from migrate.support.jax.reductions import vector_norm


def limit_norms(table, rows, max_norm, norm_type):
    """Shortens the rows of a table that are looked up and longer than `max_norm`, in place."""
    weight = table[...]
    norm = vector_norm(weight, norm_type, -1, keepdim=True)
    used = jnp.zeros(weight.shape[0], bool).at[rows.ravel()].set(True)[:, None]
    table[...] = jax.lax.stop_gradient(jnp.where(used & (norm > max_norm), weight * (max_norm / (norm + 1e-7)), weight))


def embedding_table(rngs, rows, width, padding_idx=None, weight=None, freeze=False):
    """A random table whose padding row is zero, or a given one; a frozen table is no parameter."""
    if weight is None:
        weight = jax.random.normal(rngs.params(), (rows, width))
        weight = weight if padding_idx is None else weight.at[padding_idx].set(0)
    return Buffer(jnp.asarray(weight)) if freeze else nnx.Param(jnp.asarray(weight))


class Embedding(nnx.Embed):
    """`nnx.Embed` with PyTorch's options: ids (*) -> (*, embedding_dim). The row of `padding_idx` is not trained."""

    torch_state = {"weight": ("embedding", None)}
    embedding_dim, weight = renamed("features"), renamed("embedding")

    def __init__(
        self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False,
        _weight=None, _freeze=False, *, rngs,
    ):
        super().__init__(num_embeddings, embedding_dim, rngs=rngs)
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.embedding = embedding_table(rngs, num_embeddings, embedding_dim, padding_idx, _weight, _freeze)

    @classmethod
    def from_pretrained(
        cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False, *, rngs=None
    ):
        """From a table (num_embeddings, embedding_dim); a frozen one is no parameter."""
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze
        return cls(*jnp.shape(embeddings), *options, rngs=rngs or nnx.Rngs(0))

    def __call__(self, input):
        if self.max_norm is not None:
            limit_norms(self.embedding, input, self.max_norm, self.norm_type)
        return embedding_rows(input, self.embedding[...], self.padding_idx, scale_grad_by_freq=self.scale_grad_by_freq)


class EmbeddingBag(nnx.Module):
    """Sums, means or maxima of embeddings: ids (bags, n), or (ids,) with the bags' `offsets` -> (bags, embedding_dim)."""

    def __init__(
        self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
        _weight=None, include_last_offset=False, padding_idx=None, *, rngs,
    ):
        self.num_embeddings, self.embedding_dim, self.max_norm, self.norm_type = num_embeddings, embedding_dim, max_norm, norm_type
        self.scale_grad_by_freq, self.mode, self.include_last_offset = scale_grad_by_freq, mode, include_last_offset
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % num_embeddings
        self.weight = embedding_table(rngs, num_embeddings, embedding_dim, padding_idx, _weight)

    @classmethod
    def from_pretrained(
        cls, embeddings, freeze=True, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
        include_last_offset=False, padding_idx=None, *, rngs=None,
    ):
        """From a table (num_embeddings, embedding_dim); a frozen one is no parameter."""
        options = max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx
        layer = cls(*jnp.shape(embeddings), *options, rngs=rngs or nnx.Rngs(0))
        layer.weight = embedding_table(None, 0, 0, weight=embeddings, freeze=freeze)
        return layer

    def __call__(self, input, offsets=None, per_sample_weights=None):
        if self.max_norm is not None:
            limit_norms(self.weight, input, self.max_norm, self.norm_type)
        return embedding_bag(
            input, self.weight[...], offsets, scale_grad_by_freq=self.scale_grad_by_freq, mode=self.mode,
            per_sample_weights=per_sample_weights, include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )
