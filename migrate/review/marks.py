"""The original's lines that stay, marked: `# migrate: keep` where the converter reads it so, else a line above that only people read."""

import ast
import re

from migrate.review.hunks import Hunk

KEEP = "# migrate: keep"
ABOVE = "# migrate: left as it was"


def marked(h: Hunk) -> str:
    """The old lines with a mark on each statement.

    A mark in a head would keep the whole block, which is more than was decided; so a head whose block goes on gets the line above.
    """
    statements = h.before.statements
    if not statements:
        return h.old
    lines = h.old.split("\n")
    offset = 2 if h.before.indent else 1  # read below an `if`
    places = [_place(s, lines, offset) for s in statements]
    if h.is_open or _continues(h.old) or None in places:
        return _above(h)
    for at in {p for p in places if p is not None}:
        if KEEP not in lines[at]:
            lines[at] = f"{lines[at]}  {KEEP}"
    return "\n".join(lines)


def _place(s: ast.stmt, lines: list[str], offset: int) -> int | None:
    """The line whose end can carry the mark: a simple statement's last, a block's head on one line."""
    if not hasattr(s, "body") and not hasattr(s, "cases"):
        return (s.end_lineno or s.lineno) - offset
    at = s.lineno - offset
    return at if 0 <= at < len(lines) and lines[at].rstrip().endswith(":") else None


def _continues(text: str) -> bool:
    """Whether lines start with a clause of a statement above: `else:`."""
    return re.match(r"\s*(elif|else|except|finally|case)\b", text) is not None


def _above(h: Hunk) -> str:
    first = h.old[: len(h.old) - len(h.old.lstrip("\n"))]
    return f"{first}{h.before.indent}{ABOVE}\n{h.old[len(first) :]}"


def unmarked(text: str) -> str:
    """A text without the marks."""
    lines = [line for line in text.split("\n") if line.strip() != ABOVE]
    return "\n".join(line.removesuffix(f"  {KEEP}") for line in lines)
