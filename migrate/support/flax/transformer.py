"""Transformer layers with PyTorch's structure and parameter names."""
from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.attention import MultiheadAttention
from migrate.support.flax.copies import copy_module


def activation_of(activation):
    """A function, or the one that "relu" or "gelu" names."""
    return {"relu": jax.nn.relu, "gelu": partial(jax.nn.gelu, approximate=False)}.get(activation, activation)


def causal_mask(size):
    """(size, size): -inf above the diagonal, 0 elsewhere."""
    return jnp.where(jnp.tri(size, dtype=bool), 0.0, -jnp.inf)


class TransformerEncoderLayer(nnx.Module):
    """Self-attention and a feed-forward network: (L, N, d_model), with `batch_first` (N, L, d_model), or (L, d_model)."""

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=jax.nn.relu, layer_norm_eps=1e-5, batch_first=False,
        norm_first=False, bias=True, *, rngs,
    ):
        norm = partial(nnx.LayerNorm, d_model, epsilon=layer_norm_eps, use_bias=bias, use_fast_variance=False, rngs=rngs)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, rngs=rngs)
        self.linear1 = nnx.Linear(d_model, dim_feedforward, use_bias=bias, rngs=rngs)
        self.dropout = nnx.Dropout(dropout, rngs=rngs)
        self.linear2 = nnx.Linear(dim_feedforward, d_model, use_bias=bias, rngs=rngs)
        self.norm_first = norm_first
        self.norm1, self.norm2 = norm(), norm()
        self.dropout1, self.dropout2 = nnx.Dropout(dropout, rngs=rngs), nnx.Dropout(dropout, rngs=rngs)
        self.activation = activation_of(activation)

    def __call__(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = src
        if self.norm_first:
            x = x + self.attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self.feed_forward(x))

    def attend(self, x, mask, key_padding_mask):
        """Self-attention."""
        return self.dropout1(self.self_attn(x, x, x, key_padding_mask, False, mask)[0])

    def feed_forward(self, x):
        """The feed-forward network."""
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(nnx.Module):
    """Self-attention, attention to `memory` and a feed-forward network; shapes as of the encoder layer."""

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=jax.nn.relu, layer_norm_eps=1e-5, batch_first=False,
        norm_first=False, bias=True, *, rngs,
    ):
        norm = partial(nnx.LayerNorm, d_model, epsilon=layer_norm_eps, use_bias=bias, use_fast_variance=False, rngs=rngs)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, rngs=rngs)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, rngs=rngs)
        self.linear1 = nnx.Linear(d_model, dim_feedforward, use_bias=bias, rngs=rngs)
        self.dropout = nnx.Dropout(dropout, rngs=rngs)
        self.linear2 = nnx.Linear(dim_feedforward, d_model, use_bias=bias, rngs=rngs)
        self.norm_first = norm_first
        self.norm1, self.norm2, self.norm3 = norm(), norm(), norm()
        self.dropout1, self.dropout2, self.dropout3 = (nnx.Dropout(dropout, rngs=rngs) for _ in range(3))
        self.activation = activation_of(activation)

    def __call__(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=False,
        memory_is_causal=False,
    ):
        x = tgt
        if self.norm_first:
            x = x + self.attend(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self.attend_to(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self.feed_forward(self.norm3(x))
        x = self.norm1(x + self.attend(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self.attend_to(x, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(x + self.feed_forward(x))

    def attend(self, x, mask, key_padding_mask):
        """Self-attention."""
        return self.dropout1(self.self_attn(x, x, x, key_padding_mask, False, mask)[0])

    def attend_to(self, x, memory, mask, key_padding_mask):
        """Attention to the memory."""
        return self.dropout2(self.multihead_attn(x, memory, memory, key_padding_mask, False, mask)[0])

    def feed_forward(self, x):
        """The feed-forward network."""
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(nnx.Module):
    """Copies of an encoder layer, one after the other.

    As PyTorch's does without gradients, in evaluation it gives zeros (before `norm`) at padded positions at the end of the sequences.
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True, *, rngs=None):
        self.layers = nnx.List(copy_module(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm, self.mask_check = num_layers, nnx.data(norm), mask_check
        self.zero_padding = enable_nested_tensor and zeroes_padding(encoder_layer)
        self.deterministic = False

    def __call__(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        out = src
        for layer in self.layers:
            out = layer(out, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        if self.deterministic and self.zero_padding and src.ndim == 3 and mask is None and src_key_padding_mask is not None:
            padded = src_key_padding_mask != 0
            at_the_end = jnp.all(padded[:, 1:] >= padded[:, :-1]) | (not self.mask_check)
            out = jnp.where(at_the_end & padded[..., None], 0, out)
        return out if self.norm is None else self.norm(out)


def zeroes_padding(layer):
    """Whether PyTorch has a fast path for this encoder layer, which leaves padded positions out."""
    if not isinstance(layer, TransformerEncoderLayer) or not is_relu_or_gelu(layer.activation):
        return False
    attention = layer.self_attn
    plain = not layer.norm_first and attention.batch_first and attention.in_proj_bias is not None
    return plain and attention.num_heads % 2 == 0 and layer.norm1.epsilon == layer.norm2.epsilon


def is_relu_or_gelu(activation):
    """Whether a function gives what relu or the exact gelu give."""
    with jax.ensure_compile_time_eval():
        x = jnp.linspace(-3, 3, 8)
        return any(jnp.allclose(activation(x), f(x), atol=1e-5).item() for f in (jax.nn.relu, activation_of("gelu")))


class TransformerDecoder(nnx.Module):
    """Copies of a decoder layer, one after the other."""

    def __init__(self, decoder_layer, num_layers, norm=None, *, rngs=None):
        self.layers = nnx.List(copy_module(decoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, nnx.data(norm)

    def __call__(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=None,
        memory_is_causal=False,
    ):
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal), memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(nnx.Module):
    """An encoder over `src` and a decoder over `tgt`."""

    def __init__(
        self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation=jax.nn.relu,
        custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, *, rngs,
    ):
        options = dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        norm = partial(nnx.LayerNorm, d_model, epsilon=layer_norm_eps, use_bias=bias, use_fast_variance=False, rngs=rngs)
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(d_model, nhead, *options, rngs=rngs), num_encoder_layers, norm())
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(d_model, nhead, *options, rngs=rngs), num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def __call__(
        self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
        memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False,
    ):
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz):
        """(sz, sz): -inf above the diagonal, 0 elsewhere."""
        return causal_mask(sz)
