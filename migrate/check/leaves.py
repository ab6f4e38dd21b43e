"""Nested values of either framework: their arrays in order, and a JSON form that the other side can rebuild.

Frameworks are told apart by what their arrays can do, so that neither side needs the other's.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Unportable(TypeError):
    """A value that the other side can't rebuild."""


def is_array(value: Any) -> bool:
    """A tensor, a JAX array, a numpy array; not a Python number."""
    return isinstance(value, np.ndarray | np.generic) or (
        hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__array__")
    )


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each array or number of a nested result with its place, in order: mappings by key, dataclasses by field."""
    if value is None or isinstance(value, str | bytes):
        return
    if is_array(value) or isinstance(value, bool | int | float | complex):
        yield path, value
    elif isinstance(value, Mapping):
        for k in value:
            yield from walk(value[k], f"{path}[{k!r}]")
    elif isinstance(value, list | tuple):
        names = getattr(value, "_fields", None)
        for i, v in enumerate(value):
            yield from walk(v, f"{path}.{names[i]}" if names else f"{path}[{i}]")
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from walk(getattr(value, f.name), f"{path}.{f.name}")


def encode(value: Any, put: Callable[[Any], Any]) -> Any:
    """A nested value as JSON; `put` takes each array and gives what stands for it. Raises Unportable."""
    if value is None or isinstance(value, bool | int | str):
        return {"value": value}
    if isinstance(value, float):
        return {"float": repr(value)}
    if is_array(value):
        return {"array": put(value)}
    if isinstance(value, Mapping):
        if not all(isinstance(k, str | int) for k in value):
            raise Unportable("a dict with keys that are neither strings nor integers")
        return {"dict": [[k, encode(v, put)] for k, v in value.items()]}
    if isinstance(value, list):
        return {"list": [encode(v, put) for v in value]}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return {"tuple": [encode(v, put) for v in value]}
    raise Unportable(f"a {type(value).__name__}")


def decode(code: Any, get: Callable[[Any], Any]) -> Any:
    """The value that `encode` saw; `get` gives the array for what stands for it."""
    if "array" in code:
        return get(code["array"])
    if "float" in code:
        return float(code["float"])
    if "dict" in code:
        return {k: decode(v, get) for k, v in code["dict"]}
    if "list" in code:
        return [decode(v, get) for v in code["list"]]
    if "tuple" in code:
        return tuple(decode(v, get) for v in code["tuple"])
    return code["value"]


def rebuild(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same nested value with each array changed."""
    if is_array(value):
        return change(value)
    if isinstance(value, Mapping):
        return type(value)({k: rebuild(v, change) for k, v in value.items()})  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuild(v, change) for v in value))
    if isinstance(value, list | tuple):
        return type(value)(rebuild(v, change) for v in value)
    return value
