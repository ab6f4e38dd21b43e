"""The lines of a file by statement: a simple statement's lines, or those of a compound statement's head."""

import ast
from bisect import bisect_right
from dataclasses import dataclass

from migrate.source.text import Source

_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")


@dataclass(frozen=True)
class Slot:
    """Whole lines, as offsets. `is_open`: the head of a block whose statements have slots of their own."""

    start: int
    end: int
    statement: ast.stmt
    is_open: bool = False


class Slots:
    """The slots of a file, in order; lines between them (blank, comments, `else:`) have none."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: list[Slot] = []
        self._walk(source.tree)
        self._starts = [s.start for s in self._found]

    def at(self, offset: int) -> Slot | None:
        """The slot of an offset."""
        i = bisect_right(self._starts, offset) - 1
        return self._found[i] if i >= 0 and offset < self._found[i].end else None

    def last_before(self, offset: int) -> Slot | None:
        """The last slot that starts before an offset."""
        i = bisect_right(self._starts, offset - 1) - 1
        return self._found[i] if i >= 0 else None

    def within(self, start: int, end: int) -> list[Slot]:
        """The slots that start in a span."""
        return self._found[bisect_right(self._starts, start - 1) : bisect_right(self._starts, end - 1)]

    def lines(self, start: int, end: int) -> tuple[int, int]:
        """A span made whole lines."""
        src = self.source
        return src.line_start(start), (src.line_end(end - 1) if end > start else end)

    def enclosing(self, start: int, end: int) -> tuple[int, int] | None:
        """The lines of the innermost compound statement that holds more than a span; None for the file."""
        slot = self.at(start) or self.last_before(start)
        at: ast.AST | None = slot.statement if slot else None
        while at is not None and not isinstance(at, ast.Module):
            if isinstance(at, ast.stmt):
                found = self.lines(*self.source.span(at))
                if found[0] <= start and found[1] >= end and found != (start, end):
                    return found
            at = self.source.parent(at)
        return None

    def _walk(self, node: ast.AST) -> None:
        for name in _BLOCKS:
            for child in getattr(node, name, None) or ():
                if isinstance(child, ast.stmt):
                    self._statement(child)
                elif isinstance(child, ast.ExceptHandler | ast.match_case):
                    self._walk(child)

    def _statement(self, s: ast.stmt) -> None:
        src = self.source
        start, end = self.lines(*src.span(s))
        body = getattr(s, "body", None)
        inner = src.line_start(src.start(body[0])) if isinstance(body, list) and body else None
        if isinstance(s, ast.Match):
            inner = src.line_start(src.start(s.cases[0].pattern))
        if inner is None or inner <= src.line_start(_head(s, src)):
            self._add(Slot(start, end, s))
            return
        self._add(Slot(start, self._trimmed(start, inner), s, True))
        self._walk(s)

    def _add(self, slot: Slot) -> None:
        if self._found and slot.start < self._found[-1].end:  # `a = 1; b = 2`
            last = self._found.pop()
            slot = Slot(last.start, max(last.end, slot.end), last.statement, slot.is_open)
        self._found.append(slot)

    def _trimmed(self, start: int, end: int) -> int:
        """Without the comments and blank lines between a head and its body."""
        src = self.source
        while end > start:
            line = src.line_start(end - 1)
            if line <= start or (src.text[line:end].strip() and not src.text[line:end].lstrip().startswith("#")):
                break
            end = line
        return end


def _head(s: ast.stmt, src: Source) -> int:
    """Where the last part of a head that has a node ends."""
    parts = [n for n in ast.iter_child_nodes(s) if not isinstance(n, ast.stmt | ast.ExceptHandler | ast.match_case)]
    ends = [src.end(m) for n in parts for m in ast.walk(n) if hasattr(m, "end_lineno")]
    return max([*ends, src.offset(s.lineno, s.col_offset)])
