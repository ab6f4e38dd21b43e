"""Converts a file with the local modules that it reaches, or a folder, and writes the result."""
import ast
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate import libraries
from migrate.diagnostics import Diagnostic
from migrate.fitting.extract import SYNTAX, used_by
from migrate.fitting.extract import load as load_support
from migrate.infer.facts import Exchange
from migrate.libraries import Boundary
from migrate.pipeline import SUPPORT, Conversion, convert_unit, deep, target_named
from migrate.settings import table_for
from migrate.source.datafiles import beside, holds_code
from migrate.source.modules import Unit
from migrate.source.projects import Module, Reach
from migrate.source.text import SourceError, read
from migrate.source.trimming import close_gaps, trim
from migrate.tables import Table

if TYPE_CHECKING:
    from migrate.port.folder import Placed

SKIPPED = frozenset({".git", ".venv", "venv", "__pycache__", "node_modules", ".tox", ".mypy_cache", "build", "dist"})


@dataclass(frozen=True)
class Project:
    """What several files became. `files`: source path -> Conversion; `written`: the files of the output."""

    files: Mapping[Path, Conversion]
    written: tuple[Path, ...] = ()
    support: Mapping[str, str] = field(default_factory=dict)


class OutputExists(FileExistsError):
    """The output has a file that the conversion would replace."""


def convert_path(path: str | Path, out_dir: str | Path, target: str = "flax", roots: Sequence[str | Path] = (), *, overwrite: bool = True,
    table: Table | None = None, jobs: int = 1) -> Project:
    """Converts a file with the local modules it reaches, or every file of a folder, into `out_dir`.

    A local module is one found under the file's folder or a root. A folder is converted in `jobs` processes; the result is the same for any number.
    Raises FileNotFoundError, and OutputExists where `overwrite` is false and a file is there.
    """
    out = Path(out_dir)
    planned = plan_as_written(path, target, roots, table, jobs)
    written = planned.outputs(out)
    if not overwrite:
        for p in written:
            if p.exists():
                raise OutputExists(f"{p} exists; use --force to replace it")
    for p, text in written.items():
        write_atomically(p, text)
    written.update(planned.copied(out))
    return Project(planned.files, tuple(written), {p.name: t.decode() for p, t in written.items() if p.parent == out and p.stem.startswith(SUPPORT)})


@dataclass(frozen=True, eq=False)
class Planned:
    """Files converted in memory, before anything is written."""

    files: Mapping[Path, Conversion]
    modules: "Mapping[str, Module | Placed]"
    target: str
    folder: Path

    def outputs(self, out: Path, files: Mapping[Path, Conversion] | None = None) -> dict[Path, bytes]:
        """What is to be written where; `files` in place of the conversions where given."""
        return _outputs(files or self.files, out, self.target, self.modules)

    def copied(self, out: Path) -> dict[Path, bytes]:
        """Copies the data files that modules find beside themselves; where they are now."""
        return _copied(self.modules, out)


def plan_as_written(
    path: str | Path, target: str = "flax", roots: Sequence[str | Path] = (), table: Table | None = None, jobs: int = 1, *, plans: bool = False,
) -> Planned:
    """What `convert_path` writes, in memory: a folder in parts where that is possible. `plans`: with the plans of edits."""
    folder = Path(path).resolve()
    return (_in_parts(folder, target, roots, jobs, plans) if table is None and folder.is_dir() else None) or plan_path(path, target, roots, table)


def _in_parts(folder: Path, target: str, roots: Sequence[str | Path], jobs: int, plans: bool) -> Planned | None:
    """A folder that needs nothing from elsewhere, converted part by part."""
    from migrate.port.folder import convert_folder

    target_named(target)
    names = {p: _module_name(p, folder) for p in _python_files(folder)}
    done = convert_folder(folder, names, [Path(r).resolve() for r in roots], _support_name(names.values()), target, jobs, plans)
    return Planned(*done, target, folder) if done is not None else None


def plan_path(path: str | Path, target: str = "flax", roots: Sequence[str | Path] = (), table: Table | None = None) -> Planned:
    """Converts a file with the local modules it reaches, or every file of a folder, and writes nothing. Raises FileNotFoundError."""
    path = Path(path).resolve()
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    folder = path if path.is_dir() else path.parent
    table = table or table_for(path)
    known = {r.torch.partition(".")[0] for r in table.rows}
    reach = Reach([folder, *map(Path, roots)], known)
    starts = [(p, _module_name(p, folder)) for p in _python_files(path)] if path.is_dir() else [(path, path.stem)]
    files, modules = deep(lambda: convert_reached(reach, starts, target, table))
    return Planned(files, modules, target, folder)


def _python_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if not any(part in SKIPPED for part in p.relative_to(folder).parts))


def _module_name(path: Path, folder: Path) -> str:
    parts = list(path.relative_to(folder).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def convert_reached(
    reach: Reach, starts: Sequence[tuple[Path, str]], target: str, table: Table, support_name: str = "", exchange: Exchange | None = None,
) -> tuple[dict[Path, Conversion], dict[str, Module]]:
    """Converts files with all that they reach: the conversions by path, the modules by name."""
    for path, name in starts:
        reach.add(path, name)
    modules = {m.name: m for m in reach.modules.values() if m.whole or m.kept or m.package or m.needed}
    unit = Unit(table, homes={name: home for name, home in reach.homes.items() if home.rpartition(".")[0] in modules})
    left_out: dict[str, list[str]] = {}
    files: dict[Path, Conversion] = {}
    for m in modules.values():
        source = m.source
        text, left_out[m.name] = trim(m, source)
        trimmed = source if m.whole else read(text, str(m.path))
        trimmed.newline, trimmed.encoding = source.newline, source.encoding
        unit.add(trimmed, m.name, m.package)
    chosen = target_named(target)
    unit.data = lambda: list(_data_files(modules))
    converted = convert_unit(unit, chosen, support_name or _support_name(modules), exchange)
    for m in modules.values():
        c = converted[m.name]
        notes = [Diagnostic(1, 1, "MIG104", f"left out, as nothing needed uses it: {', '.join(left_out[m.name])}", str(m.path))] if left_out[m.name] else []
        notes += _templates(m)
        found = tuple(sorted([*c.diagnostics, *notes])) if notes else c.diagnostics
        files[m.path] = replace(c, diagnostics=found) if m.whole else replace(c, code=close_gaps(c.code), diagnostics=found)
    for path, error in reach.unreadable.items():
        files[path] = Conversion(reach.bytes(path).decode("utf-8", "replace"), {},
            (Diagnostic(error.line or 1, error.column or 1, "MIG501", str(error), str(path)),), str(path))
    return files, modules


def _data_files(modules: "Mapping[str, Module | Placed]") -> Iterator[tuple[Path, str, Path]]:
    """The data files that modules find beside themselves, each with the package's name and its path in that."""
    for m in modules.values():
        folders = m.name.split(".")[: None if m.package else -1]
        if not folders or libraries.standard().of(m.name):
            continue
        top = m.path.parents[len(folders) - 1]
        yield from ((p, folders[0], p.relative_to(top)) for p in beside(m.path, m.tree, top) if not holds_code(p))


def _templates(m: Module) -> list[Diagnostic]:
    """What is said of the files beside a module that hold PyTorch code and are no modules."""
    folders = m.name.split(".")[: None if m.package else -1]
    if not folders or libraries.standard().of(m.name):
        return []
    held = [p for p in beside(m.path, m.tree, m.path.parents[len(folders) - 1]) if holds_code(p)]
    return [Diagnostic(1, 1, "MIG301", f"{p.name}: PyTorch code in a file that is no module is not converted, and the file is left out", str(m.path)) for p in held]


def _copied(modules: "Mapping[str, Module | Placed]", out: Path) -> dict[Path, bytes]:
    """Copies the data files to the same places beside the output."""
    copied: dict[Path, bytes] = {}
    for p, package, inside in _data_files(modules):
        where = out / package / inside
        if not where.exists() or where.stat().st_mtime < p.stat().st_mtime:
            where.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(p, where)
        copied[where] = b""
    return copied


def _support_name(modules: Iterable[str]) -> str:
    return SUPPORT + "_" if any(m == SUPPORT for m in modules) else SUPPORT


def _outputs(files: Mapping[Path, Conversion], out: Path, target: str, modules: "Mapping[str, Module | Placed]") -> dict[Path, bytes]:
    """The bytes of each output file; one support module for all."""
    written: dict[Path, bytes] = {}
    names: set[str] = set()
    used: set[str] = set()
    boundary = libraries.standard()
    for m in modules.values():
        c = files[m.path]
        names |= c.names
        used |= _attributes(c.code) if c.used is None else c.used
        name = boundary.place(m.name, target)
        for package in _packages(boundary, m.name, name):
            written.setdefault(out.joinpath(*package, "__init__.py"), b"")
        where = out.joinpath(*name.split("."))
        where = where / "__init__.py" if m.package else where.with_suffix(".py")
        written[where] = _encode(c)
    if names:
        name = _support_name(modules)
        written[out / f"{name}.py"] = _support(out / f"{name}.py", target, names, used)
    return written


def _support(path: Path, target: str, names: set[str], used: set[str]) -> bytes:
    """The support module; where an earlier run wrote another one, its definitions stay, as general as they may be: its files may use them in any way."""
    text = load_support(target).module(names, used).encode()
    earlier = _existing(path, target)
    if not earlier or path.read_bytes() == text:
        return text
    used = used | _methods(path) | {f"={n}" for n in earlier}
    return load_support(target).module(names | earlier, used).encode()


def _packages(boundary: Boundary, module: str, name: str) -> list[list[str]]:
    """The packages around a converted module of a library: they are new, and empty."""
    parts = name.split(".")
    return [parts[:n] for n in range(1, len(parts))] if boundary.converted(module) else []


def _existing(path: Path, target: str) -> set[str]:
    """The support definitions that an earlier run wrote there, so that its files go on working."""
    if not path.is_file():
        return set()
    try:
        tree = read(path.read_bytes(), str(path)).tree
    except SourceError:
        return set()
    known = load_support(target)
    return {s.name for s in tree.body if hasattr(s, "name") and s.name in known}


def _attributes(code: str) -> set[str]:
    try:
        return used_by(ast.parse(code))
    except SyntaxError:
        return set()


def _methods(path: Path) -> set[str]:
    """The methods that the classes of an earlier run's support module have: its files may use them."""
    tree = read(path.read_bytes(), str(path)).tree
    kept = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    return kept | {sign for method, sign in SYNTAX.items() if method in kept}


def _encode(c: Conversion) -> bytes:
    try:
        return c.code.encode(c.encoding)
    except (UnicodeEncodeError, LookupError):
        return c.code.encode()


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that it is either whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
