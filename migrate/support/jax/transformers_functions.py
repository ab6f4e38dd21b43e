"""Functions and tables that Hugging Face's models share."""
import functools
import logging
import math

import jax
import jax.numpy as jnp


class Logger(logging.LoggerAdapter):
    """A logger that can say a thing once."""

    def warning_once(self, message, *args):
        """Warns, the first time."""
        if message not in self.extra:
            self.extra[message] = True
            self.warning(message, *args)


@functools.cache
def get_logger(name):
    """The logger of a module."""
    return Logger(logging.getLogger(name), {})


def exact_gelu(x):
    """x times the normal distribution's function at x."""
    return jax.nn.gelu(x, approximate=False)


def gelu_tanh(x):
    """`gelu` by a hyperbolic tangent."""
    return jax.nn.gelu(x, approximate=True)


def gelu_accurate(x):
    """`gelu_tanh` with its constants as they stand in `gelu_accurate`."""
    return 0.5 * x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def clipped_gelu(x):
    """`gelu` within -10 and 10."""
    return jnp.clip(exact_gelu(x), -10, 10)


def quick_gelu(x):
    """x sigmoid(1.702 x)"""
    return x * jax.nn.sigmoid(1.702 * x)


def laplace(x, mu=0.707107, sigma=0.282095):
    """The Laplace activation."""
    return 0.5 * (1 + jax.lax.erf((x - mu) / (sigma * math.sqrt(2.0))))


def unchanged(x):
    """x itself."""
    return x


def squared_relu(x):
    """relu(x) squared."""
    return jnp.square(jax.nn.relu(x))


def sqrt_softplus(x):
    """The square root of softplus."""
    return jnp.sqrt(jax.nn.softplus(x))


ACT2FN = {
    "gelu": exact_gelu, "gelu_10": clipped_gelu, "gelu_fast": gelu_tanh, "gelu_new": gelu_tanh, "gelu_python": exact_gelu,
    "gelu_pytorch_tanh": gelu_tanh, "gelu_python_tanh": gelu_tanh, "gelu_accurate": gelu_accurate, "hardswish": jax.nn.hard_swish,
    "laplace": laplace, "leaky_relu": jax.nn.leaky_relu, "linear": unchanged, "mish": jax.nn.mish, "quick_gelu": quick_gelu,
    "relu": jax.nn.relu, "relu2": squared_relu, "relu6": jax.nn.relu6, "sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu,
    "sqrtsoftplus": sqrt_softplus, "swish": jax.nn.silu, "tanh": jnp.tanh,
}


def always(value):
    """A function of nothing that gives the value."""
    return lambda: value


ACT2CLS = {name: always(f) for name, f in ACT2FN.items()}


def get_activation(activation_string):
    """The activation of that name."""
    return ACT2FN[activation_string]


def slice_logits_to_keep(hidden_states, logits_to_keep):
    """The positions whose logits are asked for: the last ones, those of a list, or those of a mask or of indices per row."""
    if getattr(logits_to_keep, "ndim", 0) == 2:
        if logits_to_keep.dtype == bool:
            return hidden_states[logits_to_keep]
        return jnp.take_along_axis(hidden_states, logits_to_keep[..., None], axis=1)
    return hidden_states[:, slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep]


def deprecate_kwarg(old_name, version=None, new_name=None, **kwargs):
    """A decorator: an argument may be given under an old name."""
    def decorate(func):
        @functools.wraps(func)
        def renamed(*args, **kwargs):
            if old_name in kwargs and new_name is not None:
                kwargs.setdefault(new_name, kwargs.pop(old_name))
                kwargs.pop(old_name, None)
            return func(*args, **kwargs)
        return renamed
    return decorate


def can_return_tuple(func):
    """A decorator: with `return_dict=False`, or where the configuration says so, the output is a tuple."""
    @functools.wraps(func)
    def wrapper(self, *args, return_dict=None, **kwargs):
        if return_dict is None:
            return_dict = self.config.return_dict if hasattr(self, "config") else True
        output = func(self, *args, **kwargs)
        return output if return_dict or isinstance(output, tuple) else output.to_tuple()
    return wrapper


FROM_CONFIG = ("use_cache", "vision_feature_layer", "vision_feature_select_strategy", "vision_aspect_ratio")


def merge_with_config_defaults(func):
    """A decorator: some arguments that are not given, or None, come from the configuration; `is_causal` holds for the whole call."""
    code = func.__wrapped__.__code__ if hasattr(func, "__wrapped__") else func.__code__
    names = code.co_varnames[1 : code.co_argcount]

    @functools.wraps(func)
    def wrapper(self, *args, **kwargs):
        for name in FROM_CONFIG:
            at = names.index(name) if name in names else len(args)
            value = args[at] if at < len(args) else kwargs.get(name)
            value = getattr(self.config, name, None) if value is None else value
            if at < len(args):
                args = (*args[:at], value, *args[at + 1 :])
            elif value is not None:
                kwargs[name] = value
        before = getattr(self.config, "is_causal", None)
        causal = kwargs.get("is_causal", before)
        if causal is None:
            return func(self, *args, **kwargs)
        self.config.is_causal = causal
        try:
            return func(self, *args, **kwargs | {"is_causal": causal})
        finally:
            self.config.is_causal = before
    return wrapper


def dynamic_rope_update(rope_forward):
    """A decorator: frequencies that change with the length of the input are not supported."""
    @functools.wraps(rope_forward)
    def wrapper(self, x, position_ids, layer_type=None):
        kind = self.rope_type if layer_type is None else self.rope_type[layer_type]
        if "dynamic" in kind or kind == "longrope":
            raise NotImplementedError(f"rotary embeddings of type {kind!r} change with the input's length")
        return rope_forward(self, x, position_ids, **({} if layer_type is None else {"layer_type": layer_type}))
    return wrapper
