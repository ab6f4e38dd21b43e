"""Divides a project into parts that are converted each on its own: what belongs together stays together, up to a size that bounds memory.

The division depends on the project alone, so that the result is the same for any number of processes.
"""

import functools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from migrate.port.layout import Layout
from migrate.port.scan import Scan

MOST = 60_000  # lines of a part on average, which bounds the memory of a process
SEEN = 0.6  # what a line of what a part reaches in other parts costs, beside one of its own: only what is needed of it is converted


@dataclass(frozen=True)
class Part:
    """Files of one import root that are converted together, in the order of their dependencies."""

    root: str
    files: tuple[str, ...]
    lines: int
    cut: bool = False  # from something larger
    seen: int = 0  # lines of what it reaches in other parts

    @property
    def cost(self) -> float:
        """What it costs, as lines."""
        return self.lines + SEEN * self.seen


def divide(found: Layout, scans: Mapping[str, Scan], chosen: Iterable[str], most: int = MOST) -> list[Part]:
    """The parts of a project, the longest to convert first, so that the last process to end is not late."""
    parts: list[Part] = []
    by_root: dict[str, list[str]] = {}
    for p in sorted(chosen):
        by_root.setdefault(found.roots[p], []).append(p)
    for root, files in by_root.items():
        edges = {p: _needs(found, scans[p], root, p) for p in files}
        worth = {p: _needs(found, scans[p], root, p, stars=False) for p in files}
        for together in _connected(files, edges):
            parts += _cut(root, _ordered(together, edges), worth, scans, most)
    return sorted(parts, key=lambda p: (-p.cost, p.files))


def _needs(found: Layout, scan: Scan, root: str, path: str, stars: bool = True) -> list[str]:
    """The files of the same root that a file imports from. `stars`: also those of which it imports all, most often to hand it on."""
    needed = set()
    modules = {d: found.find(root, d) for d in scan.imports}
    for dotted, file in modules.items():
        inner = [d for d in scan.imports if d.startswith(dotted + ".") and modules[d]]
        names = [d for d in scan.imports if d.rpartition(".")[0] == dotted]
        if names == [f"{dotted}.*"] and not stars:
            continue
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


def _cut(root: str, files: list[str], edges: Mapping[str, list[str]], scans: Mapping[str, Scan], most: int) -> list[Part]:
    """As few parts as the size allows, of about the same cost, so that processes have the same to do. None has half as much again as the size."""
    lines = [scans[p].lines for p in files]
    number = max(1, -(-sum(lines) // most))
    if number == 1:
        return [Part(root, tuple(files), sum(lines))]
    reached = _reached(files, edges)
    low, high = 0, 2 * sum(lines)  # the cost that no part may pass: the least with which the parts are not too many
    while high - low > 1:
        middle = (low + high) // 2
        if len(_filled(lines, reached, middle, most * 3 // 2)) > number:
            low = middle
        else:
            high = middle
    ends = _filled(lines, reached, high, most * 3 // 2)
    bounds = zip([0, *ends], ends, strict=False)
    return [Part(root, tuple(files[a:b]), sum(lines[a:b]), cut=True, seen=_elsewhere(lines, reached, a, b)) for a, b in bounds]


def _elsewhere(lines: list[int], reached: list[int], first: int, end: int) -> int:
    """Lines of what some files reach beyond themselves."""
    every = functools.reduce(operator.or_, reached[first:end], 0)
    return sum(lines[j] for j in _bits(every) if not first <= j < end)


def _reached(files: list[str], edges: Mapping[str, list[str]]) -> list[int]:
    """For each file the files that it needs, over others too: a bit for each."""
    at = {p: i for i, p in enumerate(files)}
    reached: list[int] = []
    for i, p in enumerate(files):
        mask = 1 << i
        for q in edges[p]:
            if (j := at.get(q)) is not None:
                mask |= reached[j] if j < i else 1 << j
        reached.append(mask)
    return reached


def _filled(lines: list[int], reached: list[int], most: int, largest: int) -> list[int]:
    """Where parts end that are filled in order, none beyond a cost nor a number of lines."""
    ends: list[int] = []
    own = seen = mask = first = 0
    for i, n in enumerate(lines):
        added = _bits(reached[i] & ~mask)
        elsewhere = sum(lines[j] for j in added if j < first)
        if i > first and (own + n > largest or own + n + SEEN * (seen + elsewhere) > most):
            ends.append(i)
            first, own, seen, mask = i, 0, 0, 0
            elsewhere = sum(lines[j] for j in _bits(reached[i]) if j < first)
        own, seen, mask = own + n, seen + elsewhere, mask | reached[i]
    return [*ends, len(lines)]


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
