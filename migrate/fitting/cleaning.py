"""Takes out what fitting left over: arguments of parameters that went, names and attributes that nothing looks up any more."""
import ast
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from migrate.fitting.folding import joined
from migrate.fitting.shape import Families, is_own, parsed, passed
from migrate.fitting.values import nodes_of, pairs

PURE_CALLS = frozenset({"ntuple", "tuple", "list", "len", "range"})
PURE = (ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.List, ast.IfExp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.expr_context, ast.boolop, ast.cmpop, ast.unaryop)
OURS = frozenset({"padding_mode"})  # attributes of classes of Flax that Flax does not know
Span = tuple[int, int]


@dataclass(eq=False)
class Cleaning:
    """The fitted texts by name; `dropped`: definition -> its parameters that went; `words`: the uses by the code that they are for."""

    families: Families
    texts: dict[str, str]
    dropped: Mapping[str, Mapping[str, int | None]]
    words: Collection[str]

    def run(self) -> dict[str, str]:
        """The clean texts."""
        if self.dropped:
            self.texts = {name: self._arguments(name, text) for name, text in self.texts.items()}
        changed = [n for n, t in self.texts.items() if parsed(t) is not self.families.nodes[n]]
        general = _looked_up(self.families.nodes.values()) if changed else set()
        while True:
            before = dict(self.texts)
            needless = (general | OURS) - _looked_up(map(parsed, self.texts.values())) - set(self.words) if changed else set()
            for name in changed:
                self.texts[name] = self._names(name, before[name], needless)
            if before == self.texts:
                return self.texts

    def _arguments(self, name: str, text: str) -> str:
        """Without the arguments of parameters that went."""
        node = parsed(text)
        starts = [0, *itertools.accumulate(len(t) + 1 for t in text.split("\n"))]
        spans: list[Span] = []
        for call in nodes_of(node):
            if isinstance(call, ast.Call) and (called := self.families.called(call, name)) is not None and called in self.dropped:
                gone = {id(a) for p, a in passed(call, self.families.places(called)) if p in self.dropped[called]}
                spans += [(starts[a] + b, starts[c] + d) for a, b, c, d in _cuts(call, gone)] if gone else []
        new = text
        for start, end in sorted(spans, reverse=True):
            new = new[:start] + new[end:]
        return _rejoined(text, new) if spans else text

    def _names(self, name: str, text: str, needless: set[str]) -> str:
        """Without the assignments of names that nothing looks up, and of attributes that nothing does any more."""
        node = parsed(text)
        functions = [node] if isinstance(node, ast.FunctionDef) else [m for m in getattr(node, "body", ()) if isinstance(m, ast.FunctionDef)]
        for f in functions:
            loaded = {n.id for n in nodes_of(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            attributes = needless if isinstance(node, ast.ClassDef) and f.name == "__init__" else set()
            attributes = attributes if self.families.is_plain(name) else attributes & OURS
            goes = lambda t, loaded=loaded, attributes=attributes: isinstance(t, ast.Name) and t.id not in loaded or is_own(t) and t.attr in attributes
            for block, s in ((b, s) for b in _blocks(f) for s in b):
                if (new := _shortened(text, s, goes)) is not None:
                    lines = text.split("\n")
                    margin = " " * s.col_offset
                    lines[s.lineno - 1 : s.end_lineno] = [margin + new] if new else [f"{margin}pass"] if len(block) == 1 else []
                    return self._names(name, "\n".join(lines), needless)
        return text


def _cuts(call: ast.Call, gone: set[int]) -> Iterator[tuple[int, int, int, int]]:
    """(line, column, line, column) of what goes of a call with some arguments."""
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    parts = sorted(given, key=lambda n: (n.lineno, n.col_offset))
    last_kept = next((i for i in range(len(parts) - 1, -1, -1) if not _is_gone(parts[i], gone)), -1)
    for i, n in enumerate(parts):
        if _is_gone(n, gone) and i < last_kept:
            yield n.lineno - 1, n.col_offset, parts[i + 1].lineno - 1, parts[i + 1].col_offset
    if last_kept < len(parts) - 1:
        end = parts[-1]
        start = (parts[last_kept].end_lineno, parts[last_kept].end_col_offset) if last_kept >= 0 else (parts[0].lineno, parts[0].col_offset)
        yield (start[0] or 1) - 1, start[1] or 0, (end.end_lineno or 1) - 1, end.end_col_offset or 0


def _is_gone(n: ast.expr | ast.keyword, gone: set[int]) -> bool:
    return id(n.value if isinstance(n, ast.keyword) else n) in gone


def _rejoined(before: str, after: str) -> str:
    """With the statements that were cut on one line, where they fit."""
    lines = after.split("\n")
    for old, new in reversed(list(zip(_simple(parsed(before)), _simple(parsed(after)), strict=True))):
        if new.lineno != new.end_lineno and ast.dump(old) != ast.dump(new):
            lines[new.lineno - 1 : new.end_lineno] = joined(lines[new.lineno - 1 : new.end_lineno])
    return "\n".join(lines)


def _simple(tree: ast.stmt) -> list[ast.stmt]:
    """The statements without blocks, in order."""
    return sorted((n for n in nodes_of(tree) if isinstance(n, ast.stmt) and not hasattr(n, "body")), key=lambda n: n.lineno)


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for n in nodes_of(tree):
        for name in ("body", "orelse"):
            if isinstance(block := getattr(n, name, None), list):
                yield block


def _shortened(text: str, s: ast.stmt, goes: Callable[[ast.expr], bool]) -> str | None:
    """An assignment without the targets that go, "" where none is left; None where none goes."""
    found = pairs(s)
    kept = [(t, v) for t, v in found if not (goes(t) and all(_is_pure(n) for n in nodes_of(v))) and ast.unparse(t) != ast.unparse(v)]
    if len(kept) == len(found):
        return None
    sides = [", ".join(ast.get_source_segment(text, pair[i]) or "" for pair in kept) for i in (0, 1)]
    return " = ".join(sides) if kept else ""


def _is_pure(n: ast.AST) -> bool:
    return isinstance(n, PURE) or isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in PURE_CALLS and not n.keywords


def _looked_up(nodes: Iterable[ast.stmt]) -> set[str]:
    return {name for d in nodes for name in _attributes(d)}


@cache
def _attributes(tree: ast.stmt) -> frozenset[str]:
    """The attributes that a definition looks up, and the texts that may name one."""
    found = {n.attr for n in nodes_of(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    return frozenset(found | {n.value for n in nodes_of(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)})
