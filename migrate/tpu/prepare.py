"""A converted model as a pure function of its weights and inputs, with their shapes: all that a compiler needs. Nothing is computed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from migrate.check import leaves
from migrate.check.jax_run import split
from migrate.check.jax_tasks import DTYPES
from migrate.check.spec import Spec, parse

RATE = 1e-3


@dataclass
class Prepared:
    """`function(weights, inputs)`; `weights` and `inputs` are trees of arrays or of their shapes."""

    function: Callable[[Any, Any], Any]
    weights: Any
    inputs: Any


def arguments(specs: list[str], own: Any) -> tuple[Any, Any]:
    """Arguments of the call: shapes for what is an array, the values of the rest. Without specs they are those of the file's own."""
    if not specs:
        return (tuple(own) if isinstance(own, list | tuple) else (own,)), {}
    parsed = [parse(s) for s in specs]
    return tuple(_argument(s) for s in parsed if not s.keyword), {s.keyword: _argument(s) for s in parsed if s.keyword}


def _argument(spec: Spec) -> Any:
    if not spec.dtype:
        return spec.value
    dtype = DTYPES.get(spec.dtype, spec.dtype)
    return jax.ShapeDtypeStruct(spec.shape, dtype)


def prepare(model: Any, given: tuple[Any, Any], target: str, train: bool) -> Prepared:
    """The forward pass in eval mode; with `train` a step of plain gradient descent, in train mode."""
    inputs, rebuild = split(given)
    if target == "keras":
        return _keras(model, inputs, rebuild, train)
    return _flax(model, inputs, rebuild, train)


def _flax(model: Any, inputs: Any, rebuild: Any, train: bool) -> Prepared:
    from flax import nnx

    if not isinstance(model, nnx.Module):
        return Prepared(lambda _, arrays: _arrays(_call(model, rebuild(arrays))), [], inputs)
    model.train() if train else model.eval()
    graph, params, rest = nnx.split(model, nnx.Param, ...)

    def run(params: Any, rest: Any, arrays: Any) -> Any:
        live = nnx.merge(graph, params, rest, copy=True)  # what it writes to belongs to this trace
        out = _arrays(_call(live, rebuild(arrays)))
        return out, nnx.split(live, nnx.Param, ...)[2]

    def forward(weights: Any, arrays: Any) -> Any:
        return run(weights[0], weights[1], arrays)[0]

    def step(weights: Any, arrays: Any) -> Any:
        def loss(params: Any) -> Any:
            out, after = run(params, weights[1], arrays)
            return _total(out), after

        (value, after), grads = jax.value_and_grad(loss, has_aux=True)(weights[0])
        return value, jax.tree.map(lambda p, g: p - RATE * g, weights[0], grads), after

    return Prepared(step if train else forward, (params, rest), inputs)


def _keras(model: Any, inputs: Any, rebuild: Any, train: bool) -> Prepared:
    import keras

    if not isinstance(model, keras.Layer):
        return Prepared(lambda _, arrays: _arrays(_call(model, rebuild(arrays))), [], inputs)
    if any(not layer.built for layer in model._flatten_layers()):
        _call(model, rebuild([jnp.zeros(v.shape, v.dtype) for v in inputs]), training=False)
    params, rest = list(model.trainable_variables), list(model.non_trainable_variables)

    def run(weights: Any, others: Any, arrays: Any) -> Any:
        mapping = list(zip(params + rest, [*weights, *others], strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            out = _arrays(_call(model, rebuild(arrays), training=train))
            return out, [scope.get_current_value(v) for v in rest]

    def forward(weights: Any, arrays: Any) -> Any:
        return run(weights[0], weights[1], arrays)[0]

    def step(weights: Any, arrays: Any) -> Any:
        def loss(trained: Any) -> Any:
            out, after = run(trained, weights[1], arrays)
            return _total(out), after

        (value, after), grads = jax.value_and_grad(loss, has_aux=True)(weights[0])
        return value, [p - RATE * g for p, g in zip(weights[0], grads, strict=True)], after

    return Prepared(step if train else forward, ([v.value for v in params], [v.value for v in rest]), inputs)


def _call(model: Any, given: Any, **more: Any) -> Any:
    args, kwargs = given
    return model(*args, **kwargs, **more)


def _arrays(out: Any) -> list[Any]:
    return [v.get_value() if hasattr(v, "get_value") else v for _, v in leaves.walk(out)]


def _total(out: list[Any]) -> Any:
    floats = [v for v in out if hasattr(v, "dtype") and jnp.issubdtype(v.dtype, jnp.floating)]
    return sum((jnp.mean(v.astype(jnp.float32)) for v in floats), start=jnp.zeros(()))


def cast(tree: Any, dtype: str) -> Any:
    """The same shapes with every float32 as `dtype`."""

    def one(leaf: Any) -> Any:
        wanted = jnp.dtype(dtype) if leaf.dtype == jnp.float32 else leaf.dtype
        return jax.ShapeDtypeStruct(leaf.shape, wanted, sharding=getattr(leaf, "sharding", None))

    return jax.tree.map(one, tree)
