"""A piece in words, for every front end: what it is, what changes, why, and what to know."""

from collections.abc import Mapping, Sequence
from typing import Any

from migrate.review import explain, measured
from migrate.review.pieces import Piece
from migrate.review.session import Outcome, Progress
from migrate.tables import Table

SHORT = 2  # how many rows are shown, and those not in full, unless all are asked for


def heading(p: Piece) -> str:
    """`model.py:12 in Net.__init__`."""
    return f"{p.file}:{p.line}" + (f" in {p.place}" if p.place else "")


def about(p: Piece, table: Table, target: str, verdict: Mapping[str, Any], rows: int = SHORT) -> list[tuple[str, str]]:
    """(kind, line) in the order in which a person wants them: "error", "warning", "info", "why", "measured", "differs", "row"."""
    found = [
        (d.severity, f"{d.code} {d.message}") for d in sorted(p.diagnostics, key=lambda d: ("error", "warning", "info").index(d.severity))
    ]
    found += [("why", line) for line in p.why]
    if line := measured.said(p, verdict):
        found.append(("differs" if ": differs" in line else "measured", line))
    every = rows > SHORT
    for name in () if p.kind == "class frame" and not every else p.rows[:rows]:
        lines = [line for line in explain.row_lines(name, table, target) if not line.startswith(("  also:", "  methods:"))]
        cut = len(lines) - 5 if len(lines) > 6 and not every else 0
        found += [("row", line) for line in lines[: len(lines) - cut]] + ([("row", f"  and {cut} more forms (r)")] if cut else [])
    return found


def came_along(outcome: Outcome) -> str:
    """`with it: class Net (line 12), nn.Linear (line 14) and 3 more`."""
    if outcome.error:
        return outcome.error
    names = [f"{p.title} (line {p.line})" for p in outcome.along]
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"with it, as they belong together: {', '.join(names[:3])}{more}"


def counted(progress: Progress) -> str:
    """`12 of 40 decided: 9 accepted, 2 rejected, 1 edited`."""
    parts = [(progress.accepted, "accepted"), (progress.rejected, "rejected"), (progress.edited, "edited")]
    said = ", ".join(f"{n} {word}" for n, word in parts if n)
    return f"{progress.total - progress.open} of {progress.total} decided" + (f": {said}" if said else "")


def to_edit(p: Piece, texts: Sequence[str]) -> str:
    """What $EDITOR shows: the new lines, parted where they stand in several places, below the original as comments."""
    parts = [_EDIT_HEAD]
    for i, (h, text) in enumerate(zip(p.hunks, texts, strict=True)):
        if i:
            parts.append(f"{MARK} part {i + 1}, line {h.line}\n")
        parts += [f"{ORIGINAL}{line}\n" for line in h.old.splitlines()]
        parts.append(text if text.endswith("\n") or not text else text + "\n")
    return "".join(parts)


def from_edit(p: Piece, text: str) -> list[str] | None:
    """The lines of each part; None where the parts can't be told any more."""
    parts: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.startswith(MARK):
            parts.append([])
        elif not line.startswith(ORIGINAL) and line.rstrip("\n") not in _HEAD_LINES:
            parts[-1].append(line)
    return ["".join(lines) for lines in parts] if len(parts) == len(p.hunks) else None


MARK = "#:---"
ORIGINAL = "#:was "
_EDIT_HEAD = "#:migrate review: change the lines below; lines that start with #: are not kept\n"
_HEAD_LINES = frozenset(_EDIT_HEAD.splitlines())
