"""The stages of the JAX side that compare: each takes the converted model, and the oracle for what PyTorch gave."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from migrate.check import leaves
from migrate.check.compare import FACTOR, Difference, difference, kind
from migrate.check.draws import Draws, same_draws
from migrate.check.jax_draws import shared
from migrate.check.jax_run import Outcome, Runner
from migrate.check.lazy import Lazy
from migrate.check.stages import Skipped, StageError
from migrate.check.store import Reader
from migrate.check.tree import Tree

DTYPES = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
AT_KINKS = "on small whole numbers"


class Tasks:
    """One converted model against one oracle. What is found goes into `result`."""

    def __init__(self, model: Any, content: dict[str, Any], folder: Path, result: dict[str, Any]) -> None:
        self.model = model
        self.content = content
        self.reader = Reader(folder, content["files"])
        self.result = result
        self.state = Lazy(content["state"], self.array)
        self.runner = Runner(model)
        self.outcomes: dict[str, Outcome] = {}
        self.kept: dict[str, Any] = {}
        self.recalls = False  # whether what was seen of the submodules is asked for again, after they were compared

    # --- stages ---

    def loads(self) -> str | None:
        """The state dict, every leaf of it."""
        self.model.set_training(False)
        if not self.state:
            return "no weights"
        loaded = self.model.load(self.state)
        wrong = [
            f"{word} {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}"
            for word, names in (("missing", loaded.missing), ("unexpected", loaded.unexpected))
            if names
        ]
        if wrong:
            raise StageError("; ".join(wrong))
        self.kept = self.model.kept()
        return f"{len(loaded.loaded)} tensors"

    def shapes(self) -> str | None:
        """Runs each set of inputs; structure, shapes and dtypes of the outputs."""
        for run in self.content["runs"]:
            self.reload()  # a forward pass may change the model
            given = self.decode(run["inputs"])
            outcome = self.outcomes[run["name"]] = self.runner.run(given, record=run["name"] != "batch")
            if len(outcome.outputs) != len(run["outputs"]):
                raise StageError(f"on {run['name']} inputs: {len(outcome.outputs)} results instead of {len(run['outputs'])}")
            for (path, value), want in zip(outcome.outputs, run["outputs"], strict=True):
                if reason := _unlike(value, want):
                    raise StageError(f"on {run['name']} inputs: {_at(path)}{reason}")
            if run is not self.content["runs"][0]:
                outcome.seen = []  # it is the submodules of the first run that are compared
        return None

    def forward(self) -> str | None:
        """The values of the outputs."""
        problems, worst, skipped = [], 0.0, []
        for run in self.content["runs"]:
            outcome = self.outcomes[run["name"]]
            try:
                same_draws(run["draws"], outcome.log)
            except Skipped as e:
                skipped.append(str(e))
                continue
            for (path, value), want in zip(outcome.outputs, run["outputs"], strict=True):
                d = self.compare(value, want)
                self.result["outputs"].append(tensor_entry(f"{run['name']}{path}", d, want))
                worst = max(worst, d.units)
                if d.reason:
                    problems.append(f"on {run['name']} inputs: {_at(path)}{d.reason}")
        if problems:
            raise StageError(problems[0])
        if skipped and not self.result["outputs"]:
            raise Skipped(skipped[0])
        return f"{len(self.result['outputs'])} tensors, worst {worst:.2f} of {FACTOR:g} units"

    def submodules(self) -> str | None:
        """Each submodule in the run, then alone on scaled inputs; the first that differs."""
        run = self.content["runs"][0]
        tree = Tree(self, run["events"])
        outcome = self.outcomes[run["name"]]
        seen = list(outcome.seen)
        if not self.recalls:
            outcome.seen = []
        message = tree.judge(seen, self.result)
        if self.content.get("probes"):
            message = tree.probe(self.content["probes"], self.result) or message
        if message:
            raise StageError(message)
        return f"{sum(r['verdict'] == 'same' for r in self.result['rows'])} of {len(self.result['rows'])} compared"

    def gradients(self) -> str | None:
        """Gradients of parameters and inputs."""
        want = self.content.get("gradients")
        if not want or want["skipped"]:
            raise Skipped(want["skipped"] if want else "not in the oracle")
        self.reload()
        self._gradients(self.decode(self.content["runs"][0]["inputs"]), want["parameters"], want["inputs"], want["draws"])
        return f"{len(self.result['gradients'])} tensors"

    def kinks(self) -> str | None:
        """Values of submodules and gradients where slopes change."""
        want = self.content.get("kinks")
        if not want or want["skipped"]:
            raise Skipped(want["skipped"] if want else "not in the oracle")
        found: dict[str, Any] = {"first": None, "rows": []}
        count = len(self.result["gradients"])
        try:
            self.model.load(Lazy(want["state"], self.array))
            whole = self.model.kept()
            given = self.decode(want["inputs"])
            outcome = self.runner.run(given, record=True)
            same_draws(want["draws"], outcome.log)
            if message := Tree(self, want["events"]).judge(outcome.seen, found):
                self.result["first"] = self.result["first"] or found["first"]
                raise StageError(f"{AT_KINKS}: {message}")
            self.model.restore(whole)
            self._gradients(given, want["parameters"], want["slopes"], [], f"{AT_KINKS}: ")
        finally:
            self.reload()
        return f"{sum(r['verdict'] == 'same' for r in found['rows'])} submodules, {len(self.result['gradients']) - count} gradients"

    def _gradients(self, given: Any, parameters: dict[str, Any], inputs: list[Any], draws: list[Any], where: str = "") -> None:
        args, kwargs = given
        drawn = Draws()
        with shared(drawn):
            by_param, by_input = self.model.gradients(args, kwargs, drawn.restart)
        same_draws(draws, drawn.log)
        problems = []
        for path, names, value in self.expected(self.model.parameters, parameters):
            known = [parameters[n] for n in names if n in parameters]
            if known:
                d = difference(np.asarray(by_param.pop(path)), np.asarray(value), known[0]["dtype"], max(k["own"] for k in known))
                problems += self._gradient(path, d, known[0], where)
            elif not where and jnp.issubdtype(by_param[path].dtype, jnp.floating) and np.any(np.asarray(by_param[path])):
                self.result["notes"].append(f"parameter {path} has no counterpart in the original")
        for i, (got, leaf) in enumerate(zip(by_input, inputs, strict=False)):
            if got is not None and leaf is not None:
                problems += self._gradient(f"input {i}", self.compare(got, leaf), leaf, where)
        if problems:
            raise StageError(f"{where}gradient of {problems[0]}" + (f" (and of {len(problems) - 1} more)" if len(problems) > 1 else ""))

    def train(self) -> str | None:
        """One pass in train mode: outputs, and the running statistics afterwards."""
        want = self.content.get("train")
        if not want or want["skipped"]:
            raise Skipped(want["skipped"] if want else "not in the oracle")
        self.reload()
        self.model.set_training(True)
        try:
            outcome = self.runner.run(self.decode(self.content["runs"][0]["inputs"]), record=False)
            after = self.variables()
        finally:
            self.model.set_training(False)
        same_draws(want["draws"], outcome.log)
        got = outcome.outputs
        if len(got) != len(want["outputs"]):
            raise StageError(f"{len(got)} results in train mode instead of {len(want['outputs'])}")
        for (path, value), leaf in zip(got, want["outputs"], strict=True):
            if reason := _unlike(value, leaf) or self.compare(value, leaf).reason:
                raise StageError(f"in train mode: {_at(path)}{reason}")
        for path, names, value in self.expected(self.variables, want["state"]):
            known = [want["state"][n] for n in names if n in want["state"]]
            if known:
                d = difference(np.asarray(after[path][1]), np.asarray(value), known[0]["dtype"], max(k["own"] for k in known))
                self.result["state"].append(tensor_entry(path, d, known[0]))
                if d.reason:
                    raise StageError(f"{path} after a pass in train mode: {d.reason}")
        self.reload()
        return f"{len(got)} outputs, {len(self.result['state'])} statistics"

    def jit(self) -> str | None:
        """That all of this ran under jit."""
        if self.runner.untraceable:
            raise StageError(f"it runs, but not under jit: {self.runner.untraceable}", self.runner.frames)
        return "all of the above ran under jit"

    # --- what they share ---

    def compare(self, value: Any, leaf: dict[str, Any], given: bool = False) -> Difference:
        """A value of the converted model against a leaf of the oracle. What a module was `given` is no result, and does not count."""
        self.result["compared"] += not given
        undecided = self.reader.get(leaf["undecided"]) if "undecided" in leaf else None
        got = np.asarray(value)
        if got.dtype.kind == "V" or str(got.dtype) in ("bfloat16", "float16"):
            got = got.astype(np.float32)
        return difference(got, self.reader.get(leaf["key"]), leaf["dtype"], leaf["own"], undecided)

    def decode(self, code: Any, scale: float = 1.0) -> Any:
        """Encoded arguments as JAX arrays, floating ones times `scale`."""
        return leaves.decode(code, lambda entry: self.jax_array(entry, scale))

    def jax_array(self, entry: dict[str, Any], scale: float = 1.0) -> Any:
        """An array of the oracle in the dtype that JAX has for the original's."""
        array = self.array(entry)
        if array.dtype.kind == "f" and scale != 1:
            array = array * np.float32(scale)
        return jnp.asarray(array, dtype=DTYPES.get(entry["dtype"], entry["dtype"]))

    def array(self, entry: dict[str, Any]) -> Any:
        """An array of the oracle."""
        array = self.reader.get(entry["key"])
        if entry["dtype"].startswith("complex"):
            return array.astype(np.float32).view(np.complex64)[..., 0]
        return array

    def reload(self) -> None:
        """The original's weights, as at first."""
        self.model.restore(self.kept)

    def variables(self) -> dict[str, tuple[Any, Any]]:
        """PyTorch's names and value of each leaf, by path."""
        return {path: (names, value) for path, names, value in self.model.variables()}

    def expected(self, read: Any, entries: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
        """Path, names and value of what `read` gives, with the arrays of `entries` in the model's own layout as values: None where there is
        none."""
        placed = self.model.placed(Lazy(entries, self.array))
        for path, (names, _) in read().items():
            array = placed.get(tuple(names))
            yield path, names, array and array()

    def _gradient(self, name: str, d: Difference, leaf: dict[str, Any], where: str = "") -> list[str]:
        self.result["compared"] += 1
        self.result["gradients"].append(tensor_entry(f"{where}{name}", d, leaf))
        return [f"{name}: {d.reason}"] if d.reason else []


def tensor_entry(name: str, d: Difference, leaf: dict[str, Any]) -> dict[str, Any]:
    """One compared tensor, for the result."""
    return {
        "name": name,
        "shape": leaf["shape"],
        "dtype": leaf["dtype"],
        "error": d.error,
        "units": d.units,
        "own": leaf["own"],
        "reason": d.reason,
    }


def _at(path: str) -> str:
    return f"result {path}: " if path else ""


def _unlike(value: Any, leaf: dict[str, Any]) -> str:
    """Why shape or dtype of a value are not those of the original, or "". JAX has 32 bits where PyTorch has 64."""
    shape = list(np.shape(value))
    if shape != leaf["shape"]:
        return f"shape {tuple(shape)} instead of {tuple(leaf['shape'])}"
    dtype = str(getattr(value, "dtype", np.asarray(value).dtype))
    want = leaf["dtype"]
    if kind(dtype) != kind(want) or (dtype != want and {dtype, want} & {"bfloat16", "float16"}):
        return f"dtype {dtype} instead of {want}"
    return ""
