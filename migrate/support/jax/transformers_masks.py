"""Masks of attention: 0 where a query may look, the lowest number where it may not; (batch, 1, queries, keys)."""
import jax.numpy as jnp


def mask_of_rules(inputs_embeds, attention_mask, cache, rules, keys_of=None, layer_idx=0):
    """The mask of all `rules`, functions of (batch, head, query, key) positions, and of the keys that `attention_mask` leaves out."""
    if attention_mask is not None and attention_mask.ndim == 4:
        return attention_mask
    batch, queries = inputs_embeds.shape[:2]
    keys = (keys_of if keys_of is not None else inputs_embeds).shape[1]
    start = 0
    if cache is not None:
        start, (keys, _) = cache.get_query_offset(layer_idx), cache.get_mask_sizes(queries, layer_idx)
    elif attention_mask is not None:
        keys = attention_mask.shape[-1]
    at = jnp.arange(batch)[:, None, None, None], jnp.zeros((1, 1, 1, 1), int), (jnp.arange(queries) + start)[:, None], jnp.arange(keys)
    allowed = jnp.ones((batch, 1, queries, keys), bool)
    for rule in rules:
        allowed &= rule(*at)
    if attention_mask is not None:
        padding = attention_mask.astype(bool)
        padding = jnp.pad(padding, ((0, 0), (0, max(keys - padding.shape[1], 0))))[:, :keys]
        allowed &= padding[:, None, None, :]
    return jnp.where(allowed, 0, jnp.finfo(inputs_embeds.dtype).min).astype(inputs_embeds.dtype)


def causal_rule(batch, head, query, key):
    """A query looks at keys up to its own position."""
    return key <= query


def same_sequence(position_ids):
    """A query looks at keys of its own sequence, where several are packed into one row: positions start anew there."""
    steps = jnp.diff(position_ids, axis=-1, prepend=position_ids[:, :1] - 1)
    sequence = jnp.cumsum(steps != 1, axis=-1)
    sequence = sequence if len(sequence) > 1 else sequence[0][None]
    return lambda batch, head, query, key: sequence[batch % len(sequence), query] == sequence[batch % len(sequence), key]


def either(rule, other):
    """What one of two rules allows."""
    return rule if other is None else lambda *at: rule(*at) | other(*at)


def block_rule(block_sequence_ids):
    """All of a block see each other; -1 is no block."""
    def rule(batch, head, query, key):
        own = block_sequence_ids[batch, query]
        return (own == block_sequence_ids[batch, key]) & (own >= 0)

    return None if block_sequence_ids is None else rule


def create_causal_mask(
    config, inputs_embeds, attention_mask=None, cache=None, position_ids=None, or_mask_function=None, and_mask_function=None,
    block_sequence_ids=None, layer_idx=None, allow_is_causal_skip=True, window=None,
):
    """The mask of causal attention."""
    if not getattr(config, "is_causal", True):
        given = {"or_mask_function": or_mask_function, "and_mask_function": and_mask_function}
        return create_bidirectional_mask(config, inputs_embeds, attention_mask, cache=cache, **given)
    rules = [either(either(causal_rule, or_mask_function), block_rule(block_sequence_ids))]
    if window is not None:
        rules.append(lambda batch, head, query, key: key > query - window)
    if and_mask_function is not None:
        rules.append(and_mask_function)
    if position_ids is not None and attention_mask is None and cache is None:
        rules.append(same_sequence(position_ids))
    return mask_of_rules(inputs_embeds, attention_mask, cache, rules, layer_idx=layer_idx or 0)


def create_sliding_window_causal_mask(config, *args, **kwargs):
    """The mask of causal attention to the last `config.sliding_window` positions."""
    return create_causal_mask(config, *args, window=config.sliding_window, **kwargs)


def create_bidirectional_mask(
    config, inputs_embeds, attention_mask=None, encoder_hidden_states=None, cache=None, or_mask_function=None, and_mask_function=None,
    allow_is_bidirectional_skip=True, window=None,
):
    """The mask of attention to all positions; None where nothing is left out."""
    rules = [rule for rule in (and_mask_function,) if rule is not None]
    if window is not None:
        rules.append(lambda batch, head, query, key: abs(query - key) <= window)
    if not rules and attention_mask is None and allow_is_bidirectional_skip:
        return None
    if or_mask_function is not None:
        raise NotImplementedError("or_mask_function of attention to all positions allows nothing more")
    return mask_of_rules(inputs_embeds, attention_mask, cache, rules, encoder_hidden_states)


def create_bidirectional_sliding_window_mask(config, *args, **kwargs):
    """The mask of attention to the positions near by."""
    return create_bidirectional_mask(config, *args, window=config.sliding_window, **kwargs)
