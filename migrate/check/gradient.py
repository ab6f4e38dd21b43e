"""What taking gradients needs in both frameworks."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from migrate.check import leaves
from migrate.check.oracle import cotangent


class Compiled:
    """Functions under jit, or eagerly where they can't be traced; one is compiled once for each key."""

    def __init__(self) -> None:
        self._functions: dict[Any, Any] = {}

    def run(self, key: Any, function: Any, restart: Callable[[], None], *args: Any) -> Any:
        """The function's result; `restart` forgets the random draws of the first try."""
        compiled = self._functions.setdefault(key, jax.jit(function))
        if compiled is not None:
            try:
                return compiled(*args)
            except Exception:
                self._functions[key] = None
                restart()
        return function(*args)


def split_inputs(values: Any) -> tuple[list[Any], list[int], Any]:
    """The leaves of the inputs, which of them are floating (or, with `every`, arrays), and a function that puts new values for
    those in place."""
    flat = [v for _, v in leaves.walk(values)]
    where = [i for i, v in enumerate(flat) if isinstance(v, jax.Array) and jnp.issubdtype(v.dtype, jnp.floating)]

    def rebuild(new: Any) -> Any:
        given = iter(new)
        order = iter(range(len(flat)))

        def one(v: Any) -> Any:
            i = next(order)
            return next(given) if i in where else v

        return replace(values, one)

    return flat, where, rebuild


def fixed(flat: list[Any], where: list[int]) -> tuple[Any, ...]:
    """What a function that is compiled for inputs depends on: shapes of those that are floating, values of the others."""
    return tuple((v.shape, str(v.dtype)) if i in where else (str(np.asarray(v).dtype), np.asarray(v).tobytes()) for i, v in enumerate(flat))


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
