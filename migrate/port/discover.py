"""What a project consists of: each file with the part that it plays. .gitignore files and excludes are honoured."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

NEVER = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "venv",
        "__pycache__",
        "node_modules",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".ipynb_checkpoints",
        ".migrate",
    }
)
TESTS = frozenset({"tests", "test", "testing"})
REQUIREMENTS = ("requirements", "pyproject.toml", "environment.yml", "environment.yaml", "setup.cfg")
PYTHON, NOTEBOOK, DEPENDENCIES, COPY, LINK = "python", "notebook", "dependencies", "copy", "link"


@dataclass(frozen=True, order=True)
class Entry:
    """A file of a project. `path`: relative, with slashes; `why`: the reason where it is copied although it could be converted."""

    path: str
    role: str
    why: str = ""
    size: int = 0

    @property
    def is_beside(self) -> bool:
        """Whether it is copied as it is and no Python."""
        return self.role == "copy" and not self.why and not self.path.endswith((".py", ".ipynb"))


@dataclass(frozen=True)
class Choice:
    """What is to be converted. Patterns are those of .gitignore."""

    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    tests: bool = False


def discover(project: Path, choice: Choice, out: Path | None = None) -> list[Entry]:
    """All files of a project but those that git ignores, by path. The output folder is not part of the project."""
    only = GitIgnoreSpec.from_lines(choice.only) if choice.only else None
    exclude = GitIgnoreSpec.from_lines(choice.exclude)
    found = []
    for path in _walk(project, "", [], out.resolve() if out is not None else None):
        found.append(_entry(project, path, only, exclude, choice.tests))
    return sorted(found)


def _walk(project: Path, folder: str, specs: list[tuple[str, GitIgnoreSpec]], out: Path | None) -> Iterator[str]:
    ignore = project / folder / ".gitignore"
    if ignore.is_file():
        specs = [*specs, (folder, GitIgnoreSpec.from_lines(ignore.read_text(encoding="utf-8", errors="replace").splitlines()))]
    try:
        entries = sorted(os.scandir(project / folder), key=lambda e: e.name)
    except OSError:
        return
    for e in entries:
        path = f"{folder}/{e.name}" if folder else e.name
        is_folder = e.is_dir(follow_symlinks=False)
        if (
            is_folder and (e.name in NEVER or e.name.endswith(".egg-info") or (out is not None and Path(e.path).resolve() == out))
        ) or _ignored(path, is_folder, specs):
            continue
        if is_folder:
            yield from _walk(project, path, specs, out)
        elif e.is_symlink() or e.is_file():
            yield path


def _ignored(path: str, is_folder: bool, specs: Sequence[tuple[str, GitIgnoreSpec]]) -> bool:
    """Whether git would ignore a path: the last .gitignore that says something about it counts."""
    for folder, spec in reversed(specs):
        inner = path[len(folder) + 1 :] if folder else path
        said = spec.check_file(inner + "/" if is_folder else inner).include
        if said is not None:
            return said
    return False


def _entry(project: Path, path: str, only: GitIgnoreSpec | None, exclude: GitIgnoreSpec, tests: bool) -> Entry:
    full = project / path
    if full.is_symlink():
        return Entry(path, LINK)
    size = full.stat().st_size
    role = _role(path)
    if role in (COPY, DEPENDENCIES):
        return Entry(path, role, "", size)
    if exclude.match_file(path):
        return Entry(path, COPY, "excluded", size)
    if only is not None and not only.match_file(path):
        return Entry(path, COPY, "not chosen", size)
    if not tests and is_test(path):
        return Entry(path, COPY, "test", size)
    return Entry(path, role, "", size)


def _role(path: str) -> str:
    name = path.rpartition("/")[2]
    if name.endswith(".py"):
        return PYTHON
    if name.endswith(".ipynb"):
        return NOTEBOOK
    known = name in REQUIREMENTS or (name.startswith("requirements") and name.endswith((".txt", ".in")))
    return DEPENDENCIES if known or (path.startswith("requirements/") and name.endswith((".txt", ".in"))) else COPY


def is_test(path: str) -> bool:
    """Whether a path is one of tests, by the usual names."""
    *folders, name = path.split("/")
    return (
        bool(TESTS & set(folders))
        or name == "conftest.py"
        or (name.startswith("test_") and name.endswith(".py"))
        or name.endswith("_test.py")
    )
