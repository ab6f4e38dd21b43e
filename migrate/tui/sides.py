"""A piece as two columns of coloured lines, original beside converted, rows that belong together side by side."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Span, Text

from migrate.review.pieces import FileReview, Piece

CONTEXT = 3
OLD, NEW = Style(bgcolor="#3a1f24"), Style(bgcolor="#183325")
OLD_WORD, NEW_WORD = Style(bgcolor="#7a2f3a", bold=True), Style(bgcolor="#1f6b45", bold=True)
DIM = Style(dim=True)
NUMBER = Style(color="bright_black")


@dataclass(frozen=True)
class Line:
    """One row: the number of the original's line (0 for none) and both texts; None where a side has no line there."""

    number: int
    old: Text | None
    new: Text | None
    changed: bool = True


def lines_of(text: str) -> list[Text]:
    """Coloured lines, without a background of their own."""
    shown = text.expandtabs(4)
    coloured = _syntax().highlight(shown)
    plain = Text(coloured.plain, spans=[Span(s.start, s.end, _foreground(s.style)) for s in coloured.spans])
    return list(plain.split("\n", allow_blank=True))[: len(shown.splitlines())]


def _foreground(style: str | Style) -> Style:
    known = style if isinstance(style, Style) else Style.parse(style)
    return Style(color=known.color if known.color and not known.color.is_default else None, bold=known.bold, italic=known.italic)


@cache
def _syntax() -> Syntax:
    return Syntax("", "python", theme="github-dark", background_color="default")


class Sides:
    """Makes the rows of pieces; the colours of a file's text are kept."""

    def __init__(self) -> None:
        self._files: dict[str, list[Text]] = {}

    def rows(self, file: FileReview, p: Piece, texts: Sequence[str], others: Mapping[int, str]) -> Iterator[Line | None]:
        """The lines of a piece with some around them; None parts the places.

        `texts`: the new lines of each hunk. `others`: the new lines around, by the number of the original's.
        """
        if file.name not in self._files:
            self._files[file.name] = lines_of(file.source.text)
        whole = self._files[file.name]
        starts = [h.line - 1 for h in p.hunks[1:]] + [len(whole)]
        shown = 0
        for h, text, following in zip(p.hunks, texts, starts, strict=True):
            first = h.line - 1
            last = first + h.old.count("\n") + (not h.old.endswith("\n") and bool(h.old))
            start = max(first - CONTEXT, shown)
            if shown and start > shown:
                yield None
            yield from _context(whole, start, first, others)
            yield from _paired(first, [t.copy() for t in whole[first:last]], lines_of(text), h.old == text)
            shown = min(last + CONTEXT, following)
            yield from _context(whole, last, shown, others)


def _context(whole: Sequence[Text], start: int, end: int, others: Mapping[int, str]) -> Iterator[Line]:
    for i in range(start, min(end, len(whole))):
        new = lines_of(others[i + 1]) if i + 1 in others else []
        yield Line(i + 1, whole[i], new[0] if new else whole[i], False)


def _paired(first: int, old: list[Text], new: list[Text], same: bool) -> Iterator[Line]:
    a, b = [t.plain for t in old], [t.plain for t in new]
    if same:
        yield from (Line(first + i + 1, t, t) for i, t in enumerate(old))
        return
    for op, i1, i2, j1, j2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for k in range(max(i2 - i1, j2 - j1)):
            left = old[i1 + k] if i1 + k < i2 else None
            right = new[j1 + k] if j1 + k < j2 else None
            if op != "equal" and left is not None and right is not None:
                _emphasise(left, right)
            yield Line(first + i1 + k + 1 if left is not None else 0, left, right, op != "equal")


def _emphasise(old: Text, new: Text) -> None:
    """Marks the words that differ."""
    a, b = (re.findall(r"\w+|\s+|[^\w\s]", t.plain) for t in (old, new))
    match = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if match.ratio() < 0.3:
        return
    for op, i1, i2, j1, j2 in match.get_opcodes():
        if op != "equal":
            for text, words, start, end, style in ((old, a, i1, i2, OLD_WORD), (new, b, j1, j2, NEW_WORD)):
                at = len("".join(words[:start]))
                text.stylize(style, at, at + len("".join(words[start:end])))


def table(rows: Sequence[Line | None], stacked: bool, width: int) -> Table:
    """The rows as a grid that fills the width: side by side, or the new lines below the old."""
    rows = _dedented(rows)
    return _stacked(rows, width) if stacked else _beside(rows, width)


def _dedented(rows: Sequence[Line | None]) -> list[Line | None]:
    """Without the white space that all lines start with."""
    texts = [t for row in rows if row for t in (row.old, row.new) if t is not None and t.plain.strip()]
    indent = min((len(t.plain) - len(t.plain.lstrip(" ")) for t in texts), default=0)
    cut = [row and Line(row.number, row.old and row.old[indent:], row.new and row.new[indent:], row.changed) for row in rows]
    return cut if indent else list(rows)


def _beside(rows: Sequence[Line | None], width: int) -> Table:
    grid = Table.grid(padding=(0, 0), expand=True)
    half = max((width - 7) // 2, 10)
    other = max(width - half - 7, 10)
    grid.add_column(width=5, style=NUMBER, no_wrap=True)
    grid.add_column(width=half, overflow="fold")
    grid.add_column(width=2)
    grid.add_column(width=other, overflow="fold")
    for row in rows:
        if row is None:
            grid.add_row("", Text("⋯", NUMBER), "", Text("⋯", NUMBER))
            continue
        number = f"{row.number:>4} " if row.number else ""
        grid.add_row(number, _filled(row.old, row.changed, OLD, half), "", _filled(row.new, row.changed, NEW, other))
    return grid


def _stacked(rows: Sequence[Line | None], width: int) -> Table:
    grid = Table.grid(padding=(0, 0), expand=True)
    grid.add_column(width=5, style=NUMBER, no_wrap=True)
    grid.add_column(width=2)
    grid.add_column(overflow="fold")
    room = max(width - 7, 10)
    waiting: list[Text] = []
    for row in [*rows, None]:
        if row is None or not row.changed:
            for text in waiting:
                grid.add_row("", Text("+ ", "green"), _filled(text, True, NEW, room))
            waiting = []
            if row is not None and row.old is not None:
                grid.add_row(f"{row.number:>4} ", "", _filled(row.old, False, OLD, room))
            continue
        if row.old is not None:
            grid.add_row(f"{row.number:>4} ", Text("- ", "red"), _filled(row.old, True, OLD, room))
        if row.new is not None:
            waiting.append(row.new)
    return grid


def _filled(text: Text | None, changed: bool, style: Style, width: int) -> Text:
    """A line, tinted to the edge where it changes."""
    parts = [] if text is None else _wrapped(text.copy(), width)
    for part in parts:
        part.pad_right(max(width - part.cell_len, 0))
    if not parts:
        return Text("")
    out = Text("\n").join(parts)
    under = Text(out.plain, style=style if changed else DIM)
    under.spans = out.spans
    return under


def _wrapped(text: Text, width: int) -> list[Text]:
    """A long line in several, at spaces where there are some; what goes on is indented."""
    indent = min(len(text.plain) - len(text.plain.lstrip(" ")) + 4, width // 2)
    parts: list[Text] = []
    while text.cell_len > width:
        at = text.plain.rfind(" ", indent + 1, width) + 1 or width
        head, rest = text.divide([at])
        parts.append(head)
        text = Text(" " * indent) + rest
    return [*parts, text]
