"""Configurations as Hugging Face's models have them, without the hub."""
import copy
import dataclasses
from typing import ClassVar

GENERATION = frozenset(
    "max_length min_length do_sample use_cache early_stopping num_beams temperature top_k top_p typical_p repetition_penalty length_penalty "
    "no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids num_return_sequences output_scores return_dict_in_generate "
    "forced_bos_token_id forced_eos_token_id remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens "
    "epsilon_cutoff eta_cutoff encoder_repetition_penalty num_beam_groups diversity_penalty num_assistant_tokens "
    "num_assistant_tokens_schedule assistant_confidence_threshold assistant_lookbehind target_lookbehind".split()
)
LAYER_TYPES = {"mamba": "linear_attention", "attention": "full_attention"}
SCALED_ROPE = ("llama3", "yarn", "longrope")


def checked_field(*args, **limits):
    """Makes a field of a dataclass; that its value keeps to the limits is not checked."""
    return dataclasses.field


class AutoConfig:
    """Stands for the configuration of any model; one must be given."""

    def __init__(self, **kwargs):
        raise NotImplementedError("a configuration within another one that may be of any model: give it as an object")


class SubConfigSpec:
    """How a configuration within another one is made where none is given."""

    def __init__(self, config_class, model_type=None, init_kwargs=None, optional=False):
        self.config_class, self.init_kwargs, self.optional = config_class, init_kwargs or {}, optional

    def make(self, given):
        """The configuration: the one given, or one made from a dict or from the defaults."""
        return self.config_class(**(self.init_kwargs if given is None else given)) if given is None or isinstance(given, dict) else given


@dataclasses.dataclass(repr=False, eq=False, kw_only=True, init=False)
class PreTrainedConfig:
    """What a model is made from: annotated fields, given by keyword; other keywords become attributes as well."""

    model_type: ClassVar = ""
    attribute_map: ClassVar = {}
    sub_configs_defaults: ClassVar = {}
    default_theta: ClassVar = 10_000.0
    default_rope_type: ClassVar = "default"
    output_hidden_states: bool = False
    output_attentions: bool = False
    return_dict: bool = True
    dtype: object = None
    chunk_size_feed_forward: int = 0
    is_encoder_decoder: bool = False
    architectures: list | None = None
    id2label: dict | None = None
    label2id: dict | None = None
    problem_type: str | None = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(cls, repr=False, eq=False, kw_only=True, init=False)

    def __init__(self, **kwargs):
        for field in dataclasses.fields(self):
            default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            value = kwargs.pop(field.name, default)
            if value is dataclasses.MISSING:
                raise TypeError(f"{type(self).__name__} needs {field.name}")
            setattr(self, field.name, value)
        self.__post_init__(**kwargs)
        self.validate_architecture()

    def __post_init__(self, **kwargs):
        if "backbone_config" in self.sub_configs_defaults:
            for name in ("use_timm_backbone", "use_pretrained_backbone", "backbone_kwargs"):
                kwargs.pop(name, None)
            if kwargs.pop("backbone", None) is not None:
                raise NotImplementedError("a backbone that is downloaded: give its configuration as backbone_config")
        for name, spec in self.sub_configs_defaults.items():
            spec = spec if isinstance(spec, SubConfigSpec) else SubConfigSpec(spec)
            if getattr(self, name) is not None or not spec.optional:
                setattr(self, name, spec.make(getattr(self, name)))
        if self.id2label is None:
            self.num_labels = kwargs.pop("num_labels", 2)
        self.id2label = {int(k): v for k, v in self.id2label.items()}
        if hasattr(self, "rope_parameters"):
            kwargs = self.convert_rope_params_to_dict(**kwargs)
        self._attn_implementation = kwargs.pop("attn_implementation", None)
        self._experts_implementation = kwargs.pop("experts_implementation", None)
        for name, value in kwargs.items():
            if name not in GENERATION and name not in ("num_labels", "torch_dtype"):
                setattr(self, name, value)
        if set(LAYER_TYPES) & set(getattr(self, "layer_types", None) or ()):
            self.layer_types = [LAYER_TYPES.get(t, t) for t in self.layer_types]

    def __getattr__(self, name):
        mapped = type(self).attribute_map.get(name)
        if mapped is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return getattr(self, mapped)

    def __setattr__(self, name, value):
        super().__setattr__(type(self).attribute_map.get(name, name), value)

    @property
    def num_labels(self):
        return None if self.id2label is None else len(self.id2label)

    @num_labels.setter
    def num_labels(self, number):
        if self.id2label is None or len(self.id2label) != number:
            self.id2label = {i: f"LABEL_{i}" for i in range(number)}
            self.label2id = {v: k for k, v in self.id2label.items()}

    def nested_rope_parameter_keys(self, rope_parameters):
        """The kinds of layers for which there are parameters of their own."""
        labels = getattr(self, "_rope_type_labels", None) or getattr(self, "layer_types", None) or ()
        return [key for key in rope_parameters if key in labels]

    def convert_rope_params_to_dict(self, **kwargs):
        """Gathers what is said of rotary embeddings in `rope_parameters`; returns the keywords that are left."""
        self.rope_parameters = kwargs.pop("rope_scaling", None) or self.rope_parameters or {}
        theta = kwargs.pop("rope_theta", getattr(self, "rope_theta", self.default_theta))
        partial = kwargs.pop("partial_rotary_factor", getattr(self, "partial_rotary_factor", None))
        for part in [self.rope_parameters[k] for k in self.nested_rope_parameter_keys(self.rope_parameters)] or [self.rope_parameters]:
            if part is not None:
                part.setdefault("rope_theta", theta)
                part.update({} if partial is None else {"partial_rotary_factor": part.get("partial_rotary_factor", partial)})
        self.standardize_rope_params()
        return kwargs

    def standardize_rope_params(self):
        """Completes `rope_parameters`."""
        rope = getattr(self, "rope_parameters", None) or {}
        nested = self.nested_rope_parameter_keys(rope)
        for part in [rope[k] for k in nested] or [rope]:
            if part is None or not (rope or getattr(self, "rope_theta", None)):
                continue
            part.setdefault("rope_type", part.get("type", "default"))
            part.setdefault("rope_theta", getattr(self, "rope_theta", None))
            if getattr(self, "partial_rotary_factor", None) is not None:
                part.setdefault("partial_rotary_factor", self.partial_rotary_factor)
            if part["rope_type"] == "default":
                part["rope_type"] = self.default_rope_type
            if part["rope_type"] in SCALED_ROPE and not nested and hasattr(self, "original_max_position_embeddings"):
                part["original_max_position_embeddings"] = self.original_max_position_embeddings
            elif part["rope_type"] in SCALED_ROPE:
                part.setdefault("original_max_position_embeddings", self.max_position_embeddings)
        self.rope_parameters = rope

    def validate_architecture(self):
        """Raises where the numbers do not fit each other."""

    def get_text_config(self, decoder=None, encoder=None):
        """The part of a composite configuration that is about text; of an old flat one, the decoder's or encoder's view."""
        both = decoder == encoder
        names = [*(["text_encoder"] if both or not decoder else []), *(["decoder", "generator", "text_config"] if both or decoder else [])]
        found = [c for n in names if (c := vars(self).get(n)) is not None]
        if found or both or not self.is_encoder_decoder:
            return found[0] if found else self
        prefix, view = "decoder_" if decoder else "encoder_", copy.copy(self)
        renamed = {"layers": "num_hidden_layers", "attention_heads": "num_attention_heads"}
        for name, value in vars(self).items():
            if name.startswith(prefix):
                setattr(view, renamed.get(name[8:], name[8:]), value)
        return view

    def to_dict(self):
        """The attributes as a dict; configurations within become dicts."""
        return {k: v.to_dict() if isinstance(v, PreTrainedConfig) else copy.copy(v) for k, v in vars(self).items()}
