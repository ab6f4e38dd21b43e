"""The converted model trained for a few steps, with optax's optimisers, against what PyTorch's did."""

from typing import Any

import jax
import numpy as np
import optax

from migrate.check.draws import Draws, same_draws
from migrate.check.jax_draws import shared
from migrate.check.jax_tasks import Tasks, tensor_entry
from migrate.check.stages import Skipped, StageError


def steps(tasks: Tasks) -> str | None:
    """Losses and the state after a few steps of each optimiser."""
    want = tasks.content.get("steps")
    if not want or want["skipped"]:
        raise Skipped(want["skipped"] if want else "not in the oracle")
    args, kwargs = tasks.decode(tasks.content["runs"][0]["inputs"])
    done = []
    for name, run in want["runs"].items():
        tasks.reload()
        tasks.model.set_training(True)
        try:
            losses, log = tasks.model.train_steps(args, kwargs, optimiser(name, run["options"]), run["steps"])
            after = tasks.variables()
        finally:
            tasks.model.set_training(False)
        same_draws(run["draws"], log)
        problems = [
            f"loss {i + 1}: {d.reason}"
            for i, (got, leaf) in enumerate(zip(losses, run["losses"], strict=True))
            if (d := tasks.compare(got, leaf)).reason
        ]
        problems = problems or _state(tasks, name, run, after)
        if problems:
            raise StageError(f"after {run['steps']} steps of {name}: {problems[0]}")
        done.append(f"{run['steps']} of {name}")
    tasks.reload()
    return ", ".join(done)


def optimiser(name: str, options: dict[str, Any]) -> Any:
    """optax's counterpart of PyTorch's optimiser."""
    if name == "sgd":
        return optax.sgd(options["lr"], momentum=options["momentum"])
    b1, b2 = options["betas"]
    return optax.adamw(options["lr"], b1=b1, b2=b2, eps=options["eps"], weight_decay=options["weight_decay"])


def descend(gradients: Any, params: Any, rest: Any, optimiser: Any, count: int) -> tuple[Any, Any, list[Any], list[Any]]:
    """`count` steps; `gradients(params, rest)` gives ((loss, rest afterwards), gradients). Parameters, rest, losses and draws."""

    def update(params: Any, grads: Any, held: Any) -> Any:
        changes, held = optimiser.update(grads, held, params)
        return optax.apply_updates(params, changes), held

    draws = Draws()
    with shared(draws):
        run = jax.jit(gradients)
        held, losses = optimiser.init(params), []
        apply = jax.jit(update)
        for _ in range(count):
            if run is gradients:
                draws.restart()  # each step has the same numbers, as it has under jit
            try:
                (loss, rest), grads = run(params, rest)
            except Exception:
                if run is gradients:
                    raise
                draws.restart()
                run = gradients  # it can't be traced: the stage for that says so
                (loss, rest), grads = run(params, rest)
            params, held = apply(params, grads, held)
            losses.append(loss)
    return params, rest, losses, draws.log


def _state(tasks: Tasks, optimiser: str, run: dict[str, Any], after: Any) -> list[str]:
    from migrate.check.compare import difference

    problems = []
    for path, names, value in tasks.expected(tasks.variables, run["state"]):
        known = [run["state"][n] for n in names if n in run["state"]]
        if known:
            d = difference(np.asarray(after[path][1]), np.asarray(value), known[0]["dtype"], max(k["own"] for k in known))
            tasks.result["compared"] += 1
            tasks.result["state"].append(tensor_entry(f"{path} after {optimiser}", d, known[0]))
            problems += [f"{path}: {d.reason}"] if d.reason else []
    return problems
