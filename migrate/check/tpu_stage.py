"""The last stage: the TPU compiler takes the model."""

import os
from pathlib import Path
from typing import Any

import jax

from migrate.check.jax_tasks import Tasks
from migrate.check.stages import Skipped, StageError

TOPOLOGY = "v5e"


def compiles(tasks: Tasks, target: str, folders: list[Path]) -> str | None:
    """Ahead of time, for one device; no TPU is needed."""
    from migrate.tpu.run import ENVIRONMENT, available

    if reason := available():
        raise Skipped(reason)
    if tasks.runner.untraceable:
        raise Skipped("it can't be compiled at all")
    os.environ.update({k: v for k, v in ENVIRONMENT.items() if k not in ("JAX_PLATFORMS", "KERAS_BACKEND")})
    from migrate.tpu.chips import parse
    from migrate.tpu.measure import measure
    from migrate.tpu.prepare import prepare

    jax.config.update("jax_enable_compilation_cache", False)  # what it keeps can be loaded on a TPU only
    prepared = prepare(tasks.model.model, tasks.decode(tasks.content["runs"][0]["inputs"]), target, train=False)
    row: dict[str, Any] = measure(prepared, parse(TOPOLOGY), {}, tuple(f"{f}/" for f in folders))
    tasks.result["tpu"] = row
    if row["status"] != "compiles":
        raise StageError(f"{row['status']} for {row['topology']}: {row['message']}")
    return f"for {row['topology']}: {row['flops'] / 1e9:.2f} GFLOP, {row['needed'] / 2**30:.2f} of {row['available'] / 2**30:.2f} GiB"
