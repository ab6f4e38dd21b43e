"""A review on its way: the pieces of all files, the decisions, and what the files are under them. Values only: nothing is printed here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from migrate.review.compose import Unparsable, check, compose
from migrate.review.decisions import ACCEPTED, EDITED, REJECTED, Decision, Decisions, closure
from migrate.review.pieces import FileReview, Piece


@dataclass(frozen=True)
class Outcome:
    """What a command did: the pieces that changed, those that came along because they belong together, or why nothing was done."""

    changed: tuple[Piece, ...] = ()
    along: tuple[Piece, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Progress:
    """How far the review is."""

    accepted: int
    rejected: int
    edited: int
    total: int

    @property
    def open(self) -> int:
        """How many are not decided."""
        return self.total - self.accepted - self.rejected - self.edited


class Session:
    """Decisions on pieces. `save` is called after each change, before the call that made it returns."""

    def __init__(self, files: Sequence[FileReview], needs: Mapping[Piece, set[Piece]], decisions: Decisions | None = None) -> None:
        self.files = list(files)
        self.pieces = [p for f in files for p in f.pieces]
        self.needs = needs
        self.wanted_by: dict[Piece, set[Piece]] = {p: set() for p in self.pieces}
        for p, others in needs.items():
            for o in others:
                self.wanted_by[o].add(p)
        self.decisions = decisions or Decisions()
        self.save: Callable[[], None] = lambda: None
        self._by_key = {p.key: p for p in self.pieces}
        self._file = {f.name: f for f in self.files}

    def state(self, p: Piece) -> str:
        """ "accepted", "rejected", "edited" or "" where nothing is decided."""
        d = self.decisions.made.get(p.key)
        return d.state if d else ""

    def accept(self, pieces: Iterable[Piece]) -> Outcome:
        """Accepts pieces, and what they need."""
        return self._decide(list(pieces), Decision(ACCEPTED), self.needs)

    def reject(self, pieces: Iterable[Piece]) -> Outcome:
        """Rejects pieces, and what needs them."""
        return self._decide(list(pieces), Decision(REJECTED), self.wanted_by)

    def edit(self, p: Piece, texts: Sequence[str]) -> Outcome:
        """Takes a person's lines for a piece, and accepts what it needs."""
        return self._decide([p], Decision(EDITED, tuple(texts)), self.needs)

    def reopen(self, pieces: Iterable[Piece]) -> Outcome:
        """Takes decisions away."""
        return self._apply({p.key: None for p in pieces if p.key in self.decisions.made}, ())

    def undo(self) -> Outcome:
        """Takes back the last command."""
        step = self.decisions.undo()
        self.save()
        return Outcome(tuple(self._by_key[k] for k in step)) if step else Outcome(error="nothing to undo")

    def _decide(self, start: list[Piece], decision: Decision, edges: Mapping[Piece, Iterable[Piece]]) -> Outcome:
        reached = closure(start, edges)
        others = Decision(ACCEPTED if decision.takes else REJECTED)
        changes: dict[str, Decision | None] = {}
        for p in reached:
            mine = decision if p in start else others
            now = self.decisions.made.get(p.key)
            if now is None or (p in start and now != mine) or now.takes != mine.takes:
                changes[p.key] = mine
        return self._apply(changes, [p for p in reached if p not in start and p.key in changes])

    def _apply(self, changes: Mapping[str, Decision | None], along: Sequence[Piece]) -> Outcome:
        """Makes a step, if every file still parses with it."""
        if not changes:
            return Outcome()
        self.decisions.apply(changes)
        touched = {self._by_key[k].file for k in changes}
        try:
            for name in touched:
                check(self._file[name], self.decisions.made)
        except Unparsable as e:
            self.decisions.undo()
            return Outcome(error=f"the file would not be valid Python: {e}")
        self.save()
        return Outcome(tuple(self._by_key[k] for k in changes), tuple(along))

    def text(self, file: FileReview, mark: bool = True) -> str:
        """A file under the decisions. Raises Unparsable."""
        return compose(file, self.decisions.made, mark)

    def lines_around(self, file: FileReview) -> dict[int, str]:
        """By the original's line numbers: the lines that take their place unless rejected, where there are as many."""
        found: dict[int, str] = {}
        for p in file.pieces:
            d = self.decisions.made.get(p.key)
            for i, h in enumerate(p.hunks):
                new = d.texts[i] if d is not None and d.texts else h.new
                if (d is None or d.takes) and new.count("\n") == h.old.count("\n"):
                    found.update({h.line + k: line for k, line in enumerate(new.splitlines())})
        return found

    def file_of(self, p: Piece) -> FileReview:
        """The file of a piece."""
        return self._file[p.file]

    def progress(self) -> Progress:
        """Counts."""
        states = [self.state(p) for p in self.pieces]
        return Progress(states.count(ACCEPTED), states.count(REJECTED), states.count(EDITED), len(states))

    def of_kind(self, p: Piece) -> list[Piece]:
        """The undecided pieces of the same kind, this one included."""
        return [o for o in self.pieces if o.kind == p.kind and (o is p or not self.state(o))]

    def harmless(self, pieces: Iterable[Piece] | None = None) -> list[Piece]:
        """The undecided pieces that need no attention."""
        return [p for p in (self.pieces if pieces is None else pieces) if not self.state(p) and not p.needs_attention]

    def following(self, p: Piece | None, among: Sequence[Piece] | None = None, attention: bool = False) -> Piece | None:
        """The next undecided piece after one, from the start again at the end; with `attention` one that needs it."""
        pieces = list(self.pieces if among is None else among)
        at = pieces.index(p) + 1 if p in pieces else 0
        return next((q for q in pieces[at:] + pieces[:at] if not self.state(q) and (q.needs_attention or not attention)), None)
