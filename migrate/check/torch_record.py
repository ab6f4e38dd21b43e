"""Records what goes into and comes out of each submodule of a PyTorch model, in the order of events."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from migrate.check import leaves


@dataclass
class Event:
    """A module was entered or left. `args` and `kwargs` are in `leaves.encode`'s form (None where they can't be rebuilt)."""

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


def keep(value: Any) -> Any:
    """A tensor as it is now: code may write into it later."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def flat(value: Any) -> list[tuple[str, Any]]:
    """Path and value of each leaf, kept."""
    return [(path, keep(v)) for path, v in leaves.walk(value)]


@contextlib.contextmanager
def recording(model: Any) -> Iterator[Recording]:
    """Hooks into all submodules; the root counts as a module without a name."""
    found = Recording()
    open_calls: list[int] = []

    def enter(name: str, args: Any, kwargs: Any) -> None:
        call = found.calls[name]
        found.calls[name] += 1
        open_calls.append(call)
        try:
            arguments = leaves.encode((args, kwargs), keep)
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
