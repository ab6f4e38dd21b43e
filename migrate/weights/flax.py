"""Loads a PyTorch state dict into a live Flax NNX model.

The model tells all that is needed. Native layers are known by class, through the `state` of their rows; support layers say
`torch_state = {PyTorch's name: (attribute, axes that transpose PyTorch's tensor to it)}`, None for a name without a place.
`torch_names` on any module of the tree says which names, relative to that module, are names of the same leaf.
"""
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import jax.numpy as jnp
from flax import nnx

from migrate.tables import FOLDER, read, state_axes
from migrate.weights.loaded import Loaded, apply_aliases, cast, fit, same

Axes = tuple[int, ...] | None
State = Mapping[str, tuple[str, Axes] | None]
# What belongs to a run, not to a model.
NOT_STATE = (nnx.RngState, nnx.Intermediate, nnx.Cache, nnx.Perturbation)


@dataclass
class Leaf:
    """A variable of the model; `names` are those it may have in a state dict, the usual one first, `layouts` the axes of names that have others."""

    variable: nnx.Variable[Any]
    path: str
    axes: Axes
    names: list[str] = field(default_factory=list)
    layouts: dict[str, Axes] = field(default_factory=dict)


@dataclass
class Tree:
    """The leaves of a model by identity, names that have no place in it, and the names that stand for others."""

    leaves: dict[int, Leaf] = field(default_factory=dict)
    ignored: set[str] = field(default_factory=set)
    aliases: list[tuple[str, str]] = field(default_factory=list)


def load_state_dict(model: nnx.Module, state_dict: Mapping[str, Any], *, keep_dtype: bool = True) -> Loaded:
    """See migrate.weights.load."""
    tree = Tree()
    _walk(model, "", "", tree, state_dict)
    apply_aliases(tree.leaves.values(), tree.aliases)
    used: set[str] = set()
    missing, values = [], []
    for leaf in tree.leaves.values():
        found = [n for n in leaf.names if n in state_dict and n not in used]
        if found:
            values.append((leaf, jnp.asarray(_value(leaf, found, state_dict, keep_dtype))))
        elif leaf.variable.get_metadata().get("persistent", True):
            missing.append(leaf.names[0])
        used.update(found)
    for leaf, value in values:  # all of them fit
        leaf.variable.set_value(value)
    known = used | tree.ignored
    return Loaded(tuple(n for n in state_dict if n in known), tuple(missing), tuple(n for n in state_dict if n not in known))


def leaves(model: nnx.Module) -> list[Leaf]:
    """The variables that a state dict may fill, each once."""
    tree = Tree()
    _walk(model, "", "", tree, {})
    apply_aliases(tree.leaves.values(), tree.aliases)
    return list(tree.leaves.values())


def placed(model: nnx.Module, state_dict: Mapping[str, Any]) -> Iterator[tuple[Leaf, Callable[[], Any]]]:
    """Each leaf that `state_dict` has a tensor for, and what gives that tensor as the leaf would have it."""
    for leaf in leaves(model):
        if found := [n for n in leaf.names if n in state_dict]:
            yield leaf, partial(_value, leaf, found, state_dict, True)


def _value(leaf: Leaf, names: list[str], state_dict: Mapping[str, Any], keep_dtype: bool) -> Any:
    old = leaf.variable.get_value()
    arrays = [fit(n, leaf.path, state_dict[n], leaf.layouts.get(n, leaf.axes), jnp.shape(old)) for n in names]
    for name, other in zip(names[1:], arrays[1:], strict=True):
        if not same(arrays[0], other):
            raise ValueError(f"`{leaf.path}` is one leaf, but `{names[0]}` and `{name}` of the state dict differ")
    return cast(names[0], arrays[0], getattr(old, "dtype", None) or jnp.asarray(old).dtype) if keep_dtype else arrays[0]


# --- the walk ---

def _walk(
    node: Any, path: str, name: str, tree: Tree, state_dict: Mapping[str, Any], above: tuple[int, ...] = (),
    keys: tuple[str, ...] | None = None,
) -> None:
    """Adds the leaves below `node`, whose attribute path is `path` and whose name in PyTorch is `name`, both ending in a dot or empty.

    `keys` are the names that the elements of a list have in PyTorch where they are not numbers.
    """
    if id(node) in above:  # a child that knows its parent
        return
    above += (id(node),)
    if build := getattr(node, "build_from", None):  # a lazy layer: its tensors tell its size
        build({k.removeprefix(name): v for k, v in state_dict.items() if k.startswith(name)})
    places = _places(node, name, tree)
    for key, value in children(node):
        torch_key = keys[int(key)] if keys is not None and key.isdigit() else key
        if isinstance(value, nnx.Variable):
            if not isinstance(value, NOT_STATE) and not _is_second(node, key, value):
                leaf = tree.leaves.setdefault(id(value), Leaf(value, path + key, None))
                _name(leaf, name, places.get(key, [(torch_key, None)]), tree)
        elif transparent(node, key):
            named = getattr(node, "child_names", None) if isinstance(value, nnx.List) else None
            _walk(value, f"{path}{key}.", name, tree, state_dict, above, named)
        elif not isinstance(value, nnx.RngStream | nnx.Rngs):
            _walk(value, f"{path}{key}.", f"{name}{torch_key}.", tree, state_dict, above)


def _is_second(node: Any, key: str, value: Any) -> bool:
    """Whether an attribute with PyTorch's name holds what the layer keeps under its own: `conv.weight = conv.kernel`."""
    place = _state_of(type(node)).get(key) if isinstance(node, nnx.Pytree) else None
    return place is not None and place[0] != key and getattr(node, place[0], None) is value


def _places(node: Any, name: str, tree: Tree) -> dict[str, list[tuple[str, Axes]]]:
    """PyTorch's names and the axes for the attributes of a module; notes the names that it ignores and those that stand for others."""
    if not isinstance(node, nnx.Pytree):
        return {}
    tree.aliases += [(name + a, name + b) for a, b in (getattr(node, "torch_names", None) or {}).items()]
    places: dict[str, list[tuple[str, Axes]]] = {}
    for torch_name, place in _state_of(type(node)).items():
        if place is None:
            tree.ignored.add(name + torch_name)
        else:
            places.setdefault(place[0], []).append((torch_name, place[1]))
    return places


def _name(leaf: Leaf, prefix: str, places: list[tuple[str, Axes]], tree: Tree) -> None:
    for torch_name, axes in places:
        if not leaf.names:
            leaf.axes = axes
        elif leaf.axes != axes:
            leaf.layouts[prefix + torch_name] = axes
        leaf.names.append(prefix + torch_name)
        tree.ignored.discard(prefix + torch_name)


def children(node: Any) -> Iterator[tuple[str, Any]]:
    """What a module, list or dict holds, by name."""
    if isinstance(node, nnx.Pytree):
        held = ((k, v) for k, v in vars(node).items() if not k.startswith("_pytree__"))
        yield from ((k, v) for k, v in held if isinstance(v, nnx.Variable | nnx.Pytree | list | tuple | dict))
    elif isinstance(node, dict):
        yield from ((str(k), v) for k, v in node.items())
    elif isinstance(node, list | tuple):
        yield from ((str(i), v) for i, v in enumerate(node))


def transparent(node: Any, key: str) -> bool:
    """Children of this attribute are children of the node itself in PyTorch."""
    return key == ("layers" if isinstance(node, nnx.Sequential) else getattr(node, "torch_children", None))


def _state_of(cls: type) -> State:
    known = native()
    for base in cls.__mro__:
        if "torch_state" in vars(base):
            return base.torch_state  # type: ignore[attr-defined, no-any-return]
        if base in known:
            return known[base]
    return {}


@cache
def native() -> dict[type, State]:
    """The classes of flax.nnx that layers become, by the rows' templates, and where their tensors go."""
    found: dict[type, State] = {}
    rows = [row for path in sorted((FOLDER / "nn").glob("*.toml")) for row in read(path.read_text(encoding="utf-8"), path.name)]
    for row in rows:
        for variant in row.variants.get("flax", ()) if row.state else ():
            head = variant.to.partition("(")[0]
            if head.startswith("nnx.") and isinstance(cls := getattr(nnx, head[4:], None), type):
                found[cls] = {name: state_axes(text) for name, text in row.state.items()}
    return found
