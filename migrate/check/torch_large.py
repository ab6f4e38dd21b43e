"""A large model in float32 and in float64 by turns, without a copy of it.

In float64 a parameter is wide while a module that holds it runs, and narrow again afterwards, so that one layer is in memory twice and not the
model. What a backward pass needs stays: for gradients all are wide at once. So they are where code looks at a parameter of a module that is
not running: it shows as a result in float32, or as an error.
"""

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes


class Turns:
    """`kept` has the values of all parameters and buffers in float32. `fill` puts one of them, as a side has it, into a wide tensor."""

    def __init__(self, model: Any, kept: Any, fill: Any) -> None:
        self.kept = kept
        self.fill = fill
        self.model = model
        # What modules hold besides parameters and buffers (counters, what they computed once), in float64 and in float32.
        self.inside = [(m, {k: _double(v) for k, v in held.items()}) for m, held in self._held()]
        self.outside: list[tuple[Any, dict[str, Any]]] = []
        self.first: dict[int, int] = {}  # tensor -> its first entry
        for i, (_, _, tensor) in enumerate(kept.entries):
            if tensor.is_floating_point():
                self.first.setdefault(id(tensor), i)
        self.narrow: dict[int, Any] = {}  # entry -> the values in float32 of one that is wide; None where they are on disk only
        self.running: Counter[int] = Counter()
        self.handles: list[Any] = []

    def is_wide(self, tensor: Any) -> bool:
        """Whether a tensor is in float64 just now."""
        return self.first.get(id(tensor), -1) in self.narrow

    def _held(self) -> list[tuple[Any, dict[str, Any]]]:
        return [(m, dict(vars(m))) for m in self.model.modules()]

    def widen(self, whole: bool) -> None:
        """From here on the model is in float64, all of it where `whole` says so."""
        self.outside = self._held()
        modes = [m.training for m, _ in self.inside]
        _hold(self.inside)
        for (m, _), training in zip(self.inside, modes, strict=True):
            m.training = training
        tensors = [t for _, _, t in self.kept.entries]
        for tensor in tensors:
            if id(tensor) in self.first and (whole or not isinstance(tensor, torch.nn.Parameter)):
                self._wide(self.first[id(tensor)], remember=not whole)
        for m, _ in self.inside:
            if not whole and (own := self._of(m)):
                self.handles.append(m.register_forward_pre_hook(lambda *_, own=own: self._enter(own)))
                self.handles.append(m.register_forward_hook(lambda *_, own=own: self._leave(own), always_call=True))

    def back(self) -> None:
        """The model is as it was: in float32, with what it held."""
        for h in self.handles:
            h.remove()
        self.handles = []
        self.running.clear()
        for i in list(self.narrow):
            self._narrow(i)
        self.inside = [(m, dict(vars(m))) for m, _ in self.inside]
        _hold(self.outside)

    def _of(self, m: Any) -> list[int]:
        """The parameters that a module looks at when it runs."""
        inside = isinstance(m, torch.nn.MultiheadAttention)  # its projection is a module that it does not call
        return list(dict.fromkeys(self.first[id(p)] for p in m.parameters(recurse=inside) if id(p) in self.first))

    def _enter(self, own: list[int]) -> None:
        for i in own:
            self.running[i] += 1
            if i not in self.narrow:
                self._wide(i, remember=True)

    def _leave(self, own: list[int]) -> None:
        for i in own:
            self.running[i] -= 1
            if not self.running[i]:
                self._narrow(i)

    def _wide(self, i: int, remember: bool) -> None:
        with _disable_current_modes(), torch.no_grad():
            tensor = self.kept.entries[i][2]
            wide = torch.empty_like(tensor.data, dtype=torch.float64)
            self.fill(wide, i, tensor.data)
            self.narrow[i] = tensor.data if remember else None
            tensor.data = wide

    def _narrow(self, i: int) -> None:
        with _disable_current_modes(), torch.no_grad():
            tensor, old = self.kept.entries[i][2], self.narrow.pop(i)
            tensor.data = self.kept.value(i).clone() if old is None else old


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _hold(held: list[tuple[Any, dict[str, Any]]]) -> None:
    for m, before in held:
        now = vars(m)
        for key in [k for k in now if k not in before]:
            del now[key]
        now.update(before)
