"""Multi-head attention with PyTorch's parameters."""
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.linear import uniform_param
from migrate.support.jax.attention import multi_head_attention_forward


class MultiheadAttention(nnx.Module):
    """query (L, N, E), key (S, N, kdim), value (S, N, vdim), or with `batch_first` N first, or without N: output and weights.

    True in a boolean mask leaves a position out; other masks are added to the scores.
    """

    def __init__(
        self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
        batch_first=False, *, rngs,
    ):
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.add_zero_attn, self.batch_first = dropout, add_zero_attn, batch_first
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = nnx.data(None)
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = uniform_param(rngs, (3 * embed_dim, embed_dim), embed_dim)
        else:
            self.q_proj_weight = uniform_param(rngs, (embed_dim, embed_dim), embed_dim)
            self.k_proj_weight = uniform_param(rngs, (embed_dim, self.kdim), self.kdim)
            self.v_proj_weight = uniform_param(rngs, (embed_dim, self.vdim), self.vdim)
        self.in_proj_bias = nnx.Param(jnp.zeros(3 * embed_dim)) if bias else nnx.data(None)
        self.bias_k = uniform_param(rngs, (1, 1, embed_dim), embed_dim) if add_bias_kv else nnx.data(None)
        self.bias_v = uniform_param(rngs, (1, 1, embed_dim), embed_dim) if add_bias_kv else nnx.data(None)
        self.out_proj = nnx.Linear(embed_dim, embed_dim, use_bias=bias, rngs=rngs)
        self.deterministic = False
        self.rngs = rngs.fork() if dropout else nnx.data(None)

    def __call__(
        self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False
    ):
        swap = self.batch_first and query.ndim == 3
        if swap:
            query, key, value = (jnp.swapaxes(a, 0, 1) for a in (query, key, value))
        out, weights = multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.kernel[...].T, self.out_proj.bias, not self.deterministic, key_padding_mask,
            need_weights, attn_mask, self.in_proj_weight is None, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal, rngs=self.rngs,
        )
        return jnp.swapaxes(out, 0, 1) if swap else out, weights
