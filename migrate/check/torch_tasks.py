"""What else is recorded of the original: submodules on their own, gradients, a pass in train mode."""

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from migrate.check import leaves
from migrate.check.kinks import widen
from migrate.check.oracle import cotangent
from migrate.check.spool import dtype_name, to_numpy
from migrate.check.store import Reader, Writer
from migrate.check.torch_sides import Sides, convert, record, record_all

# Small inputs show epsilons, large ones the tails and bounds of activations.
SCALES = (0.01, 8.0)
SKIPPED = ("Dropout", "Identity")
# Parameters; in a larger model only one of several submodules that are alike runs alone, and it is trained for one step.
LARGE = 20_000_000


def is_large(model: Any) -> bool:
    """Whether a model is so large that what is repeated in it is looked at once."""
    return bool(sum(p.numel() for p in model.parameters()) > LARGE)


class FunctionModule(torch.nn.Module):  # type: ignore[misc]
    """A plain function where a module is expected."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self.function(*args, **kwargs)


def statistics(named: Iterable[tuple[str, Any]], scale: float) -> dict[str, Any]:
    """Running statistics that go with inputs times `scale`; for small ones, so that an epsilon shows."""
    power = {"running_mean": scale, "running_var": scale**2}
    return {n: b * power[n.rsplit(".", 1)[-1]] for n, b in named if n.rsplit(".", 1)[-1] in power and b is not None} if scale < 1 else {}


def probes(sides: Sides, events: list[dict[str, Any]], writer: Writer) -> dict[str, Any]:
    """Each submodule alone, on its first inputs times each scale."""
    writer.flush()
    reader = Reader(writer.folder, writer.files)
    modules = dict(sides.models["f32"].named_modules())
    large = is_large(sides.models["f32"])
    chosen, alike = [], set()
    for e in events:
        if "arguments" not in e or type(modules[e["module"]]).__name__.startswith(SKIPPED):
            continue
        about = (repr(modules[e["module"]]), str([leaf["shape"] for leaf in e["leaves"]]))
        if not (large and about in alike) and any(leaf["dtype"].startswith(("float", "bfloat")) for leaf in e["leaves"]):
            chosen.append(e)
        alike.add(about)
    found = []
    for scale in SCALES:
        results, _ = sides.each(partial(_alone, sides, chosen, scale, partial(_tensor, reader, scale)))
        for i, e in enumerate(chosen):
            if (plain := results["f32"][i]) is not None:
                usable = {s: r[i] for s, r in results.items() if r[i] is not None and len(r[i]) == len(plain)}
                outputs = record_all(usable, writer)
                found.append({"module": e["module"], "scale": scale, "arguments": e["arguments"], "outputs": outputs})
    overrides = {str(s): statistics(sides.state.items(), s) for s in SCALES}
    kept = {s: {k: {"key": writer.add(v.numpy()), "dtype": dtype_name(v)} for k, v in o.items()} for s, o in overrides.items()}
    return {"runs": found, "override": kept}


def _alone(sides: Sides, chosen: list[dict[str, Any]], scale: float, read: Any, model: Any, _: Any) -> list[Any]:
    """The outputs of each submodule, None for one that can't be run so."""
    side = sides.side
    modules = dict(model.named_modules())
    found: list[Any] = []
    for e in chosen:
        sides.draws.restart()
        module = modules[e["module"]]
        args, kwargs = convert(side, leaves.decode(e["arguments"], read))
        buffers = dict(module.named_buffers())
        try:
            with torch.no_grad():
                for key, value in statistics(buffers.items(), scale).items():
                    buffers[key].copy_(value)
                output = [(path, sides.spool.keep(v)) for path, v in leaves.walk(module(*args, **kwargs))]
            found.append(None if sides.draws.log else output)
        except Exception:
            found.append(None)
        sides.restore(side)
    return found


def _tensor(reader: Reader, scale: float, entry: dict[str, Any]) -> Any:
    value = torch.from_numpy(reader.get(entry["key"]))
    if entry["dtype"].startswith("complex"):
        value = torch.view_as_complex(value)
    value = value.to(getattr(torch, entry["dtype"]))
    return value * scale if value.is_floating_point() else value


def gradients(sides: Sides, values: Any, writer: Writer) -> dict[str, Any] | None:
    """Gradients of parameters and of floating inputs, or None where the outputs do not depend on them differentiably."""

    def task(model: Any, given: Any) -> Any:
        names = {n: p for n, p in model.named_parameters(remove_duplicate=False) if p.is_floating_point()}
        inputs = []

        def track(v: Any) -> Any:
            if isinstance(v, torch.Tensor) and v.is_floating_point():
                inputs.append(v.requires_grad_(True))
                return inputs[-1].clone()  # a leaf may not be written to
            inputs.append(None)
            return v

        args, kwargs = leaves.rebuild(given, track)
        with streamed(names.values(), sides.spool.keep) as found:
            weighted(model(*args, **kwargs)).backward()
            by_name = {n: found[id(p)] if id(p) in found else torch.zeros_like(p) for n, p in names.items()}
        return by_name, [None if x is None else x.grad.clone() if x.grad is not None else torch.zeros_like(x) for x in inputs]

    try:
        results, log = sides.each(task, values)
    except Exception as e:
        return {"skipped": f"{type(e).__name__}: {e}"[:300], "parameters": {}, "inputs": []}
    parameters = {n: record(n, {s: r[0][n] for s, r in results.items()}, writer) for n in results["f32"][0]}
    inputs = [
        None if x is None else record(str(i), {s: r[1][i] for s, r in results.items()}, writer) for i, x in enumerate(results["f32"][1])
    ]
    if "f64" in results:
        found = [*parameters.values(), *inputs]
        widen(sides, task, values, results["f64"], lambda r: [*r[0].values(), *r[1]], found, is_large(sides.models["f32"]))
    return {"skipped": "", "parameters": parameters, "inputs": inputs, "draws": log}


@contextlib.contextmanager
def streamed(parameters: Iterable[Any], keep: Any) -> Iterator[dict[int, Any]]:
    """Inside, each gradient is given to `keep` as it is finished, so that they are never all in memory."""
    found: dict[int, Any] = {}
    once = {id(p): p for p in parameters}
    asked = {i: p.requires_grad for i, p in once.items()}

    def finished(p: Any) -> None:
        before = found.get(id(p))
        found[id(p)] = keep(p.grad if before is None else p.grad + torch.from_numpy(np.array(to_numpy(before))).to(p.dtype))
        p.grad = None

    for p in once.values():
        p.grad = None
        p.requires_grad_(True)
    handles = [p.register_post_accumulate_grad_hook(finished) for p in once.values()]
    try:
        yield found
    finally:
        for h in handles:
            h.remove()
        for i, p in once.items():
            p.grad = None
            p.requires_grad_(asked[i])


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


def trained(sides: Sides, values: Any, writer: Writer) -> dict[str, Any]:
    """One pass in train mode: outputs, and the buffers afterwards."""

    def task(model: Any, given: Any) -> Any:
        args, kwargs = given
        model.train()
        try:
            with torch.no_grad():
                output = [(p, sides.spool.keep(v)) for p, v in leaves.walk(model(*args, **kwargs))]
            names = {n for n, _ in model.named_parameters(remove_duplicate=False)}
            return output, {k: sides.spool.keep(v) for k, v in model.state_dict().items() if isinstance(v, torch.Tensor) and k not in names}
        finally:
            model.eval()

    try:
        results, log = sides.each(task, values)
    except Exception as e:
        return {"skipped": f"{type(e).__name__}: {e}"[:300]}
    state = {k: record(k, {s: r[1][k] for s, r in results.items()}, writer) for k in results["f32"][1]}
    return {"skipped": "", "outputs": record_all({s: r[0] for s, r in results.items()}, writer), "state": state, "draws": log}
