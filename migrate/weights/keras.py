"""Loads a PyTorch state dict into a live Keras model.

Modules and support layers are walked by attribute: their variables have PyTorch's names and layouts, or `torch_state` says {PyTorch's
name: (attribute, axes that transpose PyTorch's tensor to it)}, None for a name without a place. Layers of Keras are known by class.
`torch_names` on any module of the tree says which names, relative to that module, are names of the same leaf.
"""
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import keras
import numpy as np

from migrate.weights.loaded import Loaded, apply_aliases, cast, fit, same, to_numpy

Axes = tuple[int, ...] | None
State = Mapping[str, tuple[str, Axes] | None]
SCALES: State = {"weight": ("gamma", None), "bias": ("beta", None)}
RUNNING: State = {"running_mean": ("moving_mean", None), "running_var": ("moving_variance", None), "num_batches_tracked": None}


def _kernel(rank: int) -> State:
    """A kernel that PyTorch has as (a, b, *size) and Keras as (*size, b, a)."""
    return {"weight": ("kernel", (*range(2, rank + 2), 1, 0)), "bias": ("bias", None)}


NATIVE: Mapping[type, State] = {
    keras.layers.Dense: _kernel(0),
    keras.layers.Conv1D: _kernel(1),
    keras.layers.Conv2D: _kernel(2),
    keras.layers.Conv3D: _kernel(3),
    keras.layers.Conv1DTranspose: _kernel(1),
    keras.layers.Conv2DTranspose: _kernel(2),
    keras.layers.Conv3DTranspose: _kernel(3),
    keras.layers.Embedding: {"weight": ("embeddings", None)},
    keras.layers.LayerNormalization: SCALES,
    keras.layers.GroupNormalization: SCALES,
    keras.layers.RMSNormalization: {"weight": ("scale", None)},
    keras.layers.BatchNormalization: {**SCALES, **RUNNING},
    keras.layers.PReLU: {"weight": ("alpha", None)},
}


@dataclass
class Leaf:
    """A variable of the model; `names` are those it may have in a state dict, the usual one first."""

    variable: keras.Variable
    path: str
    axes: Axes
    names: list[str] = field(default_factory=list)


@dataclass
class Tree:
    """The leaves of a model by identity, names that have no place in it, and the names that stand for others."""

    state_dict: Mapping[str, Any]
    leaves: dict[int, Leaf] = field(default_factory=dict)
    ignored: set[str] = field(default_factory=set)
    aliases: list[tuple[str, str]] = field(default_factory=list)

    def add(self, variable: keras.Variable, path: str, name: str, axes: Axes) -> None:
        """Notes that `variable` is called `name` in PyTorch."""
        leaf = self.leaves.setdefault(id(variable), Leaf(variable, path, axes))
        leaf.names.append(name)


def load_state_dict(model: keras.Layer, state_dict: Mapping[str, Any], *, keep_dtype: bool = True) -> Loaded:
    """See migrate.weights.load."""
    if not keep_dtype:
        raise ValueError("variables of Keras keep the dtype they were made with: make the model in the wanted dtype instead")
    tree = Tree(state_dict)
    _walk(model, "", "", tree, ())
    apply_aliases(tree.leaves.values(), tree.aliases)
    used: set[str] = set()
    missing = []
    for leaf in tree.leaves.values():
        found = [n for n in leaf.names if n in state_dict and n not in used]
        if not found and getattr(leaf.variable, "persistent", True):
            missing.append(leaf.names[0])
        if found:
            leaf.variable.assign(_value(leaf, found, state_dict))
        used.update(found)
    known = used | tree.ignored
    return Loaded(tuple(n for n in state_dict if n in known), tuple(missing), tuple(n for n in state_dict if n not in known))


def leaves(model: keras.Layer) -> list[Leaf]:
    """The variables that a state dict may fill, each once."""
    tree = Tree({})
    _walk(model, "", "", tree, ())
    apply_aliases(tree.leaves.values(), tree.aliases)
    return list(tree.leaves.values())


def placed(model: keras.Layer, state_dict: Mapping[str, Any]) -> Iterator[tuple[Leaf, Callable[[], Any]]]:
    """Each leaf that `state_dict` has a tensor for, and what gives that tensor as the leaf would have it."""
    for leaf in leaves(model):
        if found := [n for n in leaf.names if n in state_dict]:
            yield leaf, partial(_value, leaf, found, state_dict)


def _value(leaf: Leaf, names: list[str], state_dict: Mapping[str, Any]) -> Any:
    arrays = [fit(n, leaf.path, state_dict[n], leaf.axes, tuple(leaf.variable.shape)) for n in names]
    for name, other in zip(names[1:], arrays[1:], strict=True):
        if not same(arrays[0], other):
            raise ValueError(f"`{leaf.path}` is one leaf, but `{names[0]}` and `{name}` of the state dict differ")
    return cast(names[0], arrays[0], np.dtype(leaf.variable.value.dtype))


# --- the walk ---

def _walk(node: Any, path: str, name: str, tree: Tree, above: tuple[int, ...]) -> None:
    """Adds the leaves below `node`, whose attribute path is `path` and whose name in PyTorch is `name`, both ending in a dot or empty."""
    if id(node) in above:  # a child that knows its parent
        return
    above += (id(node),)
    if build := getattr(node, "build_from", None):  # a lazy layer: its tensors tell its size
        build({k: to_numpy(v) for k, v in _below(tree.state_dict, name).items()})
    tree.aliases += [(name + a, name + b) for a, b in (getattr(node, "torch_names", None) or {}).items()]
    state = _state_of(type(node))
    tree.ignored |= {name + k for k, place in state.items() if place is None}
    native = isinstance(node, tuple(NATIVE)) and "torch_state" not in vars(type(node))
    if native and not node.built:
        _build(node, _below(tree.state_dict, name))
    places: dict[str, list[tuple[str, Axes]]] = {}
    for torch_name, place in state.items():
        if place is not None:
            places.setdefault(place[0], []).append((torch_name, place[1]))
    held = ((attribute, getattr(node, attribute, None)) for attribute in places) if native else children(node)
    for key, value in held:
        if isinstance(value, keras.Variable):
            for torch_name, axes in places.get(key, [(key, None)]):
                tree.add(value, path + key, name + torch_name, axes)
        elif isinstance(value, keras.Layer | list | tuple | dict):
            inner = name if key == getattr(node, "torch_children", None) else name + key + "."
            _walk(value, path + key + ".", inner, tree, above)


def _below(state_dict: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {k.removeprefix(name): v for k, v in state_dict.items() if k.startswith(name)}


def children(node: Any) -> Iterator[tuple[str, Any]]:
    """What a module, list or dict holds, by name."""
    if isinstance(node, keras.Sequential):
        yield from ((str(i), v) for i, v in enumerate(node.layers))
    elif isinstance(node, keras.Layer):
        yield from ((k, v) for k, v in vars(node).items() if k not in _internal())
    elif isinstance(node, dict):
        yield from ((str(k), v) for k, v in node.items())
    elif isinstance(node, list | tuple):
        yield from ((str(i), v) for i, v in enumerate(node))


@cache
def _internal() -> frozenset[str]:
    """The attributes that Keras itself gives a model."""
    return frozenset(vars(keras.Model())) | {"optimizer", "history"}


def _state_of(cls: type) -> State:
    for base in cls.__mro__:
        if "torch_state" in vars(base):
            return base.torch_state  # type: ignore[attr-defined, no-any-return]
        if base in NATIVE:
            return NATIVE[base]
    return {}


# --- layers of Keras that have no variables yet ---

def _build(layer: Any, tensors: Mapping[str, Any]) -> None:
    """Gives a layer its variables, where its tensors tell the shape of its input."""
    if "weight" not in tensors:
        return
    shape = to_numpy(tensors["weight"]).shape
    if isinstance(layer, keras.layers.Embedding):
        layer.build(None)
    elif isinstance(layer, keras.layers.Dense):
        layer.build((None, shape[1]))
    elif isinstance(layer, keras.layers.LayerNormalization | keras.layers.RMSNormalization):
        layer.build((None, *shape))
    elif hasattr(layer, "kernel_size"):
        channels = shape[0] if "Transpose" in type(layer).__name__ else shape[1] * layer.groups
        size = (None,) * (len(shape) - 2)
        layer.build((None, channels, *size) if layer.data_format == "channels_first" else (None, *size, channels))
    else:
        raise ValueError(f"`{layer.name}` ({type(layer).__name__}) has no variables yet: call the model once before loading")
