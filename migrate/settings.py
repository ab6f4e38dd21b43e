"""What users set in pyproject.toml: rows that they add, also from installed packages, and options of the commands.

    [tool.migrate]
    mappings = ["my_ops.toml"]                 # beside pyproject.toml

    target = "keras"                           # options of the commands; those of the command line go before

    [project.entry-points."migrate.mappings"]
    my_ops = "my_package.rows"                 # every .toml file in the folder of that package

A user's row takes the place of the project's row of the same name. It is checked as the project's own are; besides, every name in a template must be
one that the output can import.
"""
import ast
import builtins
import importlib.util
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from migrate.context import IMPORTS
from migrate.fitting.extract import load as load_support
from migrate.tables import TARGETS, Row, Table, TableError, build, overlaid, read, standard

GROUP = "migrate.mappings"
OPTIONS: dict[str, type] = {"target": str, "output": str, "root": list, "only": list, "exclude": list, "tests": bool, "jobs": int, "force": bool}
NAMES = {str: "string", list: "list of strings", bool: "true or false", int: "number"}
OURS = frozenset({"rngs", "axes", *dir(builtins), *IMPORTS})


def table_for(path: str | Path) -> Table:
    """The rows that hold for a file or folder: the project's, those of installed packages, and those of the nearest pyproject.toml. Raises TableError."""
    return _table(*_row_files(path))


def row_files(path: str | Path) -> tuple[Path, ...]:
    """The files of users' rows that hold for a file or folder. Raises TableError."""
    own, installed = _row_files(path)
    return installed + own


def _row_files(path: str | Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    here = Path(path).resolve()
    return _project_files(here if here.is_dir() else here.parent), _installed_files()


@cache
def _table(own: tuple[Path, ...], installed: tuple[Path, ...]) -> Table:
    table = standard()
    for files in (installed, own):
        if files:
            table = overlaid(table, user_rows(files))
    return table


def user_rows(files: Iterable[Path]) -> Table:
    """The rows of users' files, checked. Raises TableError with the file and the row."""
    rows: list[Row] = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as e:
            raise TableError(f"{path}: {e.strerror or e}") from None
        except UnicodeDecodeError as e:
            raise TableError(f"{path}: not UTF-8: {e.reason} at byte {e.start}") from None
        rows += read(text, str(path))
    table = build(rows)
    for row in rows:
        _check_names(row, table.imports)
    return table


def _check_names(row: Row, imports: Mapping[str, str]) -> None:
    """Every name of a template is a parameter, a name of JAX's, a support definition, or imported by the row."""
    given = {p.name for p in row.parameters}
    for target in TARGETS:
        known = given | OURS | set(imports) | set(load_support(target).definitions)
        for v in row.for_target(target):
            bound = {a.arg for n in ast.walk(v.template) if isinstance(n, ast.Lambda) for a in n.args.args} if v.to else set()
            names = {n.id for n in ast.walk(v.template) if isinstance(n, ast.Name)} if v.to else set()
            if lost := sorted(names - known - bound):
                raise TableError(f'{row.file}: {row.torch}: `{v.to}`: nothing binds {", ".join(lost)}; add imports = ["from ... import {lost[0]}"]')


def _project_files(folder: Path) -> tuple[Path, ...]:
    for at in (folder, *folder.parents):
        path = at / "pyproject.toml"
        if path.is_file():
            return _named(path)
    return ()


def options(path: Path) -> dict[str, Any]:
    """The options that the nearest pyproject.toml sets for the commands. Raises TableError."""
    here = path.resolve()
    for at in (here, *here.parents):
        if (at / "pyproject.toml").is_file():
            return {k: v for k, v in _tool(at / "pyproject.toml").items() if k != "mappings"}
    return {}


def _tool(path: Path) -> dict[str, Any]:
    """[tool.migrate] of a pyproject.toml, checked."""
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("migrate", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise TableError(f"{path}: {e}") from None
    if unknown := sorted(set(tool) - {"mappings", *OPTIONS}):
        raise TableError(f"{path}: [tool.migrate]: unknown keys: {', '.join(unknown)}")
    for key, wanted in OPTIONS.items():
        if key in tool and not (isinstance(tool[key], wanted) and (wanted is not list or all(isinstance(v, str) for v in tool[key]))):
            raise TableError(f"{path}: [tool.migrate]: {key} is a {NAMES[wanted]}")
    return dict(tool)


def _named(path: Path) -> tuple[Path, ...]:
    tool = _tool(path)
    named = tool.get("mappings", [])
    if not isinstance(named, list) or not all(isinstance(n, str) for n in named):
        raise TableError(f'{path}: [tool.migrate]: mappings is a list of files: mappings = ["my_ops.toml"]')
    files = tuple(path.parent / n for n in named)
    if lost := next((f for f in files if not f.is_file()), None):
        raise TableError(f"{path}: [tool.migrate] mappings: no such file: {lost}")
    return files


@cache
def _installed_files() -> tuple[Path, ...]:
    found: list[Path] = []
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        found += _of_package(point)
    return tuple(found)


def _of_package(point: EntryPoint) -> list[Path]:
    """The files of a package, which is not imported (the packages around it are)."""
    try:
        spec = importlib.util.find_spec(point.value)
    except (ImportError, ValueError):
        spec = None
    folders = [Path(f) for f in (spec.submodule_search_locations or ())] if spec is not None else []
    files = sorted(f for folder in folders for f in folder.glob("*.toml"))
    if not files:
        raise TableError(f'entry point {point.name} = "{point.value}" of {GROUP}: no package with .toml files of that name')
    return files
