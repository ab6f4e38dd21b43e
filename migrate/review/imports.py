"""The imports that follow: the original's stay while something of it still needs them, the output's come once something uses them."""

import ast
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from migrate.context import IMPORTS
from migrate.pipeline import free_names
from migrate.review.hunks import Hunk
from migrate.rules.imports import Usage, usage

Import = ast.Import | ast.ImportFrom


def is_import(h: Hunk) -> bool:
    """Whether a hunk does nothing but change imports."""
    only = all(isinstance(s, ast.Import | ast.ImportFrom) for s in h.before.statements)
    made = all(isinstance(s, ast.Import | ast.ImportFrom | ast.Pass) for s in h.after.statements)
    return bool(h.changes) and only and made and ("imports" in h.rules or bool(h.before.statements))


def bound(s: Import) -> dict[str, ast.alias]:
    """The names that an import binds."""
    return {a.asname or (a.name.partition(".")[0] if isinstance(s, ast.Import) else a.name): a for a in s.names}


def names_of(statements: Sequence[ast.stmt]) -> dict[str, ast.alias]:
    """The names that some imports bind."""
    return {n: a for s in statements if isinstance(s, ast.Import | ast.ImportFrom) for n, a in bound(s).items()}


def written(s: Import, names: Collection[str]) -> str:
    """An import of some of its names only."""
    parts = ", ".join(f"{a.name} as {a.asname}" if a.asname else a.name for n, a in bound(s).items() if n in names)
    return f"import {parts}" if isinstance(s, ast.Import) else f"from {'.' * s.level}{s.module or ''} import {parts}"


class Imports:
    """The imports of one file under review."""

    def __init__(
        self, hunks: Sequence[Hunk], original: ast.Module, converted: ast.Module, support: str, support_names: Collection[str]
    ) -> None:
        self.hunks = [h for h in hunks if is_import(h)]
        self.original = original
        self.converted = converted
        self.support = support
        self.support_names = support_names

    @cached_property
    def added(self) -> dict[str, ast.alias]:
        """The names that the output's own imports bind."""
        return names_of([s for h in self.hunks if not h.after.indent for s in h.after.statements if not self._same(h, s)])

    @cached_property
    def dropped(self) -> dict[str, ast.alias]:
        """The names whose import goes."""
        return {n: a for h in self.hunks for n, a in names_of(h.before.statements).items() if n not in names_of(h.after.statements)}

    @cached_property
    def conflicts(self) -> frozenset[str]:
        """Names that mean one thing in the original and another in the output."""
        starred = self.free if "*" in self.dropped else frozenset()
        return frozenset(
            n for n in self.added if n in starred or (n in self.dropped and ast.dump(self.dropped[n]) != ast.dump(self.added[n]))
        )

    @cached_property
    def free(self) -> frozenset[str]:
        """The names that the original looks up and does not bind."""
        return frozenset(free_names(ast.walk(self.original)))

    @cached_property
    def _full(self) -> Usage:
        """What the whole conversion looks up."""
        return usage(self.converted)

    @cached_property
    def _left_free(self) -> frozenset[str]:
        """The names that the whole conversion looks up and does not bind."""
        return frozenset(free_names(ast.walk(self.converted)))

    @staticmethod
    def _same(h: Hunk, s: ast.stmt) -> bool:
        old = names_of(h.before.statements)
        return isinstance(s, ast.Import | ast.ImportFrom) and all(n in old for n in bound(s))

    def texts(self, tree: ast.Module, fresh: Collection[str]) -> dict[Hunk, str]:
        """The text of each import hunk. `tree`: the file as decided, imports aside; `fresh`: the names that its new lines look up."""
        used, full = usage(tree), self._full
        kept: set[str] = set()
        out: dict[Hunk, str] = {}
        for h in sorted(self.hunks, key=lambda h: bool(h.after.indent)):  # those inside functions need to know what stayed
            if h.before.statements:
                out[h] = self._old(h, tree, used, full, fresh, kept)
            elif h.after.indent:
                out[h] = "" if set(names_of(h.after.statements)) <= kept else h.new
            else:
                out[h] = self._new(h, used, full, fresh)
        return out

    def _old(self, h: Hunk, tree: ast.Module, used: Usage, full: Usage, fresh: Collection[str], kept: set[str]) -> str:
        before, after = names_of(h.before.statements), names_of(h.after.statements)
        gone = [n for n in before if n not in after]
        needed = {n for n in gone if n not in ("*", *(self.conflicts & set(fresh))) and used.uses(n) - full.uses(n)}
        if "*" in gone and (free_names(ast.walk(tree)) & self.free) - self._left_free - set(fresh):
            needed.add("*")
        kept |= needed
        if needed == set(gone):
            return h.old
        if not needed:
            return h.new
        lines = [written(s, needed | set(after)) for s in h.before.statements if isinstance(s, ast.Import | ast.ImportFrom)]
        return "".join(f"{h.before.indent}{line}\n" for line in lines if not line.endswith("import "))

    def _new(self, h: Hunk, used: Usage, full: Usage, fresh: Collection[str]) -> str:
        names = names_of(h.after.statements)
        wanted = {n for n in names if (used.uses(n) or not full.uses(n)) and (n not in self.conflicts or n in fresh)}
        if wanted == set(names):
            return h.new
        if not wanted:
            return ""
        lines = [written(s, wanted) for s in h.after.statements if isinstance(s, ast.Import | ast.ImportFrom)]
        blank = "\n" if h.new.startswith("\n") else ""
        return blank + "".join(line + "\n" for line in lines if not line.endswith("import "))

    def missing(self, tree: ast.Module) -> tuple[str, list[str]]:
        """(import lines for names that nothing binds, the names for which none is known)."""
        lost = sorted(free_names(ast.walk(tree)) - self.free)
        known = {n: s for s in ast.walk(self.original) if isinstance(s, ast.Import | ast.ImportFrom) for n in bound(s)}
        lines = [written(known[n], {n}) if n in known else IMPORTS.get(n, "") or self._support_line(n) for n in lost]
        return "".join(line + "\n" for line in lines if line), [n for n, line in zip(lost, lines, strict=True) if not line]

    def _support_line(self, name: str) -> str:
        return f"from {self.support} import {name}" if name in self.support_names else ""


def place_for_imports(text: str, tree: ast.Module) -> int:
    """The offset of the line after the last import at the head of a file (or its docstring)."""
    line = 0
    for s in tree.body:
        doc = isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
        if not (doc or isinstance(s, ast.Import | ast.ImportFrom)):
            break
        line = s.end_lineno or s.lineno
    return sum(len(part) for part in text.splitlines(keepends=True)[:line])


def chosen_names(texts: Mapping[Hunk, str], fragments: Mapping[Hunk, Sequence[ast.stmt]]) -> set[str]:
    """The names that the new lines look up."""
    return {n.id for h in texts for s in fragments[h] for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
