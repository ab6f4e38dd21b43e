"""What a TPU's default precision does to the results of each submodule: predicted on the CPU, measured on a TPU."""

from typing import Any

import jax
import numpy as np

from migrate.check.jax_record import Seen
from migrate.check.jax_run import Outcome, Runner
from migrate.check.jax_tasks import Tasks


def predict(tasks: Tasks) -> None:
    """Fills `drift` of the result, in the order in which submodules finish."""
    run = tasks.content["runs"][0]
    exact = tasks.outcomes[run["name"]]
    skipped: set[str] = set()
    tasks.reload()
    tasks.model.set_training(False)
    try:
        coarse = _coarse(tasks, tasks.decode(run["inputs"]), skipped)
    except Exception as e:
        tasks.result["notes"].append(f"TPU drift: not predicted, {type(e).__name__}: {' '.join(str(e).split())[:200]}")
        return
    if skipped:
        tasks.result["notes"].append(f"TPU drift: products inside {', '.join(sorted(skipped))} were left in float32")
    before, after = _exits(exact.seen), _exits(coarse.seen)
    for name, values in before.items():
        if name in after and len(after[name]) == len(values):
            tasks.result["drift"].append({"module": name} | drift(values, after[name]))


def _coarse(tasks: Tasks, given: Any, skipped: set[str]) -> Outcome:
    if jax.default_backend() != "tpu":
        return tasks.runner.rounded(given, skipped)
    with jax.default_matmul_precision("default"):  # no need to predict
        return Runner(tasks.model).run(given, record=True)


def _exits(seen: list[Seen]) -> dict[str, list[Any]]:
    """The floating results of each submodule's last call."""
    found = {}
    for at, name, _, values in seen:
        if at == "exit":
            arrays = [np.asarray(v, np.float64) for _, v in values if getattr(v, "dtype", None) == np.float32]
            if arrays:
                found[name] = arrays
    return found


def drift(exact: list[Any], coarse: list[Any]) -> dict[str, float]:
    """The root mean square and the largest of the differences, relative to the root mean square of the results."""
    a = np.concatenate([v.ravel() for v in exact])
    b = np.concatenate([v.ravel() for v in coarse])
    if a.shape != b.shape:
        return {"typical": float("nan"), "largest": float("nan")}
    fine = np.isfinite(a) & np.isfinite(b)
    a, b = a[fine], b[fine]
    size = float(np.sqrt(np.mean(a**2))) if a.size else 0.0
    if not size:
        return {"typical": 0.0, "largest": 0.0}
    return {"typical": float(np.sqrt(np.mean((a - b) ** 2))) / size, "largest": float(np.abs(a - b).max()) / size}
