"""`compile_for`: what the TPU compiler makes of a converted file, for several generations, without a TPU."""

import importlib.util
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.check.child import DEFAULT, Limits, run
from migrate.check.run import CheckError
from migrate.check.spec import parse as parse_spec
from migrate.tpu.chips import CHIPS, parse

SIDE = "migrate.tpu.side"
EVERY = tuple(c.topology for c in CHIPS.values())
# The compiler asks the metadata server of a cloud for the TPU that it runs on; there is none.
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "KERAS_BACKEND": "jax",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


@dataclass(frozen=True)
class TpuReport:
    """One row a topology; `advice` is for the first. `compiles` where each of them does."""

    rows: tuple[dict[str, Any], ...]
    advice: tuple[str, ...] = ()
    weights: int = 0
    inputs: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def compiles(self) -> bool:
        """Whether it compiles, and fits, everywhere."""
        return bool(self.rows) and all(r["status"] == "compiles" for r in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        rows = [dict(r) for r in self.rows]
        return {
            "version": 1,
            "compiles": self.compiles,
            "weights": self.weights,
            "inputs": list(self.inputs),
            "rows": rows,
            "advice": list(self.advice),
        }


def available() -> str:
    """Why the TPU compiler can't be used here; "" where it can."""
    return "" if importlib.util.find_spec("libtpu") else "the TPU compiler is not installed: pip install 'migrate[tpu]'"


def compile_for(
    converted: str | Path,
    *,
    model: str | None = None,
    inputs: Sequence[str] = (),
    topologies: Iterable[str] = EVERY,
    mesh: dict[str, int] | None = None,
    dtype: str = "",
    train: bool = False,
    target: str = "flax",
    roots: Iterable[str | Path] = (),
    limits: Limits = DEFAULT,
) -> TpuReport:
    """Compiles a converted file ahead of time. Raises CheckError where it can't be built, ChildError where the process dies."""
    path = Path(converted)
    if not path.is_file():
        raise CheckError("no such file", str(path))
    if reason := available():
        raise CheckError(reason)
    for text in inputs:
        parse_spec(text)
    with tempfile.TemporaryDirectory(prefix="migrate-tpu-") as out:
        job = {
            "converted": str(path.resolve()),
            "roots": [str(r) for r in roots],
            "model": model,
            "inputs": list(inputs),
            "topologies": [parse(t).name for t in topologies],
            "mesh": mesh or {},
            "dtype": dtype,
            "train": train,
            "target": target,
            "out": out,
        }
        outcome = run(SIDE, job, limits, ENVIRONMENT | ({"KERAS_FLOATX": dtype} if dtype and target == "keras" else {}))
    if not outcome["ok"]:
        raise CheckError(outcome["message"], outcome["file"], outcome["line"])
    return TpuReport(tuple(outcome["rows"]), tuple(outcome["advice"]), outcome["weights"], tuple(outcome["inputs"]))
