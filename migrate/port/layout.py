"""Where a project's modules are imported from: import roots, module names, and the place of the support module."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from migrate.pipeline import SUPPORT
from migrate.port.scan import Scan

ASIDE = frozenset({"tests", "test", "docs", "doc", "examples", "example", "scripts", "tools", "benchmarks", "benchmark"})


@dataclass(frozen=True)
class Layout:
    """`roots`: file -> its import root; `modules`: file -> its module name; both relative to the project, "" for the project itself."""

    roots: Mapping[str, str]
    modules: Mapping[str, str]
    files: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (root, module name) -> file

    @cached_property
    def _packages(self) -> list[str]:
        return sorted({r for f, r in self.roots.items() if "." in self.modules[f] or f.endswith("__init__.py")})

    @cached_property
    def _searches(self) -> dict[str, list[str]]:
        return {r: list(dict.fromkeys([r, "", "src", *self._packages])) for r in set(self.roots.values())}

    def search(self, root: str) -> list[str]:
        """The folders in which the modules of a root find their imports."""
        return self._searches.get(root) or list(dict.fromkeys([root, "", "src", *self._packages]))

    def find(self, root: str, dotted: str) -> str | None:
        """The file of a module as a file of that root sees it."""
        for r in self.search(root):
            if (r, dotted) in self.files:
                return self.files[r, dotted]
        return None


def layout(paths: Iterable[str]) -> Layout:
    """The layout of a project's Python files: a root is the nearest folder around a file that is no package."""
    paths = sorted(paths)
    packages = {p.rpartition("/")[0] for p in paths if p.rpartition("/")[2] == "__init__.py"} - {""}
    roots, modules, files = {}, {}, {}
    for p in paths:
        folder = p.rpartition("/")[0]
        while folder in packages:
            folder = folder.rpartition("/")[0]
        parts = p[len(folder) + 1 if folder else 0 :].removesuffix(".py").split("/")
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        roots[p], modules[p] = folder, ".".join(parts)
        files[folder, modules[p]] = p
        if folder:
            files.setdefault(("", ".".join([*folder.split("/"), *parts])), p)  # from the top, through folders that are no packages
    return Layout(roots, modules, files)


def supports(found: Layout, scans: Mapping[str, Scan]) -> dict[str, tuple[str, str]]:
    """root -> (name of the support module that its files import, the module's file). Roots that import each other share one."""
    group = {r: r for r in found.roots.values()}

    def leader(r: str) -> str:
        while group[r] != r:
            r = group[r]
        return r

    imported: dict[str, int] = {}
    for path, root in found.roots.items():
        for dotted in scans[path].imports if path in scans else ():
            other = found.find(root, dotted)
            if other is not None and found.roots[other] != root:
                imported[found.roots[other]] = imported.get(found.roots[other], 0) + 1
                a, b = sorted((leader(root), leader(found.roots[other])))
                group[b] = a
    members: dict[str, list[str]] = {}
    for r in group:
        members.setdefault(leader(r), []).append(r)
    result = {}
    for roots in members.values():
        home = min(roots, key=lambda r: (-imported.get(r, 0), r))
        for r in roots:
            result[r] = _place(found, home)
    return result


def _place(found: Layout, root: str) -> tuple[str, str]:
    tops = {
        m.partition(".")[0]
        for f, m in found.modules.items()
        if found.roots[f] == root and f.startswith(f"{root}/{m.partition('.')[0]}/" if root else f"{m.partition('.')[0]}/")
    } - ASIDE
    name = SUPPORT
    prefix = f"{root}/" if root else ""
    package = tops.pop() if len(tops) == 1 else ""
    if package:
        prefix += f"{package}/"
    while f"{prefix}{name}.py" in found.roots:
        name += "_"
    return (f"{package}.{name}" if package else name), f"{prefix}{name}.py"
