"""The original trained for a few steps with the usual optimisers: losses, and all that is in the state dict afterwards."""

from typing import Any

import torch

from migrate.check import leaves
from migrate.check.kinks import widen
from migrate.check.store import Writer
from migrate.check.torch_gradients import weighted
from migrate.check.torch_sides import Sides, is_large, record

STEPS = 3
CHANGE = 0.01  # of the size of all parameters together, in one step


def stepped(sides: Sides, values: Any, writer: Writer) -> dict[str, Any]:
    """What a few steps of each optimiser do. Rates are chosen so that a step changes the parameters by about a hundredth."""
    parameters = {n: p for n, p in sides.models["f32"].named_parameters() if p.is_floating_point()}
    if not parameters:
        return {"skipped": "no parameters", "runs": {}}
    large = is_large(sides.models["f32"])
    try:
        size, slope = _scales(sides, values)
        if not (slope > 0 and torch.isfinite(torch.tensor(slope))):
            return {"skipped": "the gradients are zero or not finite", "runs": {}}
        runs = {}
        for name, options in _optimisers(size, slope).items():
            if not (large and name == "sgd"):
                runs[name] = _run(sides, values, writer, name, options, 1 if large else STEPS)
    except Exception as e:
        return {"skipped": f"{type(e).__name__}: {e}"[:300], "runs": {}}
    return {"skipped": "", "runs": runs}


def _optimisers(size: float, slope: float) -> dict[str, dict[str, Any]]:
    # Decays that float32 holds exactly: optax takes 1 - decay**step in float32, and 1 - 0.999 is off by a hundred roundings there.
    # AdamW divides gradients by their own size: with its usual epsilon, one that is only rounding would move a parameter as far as any.
    return {
        "sgd": {"lr": CHANGE * size / slope, "momentum": 0.875},
        "adamw": {"lr": 1e-3, "eps": 1e-3 * slope, "betas": (0.875, 0.99609375), "weight_decay": 0.05},
    }


def _scales(sides: Sides, values: Any) -> tuple[float, float]:
    """Root mean squares of all parameters and of their gradients."""

    def task(model: Any, given: Any) -> tuple[float, float]:
        with _Training(model) as names:
            _backward(model, given)
            count = sum(p.numel() for p in names.values())
            grads = [p.grad for p in names.values() if p.grad is not None]
            size, slope = (sum(float((v.detach().double() ** 2).sum()) for v in vs) for vs in (names.values(), grads))
            return (size / count) ** 0.5, (slope / count) ** 0.5

    results, _ = sides.only("f32", task, values)
    found: tuple[float, float] = results
    return found


def _run(sides: Sides, values: Any, writer: Writer, name: str, options: dict[str, Any], steps: int) -> dict[str, Any]:
    def task(model: Any, given: Any) -> Any:
        with _Training(model) as names:
            make = torch.optim.SGD if name == "sgd" else torch.optim.AdamW
            optimiser = make(names.values(), **options)
            losses = []
            for _ in range(steps):
                sides.draws.restart()  # the same draws in each step, so that one compiled step serves all
                optimiser.zero_grad()
                losses.append(_backward(model, given).detach())
                for p in names.values():  # PyTorch leaves a parameter alone that got no gradient, even its decay; optax does not
                    p.grad = torch.zeros_like(p) if p.grad is None else p.grad
                optimiser.step()
            state = {k: sides.spool.keep(v) for k, v in model.state_dict().items() if isinstance(v, torch.Tensor)}
            return losses, state

    results, log = sides.each(task, values, whole=True)
    losses = [record(str(i), {s: r[0][i] for s, r in results.items()}, writer) for i in range(steps)]
    state = {k: record(k, {s: r[1][k] for s, r in results.items()}, writer) for k in results["f32"][1]}
    if "f64" in results:
        widen(sides, task, values, results["f64"], _all, [*losses, *state.values()], is_large(sides.models["f32"]))
    return {"options": options, "steps": steps, "draws": log, "losses": losses, "state": state}


def _all(result: Any) -> list[Any]:
    return [*result[0], *result[1].values()]


def _backward(model: Any, given: Any) -> Any:
    # a leaf of the inputs may be written to, so each pass gets its own
    args, kwargs = leaves.rebuild(given, lambda v: v.clone() if isinstance(v, torch.Tensor) else v)
    loss = weighted(model(*args, **kwargs))
    loss.backward()
    return loss


class _Training:
    """Train mode with gradients for every floating parameter, and all as before afterwards."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.names = {n: p for n, p in model.named_parameters() if p.is_floating_point()}
        self.asked = {n: p.requires_grad for n, p in self.names.items()}

    def __enter__(self) -> dict[str, Any]:
        self.model.train()
        for p in self.names.values():
            p.grad = None
            p.requires_grad_(True)
        return self.names

    def __exit__(self, *_: Any) -> None:
        self.model.eval()
        for n, p in self.names.items():
            p.grad = None
            p.requires_grad_(self.asked[n])
