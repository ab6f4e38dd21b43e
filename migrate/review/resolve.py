"""Which definition of which file under review a name means, through imports and re-exports."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from migrate.source.text import Source

Place = tuple[str, str]  # file, name


class Definitions:
    """The classes and functions of some files, and the names under which the files know each other's."""

    def __init__(self, files: Mapping[str, Source]) -> None:
        self._modules = {_module(name): name for name in files}
        self._own: dict[str, dict[str, ast.stmt]] = {}
        self._imported: dict[str, dict[str, tuple[str, str]]] = {}
        for name, source in files.items():
            nodes = [n for n in source.nodes if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
            self._own[name] = {n.name: n for n in reversed(nodes)}
            self._imported[name] = dict(_imports(name, source))

    def find(self, file: str, name: str) -> Place | None:
        """Where what a file calls `name` is defined; None where that is none of the files."""
        seen: set[Place] = set()
        while (file, name) not in seen:
            seen.add((file, name))
            if name in self._own.get(file, ()):
                return file, name
            module, original = self._imported.get(file, {}).get(name, ("", ""))
            found = self._modules.get(module) or self._by_tail(module)
            if found is None:
                return None
            file, name = found, original
        return None

    def bases(self, place: Place) -> list[Place]:
        """The bases of a class that are defined in one of the files."""
        node = self._own.get(place[0], {}).get(place[1])
        if not isinstance(node, ast.ClassDef):
            return []
        names = [b.id if isinstance(b, ast.Name) else b.attr if isinstance(b, ast.Attribute) else "" for b in node.bases]
        return [found for n in names if (found := self.find(place[0], n)) is not None and found != place]

    def _by_tail(self, module: str) -> str | None:
        """A file by the end of its dotted path: the import may start at another root."""
        if not module:
            return None
        found = [f for m, f in self._modules.items() if m.endswith("." + module) or module.endswith("." + m)]
        return found[0] if len(found) == 1 else None


def _module(file: str) -> str:
    parts = PurePosixPath(file).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _imports(file: str, source: Source) -> Iterator[tuple[str, tuple[str, str]]]:
    """(name, (module, name there)) of each `from ... import`."""
    path = PurePosixPath(file)
    for n in source.nodes:
        if isinstance(n, ast.ImportFrom):
            base = list(path.parts[: len(path.parts) - n.level]) if n.level else []
            module = ".".join([*base, *([n.module] if n.module else [])])
            for a in n.names:
                yield a.asname or a.name, (module, a.name)
