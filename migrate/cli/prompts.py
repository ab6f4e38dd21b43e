"""A review as questions and answers on standard input, for any terminal and for scripts."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from migrate.cli.show import echo
from migrate.report.text import COLOURS
from migrate.review import words
from migrate.review.pieces import Piece
from migrate.review.project import Review
from migrate.review.session import Outcome
from migrate.settings import table_for

HELP = """y  accept            n  reject: the original lines stay, marked `# migrate: keep`
e  edit in $EDITOR   u  undo the last answer
t  accept this and all others of its kind that are open         T  reject them
g  accept everything that is open and needs no attention        A  accept everything that is open
F  accept what is open in this file                             D  reject what is open in this file
s  decide later      p  back to the one before      x  next one that needs attention (a warning or an error)
r  show the rows of the tables behind it, in full
w  write what is accepted, and stop: what is open stays as it was
q  stop; the progress is kept
?  this help"""
COLOUR = {**COLOURS, "why": "white", "measured": "green", "differs": "red", "row": "blue"}


class Prompts:
    """The loop. Values come from the session; this prints and asks."""

    def __init__(self, review: Review, target: str, verdict: Mapping[str, Any]) -> None:
        self.session = review.session
        self.target = target
        self.verdict = verdict
        self.loose = review.loose
        self.table = table_for(review.planned.folder)
        self.at: Piece | None = None
        self.asked = False
        self.done: bool | None = None  # True: write; False: stop

    def run(self) -> bool:
        """Asks until everything is decided, or the person stops. Whether to write."""
        for d in self.loose:
            echo(str(d), COLOURS[d.severity])
        while self.done is None:
            self.at = self.at or self.session.following(None)
            if self.at is None and (self.asked or not self.session.pieces):
                return True
            if self.at is None:
                click.echo("everything is decided: w writes it, u takes the last answer back")
                self.at = self.session.pieces[-1]
            self._show(self.at)
            self._ask(self.at)
        return self.done

    def _show(self, p: Piece, rows: int = 0) -> None:
        number = self.session.pieces.index(p) + 1
        state = self.session.state(p)
        click.echo()
        echo(f"({number}/{len(self.session.pieces)}) {p.title}  {words.heading(p)}" + (f"  [{state}]" if state else ""), "cyan")
        for i, h in enumerate(p.hunks):
            if i:
                click.echo(f"@@ line {h.line}")
            for sign, colour, text in (("-", "red", h.old), ("+", "green", h.new)) if h.old != h.new else ((" ", None, h.old),):
                for line in text.splitlines():
                    echo(f"{sign}{line}", colour)
        for kind, line in words.about(p, self.table, self.target, self.verdict, rows):
            echo(f"  {line}", COLOUR[kind])

    def _ask(self, p: Piece) -> None:
        click.echo("Accept [y,n,e,u,t,g,s,x,w,q,?]? ", nl=False)
        answer = sys.stdin.readline()
        self.asked = True
        if not sys.stdin.isatty():
            click.echo(answer.strip())
        if not answer:
            self.done = False
            return
        act = self._acts().get(answer.strip())
        if act is None:
            click.echo(HELP)
            return
        act(p)

    def _acts(self) -> dict[str, Callable[[Piece], None]]:
        s = self.session
        return {
            "y": lambda p: self._take(s.accept([p])),
            "n": lambda p: self._take(s.reject([p])),
            "t": lambda p: self._take(s.accept(s.of_kind(p))),
            "T": lambda p: self._take(s.reject(s.of_kind(p))),
            "g": lambda p: self._take(s.accept(s.harmless())),
            "A": lambda p: self._take(s.accept(self._open())),
            "F": lambda p: self._take(s.accept(self._open(p.file))),
            "D": lambda p: self._take(s.reject(self._open(p.file))),
            "s": lambda p: self._go(s.following(p)),
            "x": lambda p: self._go(s.following(p, attention=True), "nothing open needs attention"),
            "p": lambda p: self._go(s.pieces[max(s.pieces.index(p) - 1, 0)]),
            "r": lambda p: self._show(p, rows=99),
            "e": self._edit,
            "u": self._undo,
            "w": lambda p: self._stop(True),
            "q": lambda p: self._stop(False),
        }

    def _open(self, file: str = "") -> list[Piece]:
        return [p for p in self.session.pieces if not self.session.state(p) and (not file or p.file == file)]

    def _take(self, outcome: Outcome) -> None:
        if line := words.came_along(outcome):
            echo(line, "red" if outcome.error else "cyan")
        if not outcome.error:
            self.at = self.session.following(self.at)

    def _go(self, p: Piece | None, otherwise: str = "") -> None:
        if p is None and otherwise:
            click.echo(otherwise)
        self.at = p or self.at

    def _undo(self, _: Piece) -> None:
        outcome = self.session.undo()
        if outcome.error:
            click.echo(outcome.error)
        else:
            self.at = outcome.changed[0]

    def _stop(self, write: bool) -> None:
        self.done = write

    def _edit(self, p: Piece) -> None:
        decision = self.session.decisions.made.get(p.key)
        texts = list(decision.texts) if decision and decision.texts else [h.new for h in p.hunks]
        try:
            given = click.edit(words.to_edit(p, texts), extension=".py", require_save=False)
        except click.ClickException as e:
            echo(e.message, "red")
            return
        made = None if given is None else words.from_edit(p, given)
        if made is None:
            click.echo("not changed" if given is None else "the lines that part the places are gone; nothing was changed")
        elif made == texts:
            click.echo("not changed")
        else:
            self._take(self.session.edit(p, made))
