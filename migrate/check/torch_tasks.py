"""What else is recorded of the original: submodules on their own, a pass in train mode."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from migrate.check import leaves
from migrate.check.spool import dtype_name, to_numpy
from migrate.check.store import Reader, Writer
from migrate.check.torch_sides import Sides, convert, is_large, record, record_all

# Small inputs show epsilons, large ones the tails and bounds of activations.
SCALES = (0.01, 8.0)
SKIPPED = ("Dropout", "Identity")


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
    kept = {s: {k: {"key": writer.add(to_numpy(v)), "dtype": dtype_name(v)} for k, v in o.items()} for s, o in overrides.items()}
    return {"runs": found, "override": kept}


def _alone(sides: Sides, chosen: list[dict[str, Any]], scale: float, read: Any, model: Any, _: Any) -> list[Any]:
    """The outputs of each submodule, None for one that can't be run so."""
    side = sides.side
    modules = dict(model.named_modules())
    found: list[Any] = []
    for e in chosen:
        sides.draws.restart()
        module = modules[e["module"]]
        with _disable_current_modes():  # what is read is in float32
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
