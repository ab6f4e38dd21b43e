"""Runs the checker on the models of a ported project that can be built without being told how."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from migrate.port.merge import Outcome
from migrate.port.run import Plan

MOST = 200  # models; the rest is named as not checked


def checker(target: str, seconds: float = 300.0) -> Callable[[Plan, Outcome, Path], list[dict[str, Any]]]:
    """A function that checks what it can build. The code of both sides is executed."""

    def check_all(plan: Plan, outcome: Outcome, out: Path) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for path, entry in outcome.files.items():
            if entry["status"] != "converted" or not path.endswith(".py"):
                continue
            for name in candidates(plan.project / path):
                rows.append(
                    _one(plan, path, out, name, target, seconds) if len(rows) < MOST else _row(path, name, "not checked", "too many")
                )
        return rows

    return check_all


def candidates(path: Path) -> Iterator[str]:
    """What to build: the classes whose constructor needs no argument. The checker finds inputs by itself, or says that it can't."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for s in tree.body:
        if not isinstance(s, ast.ClassDef):
            continue
        methods = {m.name: m.args for m in s.body if isinstance(m, ast.FunctionDef)}
        if "forward" in methods and _needs(methods.get("__init__")) == 0:
            yield f"{s.name}()"


def _needs(args: ast.arguments | None) -> int:
    """How many arguments besides `self` a constructor can't do without."""
    if args is None:
        return 0
    return max(0, len(args.posonlyargs) + len(args.args) - 1 - len(args.defaults)) + sum(d is None for d in args.kw_defaults)


def _one(plan: Plan, path: str, out: Path, name: str, target: str, seconds: float) -> dict[str, Any]:
    from migrate.check.child import ChildError, Limits
    from migrate.check.run import FAST, CheckError, check
    from migrate.check.spec import SpecError

    root = plan.layout.roots[path]
    sides = plan.project / path, out / path
    try:
        verdict = check(
            *sides,
            model=name,
            target=target,
            roots=[plan.project / root],
            converted_roots=[out / root],
            stages=FAST,
            limits=Limits(seconds),
        )
    except (CheckError, SpecError, ChildError) as e:
        return _row(path, name, "not checked", str(e).splitlines()[0])
    return _row(path, name, "equal" if verdict.ok else "different", verdict.message)


def _row(path: str, model: str, result: str, message: str) -> dict[str, Any]:
    return {"path": path, "model": model, "result": result, "message": message}
