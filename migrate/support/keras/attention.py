"""Multi-head attention and the layers of the Transformer, with PyTorch's parameters and masks."""
import copy

import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.attention import multi_head_attention_forward
from migrate.support.keras.activations import GELU, ReLU
from migrate.support.keras.containers import ModuleList
from migrate.support.keras.dropout import Dropout
from migrate.support.keras.linear import Linear
from migrate.support.keras.module import Module, Parameter, Rngs, value_of
from migrate.support.keras.norms import LayerNorm


def xavier_uniform(shape):
    """A weight (out, in) as Glorot and Bengio start it."""
    bound = (6 / (shape[-1] + shape[-2])) ** 0.5
    return np.random.uniform(-bound, bound, shape).astype("float32")


class MultiheadAttention(Module):
    """query (L, N, E), key (S, N, kdim), value (S, N, vdim), or with `batch_first` N first, or without N: output and weights.

    True in a boolean mask leaves a position out; other masks are added to the scores.
    """

    def __init__(
        self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, batch_first=False
    ):
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.add_zero_attn, self.batch_first = dropout, add_zero_attn, batch_first
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = Parameter(xavier_uniform((3 * embed_dim, embed_dim)))
        else:
            self.q_proj_weight = Parameter(xavier_uniform((embed_dim, embed_dim)))
            self.k_proj_weight = Parameter(xavier_uniform((embed_dim, self.kdim)))
            self.v_proj_weight = Parameter(xavier_uniform((embed_dim, self.vdim)))
        self.in_proj_bias = Parameter(jnp.zeros(3 * embed_dim)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias)
        if bias:
            self.out_proj.bias.assign(jnp.zeros(embed_dim))
        self.bias_k = Parameter(xavier_uniform((1, 1, embed_dim))) if add_bias_kv else None
        self.bias_v = Parameter(xavier_uniform((1, 1, embed_dim))) if add_bias_kv else None
        self.rngs = Rngs() if dropout else None

    def call(
        self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False
    ):
        swap = self.batch_first and query.ndim == 3
        if swap:
            query, key, value = (jnp.swapaxes(a, 0, 1) for a in (query, key, value))
        names = ("in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "q_proj_weight", "k_proj_weight", "v_proj_weight")
        weight, bias, bias_k, bias_v, *separate = (value_of(getattr(self, name)) for name in names)
        out, weights = multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, weight, bias, bias_k, bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight.value, value_of(self.out_proj.bias), self.training, key_padding_mask, need_weights, attn_mask,
            weight is None, *separate, average_attn_weights=average_attn_weights, is_causal=is_causal, rngs=self.rngs,
        )
        return jnp.swapaxes(out, 0, 1) if swap else out, weights


class TransformerLayer(Module):
    """What the layers of encoder and decoder share: self-attention and the feed-forward part, each with a norm and dropout."""

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=jax.nn.relu, layer_norm_eps=1e-5, batch_first=False,
        norm_first=False, bias=True,
    ):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = {"relu": ReLU, "gelu": GELU}[activation]() if isinstance(activation, str) else activation

    def residual(self, x, norm, part):
        """x and a part of the layer added, normalised before the part or after the sum."""
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    def attend(self, attention, dropout, x, memory, mask, padding, causal):
        """Attention of x to the memory, or to itself."""
        memory = x if memory is None else memory
        return dropout(attention(x, memory, memory, padding, need_weights=False, attn_mask=mask, is_causal=causal)[0])

    def feed_forward(self, x, dropout):
        """The two linear layers."""
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention and a feed-forward part on (L, N, d_model), (N, L, d_model) with `batch_first`, or (L, d_model)."""

    def call(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = self.residual(
            src, self.norm1, lambda x: self.attend(self.self_attn, self.dropout1, x, None, src_mask, src_key_padding_mask, is_causal)
        )
        return self.residual(x, self.norm2, lambda x: self.feed_forward(x, self.dropout2))


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to the memory and a feed-forward part."""

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=jax.nn.relu, layer_norm_eps=1e-5, batch_first=False,
        norm_first=False, bias=True,
    ):
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout3 = Dropout(dropout)

    def call(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=False,
        memory_is_causal=False,
    ):
        x = self.residual(
            tgt, self.norm1, lambda x: self.attend(self.self_attn, self.dropout1, x, None, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        )
        x = self.residual(x, self.norm2, lambda x: self.attend(
            self.multihead_attn, self.dropout2, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal
        ))
        return self.residual(x, self.norm3, lambda x: self.feed_forward(x, self.dropout3))


class TransformerStack(Module):
    """Copies of a layer in a row, and a norm at the end. Keras has `layers` for all children, so it is a property here."""

    torch_names = {"layers": "blocks"}
    layers = property(lambda self: self.blocks)

    def __init__(self, layer, num_layers, norm=None):
        super().__init__()
        self.blocks = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm


def zero_padding(output, padding):
    """(N, L, E) with zeros at the padding of (N, L), as PyTorch's fast path leaves it where all padding is at the end."""
    padding = padding.astype(bool)
    at_end = jnp.all(padding[:, 1:] | ~padding[:, :-1])
    return jnp.where((padding & at_end)[:, :, None], 0, output)


class TransformerEncoder(TransformerStack):
    """A stack of encoder layers."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def call(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        output = src
        for block in self.blocks:
            output = block(output, src_mask=mask, is_causal=bool(is_causal), src_key_padding_mask=src_key_padding_mask)
        if src_key_padding_mask is not None and mask is None and src.ndim == 3 and self.is_fast():
            output = zero_padding(output, src_key_padding_mask)
        return output if self.norm is None else self.norm(output)

    def is_fast(self):
        """Whether PyTorch takes its fast path in evaluation."""
        block = self.blocks[0]
        if self.training or not self.enable_nested_tensor or not isinstance(block, TransformerEncoderLayer) or block.norm_first:
            return False
        activation, attention = getattr(block.activation, "func", block.activation), block.self_attn
        usual = activation in (jax.nn.relu, jax.nn.gelu) or isinstance(activation, ReLU | GELU)
        return usual and attention.batch_first and attention.in_proj_bias is not None and attention.num_heads % 2 == 0


class TransformerDecoder(TransformerStack):
    """A stack of decoder layers."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__(decoder_layer, num_layers, norm)

    def call(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=None,
        memory_is_causal=False,
    ):
        for block in self.blocks:
            tgt = block(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal), memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder: src (S, N, d_model) and tgt (T, N, d_model), or with `batch_first` N first -> the shape of tgt."""

    def __init__(
        self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation=jax.nn.relu,
        custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True,
    ):
        super().__init__()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias)
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*sizes), num_encoder_layers, norm)
        if custom_decoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias)
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*sizes), num_decoder_layers, norm)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        for variable in self.trainable_variables:
            if len(variable.shape) > 1:
                variable.assign(xavier_uniform(variable.shape))

    @staticmethod
    def generate_square_subsequent_mask(sz):
        """(sz, sz): -inf above the diagonal, 0 elsewhere."""
        return jnp.where(jnp.tri(sz, dtype=bool), 0.0, -jnp.inf)

    def call(
        self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
        memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False,
    ):
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )
