"""One PyTorch model three times: in float32, in float64, and in float64 with everything off by half a unit in the last place of float32.

What the three give for the same inputs becomes a record: the float64 value, and how far float32 may be from it.
"""

import copy
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import torch

from migrate.check import leaves
from migrate.check.draws import Draws
from migrate.check.spool import Spool, dtype_name, to_numpy
from migrate.check.store import Writer
from migrate.check.torch_large import Turns
from migrate.check.torch_mode import mode
from migrate.check.torch_rounding import PIECE, Rounding, near_one, shift

Array = np.ndarray[Any, Any]
SIDES = ("f32", "f64", "near")
# Parameters; in a larger model only one of several submodules that are alike runs alone, and it is trained for one step.
LARGE = 20_000_000


def is_large(model: Any) -> bool:
    """Whether a model is so large that what is repeated in it is looked at once."""
    return bool(sum(p.numel() for p in model.parameters()) > LARGE)


class Sides:
    """The three sides of a model. `failed` says why there is no float64 where that is so.

    There is one copy in double precision, which takes the values of the side that runs: `start` has them all, in float32. A large model is
    not copied, but is in double precision itself meanwhile.
    """

    def __init__(self, model: Any, again: Callable[[], Any]) -> None:
        self.models = {"f32": model}
        self.draws = Draws()  # of the run that is going on
        self.spool = Spool()
        self.failed = ""
        kept = Kept(model, keep=self.spool.keep)
        self._kept = {"f32": kept}
        values = {id(t): v for (_, _, t), v in zip(kept.entries, kept.values, strict=True)}
        state = {k: v for k, v in model.state_dict(keep_vars=True).items() if isinstance(v, torch.Tensor)}
        self.state = {k: values.get(id(v), v.detach()) for k, v in state.items()}
        self.side = "f32"  # the one that runs
        self._rounding: Any = None
        self._written: set[int] = set()  # the storages that the run has written to
        self._wide = "f64"  # whose values the copy has
        self._turns: Turns | None = None
        self._whole = False  # whether a large model has to be wide as a whole
        try:
            copied = model if is_large(model) else _double(_copy(model, again))
            doubled = Kept(copied, kept)
            self._turns = Turns(model, kept, doubled.fill) if copied is model else None
            doubled.turns = self._turns
            self.models |= dict.fromkeys(SIDES[1:], copied)
            self._kept |= dict.fromkeys(SIDES[1:], doubled)
        except Exception as e:
            self.failed = f"{type(e).__name__}: {e}"

    def each(
        self, task: Callable[[str, Any], Any], values: Any = None, among: Sequence[str] = SIDES, whole: bool = False
    ) -> tuple[dict[str, Any], list[Any]]:
        """`task(model, values)` on each side (of those `among`), with the state as it was; what each gave, and the draws. A float64 side that
        fails is left out. `whole`: all parameters are looked at again after the run, by a backward pass or an optimiser."""
        results: dict[str, Any] = {}
        log: list[Any] = []
        for side in [s for s in self.models if s in among]:
            try:
                results[side], drawn = self.only(side, task, values, whole)
            except Exception as e:
                if side == "f32":
                    raise
                self.failed = self.failed or f"{type(e).__name__}: {e}"
                continue
            log = drawn if side == "f32" else log
        return results, log

    def only(
        self,
        side: str,
        task: Callable[[str, Any], Any],
        values: Any = None,
        whole: bool = False,
        rounding: int | None = None,
        wary: bool = False,
    ) -> tuple[Any, list[Any]]:
        """`task(model, values)` on one side, and the draws. `rounding`: results of operators are rounded as in float32, by this seed's chance;
        `wary`: also where they are exact by chance only."""
        self.side = side
        self._rounding = None if rounding is None else Rounding(rounding, wary)
        if self._turns and side in SIDES[1:]:
            return self._in_turn(self._turns, side, task, values, whole or self._whole)
        if side in SIDES[1:] and side != self._wide:
            self._kept[side].become(side)
            self._wide = side
        self.restore(side)
        try:
            return self._run(side, task, values)[:2]
        finally:
            self.restore(side)

    def _in_turn(self, turns: Turns, side: str, task: Any, values: Any, whole: bool) -> tuple[Any, list[Any]]:
        """A large model in float64: a layer at a time if that goes, else as a whole."""
        self._kept[side].side = side
        try:
            turns.widen(whole)
            result, log, narrow = self._run(side, task, values)
            if whole or not narrow:
                return result, log
        except Exception:
            if whole:
                raise
        finally:
            turns.back()
            self.restore("f32")
        self._whole = True
        return self._in_turn(turns, side, task, values, True)

    def _run(self, side: str, task: Any, values: Any) -> tuple[Any, list[Any], bool]:
        self.draws = Draws()
        given = convert(side, values)
        with mode(self.draws, side != "f32", self._rounding, self._written) as running:
            return task(self.models[side], given), self.draws.log, running.narrow

    def restore(self, side: str) -> None:
        """Brings the state back that a forward pass may have changed."""
        self._kept[side].restore(self._written)
        self._written.clear()


class Kept:
    """The parameters and buffers of a model as they were; what was written to or replaced comes back. A copy of the model in double
    precision has no values of its own: its are those of the `original`, exact or off by rounding."""

    def __init__(self, model: Any, original: "Kept | None" = None, keep: Any = None) -> None:
        places = [(p, k) for m in model.modules() for p in (m._parameters, m._buffers) for k in p if p[k] is not None]
        self.entries = [(place, key, place[key]) for place, key in places]
        self.original = original
        self.side = "f32" if original is None else "f64"
        if original is None:
            once = {id(t): t for _, _, t in self.entries}
            clones = {k: keep(t) for k, t in once.items()}
            self.values = [clones[id(t)] for _, _, t in self.entries]
        elif len(original.values) != len(self.entries):
            raise ValueError("another one has other parameters")
        self.versions = [tensor._version for _, _, tensor in self.entries]
        self.places = [tensor.data_ptr() for _, _, tensor in self.entries]
        self.turns: Turns | None = None

    def become(self, side: str) -> None:
        """Takes the values of a side."""
        self.side, self.versions = side, [-1] * len(self.versions)
        self.restore()

    def restore(self, storages: Collection[int] = ()) -> None:
        """Brings all back. Tensors count how often they were written to, so that untouched parameters cost nothing; batch normalisation
        writes to its buffers without counting, and code may write through `data`: to these `storages`, or to another in their place."""
        for i, (place, key, tensor) in enumerate(self.entries):
            if place.get(key) is not tensor:
                place[key] = tensor
            written = tensor._version != self.versions[i] or not isinstance(tensor, torch.nn.Parameter)
            written = written or tensor.data_ptr() != self.places[i] or tensor.untyped_storage().data_ptr() in storages
            if written and (self.turns is None or self.turns.is_wide(tensor) or not tensor.is_floating_point()):
                self.fill(tensor, i)
        self.versions = [tensor._version for _, _, tensor in self.entries]
        self.places = [tensor.data_ptr() for _, _, tensor in self.entries]

    def value(self, i: int) -> Any:
        """The values of an entry."""
        value = (self.original or self).values[i]
        return value if isinstance(value, torch.Tensor) else torch.from_numpy(value.read())

    def fill(self, tensor: Any, i: int, source: Any = None) -> None:
        """Puts the values of an entry, as this side has them, into a tensor; `source` has them too, where it is given."""
        with torch.no_grad():
            tensor.copy_(self.value(i) if source is None else source)
            if self.side == "near" and tensor.is_floating_point():
                shift(tensor, np.random.default_rng(7000 + i))


def _copy(model: Any, again: Callable[[], Any]) -> Any:
    try:
        return copy.deepcopy(model)
    except Exception:  # it holds something that can't be copied
        other = again()
        other.load_state_dict(model.state_dict(), strict=False)
        other.train(model.training)
        return other


def _double(model: Any) -> Any:
    model.double()
    for m in model.modules():
        for key, value in vars(m).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(m, key, value.double())
    return model


def convert(side: str, values: Any) -> Any:
    """Inputs for a side: copies, in its precision."""
    generator = np.random.default_rng(8)

    def one(v: Any) -> Any:
        if not isinstance(v, torch.Tensor):
            return v
        v = v.detach().clone()
        if side == "f32" or not (v.is_floating_point() or v.is_complex()):
            return v
        v = v.to(torch.complex128 if v.is_complex() else torch.float64)
        return v if side == "f64" else v * near_one(v.shape, generator)

    return leaves.rebuild(values, one)


def record(path: str, sides: dict[str, Any], writer: Writer, alone: bool = False) -> dict[str, Any]:
    """A leaf for the oracle: where its reference lies, its dtype and shape, and PyTorch's own error. `alone`: of a large model; no other
    tensor equals it, and the run that is off by rounding is looked at elsewhere."""
    plain = to_numpy(sides["f32"])
    entry: dict[str, Any] = {"path": path, "dtype": dtype_name(sides["f32"]), "shape": list(plain.shape)}
    others = [o for o in (to_numpy(v) for s, v in sides.items() if s != "f32") if o.shape == plain.shape and o.dtype.kind == plain.dtype.kind]
    if plain.dtype.kind not in "fc":
        undecided = np.any([o != plain for o in others], axis=0) if others else None
        if undecided is not None and np.any(undecided):
            entry["undecided"] = writer.add(np.asarray(undecided))
        return entry | {"key": writer.add(plain), "own": 0.0}
    reference, entry["own"], entry["largest"] = _reference(plain, others if len(others) > 1 or alone else [])
    return entry | {"key": writer.add(reference, alone and plain.nbytes > PIECE)}


def _reference(plain: Array, others: list[Array]) -> tuple[Array, float, float]:
    """The float64 values rounded to float32, how far float32 is from them, and the largest. Piece by piece: tensors may be large."""
    wide, narrow = (np.complex128, np.complex64) if plain.dtype.kind == "c" else (np.float64, np.float32)
    found = np.empty(plain.size, narrow)
    flat = [np.asarray(a).reshape(-1) for a in (plain, *others)]
    own = largest = 0.0
    for start in range(0, plain.size, PIECE):
        piece = slice(start, start + PIECE)
        here, *there = [a[piece].astype(wide) for a in flat]
        reference = here
        if there:
            exact, *near = there
            both = np.isfinite(exact) & np.isfinite(here)
            own = max(own, *(_furthest(m, exact, both) for m in (here, *near)))
            reference = np.where(both, exact, here)
        finite = np.abs(reference[np.isfinite(reference)])
        largest = max(largest, float(finite.max())) if finite.size else largest
        with np.errstate(over="ignore"):
            found[piece] = reference.astype(narrow)
    return found.reshape(plain.shape), own, largest


def _furthest(a: Array, exact: Array, both: Array) -> float:
    where = both & np.isfinite(a)
    return float(np.abs(np.subtract(a, exact, where=where, out=np.zeros(a.shape, exact.dtype))).max())


def record_all(results: dict[str, Sequence[tuple[str, Any]]], writer: Writer) -> list[dict[str, Any]]:
    """Leaves of a result on each side, as `leaves.walk` gives them."""
    plain = results["f32"]
    usable = {s: r for s, r in results.items() if len(r) == len(plain)}
    return [record(path, {s: r[i][1] for s, r in usable.items()}, writer) for i, (path, _) in enumerate(plain)]
