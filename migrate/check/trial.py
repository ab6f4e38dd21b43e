"""Finds inputs that a PyTorch model takes, where nobody said: likely shapes are tried, and what PyTorch complains of corrects them."""

import contextlib
import inspect
import itertools
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from migrate.check import leaves
from migrate.check.shapes import from_layers, from_text
from migrate.check.spec import Spec, array, text

MOST, SECONDS, FIXES = 150, 40.0, 4
FLOAT = "float32"
USUAL = ((2, 3, 32, 32), (2, 16), (2, 12, 16), (2, 3, 64, 64), (2, 1, 28, 28), (2, 3, 224, 224), (2, 16, 32), (4,))


def find_inputs(model: Any, seconds: float = SECONDS) -> tuple[tuple[str, ...], str]:
    """The inputs of the first trial that runs and gives finite numbers, as text; else () and why."""
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        return (), "its forward has no signature"
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not needed and any(p.kind is p.VAR_POSITIONAL for p in parameters):
        needed = [inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)]
    options = [
        [replace(s, keyword=p.name) if p.kind is p.KEYWORD_ONLY else s for s in candidates(model, p, first=p is needed[0])] for p in needed
    ]
    if any(not o for o in options):
        missing = next(p.name for p, o in zip(needed, options, strict=True) if not o)
        return (), f"nothing is known of its argument `{missing}`"
    stop, problem = time.monotonic() + seconds, ""
    for chosen in itertools.islice(_combinations(options), MOST):
        if time.monotonic() > stop:
            break
        specs: Sequence[Spec] | None = chosen
        for _ in range(FIXES):
            assert specs is not None
            reason = _runs(model, specs)
            if not reason:
                return tuple(text(s) for s in specs), ""
            problem = problem or reason
            specs = corrected(specs, reason)
            if specs is None:
                break
    return (), problem or "no shape was tried"


def _combinations(options: list[list[Spec]]) -> Iterator[list[Spec]]:
    """Choices for all arguments: first those that are alike in kind (the i-th of each), then the rest."""
    seen = set()
    for i in range(max(map(len, options), default=1)):
        chosen = [o[min(i, len(o) - 1)] for o in options]
        seen.add(str(chosen))
        yield chosen
    for many in itertools.product(*(o[:8] for o in options)):
        if str(list(many)) not in seen:
            yield list(many)


def candidates(model: Any, p: inspect.Parameter, first: bool) -> Iterator[Spec]:
    """Values to try for one argument of forward, the likeliest first."""
    name = p.name.lower()
    if p.annotation in (bool, "bool"):
        yield Spec(value=False)
    elif p.annotation in (int, "int"):
        yield from (Spec(value=n) for n in (1, 2, 4))
    elif p.annotation in (float, "float"):
        yield Spec(value=0.5)
    elif re.search(r"mask", name):
        yield from (Spec(value=None), Spec("", "bool", (2, 12)))
    elif re.search(r"(length|lens)", name):
        yield Spec("", "int64", (2,), 4.0, 12.0)
    elif re.search(r"(timestep|^t$|^ts$|time)", name) and not first:
        yield from (Spec("", "int64", (2,), 0.0, 50.0), Spec("", FLOAT, (2,)), Spec("", FLOAT, (2, 1)))
    else:
        yield from _tensors(model, name, first)


def _tensors(model: Any, name: str, first: bool) -> Iterator[Spec]:
    whole = bool(re.search(r"(ids?$|idx|token|index|indices|label|target|word|^src$|^tgt$|^trg$|caption|item|user)", name))
    found = list(from_text(_documentation(model), name)) + list(from_layers(model))
    if not first:
        found += [Spec("", FLOAT, (2,)), Spec("", FLOAT, (2, 12))]
    found += [Spec("", FLOAT, s) for s in USUAL]
    found += [Spec("", "int64", (2, 12), 0.0, 10.0)]
    if whole:
        found.sort(key=lambda s: not s.dtype.startswith("int"))
    yield from dict.fromkeys(found)


def _documentation(model: Any) -> str:
    """What the class says of shapes: its docstrings, and comments in its forward."""
    parts = [type(model).__doc__ or "", model.forward.__doc__ or ""]
    with contextlib.suppress(OSError, TypeError):
        parts.append(inspect.getsource(model.forward))
    return "\n".join(parts)


def _runs(model: Any, specs: Sequence[Spec]) -> str:
    """Why the model does not take these inputs; "" where it does."""
    values = [(s.keyword, s.value if not s.dtype else torch.from_numpy(array(s, i))) for i, s in enumerate(specs)]
    try:
        with torch.no_grad():
            torch.manual_seed(0)
            out = model(*(v for k, v in values if not k), **{k: v for k, v in values if k})
    except Exception as e:
        return f"{type(e).__name__}: {' '.join(str(e).split())[:300]}"
    tensors = [v for _, v in leaves.walk(out) if isinstance(v, torch.Tensor)]
    if not any(v.numel() for v in tensors):
        return "it gives no tensor"
    if any(v.is_floating_point() and not torch.isfinite(v).any() for v in tensors):
        return "its outputs are not finite"
    return ""


# What PyTorch says where a size is wrong: pattern, which axis it is of, and the group that holds what it should be.
COMPLAINTS = (
    (re.compile(r"to have (\d+) channels"), 1),
    (re.compile(r"running_mean should contain \d+ elements not (\d+)"), None),
    (re.compile(r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)"), -1),
    (re.compile(r"normalized_shape=\[(\d+)\]"), -1),
    (re.compile(r"input_size\. Expected (\d+)"), -1),
    (re.compile(r"embedding dimension of (\d+)|was expecting embedding dimension of (\d+)"), -1),
    (re.compile(r"the feature number of src and tgt must be equal to d_model|the feature number of src"), None),
)


def corrected(specs: Sequence[Spec], complaint: str) -> Sequence[Spec] | None:
    """The same inputs with the size changed that PyTorch complains of; None where it is not clear."""
    if re.search(r"expected .*(Long|Int).*|indices.*(Long|Int|integer)|must be.*integer", complaint) and specs[0].dtype == FLOAT:
        return [replace(specs[0], dtype="int64", low=0.0, high=10.0), *specs[1:]]
    if "index out of range" in complaint and any(s.dtype == "int64" and (s.high or 0) > 2 for s in specs):
        return [replace(s, high=2.0) if s.dtype == "int64" else s for s in specs]
    for pattern, axis in COMPLAINTS:
        m = pattern.search(complaint)
        if m is None or axis is None or not specs[0].dtype or len(specs[0].shape) < 2:
            continue
        numbers = [int(g) for g in m.groups() if g]
        shape = list(specs[0].shape)
        if len(numbers) == 4:
            if numbers[1] != shape[-1]:
                return None  # the size of something in the middle
            shape[-1] = numbers[2]
        else:
            shape[axis] = numbers[0]
        changed = replace(specs[0], shape=tuple(shape))
        return None if changed == specs[0] else [changed, *specs[1:]]
    return None
