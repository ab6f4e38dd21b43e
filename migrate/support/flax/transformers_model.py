"""The base class of Hugging Face's models."""
import functools
import importlib
import re
from dataclasses import dataclass
from itertools import cycle

import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.building import bias_of, build, children, get_submodule, named_children, named_parameters, parameters, weight_of
from migrate.support.flax.linear import TiedLinear
from migrate.support.jax.transformers_losses import loss_of


class PreTrainedModel(nnx.Module):
    """A model with a configuration: first values of its weights, weights that are one, the embeddings at its ends."""

    config_class = None
    base_model_prefix = ""
    main_input_name = "input_ids"
    gradient_checkpointing = False
    is_gradient_checkpointing = False
    _tied_weights_keys = None
    _can_record_outputs = None
    _input_embed_layer = "embed_tokens"

    def __init__(self, config, *inputs, rngs, **kwargs):
        self.config = config
        config._attn_implementation = config._experts_implementation = "eager"
        self._rngs = rngs

    def post_init(self):
        """Gives the weights their first values and ties those that are one."""
        self.init_weights()
        self.tie_weights()
        del self._rngs

    def init_weights(self):
        """Calls `_init_weights` with every module, children first; models within have done so for theirs."""
        def visit(module):
            for child in children(module):
                if not isinstance(child, PreTrainedModel):
                    visit(child)
            build(self._init_weights, module, rngs=self._rngs)

        visit(self)

    def _init_weights(self, module, *, rngs=None):
        """First values where a model has none of its own: normal weights, no biases, norms that change nothing."""
        config, weight, bias = self.config, weight_of(module), bias_of(module)
        names = ("initializer_range", "init_std", "initializer_factor")
        std = next((getattr(config, n) for n in names if getattr(config, n, None) is not None), 0.02)
        kinds = {c.__name__ for c in type(module).__mro__}
        if kinds & {"Linear", "Conv", "ConvTranspose", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "Embed"}:
            if isinstance(weight, nnx.Variable):
                weight[...] = std * (rngs or self._rngs).params.normal(weight.shape)
                if getattr(module, "padding_idx", None) is not None:
                    weight[module.padding_idx] = 0
            if isinstance(bias, nnx.Variable):
                bias[...] = jnp.zeros_like(bias[...])
        elif kinds & {"GroupNorm", "BatchNorm"} or any("LayerNorm" in k or "RMSNorm" in k for k in kinds):
            for variable, value in ((weight, 1), (bias, 0)):
                if isinstance(variable, nnx.Variable):
                    variable[...] = jnp.full_like(variable[...], value)

    def tie_weights(self):
        """Makes the parameters one that `_tied_weights_keys`, names or patterns, says are one, where the configuration says so."""
        if not getattr(self.config, "tie_word_embeddings", False):
            return
        for target, source in (self._tied_weights_keys or {}).items():
            names = [name for name, _ in named_parameters(self)]
            sources = sorted(n for n in names if re.match(source, n))
            for name, held in zip(sorted(n for n in names if re.match(target, n)), cycle(sources)):
                if name != held:
                    self._tie(name, held)

    def _tie(self, name, source):
        (path, _, attribute), (source_path, _, source_attribute) = name.rpartition("."), source.rpartition(".")
        owner, held = get_submodule(self, path), get_submodule(self, source_path)
        above, _, last = path.rpartition(".")
        if isinstance(held, nnx.Embed) and isinstance(owner, (nnx.Linear, nnx.Embed)):
            setattr(get_submodule(self, above), last, TiedLinear(held, owner.bias) if isinstance(owner, nnx.Linear) else held)
        else:
            setattr(owner, attribute, getattr(held, source_attribute))

    @property
    def loss_function(self):
        """The loss for labels."""
        return loss_of(type(self).__name__)

    @property
    def base_model(self):
        """The model within, or this one."""
        return getattr(self, self.base_model_prefix, self)

    @property
    def dtype(self):
        """The dtype of the parameters."""
        return next(p.dtype for p in parameters(self) if jnp.issubdtype(p.dtype, jnp.floating))

    @property
    def device(self):
        """Arrays find their devices by themselves."""
        return None

    def _holder(self):
        """The module that holds the embedding of the inputs."""
        name = self._input_embed_layer
        for module in (self, getattr(self, "embeddings", None), getattr(self, "model", None)):
            if module is not None and hasattr(module, name):
                return module
        if self.base_model is not self and isinstance(self.base_model, PreTrainedModel):
            return self.base_model._holder()
        raise NotImplementedError(f"{type(self).__name__} has no {name}")

    def get_input_embeddings(self):
        """The embedding of the inputs."""
        return getattr(self._holder(), self._input_embed_layer)

    def set_input_embeddings(self, value):
        """Replaces the embedding of the inputs."""
        setattr(self._holder(), self._input_embed_layer, value)

    def get_output_embeddings(self):
        """The layer that makes logits, or None."""
        return getattr(self, "lm_head", None)

    def set_output_embeddings(self, new_embeddings):
        """Replaces the layer that makes logits."""
        self.lm_head = new_embeddings

    def get_extended_attention_mask(self, attention_mask, input_shape=None, dtype=None):
        """(batch, keys) or (batch, queries, keys) as a mask that is added to scores."""
        mask = attention_mask[:, None] if attention_mask.ndim == 3 else attention_mask[:, None, None]
        dtype = dtype or self.dtype
        return (1 - mask.astype(dtype)) * jnp.finfo(dtype).min

    def invert_attention_mask(self, encoder_attention_mask):
        """The same for the keys of an encoder."""
        return self.get_extended_attention_mask(encoder_attention_mask)

    def warn_if_padding_and_no_attention_mask(self, input_ids, attention_mask):
        """Nothing: that depends on values."""

    def can_generate(self):
        """Whether the model makes text."""
        return False


def model_of(config, end, rngs):
    """The model of a configuration: the one of its name beside it."""
    cls = type(config)
    module = importlib.import_module(cls.__module__.replace(".configuration_", ".modeling_"))
    return getattr(module, cls.__name__.removesuffix("Config") + end)(config, rngs=rngs)


def AutoModel(config, *, rngs):
    """The model of a configuration."""
    return model_of(config, "Model", rngs)


def AutoBackbone(config, *, rngs):
    """The backbone of a configuration."""
    return model_of(config, "Backbone", rngs)


class GenerationMixin:
    """Marks models that make text; `generate` is not part of them here."""


@dataclass(frozen=True)
class OutputRecorder:
    """Which modules' outputs are kept: those of a class, below an attribute of that name; `index` of a tuple."""

    target_class: type = None
    index: int = 0
    layer_name: str = None
    class_name: str = None
    capture_initial_hidden_state: bool = True
    num_hidden_layers_key: str = ""


COLLECTORS = []  # of the calls that run now, the innermost last


def recorded_modules(model, path=""):
    """{id of a module: (module, [(key, recorder)])} for what a model records."""
    found, specs = {}, []
    for key, given in (model._can_record_outputs or {}).items():
        for spec in given if isinstance(given, list) else [given]:
            at = 0 if "hidden_states" in key else 1
            if not isinstance(spec, OutputRecorder):
                spec = OutputRecorder(None, at, class_name=spec) if isinstance(spec, str) else OutputRecorder(spec, at)
            specs.append((key, spec))

    def visit(module, path):
        for name, child in named_children(module):
            if isinstance(child, PreTrainedModel):
                found.update(recorded_modules(child, f"{path}.{name}"))
            else:
                visit(child, f"{path}.{name}")
        for key, spec in specs:
            fits = isinstance(module, spec.target_class or ()) or spec.class_name is not None and path.endswith(spec.class_name)
            if fits and (spec.layer_name is None or f".{spec.layer_name.strip('.')}." in path + "."):
                found.setdefault(id(module), (module, []))[1].append((key, spec))

    visit(model, path)
    return found


def selected_hidden_states(output_hidden_states):
    """The numbers of the hidden states that are asked for; None for all or none."""
    if output_hidden_states is None or isinstance(output_hidden_states, bool):
        return None
    return [output_hidden_states] if isinstance(output_hidden_states, int) else list(output_hidden_states)


def resolve_hidden_states_indices(model, selected, num_hidden_states):
    """Those numbers from 0 on; what is out of range is left out."""
    return {i % num_hidden_states for i in selected if -num_hidden_states <= i < num_hidden_states}


class Recording:
    """While it is open, the calls of a model's modules are noted by the innermost collector."""

    def __init__(self, model):
        self.modules, self.classes = recorded_modules(model), {}

    def __enter__(self):
        for cls in {type(module) for module, _ in self.modules.values()}:
            self.classes[cls] = cls.__call__
            cls.__call__ = self._noting(cls.__call__)

    def __exit__(self, *error):
        for cls, call in self.classes.items():
            cls.__call__ = call

    def _noting(self, call):
        @functools.wraps(call)
        def noting(module, *args, **kwargs):
            output = call(module, *args, **kwargs)
            for key, spec in self.modules.get(id(module), (None, []))[1]:
                held = COLLECTORS[-1].get(key)
                value = output[spec.index] if isinstance(output, tuple) else output
                if held is None or value is None:
                    continue
                if key == "hidden_states" and not held and spec.capture_initial_hidden_state:
                    held.append(args[0] if args else kwargs["hidden_states"])
                held.append(value)
            return output
        return noting


def capture_outputs(func=None, *, tie_last_hidden_states=True):
    """A decorator: the output has what the layers gave, where `output_hidden_states` or `output_attentions` asks for it."""
    if func is None:
        return functools.partial(capture_outputs, tie_last_hidden_states=tie_last_hidden_states)

    @functools.wraps(func)
    def wrapper(self, *args, **kwargs):
        return_dict = kwargs.pop("return_dict", getattr(self.config, "return_dict", True))
        def asked(name):
            return kwargs.get(name, getattr(self.config, name, False))
        by_attentions = ("cross_attentions", "mask_decoder_attentions")
        names = {k: "output_attentions" if k in by_attentions else f"output_{k}" for k in self._can_record_outputs or {}}
        keys = [k for k, name in names.items() if asked(name) not in (None, False)]
        COLLECTORS.append({k: [] for k in keys})
        try:
            if keys:
                with Recording(self):
                    outputs = func(self, *args, **kwargs)
            else:
                outputs = func(self, *args, **kwargs)
        finally:
            found = COLLECTORS.pop()
        for key, values in found.items():
            tie = getattr(self.config, "tie_last_hidden_states", None)
            if key == "hidden_states" and values and (tie_last_hidden_states if tie is None else tie) and hasattr(outputs, "last_hidden_state"):
                values[-1] = outputs.last_hidden_state
            if key == "hidden_states" and (chosen := selected_hidden_states(asked("output_hidden_states"))) is not None:
                chosen = resolve_hidden_states_indices(self, chosen, len(values))
                values = [v if i in chosen else None for i, v in enumerate(values)]
            outputs[key] = tuple(values)
        return outputs if return_dict is not False else outputs.to_tuple()
    return wrapper
