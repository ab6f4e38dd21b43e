"""Compiles a converted model for TPUs, in a process of its own that needs no TPU and no torch.

`python -m migrate.tpu.side JOB.json` reads the job and writes what became of it to `result.json` in the job's `out` folder.
"""

import json
import sys
from pathlib import Path
from typing import Any

from migrate.check.child import limit_memory
from migrate.check.jax_side import construct, import_frameworks
from migrate.check.load import UserError, describe, load, locate
from migrate.tpu.advice import advise
from migrate.tpu.chips import Topology, TopologyError, parse
from migrate.tpu.measure import measure
from migrate.tpu.prepare import Prepared, arguments, cast, prepare


def compile_all(job: dict[str, Any]) -> dict[str, Any]:
    """The rows of the report."""
    import jax

    import_frameworks(job["target"])
    jax.config.update("jax_default_matmul_precision", "default")
    jax.config.update("jax_traceback_in_locations_limit", 40)
    jax.config.update("jax_enable_compilation_cache", False)  # what it keeps can be loaded on a TPU only
    limit_memory()
    path = Path(job["converted"])
    module = load(path, [Path(r) for r in job["roots"]])
    folders = tuple(str(Path(f).resolve()) + "/" for f in (path.resolve().parent, *job["roots"]))
    model, given = build(module, job)
    prepared = prepare(model, given, job["target"], job["train"])
    if job["dtype"]:
        prepared = _cast(prepared, job["dtype"])
    rows, advice = [], []
    for n, topology in enumerate(parse(t) for t in job["topologies"]):
        row = measure(prepared, topology, job["mesh"], folders)
        rows.append(row)
        if n == 0:
            narrow = None if job["dtype"] or job["target"] == "keras" else _narrow(prepared, topology, job, folders, row)
            advice = list(advise(row, narrow, job["mesh"]))
        if row["status"] == "does not trace":
            break  # no compiler is involved yet
    weights = sum(leaf.size * getattr(leaf.dtype, "itemsize", 4) for leaf in jax.tree.leaves(prepared.weights))
    shown = [f"{v.dtype}{list(v.shape)}" for v in jax.tree.leaves(prepared.inputs)]
    return {"ok": True, "rows": rows, "advice": advice, "weights": int(weights), "inputs": shown}


def build(module: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    """The model and the arguments of its call, as shapes where that is possible: a large model need not exist to be compiled."""
    expression = job["model"] or ("make()" if callable(vars(module).get("make")) else None)
    if expression is None:
        raise UserError('say what to build with --model "Net(...)"')

    def make(quick: bool = True) -> Any:
        value = construct(module, {"model": expression, "pair": False}, None, job["target"], quick)
        return value if isinstance(value, tuple) and len(value) == 2 and callable(value[0]) else (value, None)

    if job["target"] == "flax":
        from flax import nnx

        try:
            model, own = nnx.eval_shape(lambda: make(quick=False))
        except Exception:  # it looks at values while it is built
            model, own = make()
    else:
        model, own = make()
    if own is None and not job["inputs"]:
        raise UserError('say what to run it on with --input "f32[8,3,224,224]"')
    return model, arguments(job["inputs"], own)


def _cast(prepared: Prepared, dtype: str) -> Prepared:
    return Prepared(prepared.function, cast(prepared.weights, dtype), cast(prepared.inputs, dtype))


def _narrow(prepared: Prepared, topology: Topology, job: dict[str, Any], folders: tuple[str, ...], row: dict[str, Any]) -> Any:
    """The same in bfloat16, to say what that would save."""
    if row["status"] not in ("compiles", "does not fit"):
        return None
    return measure(_cast(prepared, "bfloat16"), topology, job["mesh"], folders)


def main() -> None:
    """Runs the job of the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    try:
        outcome = compile_all(job)
    except (UserError, TopologyError) as e:
        outcome = {"ok": False, "message": str(e), "file": "", "line": 0}
    except (Exception, SystemExit) as e:
        file, line = locate(e, [Path(job["converted"]).resolve().parent])
        outcome = {"ok": False, "message": describe(e), "file": file, "line": line}
    Path(job["out"], "result.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
