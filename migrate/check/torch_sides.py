"""One PyTorch model three times: in float32, in float64, and in float64 with everything off by half a unit in the last place of float32.

What the three give for the same inputs becomes a record: the float64 value, and how far float32 may be from it.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from migrate.check import leaves
from migrate.check.draws import Draws
from migrate.check.store import Writer
from migrate.check.torch_mode import mode

HALF_ULP = 2.0**-24
SIDES = ("f32", "f64", "near")


class Sides:
    """The three models. `failed` says why there is no float64 where that is so."""

    def __init__(self, model: Any, again: Callable[[], Any]) -> None:
        self.models = {"f32": model}
        self.draws = Draws()  # of the run that is going on
        self.failed = ""
        self.state = {k: v.detach().clone() for k, v in model.state_dict().items() if isinstance(v, torch.Tensor)}
        try:
            for side in SIDES[1:]:
                self.models[side] = _double(_copy(model, again, self.state))
            _nudge(self.models["near"])
        except Exception as e:
            self.failed = f"{type(e).__name__}: {e}"
            self.models = {"f32": model}
        self._kept = {side: Kept(m) for side, m in self.models.items()}

    def each(self, task: Callable[[str, Any], Any], values: Any = None) -> tuple[dict[str, Any], list[Any]]:
        """`task(model, values)` on each side, with the state as it was; what each gave, and the draws. A float64 side that fails
        is left out."""
        results: dict[str, Any] = {}
        log: list[Any] = []
        for side in list(self.models):
            try:
                results[side], drawn = self.only(side, task, values)
            except Exception as e:
                if side == "f32":
                    raise
                self.failed = self.failed or f"{type(e).__name__}: {e}"
                continue
            log = drawn if side == "f32" else log
        return results, log

    def only(self, side: str, task: Callable[[str, Any], Any], values: Any = None) -> tuple[Any, list[Any]]:
        """`task(model, values)` on one side, and the draws."""
        self.restore(side)
        self.draws = Draws()
        try:
            given = convert(side, values)
            with mode(self.draws, double=side != "f32"):
                return task(self.models[side], given), self.draws.log
        finally:
            self.restore(side)

    def restore(self, side: str) -> None:
        """Brings the state back that a forward pass may have changed."""
        self._kept[side].restore()


class Kept:
    """The parameters and buffers of a model as they were; what was written to or replaced comes back."""

    def __init__(self, model: Any) -> None:
        places = [(p, k) for m in model.modules() for p in (m._parameters, m._buffers) for k in p if p[k] is not None]
        self.entries = [(place, key, place[key], place[key].detach().clone()) for place, key in places]
        self.versions = [tensor._version for _, _, tensor, _ in self.entries]

    def restore(self) -> None:
        """Brings all back. Tensors count how often they were written to, so that untouched parameters cost nothing; batch normalisation
        writes to its buffers without counting."""
        for i, (place, key, tensor, value) in enumerate(self.entries):
            if place.get(key) is not tensor:
                place[key] = tensor
            if tensor._version != self.versions[i] or not isinstance(tensor, torch.nn.Parameter):
                with torch.no_grad():
                    tensor.copy_(value)
                self.versions[i] = tensor._version


def _copy(model: Any, again: Callable[[], Any], state: dict[str, Any]) -> Any:
    try:
        return copy.deepcopy(model)
    except Exception:  # it holds something that can't be copied
        other = again()
        other.load_state_dict(state, strict=False)
        other.train(model.training)
        return other


def _double(model: Any) -> Any:
    model.double()
    for m in model.modules():
        for key, value in vars(m).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(m, key, value.double())
    return model


def _nudge(model: Any) -> None:
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for value in [*model.parameters(), *model.buffers()]:
            if value.is_floating_point():
                value.mul_(1 + HALF_ULP * (2 * torch.rand(value.shape, generator=generator, dtype=value.dtype) - 1))


def convert(side: str, values: Any) -> Any:
    """Inputs for a side: copies, in its precision."""
    generator = torch.Generator().manual_seed(8)

    def one(v: Any) -> Any:
        if not isinstance(v, torch.Tensor):
            return v
        v = v.detach().clone()
        if side == "f32" or not (v.is_floating_point() or v.is_complex()):
            return v
        v = v.to(torch.complex128 if v.is_complex() else torch.float64)
        return v if side == "f64" else v * (1 + HALF_ULP * (2 * torch.rand(v.shape, generator=generator, dtype=torch.float64) - 1))

    return leaves.rebuild(values, one)


def to_numpy(value: Any) -> np.ndarray[Any, Any]:
    """A tensor or number as numpy; half precision as float32."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    value = value.detach()
    if value.is_sparse or value.layout != torch.strided:
        value = value.to_dense()
    if value.dtype in (torch.bfloat16, torch.float16):
        value = value.float()
    return np.asarray(value.resolve_conj().resolve_neg().cpu().numpy())


def dtype_name(value: Any) -> str:
    """The dtype of a tensor or number, without its framework."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch.")
    return {bool: "bool", int: "int64", float: "float32", complex: "complex64"}.get(type(value), str(np.asarray(value).dtype))


def record(path: str, sides: dict[str, Any], writer: Writer) -> dict[str, Any]:
    """A leaf for the oracle: where its reference lies, its dtype and shape, and PyTorch's own error."""
    plain = to_numpy(sides["f32"])
    entry: dict[str, Any] = {"path": path, "dtype": dtype_name(sides["f32"]), "shape": list(plain.shape)}
    others = [
        o for o in (to_numpy(sides[s]) for s in SIDES[1:] if s in sides) if o.shape == plain.shape and o.dtype.kind == plain.dtype.kind
    ]
    if plain.dtype.kind not in "fc":
        undecided = np.any([o != plain for o in others], axis=0) if others else None
        if undecided is not None and np.any(undecided):
            entry["undecided"] = writer.add(np.asarray(undecided))
        return entry | {"key": writer.add(plain), "own": 0.0}
    wide = np.complex128 if plain.dtype.kind == "c" else np.float64
    reference = plain.astype(wide)
    if len(others) == 2:
        exact = others[0].astype(wide)
        both = np.isfinite(exact) & np.isfinite(reference)
        measured = [reference, others[1].astype(wide)]
        entry["own"] = (
            max((float(np.abs(m - exact, where=both & np.isfinite(m), out=np.zeros(plain.shape)).max()) for m in measured), default=0.0)
            if plain.size
            else 0.0
        )
        reference = np.where(both, exact, reference)
    else:
        entry["own"] = 0.0
    finite = np.abs(reference[np.isfinite(reference)])
    entry["largest"] = float(finite.max()) if finite.size else 0.0
    return entry | {"key": writer.add(reference.astype(np.complex64 if wide is np.complex128 else np.float32))}


def record_all(results: dict[str, Sequence[tuple[str, Any]]], writer: Writer) -> list[dict[str, Any]]:
    """Leaves of a result on each side, as `leaves.walk` gives them."""
    plain = results["f32"]
    usable = {s: r for s, r in results.items() if len(r) == len(plain)}
    return [record(path, {s: r[i][1] for s, r in usable.items()}, writer) for i, (path, _) in enumerate(plain)]
