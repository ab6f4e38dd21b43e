"""What models return and carry from call to call; JAX's tree functions see through it."""
import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp

PLAIN = (str, int, float, bool, type(None))


class TreeObject:
    """An object that `jax.jit` takes and returns: numbers and texts among its attributes are static, the rest is data."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        jax.tree_util.register_pytree_node(cls, TreeObject._split, lambda fixed, data: cls._joined(fixed, data))

    def _split(self):
        fixed = tuple((k, v) for k, v in vars(self).items() if isinstance(v, PLAIN))
        names = tuple(k for k, v in vars(self).items() if not isinstance(v, PLAIN))
        return [vars(self)[k] for k in names], (fixed, names)

    @classmethod
    def _joined(cls, fixed, data):
        made = cls.__new__(cls)
        vars(made).update(dict(fixed[0]) | dict(zip(fixed[1], data)))
        return made


class ModelOutput(TreeObject, Mapping, dict):
    """A dataclass that is indexed by name or number, and counts as a dict; fields that are None do not count."""

    def keys(self):
        """The names of the fields that are there."""
        return [f.name for f in dataclasses.fields(self) if getattr(self, f.name) is not None]

    def to_tuple(self):
        """The values that are there."""
        return tuple(getattr(self, k) for k in self.keys())

    def __getitem__(self, key):
        if isinstance(key, (int, slice)):
            return self.to_tuple()[key]
        if key not in self.keys():
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key, value):
        setattr(self, key, value)

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())


class CacheLayer(TreeObject):
    """Keys and values of one layer, (batch, heads, length, head_dim), and the states of a recurrent one."""

    is_sliding = False

    def __init__(self):
        self.keys = self.values = None
        self.conv_states, self.recurrent_states = {}, {}

    def update(self, key_states, value_states, *args, **kwargs):
        """Adds keys and values; returns all."""
        if self.keys is not None:
            key_states = jnp.concatenate([self.keys, key_states], axis=-2)
            value_states = jnp.concatenate([self.values, value_states], axis=-2)
        self.keys, self.values = key_states, value_states
        return key_states, value_states

    def get_seq_length(self):
        """The number of positions that are held."""
        return 0 if self.keys is None else self.keys.shape[-2]

    @property
    def is_initialized(self):
        return self.keys is not None


class Cache(TreeObject):
    """What earlier positions left behind, layer by layer; it grows as it is used."""

    is_compileable = False

    def __init__(self, layers=None, **kwargs):
        self.layers = list(layers or [])

    def layer(self, layer_idx):
        """A layer, made when first asked for."""
        self.layers += [CacheLayer() for _ in range(layer_idx + 1 - len(self.layers))]
        return self.layers[layer_idx]

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        """Adds keys and values to a layer; returns all that it has."""
        return self.layer(layer_idx).update(key_states, value_states)

    def get_seq_length(self, layer_idx=0):
        """The number of positions seen."""
        return self.layers[layer_idx].get_seq_length() if layer_idx < len(self.layers) else 0

    def get_mask_sizes(self, query_length, layer_idx=0):
        """(number of keys, position of the first)"""
        return self.get_seq_length(layer_idx) + query_length, 0

    def get_query_offset(self, layer_idx=0):
        """The position of the first query."""
        return self.get_seq_length(layer_idx)

    def get_max_length(self, layer_idx=None):
        """There is no limit."""
        return -1

    def has_previous_state(self, layer_idx=None, state_idx=None):
        """Whether a convolution has seen something."""
        states = [layer.conv_states for layer in (self.layers if layer_idx is None else self.layers[layer_idx : layer_idx + 1])]
        return any(s if state_idx is None else state_idx in s for s in states)

    def get_conv_state(self, layer_idx, state_idx=0):
        """The last inputs of a convolution, or None."""
        return self.layer(layer_idx).conv_states.get(state_idx)

    def get_recurrent_state(self, layer_idx, state_idx=0):
        """The state of a recurrence, or None."""
        return self.layer(layer_idx).recurrent_states.get(state_idx)

    def update_conv_state(self, conv_states, layer_idx, state_idx=0, conv_kernel_size=None, **kwargs):
        """Adds inputs of a convolution, (batch, channels, length), and keeps the last ones; returns all that it needs."""
        held = self.layer(layer_idx).conv_states
        size = held[state_idx].shape[-1] if state_idx in held else conv_kernel_size or conv_states.shape[-1]
        if state_idx in held:
            conv_states = jnp.concatenate([held[state_idx], conv_states], axis=-1)
        else:
            conv_states = jnp.pad(conv_states, [(0, 0)] * (conv_states.ndim - 1) + [(max(size - conv_states.shape[-1], 0), 0)])
        held[state_idx] = conv_states[..., -size:]
        return conv_states

    def update_recurrent_state(self, recurrent_states, layer_idx, state_idx=0, **kwargs):
        """Replaces the state of a recurrence."""
        self.layer(layer_idx).recurrent_states[state_idx] = recurrent_states
        return recurrent_states

    def reorder_cache(self, beam_idx):
        """Takes other rows of the batch."""
        for layer in self.layers:
            layer.keys, layer.values = layer.keys[beam_idx], layer.values[beam_idx]

    def __len__(self):
        return len(self.layers)

    def __iter__(self):
        return iter((layer.keys, layer.values) for layer in self.layers)


class DynamicCache(Cache):
    """A cache without a limit."""

    def __init__(self, ddp_cache_data=None, config=None, offloading=False, offload_only_non_sliding=False):
        super().__init__()
        for i, (keys, values, *_) in enumerate(ddp_cache_data or ()):
            self.update(keys, values, i)


class EncoderDecoderCache(Cache):
    """The caches of a decoder's own attention and of that to the encoder."""

    def __init__(self, self_attention_cache, cross_attention_cache):
        self.self_attention_cache, self.cross_attention_cache = self_attention_cache, cross_attention_cache

    @property
    def layers(self):
        return self.self_attention_cache.layers

    @property
    def is_updated(self):
        """The layers whose keys from the encoder are there."""
        return {i: layer.keys is not None for i, layer in enumerate(self.cross_attention_cache.layers)}

    def reorder_cache(self, beam_idx):
        """Takes other rows of the batch."""
        self.self_attention_cache.reorder_cache(beam_idx)
        self.cross_attention_cache.reorder_cache(beam_idx)
