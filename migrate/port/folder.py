"""A folder converted in parts, as `convert_path` does: the same parts for any number of processes."""

import ast
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from migrate.diagnostics import Diagnostic
from migrate.pipeline import Conversion
from migrate.port.layout import Layout
from migrate.port.merge import disagreements
from migrate.port.parts import divide
from migrate.port.pool import Processes
from migrate.port.run import Engine, Options, Plan, convert, results, scans
from migrate.port.scan import Scan
from migrate.port.store import Store, tool_version
from migrate.port.work import Here
from migrate.source.installed import folder_of

FINDERS = ("__file__", "__path__", "resources", "get_data", "files")


@dataclass(frozen=True)
class Placed:
    """A file of the folder: its module, for the places of the output."""

    name: str
    path: Path

    whole = True

    @property
    def package(self) -> bool:
        """Whether it is the `__init__` of one."""
        return self.path.name == "__init__.py"

    @cached_property
    def tree(self) -> ast.Module:
        """Parsed, where it may look for files beside itself."""
        text = self.path.read_bytes()
        return ast.parse(text) if any(f.encode() in text for f in FINDERS) else ast.Module([], [])


def convert_folder(
    folder: Path, names: dict[Path, str], roots: Sequence[Path], support: str, target: str, jobs: int, plans: bool = False
) -> tuple[dict[Path, Conversion], dict[str, Placed]] | None:
    """The conversions by path and the modules by name. None where the folder needs modules from elsewhere: then all is one unit.

    `plans`: the conversions keep their plans of edits; all is done in this process.
    """
    kept: dict[Path, Conversion] = {}
    paths = {p.relative_to(folder).as_posix(): n for p, n in names.items()}
    found = Layout(dict.fromkeys(paths, ""), paths, {("", n): p for p, n in paths.items()})
    engine: Engine = Here(kept) if plans else Processes(jobs) if jobs > 1 else Here()
    try:
        with tempfile.TemporaryDirectory(prefix="migrate-") as state, Store(Path(state)).opened() as store:
            looked = scans(folder, found, sorted(paths), engine, None, _silent)
            if _elsewhere(looked, found, roots):
                return None
            places = {"": (support, f"{support}.py")}
            plan = Plan(folder, [], found, looked, places, divide(found, looked, paths), Options(target), tool=tool_version(folder))
            convert(plan, engine, store, _silent)
            return _collected(plan, store, kept)
    finally:
        engine.close()


def _silent(what: str, done: int, total: int) -> None:
    """Nobody looks."""


def _elsewhere(looked: dict[str, Scan], found: Layout, roots: Sequence[Path]) -> bool:
    tops = {i.partition(".")[0] for s in looked.values() for i in s.imports}
    own = {m.partition(".")[0] for m in found.modules.values()}
    return any(folder_of(t) is not None or any((r / t).is_dir() or (r / f"{t}.py").is_file() for r in roots) for t in tops - own)


def _collected(plan: Plan, store: Store, kept: dict[Path, Conversion]) -> tuple[dict[Path, Conversion], dict[str, Placed]]:
    files: dict[Path, Conversion] = {}
    modules: dict[str, Placed] = {}
    apart = disagreements(plan, store)
    for _, result in results(plan, store):
        for path, f in result["files"].items():
            full = plan.project / path
            c = _conversion(full, f, apart.get(path, []))
            files[full] = replace(kept[full], diagnostics=c.diagnostics) if full in kept and kept[full].code == c.code else c
            if not any(d.code == "MIG501" for d in files[full].diagnostics):
                modules[plan.layout.modules[path]] = Placed(plan.layout.modules[path], full)
    return dict(sorted(files.items())), dict(sorted(modules.items()))


def _conversion(path: Path, f: dict[str, Any], apart: list[list[Any]]) -> Conversion:
    text = path.read_bytes().decode("utf-8", "replace") if f["code"] is None else f["code"]
    told = tuple(sorted(Diagnostic(line, column, code, message, str(path)) for line, column, code, message in [*f["diagnostics"], *apart]))
    used = None if f["code"] is None else frozenset(f["used"])
    return Conversion(text, {}, told, str(path), frozenset(f["names"]), encoding=f["encoding"], used=used, imported=tuple(f["imports"]))
