"""Divides a project into parts that are converted each on its own: what belongs together stays together, up to a size that bounds memory.

The division depends on the project alone, so that the result is the same for any number of processes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from migrate.port.layout import Layout
from migrate.port.scan import Scan

MOST = 40_000  # lines of a part; about 5 kB of memory for each


@dataclass(frozen=True)
class Part:
    """Files of one import root that are converted together, in the order of their dependencies."""

    root: str
    files: tuple[str, ...]
    lines: int
    cut: bool = False  # from something larger


def divide(found: Layout, scans: Mapping[str, Scan], chosen: Iterable[str], most: int = MOST) -> list[Part]:
    """The parts of a project, largest first."""
    parts: list[Part] = []
    by_root: dict[str, list[str]] = {}
    for p in sorted(chosen):
        by_root.setdefault(found.roots[p], []).append(p)
    for root, files in by_root.items():
        edges = {p: _needs(found, scans[p], root, p) for p in files}
        for together in _connected(files, edges):
            parts += _cut(root, _ordered(together, edges), scans, most)
    return sorted(parts, key=lambda p: (-p.lines, p.files))


def _needs(found: Layout, scan: Scan, root: str, path: str) -> list[str]:
    """The files of the same root that a file imports from."""
    needed = set()
    modules = {d: found.find(root, d) for d in scan.imports}
    for dotted, file in modules.items():
        inner = [d for d in scan.imports if d.startswith(dotted + ".") and modules[d]]
        names = [d for d in scan.imports if d.rpartition(".")[0] == dotted]
        if file and found.roots[file] == root and file != path and not (inner and len(inner) == len(names)):
            needed.add(file)
    return sorted(needed)


def _connected(files: list[str], edges: Mapping[str, list[str]]) -> list[list[str]]:
    leader = {p: p for p in files}

    def find(p: str) -> str:
        while leader[p] != p:
            leader[p] = leader[leader[p]]
            p = leader[p]
        return p

    for p, needed in edges.items():
        for q in needed:
            if q in leader:
                a, b = sorted((find(p), find(q)))
                leader[b] = a
    groups: dict[str, list[str]] = {}
    for p in files:
        groups.setdefault(find(p), []).append(p)
    return list(groups.values())


def _ordered(files: list[str], edges: Mapping[str, list[str]]) -> list[str]:
    """Each file after those that it needs, as far as circles allow."""
    mine, done, order = set(files), set(), []
    for start in files:
        stack = [(start, iter(edges[start]))]
        if start in done:
            continue
        done.add(start)
        while stack:
            at, rest = stack[-1]
            for q in rest:
                if q in mine and q not in done:
                    done.add(q)
                    stack.append((q, iter(edges[q])))
                    break
            else:
                order.append(at)
                stack.pop()
    return order


def _cut(root: str, files: list[str], scans: Mapping[str, Scan], most: int) -> list[Part]:
    total = sum(scans[p].lines for p in files)
    size = total / max(1, -(-total // most))  # parts of about the same size
    parts: list[list[str]] = [[]]
    lines = [0]
    for p in files:
        if parts[-1] and lines[-1] + scans[p].lines / 2 > size:
            parts.append([])
            lines.append(0)
        parts[-1].append(p)
        lines[-1] += scans[p].lines
    return [Part(root, tuple(f), n, len(parts) > 1) for f, n in zip(parts, lines, strict=True)]
