"""A converted Flax model as the checker sees it."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from migrate.check import leaves
from migrate.check.oracle import cotangent
from migrate.weights import flax as weights
from migrate.weights.load import load_state_dict


class FlaxModel:
    """A live `nnx.Module`, or a plain function."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.is_module = isinstance(model, nnx.Module)

    def load(self, state: dict[str, Any]) -> Any:
        """Loads a state dict."""
        return load_state_dict(self.model, state)

    def variables(self) -> list[tuple[str, tuple[str, ...], Any]]:
        """Path, PyTorch's names and value of each leaf that a state dict fills."""
        return [(v.path, tuple(v.names), v.variable.get_value()) for v in weights.leaves(self.model)] if self.is_module else []

    def set_training(self, training: bool) -> None:
        """Train or eval mode."""
        if self.is_module:
            self.model.train() if training else self.model.eval()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model in the mode that it is in."""
        return self.model(*args, **kwargs)

    def call(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Runs a submodule in eval mode."""
        return module(*args, **kwargs)

    def modules(self) -> dict[str, Any]:
        """All submodules by PyTorch's name, the root under ""."""
        found: dict[str, Any] = {}
        seen: set[int] = set()
        if self.is_module:
            for name, module in _walk(self.model, ""):
                if id(module) not in seen:
                    seen.add(id(module))
                    found.setdefault(name, module)
        return found

    def gradients(self, args: Any, kwargs: Any) -> tuple[dict[str, Any], list[Any]]:
        """Gradients of the weighted sum of the outputs: by path of the parameter, and for each leaf of the inputs."""
        graph, params, rest = nnx.split(self.model, nnx.Param, ...) if self.is_module else (None, {}, None)
        flat, where, rebuild = split_inputs((args, kwargs))

        def loss(params: Any, floats: Any) -> Any:
            model = nnx.merge(graph, params, rest, copy=True) if self.is_module else self.model
            a, k = rebuild(floats)
            return weighted(model(*a, **k))

        by_param, by_input = jax.grad(loss, argnums=(0, 1))(params, [flat[i] for i in where])
        found = {".".join(map(str, path)): v.get_value() for path, v in nnx.to_flat_state(by_param)} if self.is_module else {}
        return found, [by_input[where.index(i)] if i in where else None for i in range(len(flat))]

    def parameters(self) -> dict[str, Any]:
        """Values of the parameters under the paths that `gradients` uses, with PyTorch's names."""
        if not self.is_module:
            return {}
        names = {id(v.variable): tuple(v.names) for v in weights.leaves(self.model)}
        live = dict(nnx.to_flat_state(nnx.state(self.model, nnx.Param)))
        variables = dict(nnx.iter_graph(self.model))
        return {".".join(map(str, p)): (names.get(id(variables.get(p)), ()), v.get_value()) for p, v in live.items()}

    def jitted(self, args: Any, kwargs: Any) -> Any:
        """The outputs under `nnx.jit`; arrays are traced, the rest is static."""
        flat, where, rebuild = split_inputs((args, kwargs), every=True)
        arrays = [flat[i] for i in where]

        def call(model: Any, arrays: Any) -> list[Any]:
            a, k = rebuild(arrays)
            return [v for _, v in leaves.walk(model(*a, **k))]

        if self.is_module:
            return nnx.jit(call)(self.model, arrays)
        return jax.jit(lambda arrays: call(self.model, arrays))(arrays)


def split_inputs(values: Any, every: bool = False) -> tuple[list[Any], list[int], Any]:
    """The leaves of the inputs, which of them are floating (or, with `every`, arrays), and a function that puts new values for
    those in place."""
    flat = [v for _, v in leaves.walk(values)]
    where = [i for i, v in enumerate(flat) if isinstance(v, jax.Array) and (every or jnp.issubdtype(v.dtype, jnp.floating))]

    def rebuild(new: Any) -> Any:
        given = iter(new)
        order = iter(range(len(flat)))

        def one(v: Any) -> Any:
            i = next(order)
            return next(given) if i in where else v

        return replace(values, one)

    return flat, where, rebuild


def replace(value: Any, change: Any) -> Any:
    """The nested value with `change` applied to each of its leaves, in the order of `leaves.walk`."""
    if value is None or isinstance(value, str | bytes):
        return value
    if isinstance(value, dict):
        return {k: replace(v, change) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(replace(v, change) for v in value)
    return change(value)


def weighted(output: Any) -> Any:
    """The number whose gradient is taken; the PyTorch side makes the same one."""
    total: Any = 0.0
    for i, (_, v) in enumerate(leaves.walk(output)):
        if hasattr(v, "dtype") and jnp.issubdtype(v.dtype, jnp.floating):
            total = total + jnp.sum(jnp.where(jnp.isfinite(v), v, 0.0) * jnp.asarray(cotangent(i, v.shape), v.dtype))
    return total


def _walk(node: Any, name: str, above: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Modules below a node with their names in PyTorch, as the weights are named."""
    if id(node) in above:
        return
    if isinstance(node, nnx.Module):
        yield name, node
    for key, value in weights._children(node):
        if not isinstance(value, nnx.Variable | nnx.RngStream | nnx.Rngs):
            inner = name if weights._transparent(node, key) else f"{name}.{key}" if name else key
            yield from _walk(value, inner, (*above, id(node)))
