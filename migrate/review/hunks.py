"""A conversion as hunks: lines of the original, and the lines that take their place.

Any choice of hunks gives a file that parses: each is whole statements, or one head, on both sides, at the same indentation, and no
block can become empty.
"""

import ast
from dataclasses import dataclass, field

from migrate.edits import Change, Emitter, Plan, TextEdit
from migrate.review.fragments import Fragment, fragment, replaces
from migrate.review.slots import Slots

Range = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Hunk:
    """`old` is the original's text from `start` to `end`, whole lines; `line` its first line. An inserted hunk has no old text."""

    start: int
    end: int
    line: int
    old: str
    new: str
    changes: tuple[Change, ...] = ()
    statement: ast.stmt | None = None
    is_open: bool = False
    rules: frozenset[str] = frozenset()
    reasons: tuple[tuple[str, str], ...] = ()  # (rule, row or other reason) of each edit, without repetitions
    before: Fragment = field(default_factory=lambda: Fragment(()))
    after: Fragment = field(default_factory=lambda: Fragment(()))


def hunks_of(plan: Plan) -> list[Hunk]:
    """The hunks of a file, in order."""
    return _Hunks(plan).made()


class _Hunks:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.source = plan.source
        self.slots = Slots(plan.source)
        self.changes = Emitter(plan).changes()
        self.ranges: list[tuple[Range, list[int]]] = []
        self._edits = sorted(((self.source.start(n), n) for n in plan.nodes), key=lambda p: p[0])

    def made(self) -> list[Hunk]:
        self.ranges = _merged([(self._range(c), [i]) for i, c in enumerate(self.changes)])
        while self._grow() or self._fill_blocks():
            self.ranges = _merged(self.ranges)
        return [self._hunk(r, cs) for r, cs in self.ranges]

    def _range(self, c: Change) -> Range:
        """The lines that a change belongs to."""
        src = self.source
        if c.start == c.end and src.line_start(c.start) == c.start and c.text.endswith("\n"):
            rule = c.what.rule if isinstance(c.what, TextEdit) else ""
            slot = self.slots.at(c.start) if rule == "comments" else self.slots.last_before(c.start) if rule == "gradients" else None
            if slot is None:
                return c.start, c.start
            return (slot.start, slot.end) if rule == "comments" else (slot.start, c.start)
        start, end = self.slots.lines(c.start, max(c.end, c.start + 1))
        for slot in (self.slots.at(c.start), self.slots.at(max(c.end - 1, c.start))):
            if slot is not None:
                start, end = min(start, slot.start), max(end, slot.end)
        return start, min(end, len(src.text))

    def _new(self, r: Range, changes: list[int]) -> str:
        out, at = [], r[0]
        for c in (self.changes[i] for i in changes):
            out += [self.source.text[at : c.start], c.text]
            at = c.end
        return "".join([*out, self.source.text[at : r[1]]])

    def _is_open(self, r: Range) -> bool:
        """Whether lines end in a head whose block follows."""
        slot = self.slots.last_before(r[1])
        return slot is not None and slot.is_open and slot.start >= r[0] and slot.end <= r[1] and not self.slots.within(slot.end, r[1])

    def _readings(self, r: Range, changes: list[int]) -> tuple[Fragment, Fragment] | None:
        new, is_open = self._new(r, changes), self._is_open(r)
        if r[0] == r[1]:
            made = fragment(new, False)
            return None if made is None else (Fragment(()), made)
        slot = self.slots.at(r[0])
        if slot is None and not self.slots.within(*r):  # `else:` and the like
            is_open = True if self.source.text[slice(*r)].strip() else is_open
        return replaces(self.source.text[r[0] : r[1]], new, is_open)

    def _grow(self) -> bool:
        """Widens what is not whole statements on both sides to the statement around it."""
        grown = False
        for i, (r, changes) in enumerate(self.ranges):
            if r != (0, len(self.source.text)) and self._readings(r, changes) is None:
                wider = self.slots.enclosing(*r)
                self.ranges[i] = (wider if wider is not None and wider != r else (0, len(self.source.text)), changes)
                grown = True
        return grown

    def _fill_blocks(self) -> bool:
        """Makes one hunk of a block that some choice would leave empty."""
        gone: set[ast.AST] = set()
        for r, changes in self.ranges:
            made = self._readings(r, changes)
            if r[0] < r[1] and made is not None and made[0].statements and not made[1].statements:
                gone.update(s.statement for s in self.slots.within(*r))
        around = {p for s in gone if (p := self.source.parent(s)) is not None and p is not self.source.tree} - gone
        for node in {p for p in around if self.source.parent(p) not in gone}:  # what goes whole leaves no empty block, nor does a handler of it
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and all(s in gone for s in block):
                    assert isinstance(block[0], ast.stmt)
                    found = self.slots.enclosing(*self.slots.lines(self.source.start(block[0]), self.source.end(block[0])))
                    self.ranges.append((found or (0, len(self.source.text)), []))
                    return True
        return False

    def _hunk(self, r: Range, changes: list[int]) -> Hunk:
        made = self._readings(r, changes) or (Fragment(()), Fragment(()))
        slots = self.slots.within(*r)
        slot = self.slots.at(r[0]) or (slots[0] if slots else None)
        reasons: dict[tuple[str, str], None] = {}
        for start, node in self._edits:
            if r[0] <= start < r[1]:
                edit = self.plan.nodes[node]
                reasons[edit.rule, edit.why] = None
        mine = tuple(self.changes[i] for i in changes)
        for c in mine:
            if isinstance(c.what, TextEdit):
                reasons[c.what.rule, ""] = None
        return Hunk(
            *r,
            line=self.source.line_of(r[0]),
            old=self.source.text[r[0] : r[1]],
            new=self._new(r, changes),
            changes=mine,
            statement=slot.statement if slot and r[0] < r[1] else None,
            is_open=self._is_open(r),
            rules=frozenset(rule for rule, _ in reasons),
            reasons=tuple(reasons),
            before=made[0],
            after=made[1],
        )


def _merged(ranges: list[tuple[Range, list[int]]]) -> list[tuple[Range, list[int]]]:
    """Ranges that overlap made one. An insertion at the edge of another range stays apart."""
    out: list[tuple[Range, list[int]]] = []
    for (start, end), changes in sorted(ranges):
        if out and (start < out[-1][0][1] or (start, end) == out[-1][0]):
            (first, last), before = out[-1]
            out[-1] = ((first, max(last, end)), sorted({*before, *changes}))
        else:
            out.append(((start, end), changes))
    return out
