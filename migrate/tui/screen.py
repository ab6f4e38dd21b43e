"""The texts around the code: the head line, the list's entries, the title, the reasons."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from migrate.review import words
from migrate.review.filters import Filter
from migrate.review.pieces import Piece
from migrate.review.session import Session

COLOURS = {"error": "red", "warning": "yellow", "info": "cyan", "why": "", "measured": "green", "differs": "red", "row": "dim"}
SIGNS = {"accepted": ("✓", "green"), "rejected": ("✗", "red"), "edited": ("✎", "cyan"), "": ("·", "dim")}
HEADS = {"error": "error ", "warning": "warning ", "info": "note ", "why": "", "measured": "measured ", "differs": "measured ", "row": ""}


def top(session: Session, target: str, chosen: Filter, width: int) -> Text:
    """Name, progress, filter."""
    p = session.progress()
    decided = p.total - p.open
    size = max(10, min(30, width // 5))
    full = round(size * decided / p.total) if p.total else size
    name = session.files[0].name if len(session.files) == 1 else f"{len(session.files)} files"
    attention = sum(1 for q in session.pieces if q.needs_attention and not session.state(q))
    text = Text.assemble((f"{name} → {target}  ", "bold"), ("█" * full, "green"), ("░" * (size - full), "dim"), f"  {words.counted(p)}")
    if attention:
        text.append(f"  {attention} need{'s' if attention == 1 else ''} attention", "yellow")
    if said := chosen.said():
        text.append(f"  filter: {said}", "bold magenta")
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def entry(p: Piece, state: str, width: int) -> Text:
    """A line of the list."""
    sign, colour = SIGNS[state]
    flag = {"error": ("!", "bold red"), "warning": ("!", "bold yellow")}.get(p.severity, (" ", ""))
    text = Text.assemble((sign, colour), flag, (f"{p.line:>4} ", "dim"), (p.title, "dim" if state else ""))
    text.truncate(width, overflow="ellipsis")
    return text


def title(p: Piece, session: Session) -> Text:
    """Where the piece is, and what was decided."""
    state = session.state(p)
    sign, colour = SIGNS[state]
    number = session.pieces.index(p) + 1
    text = Text.assemble((f"{number}/{len(session.pieces)}  ", "dim"), (p.title, "bold"), (f"  {words.heading(p)}", "dim"))
    if state:
        text.append(f"  {sign} {state}", colour)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def about(lines: Sequence[tuple[str, str]]) -> Group:
    """Why, and what to know."""
    out = []
    for kind, line in lines:
        indent = len(line) - len(line.lstrip())
        text = Text.assemble((HEADS[kind], f"bold {COLOURS[kind]}"), (line.lstrip(), COLOURS[kind]))
        out.append(Padding(text, (0, 0, 0, indent)))
    return Group(*out)


def height(made: Group, width: int) -> int:
    """How many lines a text takes in a width."""
    return len(Console(width=width).render_lines(made, pad=False))
