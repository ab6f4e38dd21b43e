"""Records what goes into and comes out of each submodule of a converted model, by wrapping `__call__` of their classes for the
time of a run."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax

from migrate.check import leaves

# at ("enter" or "exit"), name, number of the call, leaves
Sink = Callable[[str, str, int, list[tuple[str, Any]]], None]


@contextlib.contextmanager
def recording(modules: Mapping[str, Any], sink: Sink) -> Iterator[None]:
    """Calls `sink` as the modules (by PyTorch's name) are entered and left. Inside a trace nothing is recorded: there are no values."""
    names = {id(m): name for name, m in reversed(list(modules.items()))}
    calls: Counter[str] = Counter()
    active: set[int] = set()

    def wrapped(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            name = names.get(id(self))
            if name is None or id(self) in active:  # not ours, or on its way to the base class
                return original(self, *args, **kwargs)
            active.add(id(self))
            call = calls[name]
            calls[name] += 1
            try:
                _tell(sink, "enter", name, call, (args, kwargs))
                out = original(self, *args, **kwargs)
            finally:
                active.discard(id(self))
            _tell(sink, "exit", name, call, out)
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


def _tell(sink: Sink, at: str, name: str, call: int, value: Any) -> None:
    found = list(leaves.walk(value))
    if not any(isinstance(v, jax.core.Tracer) for _, v in found):
        sink(at, name, call, found)
