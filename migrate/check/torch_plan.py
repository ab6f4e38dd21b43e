"""What of a file can be checked, found out by trying: run in a process of its own, with PyTorch.

`python -m migrate.check.torch_plan JOB.json` builds each class of the file that it can and looks for inputs that it takes.
"""

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import torch

from migrate.check.child import limit_memory
from migrate.check.guess import constructions, expression
from migrate.check.load import UserError, describe, load, locate, source_line
from migrate.check.main_block import demonstrated
from migrate.check.torch_side import FIND_MODEL
from migrate.check.trial import find_inputs


def plan(job: dict[str, Any]) -> list[dict[str, Any]]:
    """An entry for each class: `expression` and `inputs`, or `reason`; `part_of` names the class that has it as a submodule."""
    path = Path(job["original"])
    module = load(path, [Path(r) for r in job["roots"]])
    names = vars(module)
    for name, call in FIND_MODEL:
        if callable(names.get(name)):
            return [_entry(name) | {"expression": call}]
    classes = {n: c for n, c in names.items() if isinstance(c, type) and issubclass(c, torch.nn.Module) and c.__module__ == module.__name__}
    found: dict[str, dict[str, Any]] = {}
    part_of: dict[str, str] = {}
    for name, cls in reversed(classes.items()):  # what is defined last holds the others, usually, and need not be tried apart from it
        if name in part_of:
            continue
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found[name], parts = _one(path, names, name, cls)
        if not found[name]["reason"]:
            part_of |= {n: name for n, c in classes.items() if c is not cls and c in parts and n not in part_of}
    return [found.get(n, _entry(n)) | {"part_of": part_of.get(n, "")} for n in classes]


def _entry(name: str) -> dict[str, Any]:
    return {"name": name, "expression": "", "inputs": [], "reason": "", "part_of": ""}


def _one(path: Path, names: dict[str, Any], name: str, cls: type) -> tuple[dict[str, Any], set[type]]:
    entry = _entry(name)
    if "forward" not in {k for c in cls.__mro__ if c is not torch.nn.Module for k in vars(c)}:
        return entry | {"reason": "it has no forward"}, set()
    shown, given = demonstrated(path, names, cls)
    guessed = [expression(name, arguments) for arguments in constructions(cls, names)]
    tried = [shown, *guessed] if shown else guessed
    reason, parts = "", set()
    for text in tried:
        torch.manual_seed(0)
        try:
            model = eval(text, dict(names)).eval()
        except Exception as e:
            reason = reason or f"{text} fails: {describe(e)}"
            continue
        parts = {type(m) for m in model.modules()}
        inputs, problem = (given, "") if given and text == shown else find_inputs(model)
        if inputs:
            return entry | {"expression": text, "inputs": list(inputs)}, parts
        reason = f"no inputs were found for {text}: {problem}" if not reason or "fails:" in reason else reason
        if text == shown:
            break
    return entry | {"reason": reason[:400] or "what it is built with can't be guessed"}, parts


def main() -> None:
    """Runs the job of the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    limit_memory()
    try:
        outcome: dict[str, Any] = {"ok": True, "entries": plan(job)}
    except UserError as e:
        outcome = {"ok": False, "message": str(e), "file": e.file, "line": e.line}
    except (Exception, SystemExit) as e:
        file, line = locate(e, [Path(job["original"]).resolve().parent, *(Path(r) for r in job["roots"])])
        outcome = {"ok": False, "message": describe(e), "file": file, "line": line, "source": source_line(file, line)}
    Path(job["out"], "result.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
