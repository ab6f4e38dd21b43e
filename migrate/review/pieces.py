"""The pieces of a review: hunks that are decided on at once, with what to know about them."""

import ast
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from migrate.diagnostics import Diagnostic
from migrate.pipeline import Conversion
from migrate.review import explain
from migrate.review.fragments import Fragment, fragment
from migrate.review.hunks import Hunk, hunks_of
from migrate.review.imports import Imports, is_import
from migrate.review.links import Facts, Links, conflicts, facts
from migrate.review.resolve import Definitions
from migrate.review.slots import Slots
from migrate.source.text import Source
from migrate.tables import Table

RANK = {"": 0, "info": 1, "warning": 2, "error": 3}


@dataclass(frozen=True, eq=False)
class Piece:
    """What one decision is about. `kind` is what "all of a kind" means; `place` the class and method."""

    key: str
    file: str
    title: str
    kind: str
    place: str
    hunks: tuple[Hunk, ...]
    why: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def line(self) -> int:
        """The first line."""
        return self.hunks[0].line

    @property
    def severity(self) -> str:
        """The worst of its diagnostics: "error", "warning", "info" or "" for none."""
        return max((d.severity for d in self.diagnostics), key=RANK.__getitem__, default="")

    @property
    def needs_attention(self) -> bool:
        """Whether a person should look: a warning or an error."""
        return RANK[self.severity] > 1

    @property
    def unchanged(self) -> bool:
        """Whether the conversion left the lines as they are: there is only something to know."""
        return all(h.old == h.new for h in self.hunks)

    @property
    def rules(self) -> frozenset[str]:
        """The rules behind it."""
        return frozenset(rule for h in self.hunks for rule, _ in h.reasons if rule)


@dataclass(eq=False)
class FileReview:
    """One file under review: its original, its conversion, its pieces in order."""

    name: str
    source: Source
    conversion: Conversion
    converted: str  # with "\n" line ends
    hunks: list[Hunk]
    imports: Imports
    pieces: list[Piece] = field(default_factory=list)
    loose: tuple[Diagnostic, ...] = ()  # what belongs to no line that changes


@dataclass(frozen=True)
class Reading:
    """A file's facts on the way to pieces."""

    file: FileReview
    facts: list[Facts]
    scaffolds: dict[Hunk, str]


def read(name: str, conversion: Conversion, support_names: Sequence[str]) -> Reading | None:
    """The hunks of a converted file; None where it was not converted at all."""
    if conversion.plan is None:
        return None
    source = conversion.plan.source
    hunks = [h for h in hunks_of(conversion.plan) if h.old != h.new]
    at, out = 0, []
    for h in hunks:
        out += [source.text[at : h.start], h.new]
        at = h.end
    converted = "".join([*out, source.text[at:]])
    imports = Imports(hunks, source.tree, ast.parse(converted), _support_module(conversion), support_names)
    if imports.hunks and all(is_import(h) for h in hunks):
        imports.hunks = []  # nothing else changes: then the imports are what there is to decide
    review = FileReview(name, source, conversion, converted, hunks, imports)
    _add_silent(review)
    own = [h for h in review.hunks if h not in imports.hunks]
    known = [facts(source, name, h) for h in own]
    return Reading(review, known, {f.hunk: f.owner for f in known if _is_frame(f)})


def _support_module(c: Conversion) -> str:
    return next(iter(c.support), "torch_support.py").removesuffix(".py")


def _add_silent(review: FileReview) -> None:
    """Hunks without a change, for warnings and errors about lines that stay as they are."""
    slots = Slots(review.source)
    for d in review.conversion.diagnostics:
        if RANK[d.severity] < 2 or any(_covers(h, d) for h in review.hunks) or d.line > review.source.text.count("\n") + 1:
            continue
        slot = slots.at(review.source.offset(d.line, 0))
        if slot is None or any(h.start < slot.end and slot.start < h.end for h in review.hunks):
            continue
        text = review.source.text[slot.start : slot.end]
        made = fragment(text, slot.is_open) or Fragment(())
        line = review.source.line_of(slot.start)
        review.hunks.append(
            Hunk(slot.start, slot.end, line, text, text, statement=slot.statement, is_open=slot.is_open, before=made, after=made)
        )
    review.hunks.sort(key=lambda h: (h.start, h.end))


def _covers(h: Hunk, d: Diagnostic) -> bool:
    return h.line <= d.line < h.line + max(h.old.count("\n"), 1) if h.old else False


def _is_frame(f: Facts) -> bool:
    """Whether a hunk belongs to the frame of its class: the head, signatures that change, `super().__init__()`, added members."""
    h = f.hunk
    if not f.owner or not h.changes:
        return False
    if isinstance(f.head_of, ast.ClassDef):
        return True
    if "modules" not in h.rules:
        return False
    added = not h.before.statements
    return added or f.head_of is not None or ("__init__" in h.old and "super" in h.old) or "Module.__init__" in h.old


def group(readings: Sequence[Reading], table: Table, target: str) -> dict[Piece, set[Piece]]:
    """Fills each file's pieces; returns which piece needs which."""
    every = [f for r in readings for f in r.facts]
    scaffolds = {h: c for r in readings for h, c in r.scaffolds.items()}
    known = Definitions({r.file.name: r.file.source for r in readings})
    needs = Links(every, known, scaffolds).found()
    for r in readings:
        for together in conflicts(r.facts, r.file.imports.conflicts):
            for h in together:
                needs[h].update(o for o in together if o is not h)
    owner: dict[Hunk, Piece] = {}
    for r in readings:
        _pieces(r, table, owner)
    return {p: {owner[n] for h in p.hunks for n in needs[h]} - {p} for p in dict.fromkeys(owner.values())}


def _pieces(r: Reading, table: Table, owner: dict[Hunk, Piece]) -> None:
    frames: dict[str, list[Facts]] = {}
    groups: list[list[Facts]] = []
    for f in r.facts:
        if f.hunk in r.scaffolds:
            name = r.scaffolds[f.hunk]
            if name not in frames:
                groups.append(frames.setdefault(name, []))
            frames[name].append(f)
        else:
            groups.append([f])
    seen: Counter[str] = Counter()
    told: set[Diagnostic] = set()
    for g in groups:
        piece = _piece(r, g, table, seen)
        told.update(piece.diagnostics)
        r.file.pieces.append(piece)
        owner.update(dict.fromkeys(piece.hunks, piece))
    r.file.loose = tuple(d for d in r.file.conversion.diagnostics if d not in told and RANK[d.severity] > 1)


def _piece(r: Reading, g: list[Facts], table: Table, seen: Counter[str]) -> Piece:
    hunks = tuple(f.hunk for f in g)
    reasons = tuple(dict.fromkeys(reason for h in hunks for reason in h.reasons))
    frame = hunks[0] in r.scaffolds
    found = tuple(d for d in r.file.conversion.diagnostics if any(_covers(h, d) for h in hunks))
    rows = explain.rows_of(reasons, table)
    title, kind = _title(g[0], hunks, frame, rows, found)
    digest = hashlib.blake2b("\0".join([r.file.name, *(t for h in hunks for t in (h.old, h.new))]).encode(), digest_size=8).hexdigest()
    seen[digest] += 1
    key = f"{digest}-{seen[digest]}" if seen[digest] > 1 else digest
    why = explain.notes(reasons, frame)
    if not frame and g[0].head_of is not None and g[0].added("parameters"):
        why = [explain.HEAD, *(w for w in why if w != explain.FRAME)]
    return Piece(key, r.file.name, title, kind, _place(g[0], r.file.source), hunks, tuple(why), tuple(rows), found)


def _title(f: Facts, hunks: tuple[Hunk, ...], frame: bool, rows: list[str], found: Sequence[Diagnostic]) -> tuple[str, str]:
    if frame:
        return f"class {f.owner}", "class frame"
    if errors := [d for d in found if d.severity == "error"]:
        return f"left: {errors[0].message.partition(': ')[0]}", f"left ({errors[0].code})"
    name = getattr(f.head_of, "name", "")
    if name and f.added("parameters"):
        return f"def {name}", "function that makes modules"
    if rows:
        kind = ", ".join(explain.short(n) for n in rows)
        return kind, kind
    if all(is_import(h) for h in hunks):
        return "imports", "imports"
    rules = sorted({rule for h in hunks for rule in h.rules if rule and rule != "comments"})
    if not rules:
        return (f"note {found[0].code}" if found else "comment"), (found[0].code if found else "comment")
    return _told(f, rules), " + ".join(rules)


TITLES = {
    "noise": "removed: no effect on values",
    "rngs": "random stream passed on",
    "modules": "module call",
    "inplace": "write in place",
    "gradients": "constant to the gradient",
}


def _told(f: Facts, rules: list[str]) -> str:
    return ", ".join(TITLES.get(rule, _lowered(explain.rule_prose(rule)) or rule) for rule in rules)


def _lowered(prose: str) -> str:
    """The head of a sentence, to go on with."""
    head = prose.partition(":")[0].partition(".")[0]
    return head[:1].lower() + head[1:]


def _place(f: Facts, source: Source) -> str:
    name = getattr(f.function, "name", "")
    return ".".join(part for part in (f.owner, name) if part)
