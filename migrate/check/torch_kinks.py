"""The original at points where slopes change: its weights and inputs become small whole numbers and halves, most of them zero.

Sums of such numbers come out exactly, in any order and precision, so that many values lie exactly at a kink (0 before a ReLU, a bound of a clamp, equal
elements of a window), where a converted model must take PyTorch's side. What comes out of divisions, roots and their like is exact by chance at most,
and is moved by more than rounding to see what it decides.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

from migrate.check import leaves
from migrate.check.spool import dtype_name, to_numpy
from migrate.check.store import Writer
from migrate.check.torch_gradients import backward
from migrate.check.torch_record import recording
from migrate.check.torch_sides import Sides, is_large, record

TRIES = 3  # with other numbers, where the first give no finite result
ROUNDED = 3  # runs that show what depends on rounding all the same


def kinks(sides: Sides, values: Any, writer: Writer, events: Any) -> dict[str, Any]:
    """Outputs of all submodules and gradients at such points; `events(results)` records those of the sides. Or why there is none."""
    if is_large(sides.models["f32"]):
        return {"skipped": "not for so large a model"}
    reason = ""
    for seed in range(TRIES):
        generator = np.random.RandomState([5, seed])
        state = {n: whole(t, generator, seed) for n, t in _own(sides).items()}
        given = leaves.rebuild(values, partial(_input, seed=seed))
        try:
            found, log = _runs(sides, state, given)
        except Exception as e:
            reason = f"{type(e).__name__}: {e}"[:300]
            continue
        if "f64" not in found:
            return {"skipped": "no float64 reference"}
        if all(np.isfinite(to_numpy(v)).all() for side in ("f32", "f64") for v in _results(found[side])):
            return _recorded(sides, found, state, given, writer, events) | {"draws": log}
        reason = "the original's results are not finite there"
    return {"skipped": reason}


def _own(sides: Sides) -> dict[str, Any]:
    """Parameters and running means, each once."""
    model = sides.models["f32"]
    means = {n: b for n, b in model.named_buffers() if n.rpartition(".")[2] == "running_mean"}
    return {n: t for n, t in [*model.named_parameters(), *means.items()] if t.is_floating_point() and t.numel()}


def whole(tensor: Any, generator: Any, seed: int) -> Any:
    """Small whole numbers in place of a parameter. Few in each row of a matrix, and none in some rows where there are many, so that sums stay
    small and often are 0, or what a bias says. A scale (a vector of positive numbers) is 0 half of the time: what it scales need not be exact then."""
    shape = tuple(tensor.shape)
    signs = generator.choice([-1.0, 1.0], shape)
    if tensor.numel() == 1:
        return torch.ones(shape)
    if tensor.ndim < 2:
        scale = float(tensor.detach().mean()) > 0.5
        numbers = signs if scale else signs * generator.choice([0.5, 1.0], shape)
        kept = generator.random_sample(shape) < (0.5 if seed < 2 else 1.0)
    else:
        size, many = tensor.numel() // shape[0], shape[0] >= 8
        flat = generator.random_sample((shape[0], size)) < (min(0.5, 2 / size) if many else 0.5)
        flat[np.arange(shape[0]), generator.randint(0, size, shape[0])] = True  # what has a length has one that is not 0
        if many and not seed:
            flat &= generator.random_sample((shape[0], 1)) < 0.75
        numbers, kept = signs, flat.reshape(shape)
    return torch.from_numpy(np.asarray(numbers * kept))


def _input(value: Any, seed: int) -> Any:
    """Halves near an input; without zeros where these gave no finite result."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    halves = (value.double() * 2).round().clamp(-8, 8) / 2
    return (halves if seed == 0 else torch.where(halves == 0, 0.5, halves)).to(value.dtype)


def _runs(sides: Sides, state: dict[str, Any], given: Any) -> tuple[dict[str, Any], list[Any]]:
    """What each side gives, and float64 with results rounded by chance: events, gradients of parameters, of inputs. And the draws."""

    def task(model: Any, values: Any) -> Any:
        own = dict(model.named_parameters()) | dict(model.named_buffers())
        with torch.no_grad():
            for name, value in state.items():
                own[name].copy_(value)
        with recording(model, sides.spool.keep) as found:
            by_name, by_input = backward(lambda _, g: sides.spool.keep(g), model, values)
        return found.events, by_name, by_input

    results, log = sides.each(task, given, ("f32", "f64"), whole=True)
    for seed in range(ROUNDED if "f64" in results else 0):
        results[f"rounded {seed}"] = sides.only("f64", task, given, True, rounding=seed, wary=True)[0]
    return results, log


def _results(found: Any) -> list[Any]:
    outputs = [v for _, v in found[0][-1].values]
    return [v for v in (*outputs, *found[1].values(), *found[2]) if v is not None]


def _recorded(sides: Sides, found: dict[str, Any], state: dict[str, Any], given: Any, writer: Writer, events: Any) -> dict[str, Any]:
    def put(value: Any) -> dict[str, Any]:
        return {"key": writer.add(to_numpy(value)), "dtype": dtype_name(value)}

    plain = found["f32"]
    names = {id(t): n for n, t in _own(sides).items()}
    entries = sides.models["f32"].state_dict(keep_vars=True).items()
    return {
        "skipped": "",
        "inputs": leaves.encode(given, put),
        "state": {n: put(state[names[id(t)]].to(t.dtype)) for n, t in entries if id(t) in names},
        "events": events({s: r[0] for s, r in found.items()}),
        "parameters": {n: record(n, {s: r[1][n] for s, r in found.items()}, writer) for n in plain[1]},
        "slopes": [None if x is None else record(str(i), {s: r[2][i] for s, r in found.items()}, writer) for i, x in enumerate(plain[2])],
    }
