"""The PyTorch side of a check, run in a process of its own: builds the original, runs it, and writes an oracle folder.

`python -m migrate.check.torch_side JOB.json` reads the job and writes what became of it to `result.json` in the oracle folder.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from migrate.check import leaves, oracle
from migrate.check.child import limit_memory, peak_memory
from migrate.check.load import UserError, class_place, describe, evaluate, load, locate, source_line
from migrate.check.perturb import perturb
from migrate.check.spec import Spec, array, parse
from migrate.check.spool import dtype_name, to_numpy
from migrate.check.store import Writer
from migrate.check.torch_gradients import gradients, unseen
from migrate.check.torch_kinks import kinks
from migrate.check.torch_record import recording
from migrate.check.torch_sides import Sides, convert, record_all
from migrate.check.torch_steps import stepped
from migrate.check.torch_tasks import FunctionModule, probes, trained
from migrate.check.trial import find_inputs

FIND_MODEL = (("make", "make()"), ("get_model", "get_model()"))


def build(module: Any, expression: str | None) -> tuple[Any, Any, str, bool]:
    """The model, example inputs of its own (None where it has none), the expression, and whether that gives a pair."""
    names = vars(module)
    own_inputs = None
    if not expression:
        expression = find_model(names, module.__name__)
    torch.manual_seed(0)
    value = evaluate(expression, names)
    pair = isinstance(value, tuple) and len(value) == 2 and callable(value[0])
    if pair:
        value, own_inputs = value
    elif callable(names.get("get_inputs")):
        own_inputs = names["get_inputs"]()
    if not callable(value):
        raise UserError(f"`{expression}` gives a {type(value).__name__}, not a model")
    return value if isinstance(value, torch.nn.Module) else FunctionModule(value), own_inputs, expression, pair


def find_model(names: dict[str, Any], module: str) -> str:
    """What to build where nobody said: a factory that the file has, or the only class that needs no arguments."""
    for name, call in FIND_MODEL:
        if callable(names.get(name)):
            return call
    if "get_init_inputs" in names and "Model" in names:
        return "Model(*get_init_inputs())"
    classes = [n for n, c in names.items() if isinstance(c, type) and issubclass(c, torch.nn.Module) and c.__module__ == module]
    good = [n for n in classes if _buildable(names[n])]
    if len(good) != 1:
        which = (
            f"these need no arguments: {', '.join(good)}"
            if good
            else f"no class can be built without arguments ({', '.join(classes) or 'there is none'})"
        )
        raise UserError(f'say what to build with --model "Net(...)"; {which}')
    return f"{good[0]}()"


def _buildable(cls: Any) -> bool:
    try:
        cls()
    except Exception:
        return False
    return True


def example_inputs(specs: list[str], own: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments for forward."""
    if not specs:
        if own is None:
            raise UserError('say what to run it on with --input "f32[2,3,32,32]"')
        if isinstance(own, dict):
            return (), own
        return (tuple(own) if isinstance(own, list | tuple) else (own,)), {}
    parsed = [parse(s) for s in specs]
    return tuple(_value(s, i) for i, s in enumerate(parsed) if not s.keyword), {
        s.keyword: _value(s, i) for i, s in enumerate(parsed) if s.keyword
    }


def _value(spec: Spec, seed: int) -> Any:
    if not spec.dtype:
        return spec.value
    tensor = torch.from_numpy(np.asarray(array(spec, seed)))
    return tensor.to(torch.bfloat16) if spec.dtype == "bfloat16" else tensor


def input_sets(values: Any) -> dict[str, Any]:
    """The inputs as given, made small (what an epsilon does shows there), and with one more item in the batch."""
    sets = {"random": values}
    tensors = [v for _, v in leaves.walk(values) if isinstance(v, torch.Tensor)]
    if any(v.is_floating_point() for v in tensors):
        sets["small"] = leaves.rebuild(values, lambda v: v * 0.01 if isinstance(v, torch.Tensor) and v.is_floating_point() else v)
    sizes = {v.shape[0] if v.ndim else 0 for v in tensors}
    if len(sizes) == 1 and sizes != {0}:
        sets["batch"] = leaves.rebuild(values, _one_more)
    return sets


def _one_more(v: Any) -> Any:
    extra = v[:1].flip(-1) if v.ndim > 1 else v[:1]
    return torch.cat([v, extra * 0.7 if v.is_floating_point() else extra])


class Oracle:
    """Collects the oracle of one model."""

    def __init__(self, model: Any, again: Any, values: Any, writer: Writer, change: bool) -> None:
        self.writer = writer
        self.values = values
        self.notes: list[str] = []
        model.eval()
        self._try(model, values)  # what the user asked for must run before anything is changed
        if change and (note := perturb(model, lambda: self._try(model, values))):
            self.notes.append(note)
        self.sides = Sides(model, again)
        self.model = model

    def _try(self, model: Any, values: Any) -> Any:
        args, kwargs = convert("f32", values)
        with torch.no_grad():
            return model(*args, **kwargs)

    def put(self, value: Any) -> dict[str, Any]:
        """Stands for a tensor in encoded arguments."""
        return {"key": self.writer.add(to_numpy(value)), "dtype": dtype_name(value)}

    def run(self, name: str, values: Any) -> dict[str, Any]:
        """One set of inputs: outputs, and for the first set what each submodule did."""
        full = name == "random"

        def task(model: Any, given: Any) -> Any:
            args, kwargs = given
            with torch.no_grad():
                if not full:
                    return [(p, v) for p, v in leaves.walk(model(*args, **kwargs))], []
                with recording(model, self.sides.spool.keep) as found:
                    output = model(*args, **kwargs)
                return [(p, v) for p, v in leaves.walk(output)], found.events

        results, log = self.sides.each(task, values)
        entry = {"name": name, "inputs": leaves.encode(values, self.put), "draws": log}
        entry["outputs"] = record_all({s: r[0] for s, r in results.items()}, self.writer)
        if full:
            entry["events"] = self.events({s: r[1] for s, r in results.items()})
        return entry

    def events(self, results: dict[str, Any]) -> list[dict[str, Any]]:
        """Events of all sides as one record."""
        plain = results["f32"]
        order = [(e.at, e.module, e.call) for e in plain]
        usable = {s: r for s, r in results.items() if [(e.at, e.module, e.call) for e in r] == order}
        found = []
        for i, e in enumerate(plain):
            entry: dict[str, Any] = {"at": e.at, "module": e.module, "call": e.call}
            entry["leaves"] = record_all({s: r[i].values for s, r in usable.items()}, self.writer)
            if e.at == "enter" and e.module and e.call == 0 and e.arguments is not None:
                source = usable.get("f64", plain)[i]
                entry["arguments"] = _arguments(source.arguments, entry["leaves"])
            found.append(entry)
        return found

    def state(self) -> dict[str, Any]:
        """The state dict, and which of it are parameters."""
        parameters = {n for n, _ in self.model.named_parameters(remove_duplicate=False)}
        return {
            k: {"key": self.writer.add(to_numpy(v)), "dtype": dtype_name(v), "shape": list(v.shape), "parameter": k in parameters}
            for k, v in self.sides.state.items()
        }

    def modules(self) -> dict[str, Any]:
        """Class and place of each submodule."""
        found = {}
        for name, m in self.model.named_modules():
            file, line = class_place(type(m))
            found[name] = {"class": type(m).__name__, "file": file, "line": line, "leaf": not any(True for _ in m.children())}
        return found


def _arguments(code: Any, recorded: list[dict[str, Any]]) -> Any:
    """The arguments of a call with each tensor replaced by where its reference was kept; tensors come in the order of `recorded`."""
    arrays = iter(recorded)

    def replace(c: Any) -> Any:
        if "array" in c:
            r = next(arrays)
            return {"array": {"key": r["key"], "dtype": r["dtype"]}}
        if "float" in c or ("value" in c and isinstance(c["value"], int | float) and c["value"] is not None):
            next(arrays)
            return c
        for k in ("list", "tuple"):
            if k in c:
                return {k: [replace(v) for v in c[k]]}
        return {"dict": [[k, replace(v)] for k, v in c["dict"]]} if "dict" in c else c

    return replace(code)


def make(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The whole oracle of a job, as the JSON that goes with its arrays."""
    path = Path(job["original"])
    module = load(path, [Path(r) for r in job["roots"]])
    try:
        model, own, expression, pair = build(module, job["model"])
    except (UserError, SystemExit):
        raise
    except Exception as e:
        file, line = locate(e, job_folders(job))
        raise UserError(f"`{job['model'] or 'make()'}` fails: {describe(e)}", file, line) from None
    specs = job["inputs"] or (searched(model) if own is None else [])
    about = {"source": str(path), "model": expression, "pair": pair, "shown": specs or [f"those of {expression}"]}
    values = example_inputs(specs, own)
    oracle.publish(folder, about)

    def publish(content: dict[str, Any]) -> None:
        oracle.publish(folder, about | content)

    return about | of_model(model, lambda: build(module, expression)[0], values, folder, job["stages"], publish=publish)


def searched(model: Any) -> list[str]:
    """Inputs found by trial."""
    model.eval()
    found, problem = find_inputs(model)
    if not found:
        raise UserError(f'say what to run it on with --input "f32[2,3,32,32]"; no likely shape runs; the first: {problem}')
    return list(found)


def of_model(
    model: Any,
    again: Any,
    values: Any,
    folder: Path,
    stages: Sequence[str],
    change: bool = True,
    publish: Callable[[dict[str, Any]], None] = lambda content: None,
) -> dict[str, Any]:
    """The oracle of a live model on `values` (args and kwargs). `again` builds another one; `change` allows to perturb the weights. `publish`
    gets what there is after each part."""
    writer = Writer(folder)
    maker = Oracle(model, again, values, writer, change)
    runs = []
    for name, given in input_sets(values).items():
        try:
            runs.append(maker.run(name, given))
        except leaves.Unportable as e:
            raise UserError(
                f"the inputs contain {e}, which the other side can't build; give --input or a make() that returns tensors, lists and dicts"
            ) from None
        except Exception:
            if name == "random":
                raise
            maker.notes.append(f"inputs `{name}` left out: the original does not take them")
    content: dict[str, Any] = {
        "version": oracle.VERSION,
        "torch": torch.__version__,
        "runs": runs,
        "function": isinstance(model, FunctionModule),
        "state": maker.state(),
        "modules": maker.modules(),
    }
    rest: dict[str, tuple[str, Callable[[], Any]]] = {
        "submodules": ("probes", lambda: probes(maker.sides, runs[0]["events"], writer)),
        "gradients": ("gradients", lambda: gradients(maker.sides, values, writer)),
        "kinks": ("kinks", lambda: kinks(maker.sides, values, writer, maker.events)),
        "train": ("train", lambda: trained(maker.sides, values, writer)),
        "steps": ("steps", lambda: stepped(maker.sides, values, writer)),
    }
    for stage, (key, make_part) in rest.items():
        writer.flush()
        publish(content | {"files": writer.files})
        content[key] = make_part() if stage in stages else None
    if content["gradients"]:
        content["unseen"] = unseen(content["gradients"])
    if maker.sides.failed:
        maker.notes.append(f"no float64 reference: {maker.sides.failed}")
    writer.flush()
    return content | {"notes": maker.notes, "files": writer.files}


def job_folders(job: dict[str, Any]) -> list[Path]:
    """Where the user's code lies."""
    return [Path(job["original"]).resolve().parent, *(Path(r).resolve() for r in job["roots"])]


def main() -> None:
    """Runs the job of the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    limit_memory()
    folder = Path(job["out"])
    try:
        content = make(job, folder)
        oracle.write(folder, content)
        outcome: dict[str, Any] = {"ok": True}
    except UserError as e:
        outcome = {"ok": False, "message": str(e), "file": e.file, "line": e.line}
    except (Exception, SystemExit) as e:
        file, line = locate(e, job_folders(job))
        outcome = {"ok": False, "message": describe(e), "file": file, "line": line, "source": source_line(file, line)}
    (folder / "result.json").write_text(json.dumps(outcome | {"peak": peak_memory()}))


if __name__ == "__main__":
    main()
