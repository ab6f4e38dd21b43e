"""A converted Flax model as the checker sees it."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
from flax import nnx

from migrate.check.gradient import Compiled, fixed, split_inputs, weighted
from migrate.check.jax_steps import descend
from migrate.weights import flax as weights
from migrate.weights.load import load_state_dict


class _OtherGraph(Exception):
    """A run made or removed parts of the model: `nnx.jit` keeps that, and copies all weights for it."""


class FlaxModel:
    """A live `nnx.Module`, or a plain function."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.is_module = isinstance(model, nnx.Module)
        self.mode = "eval"
        self._slopes, self._graph = Compiled(), None

    def load(self, state: dict[str, Any]) -> Any:
        """Loads a state dict. Values that are about to be replaced go first: a model need not be in memory twice."""
        for leaf in weights.leaves(self.model) if self.is_module else ():
            value = leaf.variable.get_value()
            if isinstance(value, jax.Array) and any(n in state for n in leaf.names):
                leaf.variable.set_value(jax.ShapeDtypeStruct(value.shape, value.dtype))
        return load_state_dict(self.model, state)

    def variables(self) -> list[tuple[str, tuple[str, ...], Any]]:
        """Path, PyTorch's names and value of each leaf that a state dict fills."""
        return [(v.path, tuple(v.names), v.variable.get_value()) for v in weights.leaves(self.model)] if self.is_module else []

    def kept(self) -> dict[str, Any]:
        """The values of all leaves; arrays of JAX never change, so that nothing is copied."""
        return {v.path: v.variable.get_value() for v in weights.leaves(self.model)} if self.is_module else {}

    def restore(self, kept: dict[str, Any]) -> None:
        """Brings back what `kept` gave."""
        for leaf in weights.leaves(self.model) if self.is_module else ():
            if leaf.path in kept:
                leaf.variable.set_value(kept[leaf.path])

    def placed(self, state: Any) -> dict[tuple[str, ...], Callable[[], Any]]:
        """For the names of each leaf that `state` has a tensor for, what gives the tensor in the model's own layout."""
        return {tuple(leaf.names): read for leaf, read in weights.placed(self.model, state)} if self.is_module else {}

    def set_training(self, training: bool) -> None:
        """Train or eval mode."""
        self.mode = "train" if training else "eval"
        if self.is_module:
            self.model.train() if training else self.model.eval()

    def call(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Runs the model, or one of its submodules, in the mode that it is in."""
        return module(*args, **kwargs)

    def modules(self, model: Any) -> dict[str, Any]:
        """All submodules by PyTorch's name, the root under ""."""
        found: dict[str, Any] = {}
        seen: set[int] = set()
        if self.is_module:
            for name, module in _walk(model, ""):
                if id(module) not in seen:
                    seen.add(id(module))
                    found.setdefault(name, module)
        return found

    def traced(self, body: Callable[[Any, Any], list[Any]]) -> Callable[[Any], list[Any]]:
        """`body(model, arrays)` under jit; what it changes in the model is kept."""
        if not self.is_module:
            plain = jax.jit(lambda arrays: body(self.model, arrays))
            return lambda arrays: plain(arrays)
        graph, _ = nnx.split(self.model)
        changed: list[int] = []

        def pure(state: Any, arrays: Any) -> Any:
            model = nnx.merge(graph, state, copy=True)
            out = body(model, arrays)
            graph_after, after = nnx.split(model)
            if graph_after != graph:
                raise _OtherGraph
            pairs = list(zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True))
            changed[:] = [i for i, (a, b) in enumerate(pairs) if a is not b]
            return out, [pairs[i][1] for i in changed]

        compiled = jax.jit(pure)
        general = nnx.jit(body)

        def run(arrays: Any) -> list[Any]:
            state = nnx.state(self.model)
            try:
                out, new = compiled(state, arrays)
            except _OtherGraph:
                return general(self.model, arrays)  # type: ignore[no-any-return]
            if changed:
                flat, tree = jax.tree.flatten(state)
                for i, value in zip(changed, new, strict=True):
                    flat[i] = value
                nnx.update(self.model, jax.tree.unflatten(tree, flat))
            return out  # type: ignore[no-any-return]

        return run

    def functional(self, body: Callable[[Any, Any], Any]) -> tuple[Callable[[Any, Any], Any], Any]:
        """`body(model, arrays)` as a function of the weights and arrays, and the weights."""
        if not self.is_module:
            return lambda _, arrays: body(self.model, arrays), ()
        graph, state = nnx.split(self.model)
        return lambda state, arrays: body(nnx.merge(graph, state, copy=True), arrays), state

    def gradients(self, args: Any, kwargs: Any, restart: Callable[[], None]) -> tuple[dict[str, Any], list[Any]]:
        """Gradients of the weighted sum of the outputs: by path of the parameter, and for each leaf of the inputs."""
        graph, params, rest = nnx.split(self.model, nnx.Param, ...) if self.is_module else (None, {}, None)
        flat, where, rebuild = split_inputs((args, kwargs))

        def loss(params: Any, floats: Any, rest: Any) -> Any:
            model = nnx.merge(graph, params, rest, copy=True) if self.is_module else self.model
            a, k = rebuild(floats)
            return weighted(model(*a, **k))

        if graph != self._graph:
            self._graph, self._slopes = graph, Compiled()
        key = (self.mode, fixed(flat, where))
        by_param, by_input = self._slopes.run(key, jax.grad(loss, argnums=(0, 1)), restart, params, [flat[i] for i in where], rest)
        found = {".".join(map(str, path)): v.get_value() for path, v in nnx.to_flat_state(by_param)} if self.is_module else {}
        return found, [by_input[where.index(i)] if i in where else None for i in range(len(flat))]

    def train_steps(self, args: Any, kwargs: Any, optimiser: Any, count: int) -> tuple[list[Any], list[Any]]:
        """Trains in place, in train mode; the losses, and the random draws of one step."""
        graph, params, rest = nnx.split(self.model, nnx.Param, ...)

        def loss(params: Any, rest: Any) -> Any:
            model = nnx.merge(graph, params, rest, copy=True)
            total = weighted(model(*args, **kwargs))
            return total, nnx.split(model, nnx.Param, ...)[2]

        gradients = jax.value_and_grad(loss, has_aux=True)
        params, rest, losses, log = descend(gradients, params, rest, optimiser, count)
        nnx.update(self.model, params, rest)
        return losses, log

    def parameters(self) -> dict[str, Any]:
        """Values of the parameters under the paths that `gradients` uses, with PyTorch's names."""
        if not self.is_module:
            return {}
        names = {id(v.variable): tuple(v.names) for v in weights.leaves(self.model)}
        live = dict(nnx.to_flat_state(nnx.state(self.model, nnx.Param)))
        variables = dict(nnx.iter_graph(self.model))
        return {".".join(map(str, p)): (names.get(id(variables.get(p)), ()), v.get_value()) for p, v in live.items()}


def _walk(node: Any, name: str, above: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Modules below a node with their names in PyTorch, as the weights are named."""
    if id(node) in above:
        return
    if isinstance(node, nnx.Module):
        yield name, node
    for key, value in weights.children(node):
        if not isinstance(value, nnx.Variable | nnx.RngStream | nnx.Rngs):
            inner = name if weights.transparent(node, key) else f"{name}.{key}" if name else key
            yield from _walk(value, inner, (*above, id(node)))
