"""Gradients of the original: of parameters and of inputs, and how far each may be off. Those of a large model are never all in memory."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from migrate.check import leaves
from migrate.check.kinks import PARTS, REACH, largest, off, widen
from migrate.check.oracle import cotangent
from migrate.check.spool import to_numpy
from migrate.check.store import Writer
from migrate.check.torch_rounding import PIECE
from migrate.check.torch_sides import SIDES, Sides, is_large, record

Keep = Callable[[str, Any], Any]


def gradients(sides: Sides, values: Any, writer: Writer) -> dict[str, Any] | None:
    """Gradients of parameters and of floating inputs, or None where the outputs do not depend on them differentiably."""
    large = is_large(sides.models["f32"])
    task = partial(backward, lambda _, g: sides.spool.keep(g))
    try:
        results, log = sides.each(task, values, SIDES[:2] if large else SIDES, whole=True)
    except Exception as e:
        return {"skipped": f"{type(e).__name__}: {e}"[:300], "parameters": {}, "inputs": []}
    plain = results["f32"]
    once: dict[int, dict[str, Any]] = {}  # several names may be of one parameter
    for n, g in plain[0].items():
        if id(g) not in once:
            once[id(g)] = record(n, {s: r[0][n] for s, r in results.items()}, writer, alone=large)
    parameters = {n: once[id(g)] | {"path": n} for n, g in plain[0].items()}
    inputs = [None if x is None else record(str(i), {s: r[1][i] for s, r in results.items()}, writer, large) for i, x in enumerate(plain[1])]
    if "f64" in results and large:
        _widen_streamed(sides, values, plain[0], results["f64"], parameters, inputs)
    elif "f64" in results:
        widen(sides, task, values, results["f64"], lambda r: [*r[0].values(), *r[1]], [*parameters.values(), *inputs], large)
    return {"skipped": "", "parameters": parameters, "inputs": inputs, "draws": log}


def backward(keep: Keep, model: Any, given: Any) -> Any:
    """What `keep` makes of the gradient of each parameter, by name, and the gradients of the inputs."""
    names = {n: p for n, p in model.named_parameters(remove_duplicate=False) if p.is_floating_point()}
    inputs = []

    def track(v: Any) -> Any:
        if isinstance(v, torch.Tensor) and v.is_floating_point():
            inputs.append(v.requires_grad_(True))
            return inputs[-1].clone()  # a leaf may not be written to
        inputs.append(None)
        return v

    args, kwargs = leaves.rebuild(given, track)
    with streamed(names, keep) as found:
        weighted(model(*args, **kwargs)).backward()
        by_name = {n: found[id(p)] if id(p) in found else keep(n, torch.zeros_like(p)) for n, p in names.items()}
    return by_name, [None if x is None else x.grad.clone() if x.grad is not None else torch.zeros_like(x) for x in inputs]


@contextlib.contextmanager
def streamed(names: dict[str, Any], keep: Keep) -> Iterator[dict[int, Any]]:
    """Inside, each gradient is given to `keep` as it is finished, so that they are never all in memory."""
    found: dict[int, Any] = {}
    once = {id(p): (n, p) for n, p in reversed(names.items())}
    asked = {i: p.requires_grad for i, (_, p) in once.items()}

    def finished(p: Any) -> None:
        before = found.get(id(p))
        if before is not None and not hasattr(before, "shape"):
            raise RuntimeError("a gradient comes in parts")
        whole = p.grad if before is None else p.grad + torch.from_numpy(np.array(to_numpy(before))).to(p.dtype)
        found[id(p)] = keep(once[id(p)][0], whole)
        p.grad = None

    for _, p in once.values():
        p.grad = None
        p.requires_grad_(True)
    handles = [p.register_post_accumulate_grad_hook(finished) for _, p in once.values()]
    try:
        yield found
    finally:
        for h in handles:
            h.remove()
        for i, (_, p) in once.items():
            p.grad = None
            p.requires_grad_(asked[i])


def _widen_streamed(sides: Sides, values: Any, plain: Any, exact: Any, parameters: dict[str, Any], inputs: list[Any]) -> None:
    """What `record` and `widen` do with the run that is off by rounding and with the pair that is off in opposite directions, while the
    gradients come: only the differences of one run are kept."""
    try:
        near = sides.only("near", partial(backward, lambda n, g: _most(exact[0][n], g, plain=plain[n])), values, True, rounding=0)[0]
        up = sides.only("f64", partial(off, partial(backward, lambda n, g: sides.spool.keep(_gap(exact[0][n], g))), 0, REACH), values, True)[0]
        down = sides.only("f64", partial(off, partial(backward, lambda n, g: _most(exact[0][n], g, up[0][n])), 0, -REACH), values, True)[0]
    except RuntimeError as e:
        sides.failed = sides.failed or f"{type(e).__name__}: {e}"
        return
    for n, leaf in parameters.items():
        leaf["own"] = max(leaf["own"], near[0][n], down[0][n] / PARTS)
    for leaf, middle, other, *ways in zip(inputs, exact[1], near[1], up[1], down[1], strict=True):
        if leaf is not None:
            leaf["own"] = max(leaf["own"], largest(middle, other), largest(middle, *ways) / PARTS)


def _gap(exact: Any, value: Any) -> Any:
    """The difference, in float32: of something that small nothing is lost."""
    return torch.from_numpy(np.concatenate([np.zeros(0, np.float32), *_gaps(exact, value)]).reshape(tuple(value.shape)))


def _most(exact: Any, value: Any, other: Any = None, plain: Any = None) -> float:
    """The largest difference, or sum of it and of another, where it and `plain` are finite."""
    most, start = 0.0, 0
    others, limit = (None if v is None else to_numpy(v).reshape(-1) for v in (other, plain))
    for gap in _gaps(exact, value):
        here = slice(start, start + gap.size)
        both = gap if others is None else gap + others[here]
        finite = np.isfinite(both) if limit is None else np.isfinite(both) & np.isfinite(limit[here])
        most = max(most, float(np.abs(both).max(initial=0.0, where=finite)))
        start += gap.size
    return most


def _gaps(exact: Any, value: Any) -> Iterator[Any]:
    a, b = to_numpy(exact).reshape(-1), to_numpy(value).reshape(-1)
    for start in range(0, a.size, PIECE):
        with np.errstate(invalid="ignore"):
            yield (b[start : start + PIECE].astype(np.float64) - a[start : start + PIECE]).astype(np.float32)


def weighted(output: Any) -> Any:
    """The number whose gradient is taken; the JAX side makes the same one."""
    total: Any = 0.0
    for i, (_, v) in enumerate(leaves.walk(output)):
        if isinstance(v, torch.Tensor) and v.requires_grad and v.is_floating_point():
            finite = torch.isfinite(v)
            total = total + (torch.where(finite, v, 0.0) * torch.from_numpy(cotangent(i, tuple(v.shape))).to(v.dtype)).sum()
    if not isinstance(total, torch.Tensor):
        raise ValueError("no output depends differentiably on parameters or inputs")
    return total


def unseen(found: dict[str, Any]) -> list[str]:
    """Parameters whose gradient is zero everywhere: a wrong value there would not show."""
    return [n for n, g in found["parameters"].items() if g.get("largest") == 0.0]
