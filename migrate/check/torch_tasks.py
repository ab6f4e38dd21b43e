"""What else is recorded of the original: submodules on their own, gradients, a pass in train mode."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch

from migrate.check import leaves
from migrate.check.kinks import widen
from migrate.check.oracle import cotangent
from migrate.check.store import Reader, Writer
from migrate.check.torch_sides import Sides, dtype_name, record, record_all

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
    modules = {side: dict(m.named_modules()) for side, m in sides.models.items()}
    overrides = {str(s): statistics(sides.state.items(), s) for s in SCALES}
    found = []
    large = is_large(sides.models["f32"])
    for scale in SCALES:
        alike: set[tuple[str, str]] = set()
        for e in events:
            if "arguments" not in e or type(modules["f32"][e["module"]]).__name__.startswith(SKIPPED):
                continue
            about = (repr(modules["f32"][e["module"]]), str([leaf["shape"] for leaf in e["leaves"]]))
            if large and about in alike:
                continue
            alike.add(about)
            given = leaves.decode(e["arguments"], partial(_tensor, reader, scale))
            if not any(isinstance(v, torch.Tensor) and v.is_floating_point() for _, v in leaves.walk(given)):
                continue
            outputs = _alone(sides, modules, e["module"], given, scale, writer)
            if outputs is not None:
                found.append({"module": e["module"], "scale": scale, "arguments": e["arguments"], "outputs": outputs})
    kept = {s: {k: {"key": writer.add(v.numpy()), "dtype": dtype_name(v)} for k, v in o.items()} for s, o in overrides.items()}
    return {"runs": found, "override": kept}


def _tensor(reader: Reader, scale: float, entry: dict[str, Any]) -> Any:
    value = torch.from_numpy(reader.get(entry["key"]))
    if entry["dtype"].startswith("complex"):
        value = torch.view_as_complex(value)
    value = value.to(getattr(torch, entry["dtype"]))
    return value * scale if value.is_floating_point() else value


def _alone(sides: Sides, modules: Any, name: str, given: Any, scale: float, writer: Writer) -> Any:
    """The outputs of one submodule, or None where it can't be run so."""

    def task(model: Any, values: Any) -> Any:
        side = next(s for s, m in sides.models.items() if m is model)
        buffers = dict(modules[side][name].named_buffers())
        args, kwargs = values
        with torch.no_grad():
            for key, value in statistics(buffers.items(), scale).items():
                buffers[key].copy_(value)
            return list(leaves.walk(modules[side][name](*args, **kwargs)))

    try:
        results, log = sides.each(task, given)
    except Exception:
        return None
    return None if log else record_all(results, writer)


def gradients(sides: Sides, values: Any, writer: Writer) -> dict[str, Any] | None:
    """Gradients of parameters and of floating inputs, or None where the outputs do not depend on them differentiably."""

    def task(model: Any, given: Any) -> Any:
        names = dict(model.named_parameters(remove_duplicate=False))
        asked = {id(p): p.requires_grad for p in names.values()}
        for p in names.values():
            p.grad = None
            if p.is_floating_point():
                p.requires_grad_(True)
        inputs = []

        def track(v: Any) -> Any:
            if isinstance(v, torch.Tensor) and v.is_floating_point():
                inputs.append(v.requires_grad_(True))
                return inputs[-1].clone()  # a leaf may not be written to
            inputs.append(None)
            return v

        args, kwargs = leaves.rebuild(given, track)
        try:
            weighted(model(*args, **kwargs)).backward()
            return (
                {n: p.grad.clone() if p.grad is not None else torch.zeros_like(p) for n, p in names.items() if p.is_floating_point()},
                [None if x is None else x.grad.clone() if x.grad is not None else torch.zeros_like(x) for x in inputs],
            )
        finally:
            for p in names.values():
                p.grad = None
                p.requires_grad_(asked[id(p)])

    try:
        results, log = sides.each(task, values)
    except Exception as e:
        return {"skipped": f"{type(e).__name__}: {e}"[:300], "parameters": {}, "inputs": []}
    parameters = {n: record(n, {s: r[0][n] for s, r in results.items()}, writer) for n in results["f32"][0]}
    inputs = [
        None if x is None else record(str(i), {s: r[1][i] for s, r in results.items()}, writer) for i, x in enumerate(results["f32"][1])
    ]
    if "f64" in results and not is_large(sides.models["f32"]):
        widen(sides, task, values, results["f64"], lambda r: [*r[0].values(), *r[1]], [*parameters.values(), *inputs])
    return {"skipped": "", "parameters": parameters, "inputs": inputs, "draws": log}


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
                output = [(p, v.clone() if isinstance(v, torch.Tensor) else v) for p, v in leaves.walk(model(*args, **kwargs))]
            names = {n for n, _ in model.named_parameters(remove_duplicate=False)}
            return output, {k: v.clone() for k, v in model.state_dict().items() if isinstance(v, torch.Tensor) and k not in names}
        finally:
            model.eval()

    try:
        results, log = sides.each(task, values)
    except Exception as e:
        return {"skipped": f"{type(e).__name__}: {e}"[:300]}
    state = {k: record(k, {s: r[1][k] for s, r in results.items()}, writer) for k in results["f32"][1]}
    return {"skipped": "", "outputs": record_all({s: r[0] for s, r in results.items()}, writer), "state": state, "draws": log}
