"""Builds a converted model, loads a checkpoint into it and saves the model's weights; run in a process of its own.

`python -m migrate.check.weights_side JOB.json`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from migrate.check.checkpoint import CheckpointError, read
from migrate.check.child import limit_memory
from migrate.check.jax_side import adapt, construct, import_frameworks
from migrate.check.load import UserError, describe, load, locate


def convert(job: dict[str, Any]) -> dict[str, Any]:
    """Does the job; returns what became of each tensor."""
    state, place = read(Path(job["checkpoint"]), job["key"])
    import_frameworks(job["target"])
    limit_memory()
    module = load(Path(job["converted"]), [Path(r) for r in job["roots"]])
    value = construct(module, {"model": job["model"], "pair": True}, None, job["target"])
    model = adapt(value, job["target"])
    try:
        loaded = model.load(state)
    except ValueError as e:
        raise UserError(str(e)) from None
    outcome = {
        "ok": True,
        "place": place,
        "loaded": list(loaded.loaded),
        "missing": list(loaded.missing),
        "unexpected": list(loaded.unexpected),
    }
    if (loaded.missing or loaded.unexpected) and not job["partial"]:
        return outcome
    save(model, Path(job["file"]))
    return outcome


def save(model: Any, path: Path) -> None:
    """Safetensors with the paths of the model's variables; Keras' own format where the name says so."""
    if path.name.endswith(".weights.h5"):
        model.model.save_weights(path)
        return
    import jax.numpy as jnp
    from safetensors.flax import save_file

    save_file({p: jnp.asarray(v) for p, _, v in model.variables()}, path)


def main() -> None:
    """Runs the job of the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    try:
        outcome = convert(job)
    except (UserError, CheckpointError) as e:
        outcome = {"ok": False, "message": str(e), "file": job["checkpoint"] if isinstance(e, CheckpointError) else "", "line": 0}
    except (Exception, SystemExit) as e:
        file, line = locate(e, [Path(job["converted"]).resolve().parent])
        outcome = {"ok": False, "message": describe(e), "file": file, "line": line}
    Path(job["out"], "result.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
