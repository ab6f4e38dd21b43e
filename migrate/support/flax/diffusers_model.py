"""The bases of diffusers' models: a configuration of all that a model was made with."""
import functools
import inspect

import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.building import parameters
from migrate.support.jax.attention import scaled_dot_product_attention


class ModelConfig(dict):
    """What a model was made with, by key or attribute."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def __hash__(self):
        return id(self)


class ConfigMixin:
    """Keeps what `register_to_config` is given in `config`."""

    _internal_dict = ModelConfig()

    def register_to_config(self, **kwargs):
        """Adds to the configuration."""
        self._internal_dict = ModelConfig({**self._internal_dict, **kwargs})

    @property
    def config(self):
        return self._internal_dict


class ModelMixin(nnx.Module):
    """A model of diffusers."""

    gradient_checkpointing = False
    is_gradient_checkpointing = False

    @property
    def dtype(self):
        """The dtype of the parameters."""
        return next(p.dtype for p in parameters(self) if jnp.issubdtype(p.dtype, jnp.floating))

    @property
    def device(self):
        """Arrays find their devices by themselves."""
        return None


def register_to_config(init):
    """A decorator of a constructor: its arguments are the configuration."""
    names = [n for n in inspect.signature(init).parameters if n not in ("self", "rngs")]
    defaults = {n: p.default for n, p in inspect.signature(init).parameters.items() if n in names}

    @functools.wraps(init)
    def wrapper(self, *args, **kwargs):
        given = dict(zip(names, args)) | {k: v for k, v in kwargs.items() if k != "rngs"}
        ignored = getattr(self, "ignore_for_config", [])
        self.register_to_config(**{k: v for k, v in (defaults | given).items() if k not in ignored})
        init(self, *args, **{k: v for k, v in kwargs.items() if not k.startswith("_")})
    return wrapper


def apply_lora_scale(kwargs_name="joint_attention_kwargs"):
    """A decorator: `scale` among those arguments is for adapters, of which there are none."""
    def decorate(forward):
        @functools.wraps(forward)
        def wrapper(self, *args, **kwargs):
            if kwargs.get(kwargs_name) is not None:
                kwargs[kwargs_name] = {k: v for k, v in kwargs[kwargs_name].items() if k != "scale"}
            return forward(self, *args, **kwargs)
        return wrapper
    return decorate


def dispatch_attention_fn(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, attention_kwargs=None, *, backend=None, parallel_config=None,
):
    """Attention of (batch, length, heads, width)."""
    if dropout_p:
        raise NotImplementedError("dropout within attention")
    query, key, value = (x.swapaxes(1, 2) for x in (query, key, value))
    return scaled_dot_product_attention(query, key, value, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa).swapaxes(1, 2)
