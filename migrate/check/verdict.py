"""What a check found."""

from dataclasses import asdict, dataclass, field
from typing import Any

STAGES = ("parses", "imports", "builds", "loads", "shapes", "forward", "submodules", "gradients", "kinks", "train", "steps", "jit", "tpu")
# Training for several steps and the TPU compiler take their time: only where they are asked for.
USUAL = tuple(s for s in STAGES if s not in ("steps", "tpu"))


@dataclass(frozen=True)
class Place:
    """A line of a user's file; `line` is 0 where it is not known."""

    file: str = ""
    line: int = 0
    source: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Stage:
    """One stage: "passed", "failed" or "skipped"; `message` says why, or what was done."""

    name: str
    status: str
    message: str = ""
    seconds: float = 0.0
    place: Place = Place()


@dataclass(frozen=True)
class Submodule:
    """One submodule of the original. `verdict`: "same", "differs", or "not separate" where the converted model has no such module.

    `units` is the largest error in units of PyTorch's own float32 error, in the run; `probe` the same where it ran alone, on small
    and large inputs.
    """

    name: str
    cls: str
    converted: str = ""
    calls: int = 0
    units: float = 0.0
    error: float = 0.0
    probe: float | None = None
    verdict: str = "same"
    reason: str = ""


@dataclass(frozen=True)
class Tensor:
    """One tensor compared."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    error: float
    units: float
    own: float
    reason: str = ""


@dataclass(frozen=True)
class Drift:
    """How far a submodule's results are from float32 where products have bfloat16 operands, as on a TPU by default: the root mean square,
    and the largest, of the differences, both relative to the root mean square of the results."""

    name: str
    typical: float
    largest: float


@dataclass(frozen=True)
class Divergence:
    """The first place that differs: the submodule ("" is the model itself) and where both classes are defined."""

    module: str
    cls: str
    message: str
    original: Place = Place()
    converted: Place = Place()


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check. `reached` is the last stage that passed; True where the models agree in all that was asked."""

    ok: bool
    reached: str
    message: str
    stages: tuple[Stage, ...] = ()
    submodules: tuple[Submodule, ...] = ()
    first: Divergence | None = None
    outputs: tuple[Tensor, ...] = ()
    gradients: tuple[Tensor, ...] = ()
    state: tuple[Tensor, ...] = ()
    compared: int = 0
    unseen: tuple[str, ...] = ()
    drift: tuple[Drift, ...] = ()
    notes: tuple[str, ...] = ()
    model: str = ""
    inputs: str = ""
    seconds: float = 0.0
    target: str = "flax"
    extra: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.ok

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON; NaN and infinity become strings."""
        plain = _plain(asdict(self))
        assert isinstance(plain, dict)
        return {"version": 1} | plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value


def from_result(result: dict[str, Any], content: dict[str, Any], seconds: float, target: str, asked: tuple[str, ...]) -> Verdict:
    """The verdict over what the JAX side reported. Nothing compared is a failure."""
    stages = tuple(
        Stage(s["name"], s["status"], s["message"], s["seconds"], Place(s.get("file", ""), s.get("line", 0), s.get("source", "")))
        for s in result["stages"]
    )
    failed = next((s for s in stages if s.status == "failed"), None)
    reached = ""
    for s in stages:
        if s.status == "failed":
            break
        if s.status == "passed":
            reached = s.name
    message, ok = "", failed is None
    first = None if result["first"] is None else _divergence(result["first"])
    if failed:
        message = f"{failed.name}: {failed.message}"
    elif not result["compared"] and {"forward", "submodules", "gradients", "kinks", "train"} & set(asked):
        ok, message = False, "nothing could be compared" + "".join(f"; {s.name}: {s.message}" for s in stages if s.status == "skipped")
    rows = tuple(
        Submodule(r["module"], r["class"], r["converted"], r["calls"], r["units"], r["error"], r["probe"], r["verdict"], r["reason"])
        for r in result["rows"]
    )
    return Verdict(
        ok=ok,
        reached=reached,
        message=message or "the models agree",
        stages=stages,
        submodules=rows,
        first=first,
        outputs=_tensors(result["outputs"]),
        gradients=_tensors(result["gradients"]),
        state=_tensors(result["state"]),
        compared=result["compared"],
        unseen=tuple(content.get("unseen", ())),
        drift=tuple(Drift(d["module"], d["typical"], d["largest"]) for d in result["drift"]),
        notes=tuple(content["notes"]) + tuple(result["notes"]),
        model=content["model"],
        inputs=shown_inputs(content),
        seconds=seconds,
        target=target,
        extra={k: result[k] for k in ("pictures", "tpu") if result.get(k)},
    )


def _divergence(d: dict[str, Any]) -> Divergence:
    return Divergence(d["module"], d["class"], d["message"], Place(*d["original"]), Place(*d["converted"]))


def _tensors(entries: list[dict[str, Any]]) -> tuple[Tensor, ...]:
    return tuple(Tensor(e["name"], tuple(e["shape"]), e["dtype"], e["error"], e["units"], e["own"], e["reason"]) for e in entries)


def shown_inputs(content: dict[str, Any]) -> str:
    """The inputs of the first run, as a person would write them; shapes are those of the last values recorded."""
    return ", ".join(content.get("shown", ()))
