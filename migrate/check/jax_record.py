"""Records what goes into and comes out of each submodule of a converted model, by wrapping `__call__` of their classes for the time
of a run."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jax.extend.core import get_opaque_trace_state

from migrate.check import leaves

# at ("enter" or "exit"), name, number of the call, leaves
Seen = tuple[str, str, int, list[tuple[str, Any]]]


@contextlib.contextmanager
def recording(modules: Mapping[str, Any], sink: Callable[[Seen], None]) -> Iterator[None]:
    """Calls `sink` as the modules (by PyTorch's name) are entered and left. Inside a loop or branch of JAX nothing is recorded: its values
    do not exist outside."""
    names = {id(m): name for name, m in reversed(list(modules.items()))}
    calls: Counter[str] = Counter()
    active: set[int] = set()
    level = get_opaque_trace_state(convention="flax")

    def wrapped(original: Any) -> Any:
        @functools.wraps(original)  # its signature is what some code asks for
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            name = names.get(id(self))
            if name is None or id(self) in active or get_opaque_trace_state(convention="flax") != level:
                return original(self, *args, **kwargs)  # not ours, or on its way to the base class
            active.add(id(self))
            call = calls[name]
            calls[name] += 1
            try:
                sink(("enter", name, call, values_of((args, kwargs))))
                out = original(self, *args, **kwargs)
            finally:
                active.discard(id(self))
            sink(("exit", name, call, values_of(out)))
            return out

        return __call__

    classes = {type(m) for m in modules.values() if callable(m)}
    own = {c: vars(c).get("__call__") for c in classes}
    for c in classes:
        c.__call__ = wrapped(c.__call__)
    try:
        yield
    finally:
        for c, method in own.items():
            if method is None:
                del c.__call__
            else:
                c.__call__ = method


def values_of(value: Any) -> list[tuple[str, Any]]:
    """The leaves of a nested value, variables as their arrays."""
    return [(path, _plain(v)) for path, v in leaves.walk(value)]


def _plain(v: Any) -> Any:
    if hasattr(v, "get_value"):  # a variable of Flax
        return v.get_value()
    return v.value if hasattr(v, "value") and hasattr(v, "assign") else v  # one of Keras
