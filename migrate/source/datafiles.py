"""The data files that a module finds beside itself: weights, tables, settings."""
import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from migrate.source.text import walk

FINDERS = frozenset({"__file__", "__path__", "resources", "pkg_resources", "get_data", "files"})
LIMIT = 20_000
SETTINGS, LARGEST = frozenset({".yaml", ".yml", ".json", ".toml", ".cfg", ".ini"}), 1_000_000


def beside(path: Path, tree: ast.Module, root: Path) -> list[Path]:
    """The files under a package that a module of it names, if it looks for files beside itself. `root`: the package's folder."""
    nodes = walk(tree)
    names = {n.id if isinstance(n, ast.Name) else n.attr for n in nodes if isinstance(n, (ast.Name, ast.Attribute))}
    searches = "rglob" in names or "glob" in names and any(isinstance(n, ast.Constant) and n.value == "**" for n in nodes)
    if not names & FINDERS and not searches:
        return []
    patterns = {p for p in _patterns(tree) if p} | (set(_suffixes(tree)) if searches else set())
    if not patterns:
        return []
    wanted = re.compile("|".join(f"(?:{p})" for p in sorted(patterns)))
    return [p for p in _others(root) if wanted.fullmatch(p.name)]


@cache
def holds_code(path: Path) -> bool:
    """Whether a file that is no module holds PyTorch code, as templates do: it can't be taken along as it is."""
    if path.suffix in SETTINGS or path.stat().st_size > LARGEST:
        return False
    return re.search(rb"(?m)^(import|from) torch\b", path.read_bytes()) is not None


def _patterns(tree: ast.Module) -> Iterator[str]:
    """What the last parts of the paths in a module look like, as regular expressions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            last = node.value.rpartition("/")[2]
            if re.fullmatch(r"[\w.+-]*[\w+-]\.\w{1,8}", last):
                yield re.escape(last)
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(v.value) if isinstance(v, ast.Constant) else "\0" for v in node.values)
            last = text.rpartition("/")[2]
            if re.fullmatch(r"[\w.+\0-]+\.\w{1,8}", last):
                yield re.escape(last).replace("\0", ".+").replace("\\.+", ".+")


def _suffixes(tree: ast.Module) -> Iterator[str]:
    """The kinds of files that a module which looks through its folders knows: `".yaml"`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"\.[a-z]\w{0,7}", node.value):
            yield rf".+{re.escape(node.value)}"


@cache
def _others(root: Path) -> tuple[Path, ...]:
    """The files of a folder that are no Python."""
    found = []
    for p in root.rglob("*"):
        if p.is_file() and p.suffix not in (".py", ".pyc", ".so", ".md", ".rst") and "__pycache__" not in p.parts:
            found.append(p)
        if len(found) >= LIMIT:
            break
    return tuple(found)


def words(paths: Iterable[Path]) -> set[str]:
    """The words of settings that could be names: `[-1, 1, nn.Upsample, [None, 2]]`."""
    found: set[str] = set()
    for p in paths:
        if p.suffix in SETTINGS and p.stat().st_size < LARGEST:
            text = re.sub(r"(?m)(^|\s)#.*$", "", p.read_text(encoding="utf-8", errors="replace"))
            found.update(re.findall(r"[A-Za-z_]\w*", text))
    return found
