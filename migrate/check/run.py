"""`check`: runs the original and the converted model, each in a process of its own, and says whether they agree."""

import ast
import contextlib
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from migrate.check import oracle as oracles
from migrate.check.child import DEFAULT, Child, ChildError, Limits
from migrate.check.spec import parse
from migrate.check.verdict import STAGES, USUAL, Stage, Verdict, from_result

TORCH = "migrate.check.torch_side"
JAX = "migrate.check.jax_side"
TARGETS = ("flax", "keras")
# What no stage can do without.
NEEDED = ("parses", "imports", "builds", "loads", "shapes")
QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
FAST = (*NEEDED, "forward", "submodules")


class CheckError(ValueError):
    """The original can't be run as asked: a missing file, an expression that fails, inputs that it does not take. `file` and
    `line` say where."""

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


def check(
    original: str | Path | None = None,
    converted: str | Path | None = None,
    *,
    model: str | None = None,
    converted_model: str | None = None,
    inputs: Sequence[str] = (),
    target: str = "flax",
    roots: Iterable[str | Path] = (),
    converted_roots: Iterable[str | Path] = (),
    oracle: str | Path | None = None,
    stages: Iterable[str] = USUAL,
    limits: Limits = DEFAULT,
    drift: bool = False,
    pictures: bool = False,
) -> Verdict:
    """Compares a converted file with its original, stage by stage, and returns a verdict; prints nothing.

    `model` is the expression that builds the model, such as "Net(num_classes=10)", evaluated in both files (`converted_model`
    where it reads
    otherwise there); without it a factory `make()` or the only class that needs no arguments is taken. `inputs` are those of
    forward, such as
    "f32[2,3,32,32]". `drift` predicts what a TPU's default precision does to each submodule. With `oracle` the original is not run again.
    `pictures` keeps the worst tensors, for a report. Raises CheckError where the original can't be run as asked.
    """
    start = time.perf_counter()
    asked = _stages(stages)
    if target not in TARGETS:
        raise CheckError(f"no target `{target}`; there are {', '.join(TARGETS)}")
    if converted is None:
        raise CheckError("which converted file?")
    there = _file(converted)
    with tempfile.TemporaryDirectory(prefix="migrate-check-") as scratch, contextlib.ExitStack() as children:
        out = Path(scratch)
        folder = out / "oracle" if oracle is None else Path(oracle)
        recorder: Child | None = None
        content: dict[str, Any] = {}
        if oracle is None:
            recorder = children.enter_context(_recorder(original, folder, model, inputs, roots, asked, limits))
        else:
            content = oracles.read(folder)
        job = {
            "converted": str(there),
            "roots": [str(r) for r in converted_roots],
            "oracle": str(folder),
            "follow": oracle is None,  # both run at the same time, and what is not there yet is waited for
            "out": str(out),
            "model": converted_model,
            "target": target,
            "stages": list(asked),
            "drift": drift,
            "pictures": pictures,
        }
        child = children.enter_context(Child(JAX, job, limits, _environment(asked)))
        try:
            content = content if recorder is None else _recorded(recorder, folder)
        except ChildError as e:
            said, seconds = f"the original {e}", time.perf_counter() - start
            return Verdict(False, "", said, (Stage("original", "failed", str(e)),), target=target, seconds=seconds)
        try:
            result = child.result()
        except ChildError as e:
            return _died(str(e), out, content, time.perf_counter() - start, target)
    return from_result(result, content, time.perf_counter() - start, target, asked)


def make_oracle(
    original: str | Path | None,
    folder: str | Path,
    *,
    model: str | None = None,
    inputs: Sequence[str] = (),
    roots: Iterable[str | Path] = (),
    stages: Iterable[str] = USUAL,
    limits: Limits = DEFAULT,
) -> dict[str, Any]:
    """Runs the original and writes the oracle folder. Raises CheckError, or ChildError where the process dies."""
    folder = Path(folder)
    with _recorder(original, folder, model, inputs, roots, stages, limits) as child:
        return _recorded(child, folder)


def _recorder(
    original: str | Path | None,
    folder: Path,
    model: str | None,
    inputs: Sequence[str],
    roots: Iterable[str | Path],
    stages: Iterable[str],
    limits: Limits,
) -> Child:
    """The process of the original, started."""
    if original is None:
        raise CheckError("which original file?")
    path = _file(original)
    for text in inputs:
        parse(text)
    if model is not None:
        _expression(model)
    folder.mkdir(parents=True, exist_ok=True)
    job = {
        "original": str(path),
        "roots": [str(r) for r in roots],
        "model": model,
        "inputs": list(inputs),
        "out": str(folder),
        "stages": list(stages),
    }
    return Child(TORCH, job, limits, {})


def _recorded(child: Child, folder: Path) -> dict[str, Any]:
    outcome = child.result()
    (folder / "result.json").unlink()
    if not outcome["ok"]:
        hint = f"  [{outcome['source']}]" if outcome.get("source") else ""
        raise CheckError(outcome["message"] + hint, outcome["file"], outcome["line"])
    return oracles.read(folder)


def _stages(asked: Iterable[str]) -> tuple[str, ...]:
    names = set(asked)
    if unknown := names - set(STAGES):
        raise CheckError(f"no stage {', '.join(sorted(unknown))}; there are {', '.join(STAGES)}")
    return tuple(s for s in STAGES if s in names or s in NEEDED)


def _file(path: str | Path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise CheckError("no such file" if not path.exists() else "is not a file", str(path))
    return path.resolve()


def _expression(text: str) -> None:
    try:
        ast.parse(text.strip(), mode="eval")
    except SyntaxError as e:
        raise CheckError(f"`{text}` is no Python expression: {e.msg}") from None


def _environment(stages: Sequence[str]) -> dict[str, str]:
    """The JAX side runs on the CPU unless the user says otherwise; what runs a few times only is compiled quickly."""
    found = {"JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"), "KERAS_BACKEND": "jax", "TF_CPP_MIN_LOG_LEVEL": "3"}
    given = os.environ.get("XLA_FLAGS", "")
    if found["JAX_PLATFORMS"] == "cpu" and "tpu" not in stages and "xla_backend_optimization_level" not in given:
        found["XLA_FLAGS"] = f"{given} {QUICK}".strip()
    return found


def _died(how: str, out: Path, content: dict[str, Any], seconds: float, target: str) -> Verdict:
    progress = out / "progress"
    at = progress.read_text() if progress.exists() else STAGES[0]
    passed = STAGES[: STAGES.index(at)]
    stages = (*(Stage(s, "passed") for s in passed), Stage(at, "failed", f"the process {how}"))
    return Verdict(
        False,
        passed[-1] if passed else "",
        f"{at}: the process {how}",
        stages,
        notes=tuple(content["notes"]),
        model=content["model"],
        seconds=seconds,
        target=target,
    )
