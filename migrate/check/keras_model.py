"""A converted Keras model as the checker sees it."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import keras
import numpy as np

from migrate.check.gradient import Compiled, fixed, split_inputs, weighted
from migrate.check.jax_steps import descend
from migrate.weights import keras as weights
from migrate.weights.load import load_state_dict


class KerasModel:
    """A live Keras model or layer, or a plain function."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.is_module = isinstance(model, keras.Layer)
        self.mode = "eval"
        self._slopes = Compiled()

    def load(self, state: dict[str, Any]) -> Any:
        """Loads a state dict."""
        return load_state_dict(self.model, state)

    def variables(self) -> list[tuple[str, tuple[str, ...], Any]]:
        """Path, PyTorch's names and value of each leaf that a state dict fills."""
        return [(v.path, tuple(v.names), np.asarray(v.variable.value)) for v in weights.leaves(self.model)] if self.is_module else []

    def kept(self) -> dict[str, Any]:
        """The values of all leaves; arrays of JAX never change, so that nothing is copied."""
        return {v.path: v.variable.value for v in weights.leaves(self.model)} if self.is_module else {}

    def restore(self, kept: dict[str, Any]) -> None:
        """Brings back what `kept` gave."""
        for leaf in weights.leaves(self.model) if self.is_module else ():
            if leaf.path in kept:
                leaf.variable.assign(kept[leaf.path])

    def placed(self, state: Any) -> dict[tuple[str, ...], Callable[[], Any]]:
        """For the names of each leaf that `state` has a tensor for, what gives the tensor in the model's own layout."""
        return {tuple(leaf.names): read for leaf, read in weights.placed(self.model, state)} if self.is_module else {}

    def set_training(self, training: bool) -> None:
        """Train or eval mode."""
        self.mode = "train" if training else "eval"
        if hasattr(self.model, "train" if training else "eval"):
            self.model.train() if training else self.model.eval()

    def call(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Runs the model in the mode that it is in, or one of its submodules."""
        training = {"training": self.mode == "train"} if module is self.model and self.is_module else {}
        return module(*args, **kwargs, **training)

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
        variables = list(self.model.variables) if self.is_module else []

        def pure(values: Any, arrays: Any) -> Any:
            with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))) as scope:
                out = body(self.model, arrays)
                after = [scope.get_current_value(v) for v in variables]
            return out, [b if a is None else a for a, b in zip(after, values, strict=True)]

        compiled = jax.jit(pure)

        def run(arrays: Any) -> list[Any]:
            out, after = compiled([v.value for v in variables], arrays)
            for variable, value in zip(variables, after, strict=True):
                variable.assign(value)
            return out  # type: ignore[no-any-return]

        return run

    def functional(self, body: Callable[[Any, Any], Any]) -> tuple[Callable[[Any, Any], Any], Any]:
        """`body(model, arrays)` as a function of the weights and arrays, and the weights."""
        variables = list(self.model.variables) if self.is_module else []

        def pure(values: Any, arrays: Any) -> Any:
            with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
                return body(self.model, arrays)

        return pure, [v.value for v in variables]

    def gradients(self, args: Any, kwargs: Any, restart: Callable[[], None]) -> tuple[dict[str, Any], list[Any]]:
        """Gradients of the weighted sum of the outputs: by path of the parameter, and for each leaf of the inputs."""
        flat, where, rebuild = split_inputs((args, kwargs))

        def loss(params: Any, floats: Any, rest: Any) -> Any:
            a, k = rebuild(floats)
            return weighted(self._stateless(params, rest, a, k))

        params = [v.value for v in self.model.trainable_variables] if self.is_module else []
        rest = [v.value for v in self.model.non_trainable_variables] if self.is_module else []
        key = (self.mode, fixed(flat, where))
        by_param, by_input = self._slopes.run(key, jax.grad(loss, argnums=(0, 1)), restart, params, [flat[i] for i in where], rest)
        found = dict(zip(self._paths(), by_param, strict=True))
        return found, [by_input[where.index(i)] if i in where else None for i in range(len(flat))]

    def train_steps(self, args: Any, kwargs: Any, optimiser: Any, count: int) -> tuple[list[Any], list[Any]]:
        """Trains in place, in train mode; the losses, and the random draws of one step."""
        trained, others = self.model.trainable_variables, self.model.non_trainable_variables

        def loss(params: Any, rest: Any) -> Any:
            output, after = self.model.stateless_call(params, rest, *args, **kwargs, training=True)
            return weighted(output), after

        start = ([v.value for v in trained], [v.value for v in others])
        params, rest, losses, log = descend(jax.value_and_grad(loss, has_aux=True), *start, optimiser, count)
        for variable, value in zip([*trained, *others], [*params, *rest], strict=True):
            variable.assign(value)
        return losses, log

    def parameters(self) -> dict[str, Any]:
        """Values of the parameters under the paths that `gradients` uses, with PyTorch's names."""
        if not self.is_module:
            return {}
        names = {id(v.variable): tuple(v.names) for v in weights.leaves(self.model)}
        return {p: (names.get(id(v), ()), np.asarray(v.value)) for p, v in zip(self._paths(), self.model.trainable_variables, strict=True)}

    def _stateless(self, params: Any, rest: Any, args: Any, kwargs: Any) -> Any:
        if not self.is_module:
            return self.model(*args, **kwargs)
        output, _ = self.model.stateless_call(params, rest, *args, **kwargs, training=self.mode == "train")
        return output

    def _paths(self) -> list[str]:
        """A name for each trainable variable: its place in the model, or what Keras calls it."""
        if not self.is_module:
            return []
        places = {id(v.variable): v.path for v in weights.leaves(self.model)}
        return [places.get(id(v), f"{i}:{v.path}") for i, v in enumerate(self.model.trainable_variables)]


def _walk(node: Any, name: str, above: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Layers below a node with their names in PyTorch, as the weights are named."""
    if id(node) in above:
        return
    if isinstance(node, keras.Layer):
        yield name, node
    for key, value in weights.children(node):
        if isinstance(value, keras.Layer | list | tuple | dict):
            inner = name if key == getattr(node, "torch_children", None) else f"{name}.{key}" if name else key
            yield from _walk(value, inner, (*above, id(node)))
