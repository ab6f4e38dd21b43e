"""The JAX side of a check, run in a process of its own: needs the converted file and an oracle folder, and no torch.

`python -m migrate.check.jax_side JOB.json` reads the job and writes what became of it to `result.json` in the job's `out` folder.
"""

import contextlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from migrate.check import oracle
from migrate.check.child import limit_memory, peak_memory
from migrate.check.load import UserError, describe, evaluate, innermost, load, locate, source_line
from migrate.check.stages import Skipped, StageError


class Run:
    """Goes through the stages, to the first that fails."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.out = Path(job["out"])
        self.path = Path(job.get("converted", "."))
        self.folders = [self.path.resolve().parent, *(Path(r).resolve() for r in job["roots"])]
        self.stages: list[dict[str, Any]] = []
        self.failed = False
        self.oracle: Any = None
        self.result: dict[str, Any] = {
            "stages": self.stages,
            "rows": [],
            "outputs": [],
            "gradients": [],
            "state": [],
            "first": None,
            "notes": [],
            "compared": 0,
            "drift": [],
        }

    def stage(self, name: str, task: Callable[[], str | None], always: bool = False) -> None:
        """Does one stage, unless an earlier one failed or it was not asked for. What `task` returns is the stage's remark."""
        if name not in self.job["stages"] or (self.failed and not always):
            return
        (self.out / "progress").write_text(name)
        entry: dict[str, Any] = {"name": name, "status": "passed", "message": ""}
        start = time.perf_counter() - getattr(self.oracle, "waited", 0.0)
        try:
            entry["message"] = task() or ""
        except Skipped as e:
            entry |= {"status": "skipped", "message": str(e)}
        except (StageError, UserError) as e:
            file, line = innermost(getattr(e, "frames", ()), self.folders)
            entry |= {"status": "failed", "message": str(e), "file": file, "line": line, "source": source_line(file, line)}
        except (Exception, SystemExit) as e:
            file, line = locate(e, self.folders)
            entry |= {"status": "failed", "message": describe(e), "file": file, "line": line, "source": source_line(file, line)}
        self.failed = self.failed or entry["status"] == "failed"
        self.stages.append(entry | {"seconds": round(time.perf_counter() - getattr(self.oracle, "waited", 0.0) - start, 3)})


def parses(path: Path) -> None:
    """The file is Python."""
    import ast
    import tokenize

    with tokenize.open(path) as f:
        ast.parse(f.read(), str(path))


def construct(module: Any, content: dict[str, Any], expression: str | None, target: str, quick: bool = True) -> Any:
    """The converted model; `quick` takes initial values that are soon made."""
    rngs: Callable[[], Any] | None = None
    if target == "flax":
        from flax import nnx

        rngs = lambda: nnx.Rngs(0)
    from migrate.check.jax_draws import quick_start

    with quick_start() if quick else contextlib.nullcontext():
        value = evaluate(expression or content["model"], vars(module), rngs)
    return value[0] if content["pair"] and isinstance(value, tuple) else value


def check(job: dict[str, Any]) -> dict[str, Any]:
    """Runs the job; returns the result."""
    run = Run(job)
    target = job["target"]
    live: dict[str, Any] = {}

    def imports() -> None:
        live["module"] = load(run.path, [Path(r) for r in job["roots"]])

    def builds() -> None:
        live["model"] = construct(live["module"], live["oracle"], job.get("model"), target)

    run.stage("parses", lambda: parses(run.path))
    import_frameworks(target)
    limit_memory()
    run.oracle = live["oracle"] = oracle.Following(Path(job["oracle"])) if job.get("follow") else oracle.read(Path(job["oracle"]))
    run.stage("imports", imports)
    run.stage("builds", builds)
    if not run.failed:
        compare(run, live["model"], live["oracle"], Path(job["oracle"]))
    return run.result


def compare(run: Run, model: Any, content: dict[str, Any], folder: Path) -> None:
    """The stages from a live model on."""
    from migrate.check.jax_steps import steps
    from migrate.check.jax_tasks import Tasks
    from migrate.check.pictures import pictures
    from migrate.check.tpu_drift import predict
    from migrate.check.tpu_stage import compiles

    tasks = Tasks(adapt(model, run.job["target"]), content, folder, run.result)
    tasks.recalls = bool(run.job.get("drift") or run.job.get("pictures"))
    run.stage("loads", tasks.loads)
    run.stage("shapes", tasks.shapes)
    before = run.failed
    run.stage("forward", tasks.forward)
    if not before:
        run.stage("submodules", tasks.submodules, always=True)
    run.stage("gradients", tasks.gradients)
    run.stage("kinks", tasks.kinks)
    run.stage("train", tasks.train)
    run.stage("steps", lambda: steps(tasks))
    run.stage("jit", tasks.jit)
    if run.job.get("drift") and not run.failed:
        predict(tasks)
    run.stage("tpu", lambda: compiles(tasks, run.job["target"], run.folders))
    if run.job.get("pictures"):
        run.result["pictures"] = pictures(tasks)


def import_frameworks(target: str) -> None:
    warnings.filterwarnings("ignore")
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
    if target == "keras":
        import keras  # noqa: F401
    else:
        import flax  # noqa: F401


def adapt(model: Any, target: str) -> Any:
    if target == "keras":
        from migrate.check.keras_model import KerasModel

        return KerasModel(model)
    from migrate.check.flax_model import FlaxModel

    return FlaxModel(model)


def main() -> None:
    """Runs the job of the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    result = check(job)
    Path(job["out"], "result.json").write_text(json.dumps(result | {"peak": peak_memory()}))


if __name__ == "__main__":
    main()
