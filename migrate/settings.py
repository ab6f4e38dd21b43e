"""The rows that users add: files named in pyproject.toml, and files of installed packages.

    [tool.migrate]
    mappings = ["my_ops.toml"]                 # beside pyproject.toml

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

from migrate.context import IMPORTS
from migrate.support.extract import load as load_support
from migrate.tables import TARGETS, Row, Table, TableError, build, overlaid, read, standard

GROUP = "migrate.mappings"
OURS = frozenset({"rngs", "axes", *dir(builtins), *IMPORTS})


def table_for(path: str | Path) -> Table:
    """The rows that hold for a file or folder: the project's, those of installed packages, and those of the nearest pyproject.toml. Raises TableError."""
    here = Path(path).resolve()
    return _table(_project_files(here if here.is_dir() else here.parent), _installed_files())


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


def _named(path: Path) -> tuple[Path, ...]:
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("migrate", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise TableError(f"{path}: {e}") from None
    named = tool.get("mappings", [])
    if not isinstance(named, list) or not all(isinstance(n, str) for n in named):
        raise TableError(f'{path}: [tool.migrate]: mappings is a list of files: mappings = ["my_ops.toml"]')
    if unknown := sorted(set(tool) - {"mappings"}):
        raise TableError(f"{path}: [tool.migrate]: unknown keys: {', '.join(unknown)}")
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
