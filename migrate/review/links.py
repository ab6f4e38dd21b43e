"""What goes together: lines that use what other lines introduce, and lines that must change at the same time.

`needs[a]` has `b` where `a` accepted asks for `b` accepted as well. Two that need each other move together.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from migrate.review.hunks import Hunk
from migrate.review.resolve import Definitions, Place
from migrate.source.text import Source

_ARGUMENT_RULES = frozenset({"state", "tying"})


@dataclass(eq=False)
class Facts:
    """What a hunk's two texts look up, bind and call."""

    hunk: Hunk
    file: str
    owner: str = ""  # the class around it
    function: ast.AST | None = None  # the innermost function around it
    head_of: ast.AST | None = None  # the definition whose head it is
    loads: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    stores: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    reads: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))  # attributes
    sets: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    parameters: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    calls: tuple[set[tuple[str, str]], set[tuple[str, str]]] = field(default_factory=lambda: (set(), set()))  # (callee, keyword)
    variables: set[str] = field(default_factory=set)  # attributes that its edits of state touch

    def added(self, kind: str) -> set[str]:
        """What only the new text has."""
        old, new = getattr(self, kind)
        return set(new - old)

    def lost(self, kind: str) -> set[str]:
        """What only the old text has."""
        old, new = getattr(self, kind)
        return set(old - new)


def facts(source: Source, file: str, h: Hunk) -> Facts:
    """Reads a hunk."""
    f = Facts(h, file)
    node = h.statement or _before(source, h)
    if node is not None:
        definition = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        f.head_of = node if definition and (h.is_open or not h.old.strip()) and h.statement is node else None
        f.function = (
            node if f.head_of and not isinstance(node, ast.ClassDef) else source.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef)
        )
        cls = node if isinstance(node, ast.ClassDef) else source.enclosing(node, ast.ClassDef)
        f.owner = cls.name if isinstance(cls, ast.ClassDef) else ""
    for side, made in enumerate((h.before, h.after)):
        for s in made.statements:
            for n in ast.walk(s):
                _read(f, side, n)
    for c in h.changes:
        if isinstance(c.what, ast.AST) and _touches_state(h):
            f.variables.update(n.attr for n in ast.walk(c.what) if isinstance(n, ast.Attribute))
            f.variables.update(
                n.value for n in ast.walk(c.what) if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.isidentifier()
            )
    return f


def _touches_state(h: Hunk) -> bool:
    return any(rule in _ARGUMENT_RULES or why in ("variable", "tied weights") for rule, why in h.reasons)


def _before(source: Source, h: Hunk) -> ast.AST | None:
    """For inserted lines: the last statement above them, or the definition in whose body they stand."""
    indent = len(h.new.lstrip("\n")) - len(h.new.lstrip("\n").lstrip(" \t"))
    best: ast.AST | None = None
    for n in source.nodes:
        if (
            isinstance(n, ast.stmt)
            and source.start(n) < h.start
            and n.col_offset < indent
            and source.line_end(source.end(n)) >= h.start - 1
        ):
            best = n
    return best


def _read(f: Facts, side: int, n: ast.AST) -> None:
    match n:
        case ast.Name(ctx=ast.Load()):
            f.loads[side].add(n.id)
        case ast.Name():
            f.stores[side].add(n.id)
        case ast.Attribute(ctx=ast.Load()):
            f.reads[side].add(n.attr)
        case ast.Attribute():
            f.sets[side].add(n.attr)
        case ast.arg():
            f.parameters[side].add(n.arg)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            f.sets[side].add(n.name)
        case ast.Call():
            callee = _callee(n.func)
            f.calls[side].update((callee, k.arg) for k in n.keywords if k.arg)


def _callee(func: ast.expr) -> str:
    match func:
        case ast.Name():
            return func.id
        case ast.Attribute(attr="__init__"):
            return "super" if isinstance(func.value, ast.Call) else _callee(func.value)
        case ast.Attribute():
            return func.attr
    return ""


class Links:
    """The needs among the hunks of some files."""

    def __init__(self, every: Sequence[Facts], known: Definitions, scaffolds: dict[Hunk, str]) -> None:
        self.every = every
        self.known = known
        self.frames: dict[Place, list[Hunk]] = {}  # class -> the hunks of its frame
        self.needs: dict[Hunk, set[Hunk]] = {f.hunk: set() for f in every}
        self.heads = {id(f.head_of): f for f in every if f.head_of is not None}
        self.inside: dict[int, list[Facts]] = {}
        for f in every:
            self.inside.setdefault(id(f.function), []).append(f)
            if f.hunk in scaffolds:
                self.frames.setdefault((f.file, scaffolds[f.hunk]), []).append(f.hunk)
        self.scaffolds = scaffolds

    def found(self) -> dict[Hunk, set[Hunk]]:
        """All of them."""
        self._frames()
        self._parameters()
        self._removed()
        self._callers()
        self._attributes()
        self._state()
        self._gradients()
        return self.needs

    def _need(self, a: Hunk, others: Iterable[Hunk], mutual: bool = False) -> None:
        for b in others:
            if a is not b:
                self.needs[a].add(b)
                if mutual:
                    self.needs[b].add(a)

    def _frame(self, place: Place, seen: frozenset[Place] = frozenset()) -> list[Hunk]:
        """The hunks of a class's frame, or of the nearest bases' that have one."""
        if place in seen:
            return []
        return self.frames.get(place) or [h for b in self.known.bases(place) for h in self._frame(b, seen | {place})]

    def _frames(self) -> None:
        """The head of a class, its constructor's signature, the names of its methods."""
        for hunks in self.frames.values():
            for h in hunks:
                self._need(h, hunks, mutual=True)
        for f in self.every:
            if f.owner and "modules" in f.hunk.rules and f.hunk not in self.scaffolds:
                self._need(f.hunk, self._frame((f.file, f.owner)))

    def _parameters(self) -> None:
        """`rngs` used, and the signature or the assignment that brings it."""
        for f in self.every:
            names = f.added("loads")
            if f.function is None or not names:
                continue
            head = self.heads.get(id(f.function))
            if head is not None and names & head.added("parameters"):
                self._need(f.hunk, [head.hunk])
            self._need(f.hunk, [g.hunk for g in self.inside[id(f.function)] if names & g.added("stores")])

    def _removed(self) -> None:
        """A name that is no longer bound, and the lines that no longer look it up."""
        for g in self.every:
            names = g.lost("stores")
            if names:
                self._need(g.hunk, [f.hunk for f in self.every if f.file == g.file and names & f.lost("loads") and _within(f, g)])

    def _callers(self) -> None:
        """A parameter that is new, and the calls that pass it."""
        takers: dict[tuple[Place, str], list[Hunk]] = {}
        methods: dict[tuple[str, str, str], list[Hunk]] = {}
        for g in self.every:
            for p in g.added("parameters"):
                name = getattr(g.head_of, "name", "") if g.head_of is not None and not isinstance(g.head_of, ast.ClassDef) else ""
                if name and name != "__init__":
                    takers.setdefault(((g.file, name), p), []).append(g.hunk)
                    methods.setdefault((g.file, name, p), []).append(g.hunk)
                elif g.owner:
                    takers.setdefault(((g.file, g.owner), p), []).append(g.hunk)
        for f in self.every:
            for callee, keyword in f.calls[1] - f.calls[0]:
                found = self.known.find(f.file, callee)
                places = self.known.bases((f.file, f.owner)) if callee == "super" else [found] if found else []
                hunks = [h for place in places for h in self._takers(takers, place, keyword)] or methods.get((f.file, callee, keyword), [])
                self._need(f.hunk, hunks, mutual=True)

    def _takers(
        self, takers: dict[tuple[Place, str], list[Hunk]], place: Place, keyword: str, seen: frozenset[Place] = frozenset()
    ) -> list[Hunk]:
        if place in seen:
            return []
        found = takers.get((place, keyword))
        return found or [h for b in self.known.bases(place) for h in self._takers(takers, b, keyword, seen | {place})]

    def _attributes(self) -> None:
        """An attribute that is new, or has another name now."""
        for g in self.every:
            new = (g.added("sets") | (g.added("stores") if g.function is None else set())) - FRAME
            old = g.lost("sets") - FRAME
            if not new and not old:
                continue
            for f in self.every:
                if new & f.added("reads") and f.file == g.file:
                    self._need(f.hunk, [g.hunk])
                if old & f.lost("reads") and f.file == g.file:
                    self._need(g.hunk, [f.hunk])

    def _state(self) -> None:
        """A variable, and the lines that read it as one."""
        makers: dict[tuple[str, str], list[Hunk]] = {}
        for f in self.every:
            for name in f.sets[0] | f.sets[1]:
                makers.setdefault((f.file, name), []).append(f.hunk)
        for f in self.every:
            for name in f.variables:
                self._need(f.hunk, makers.get((f.file, name), ()), mutual=True)

    def _gradients(self) -> None:
        """`@torch.no_grad()`, and the results that it holds constant."""
        for f in self.every:
            head = self.heads.get(id(f.function)) if "gradients" in f.hunk.rules else None
            if head is not None and "noise" in head.hunk.rules:
                self._need(f.hunk, [head.hunk], mutual=True)


def _within(f: Facts, g: Facts) -> bool:
    """Whether a hunk stands in the function of another, or in one inside it."""
    outer, inner = g.function, f.function
    if outer is None or outer is inner:
        return True
    return inner is not None and outer.lineno <= inner.lineno <= (outer.end_lineno or 0)  # type: ignore[attr-defined]


FRAME = frozenset({"forward", "__call__", "call", "__init__"})


def conflicts(every: Sequence[Facts], names: frozenset[str]) -> list[list[Hunk]]:
    """For each name with two meanings: the hunks that look it up, on either side."""
    return [[f.hunk for f in every if n in f.loads[0] | f.loads[1]] for n in sorted(names)]
