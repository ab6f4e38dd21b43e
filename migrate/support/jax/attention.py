"""Attention with PyTorch's masks: a boolean mask says what is kept, any other is added."""
import math

import jax
import jax.numpy as jnp

from migrate.support.jax.dropout import dropout


def safe_softmax(scores):
    """Softmax over the last axis; a row of -inf gives zeros."""
    lost = jnp.all(jnp.isneginf(scores), axis=-1, keepdims=True)
    return jnp.where(lost, 0, jax.nn.softmax(jnp.where(lost, 0, scores), axis=-1))


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, *, rngs=None
):
    """query (..., L, E), key (..., S, E), value (..., S, V) -> (..., L, V)."""
    if enable_gqa:
        key, value = (jnp.repeat(a, query.shape[-3] // a.shape[-3], axis=-3) for a in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = jnp.matmul(query * scale, jnp.swapaxes(key, -2, -1))
    if is_causal:
        scores = jnp.where(jnp.tri(*scores.shape[-2:], dtype=bool), scores, -jnp.inf)
    if attn_mask is not None:
        scores = jnp.where(attn_mask, scores, -jnp.inf) if attn_mask.dtype == bool else scores + attn_mask
    weights = safe_softmax(scores.astype(jnp.promote_types(scores.dtype, jnp.float32))).astype(query.dtype)
    if dropout_p:
        weights = dropout(weights, dropout_p, rngs=rngs)
    return jnp.matmul(weights, value)


def linear(input, weight, bias=None):
    """(..., in) by weight (out, in) -> (..., out)."""
    out = jnp.matmul(input, jnp.transpose(weight))
    return out if bias is None else out + bias


def additive_mask(mask, dtype):
    """A mask of multi-head attention as numbers to add; a boolean one says what is left out."""
    return jnp.where(mask, -jnp.inf, 0).astype(dtype) if mask is not None and mask.dtype == bool else mask


def attention_masks(attn_mask, key_padding_mask, heads, extra, dtype):
    """Both masks in one to add to scores (N, heads, L, S + extra), or None; `extra` positions at the end are always seen."""
    attn_mask, key_padding_mask = additive_mask(attn_mask, dtype), additive_mask(key_padding_mask, dtype)
    if attn_mask is not None and attn_mask.ndim == 3:
        attn_mask = attn_mask.reshape(-1, heads, *attn_mask.shape[1:])
    if key_padding_mask is not None:
        key_padding_mask = key_padding_mask[:, None, None, :]
        attn_mask = key_padding_mask if attn_mask is None else attn_mask + key_padding_mask
    return attn_mask if attn_mask is None else jnp.pad(attn_mask, [(0, 0)] * (attn_mask.ndim - 1) + [(0, extra)])


def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
    out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights=True, is_causal=False, *, rngs=None,
):
    """query (L, N, E), key and value (S, N, E), or without N -> the output like query, and the weights (N, L, S) or None."""
    batched = query.ndim == 3
    if not batched:
        query, key, value = query[:, None], key[:, None], value[:, None]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    length, batch, width = query.shape
    if use_separate_proj_weight:
        kernels = q_proj_weight, k_proj_weight, v_proj_weight
    else:
        kernels = jnp.split(jnp.asarray(in_proj_weight), 3)
    biases = (None,) * 3 if in_proj_bias is None else jnp.split(jnp.asarray(in_proj_bias), 3)
    q, k, v = (linear(x, w, b) for x, w, b in zip((query, key, value), kernels, biases))
    extra = int(bias_k is not None) + int(add_zero_attn)
    if bias_k is not None:
        k, v = (jnp.concatenate([a, jnp.broadcast_to(b, (1, batch, width))]) for a, b in ((k, bias_k), (v, bias_v)))
    # (positions, N, E) -> (N, heads, positions, E / heads)
    q, k, v = (a.reshape(-1, batch, num_heads, width // num_heads).transpose(1, 2, 0, 3) for a in (q, k, v))
    if static_k is not None:
        k = jnp.reshape(static_k, (batch, num_heads, -1, width // num_heads))
    if static_v is not None:
        v = jnp.reshape(static_v, (batch, num_heads, -1, width // num_heads))
    if add_zero_attn:
        k, v = (jnp.pad(a, ((0, 0), (0, 0), (0, 1), (0, 0))) for a in (k, v))
    mask = attention_masks(attn_mask, key_padding_mask, num_heads, extra, query.dtype)
    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = jnp.matmul(q * math.sqrt(num_heads / width), jnp.swapaxes(k, -2, -1))
        weights = jax.nn.softmax(scores if mask is None else scores + mask, axis=-1)
        weights = dropout(weights, dropout_p, rngs=rngs) if dropout_p else weights
        out = jnp.matmul(weights, v)
        weights = weights.mean(axis=1) if average_attn_weights else weights
    else:
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal and mask is None, rngs=rngs)
    out = linear(out.transpose(2, 0, 1, 3).reshape(length, batch, width), out_proj_weight, out_proj_bias)
    if not batched:
        out, weights = out[:, 0], weights if weights is None else weights[0]
    return out, weights


def over_positions(fn, sizes, first=None):
    """fn(batch, head, query, key) at all positions: (B, H, Q, K); with `first` of that shape, fn(element, batch, head, query, key)."""
    places = jnp.meshgrid(*map(jnp.arange, sizes), indexing="ij")
    for _ in sizes:
        fn = jax.vmap(fn)
    return fn(*([] if first is None else [first]), *places)


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN):
    """What a mask function keeps, as a boolean mask (B, H, queries, keys); sizes that are None are 1."""
    return over_positions(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN)).astype(bool)


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False):
    """Attention whose scores a function changes and a mask from `create_block_mask` keeps; (B, H, L, E) -> (B, H, L, V)."""
    if enable_gqa:
        key, value = (jnp.repeat(a, query.shape[1] // a.shape[1], axis=1) for a in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = jnp.matmul(query * scale, jnp.swapaxes(key, -2, -1))
    if score_mod is not None:
        scores = over_positions(score_mod, scores.shape, scores)
    if block_mask is not None:
        scores = jnp.where(block_mask, scores, -jnp.inf)
    return jnp.matmul(safe_softmax(scores), value)
