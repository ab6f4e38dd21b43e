"""Records what goes into and comes out of each submodule of a PyTorch model, in the order of events."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from migrate.check import leaves


@dataclass
class Event:
    """A module was entered or left. `arguments` has the form of `leaves.encode` without its arrays, which are among `values` (None where
    they can't be rebuilt)."""

    at: str  # "enter", "exit"
    module: str
    call: int
    values: list[tuple[str, Any]]
    arguments: Any = None


@dataclass
class Recording:
    """The events of one run."""

    events: list[Event] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)


@contextlib.contextmanager
def recording(model: Any, keep: Callable[[Any], Any]) -> Iterator[Recording]:
    """Hooks into all submodules; the root counts as a module without a name. `keep` is called with each value."""
    found = Recording()

    def flat(value: Any) -> list[tuple[str, Any]]:
        return [(path, keep(v)) for path, v in leaves.walk(value)]

    open_calls: list[int] = []

    def enter(name: str, args: Any, kwargs: Any) -> None:
        call = found.calls[name]
        found.calls[name] += 1
        open_calls.append(call)
        try:
            arguments = leaves.encode((args, kwargs), lambda _: None)
        except leaves.Unportable:
            arguments = None
        found.events.append(Event("enter", name, call, flat((args, kwargs)), arguments))

    def leave(name: str, output: Any) -> None:
        found.events.append(Event("exit", name, open_calls.pop(), flat(output)))

    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda _, args, kwargs, name=name: enter(name, args, kwargs), with_kwargs=True))
        handles.append(module.register_forward_hook(lambda _, args, out, name=name: leave(name, out)))
    try:
        yield found
    finally:
        for h in handles:
            h.remove()
