"""What may share memory: where the tensors that names, attributes and containers hold were made, and as which view of it each sees them."""
import ast
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

Step = tuple[ast.AST, Hashable]  # a derivation: the expression that takes the view, and which of several pieces it is


@dataclass(frozen=True)
class Ref:
    """A tensor or object by where it was made, seen through views. `sure` is False where it may be another one; `copied`: it may be a copy.

    `constant`: seen by `detach()` or `data`, so that no gradient is recorded of what is done to it.
    """

    made: Hashable
    views: tuple[Step, ...] = ()
    sure: bool = True
    copied: bool = False
    constant: bool = False

    def view(self, node: ast.AST, piece: Hashable = None, sure: bool = True) -> "Ref":
        """A view of it."""
        return Ref(self.made, (*self.views, (node, piece))[-4:], self.sure and sure and len(self.views) < 4, self.copied, self.constant)

    @property
    def owner(self) -> Hashable:
        """What fields are kept under: elements of something unknown have their own."""
        return ("seen", self.made, self.views) if self.views else self.made

    def doubtful(self, copied: bool = False) -> "Ref":
        """The same, not for sure."""
        return replace(self, sure=False, copied=self.copied or copied)


Value = frozenset[Ref]
NOTHING: Value = frozenset()
ANY = "[*]"  # the key of elements whose index is not known
MOST = 24  # ways to what a value may be that are told apart


def limited(value: Value) -> Value:
    """A value that may be very many things, without what views they are seen through: then it may be any part of each."""
    return value if len(value) <= MOST else frozenset(replace(r, views=(), sure=False) for r in value)


def nesting(made: Hashable) -> int:
    """How deep in calls, fields and elements something was made."""
    return 1 + max((nesting(m) for m in made), default=0) if isinstance(made, tuple) else 0


def ordered(value: Value) -> list[Ref]:
    """Its parts, in an order that does not depend on where they lie in memory."""
    return sorted(value, key=lambda r: (position(r.made), position(r.views), r.copied, r.constant, not r.sure)) if len(value) > 1 else list(value)


def position(part: object) -> str:
    """Where a part stands, as text to sort by."""
    if isinstance(part, tuple):
        return f"({','.join(map(position, part))})"
    if isinstance(part, ast.AST):
        return f"{getattr(part, 'lineno', 0):08}:{getattr(part, 'col_offset', 0):06}:{getattr(part, 'end_lineno', 0):08}:{getattr(part, 'end_col_offset', 0):06}"
    return repr(part) if isinstance(part, (str, int)) else type(part).__name__


def viewed(value: Value, node: ast.AST, piece: Hashable = None, sure: bool = True) -> Value:
    """A view of each."""
    return limited(frozenset(r.view(node, piece, sure) for r in value))


def constant(value: Value) -> Value:
    """The same, as no gradient knows it."""
    return frozenset(replace(r, constant=True) for r in value)


def doubtful(value: Value, copied: bool = False) -> Value:
    """The same, not for sure."""
    return frozenset(r.doubtful(copied) for r in value)


@dataclass(eq=False)
class State:
    """What names and fields hold at a point of a function. A field's key is ".name" or "[index]"."""

    names: dict[str, Value] = field(default_factory=dict)
    fields: dict[tuple[Hashable, str], Value] = field(default_factory=dict)
    seen: set[Hashable] = field(default_factory=set)  # what was made so far on any path; copies share it

    def copy(self) -> "State":
        """A copy."""
        return State(dict(self.names), dict(self.fields), self.seen)

    def fresh(self, node: Hashable) -> Value:
        """Something made by an expression. What the expression made before, in another round of a loop, is older and another thing."""
        new, old = (node, 0), (node, 1)
        if node not in self.seen:
            self.seen.add(node)
        elif any(r.made == new for v in (*self.names.values(), *self.fields.values()) for r in v) or any(made == new for made, _ in self.fields):
            self._rename(new, old)
        return frozenset([Ref(new)])

    def taken(self, node: ast.AST) -> None:
        """A view that an expression took in another round of a loop is another one than that which it takes now."""
        def aged(v: Value) -> Value:
            return frozenset(replace(r, views=tuple(((s[0], ("old", s[1])) if s[0] is node else s) for s in r.views),
                sure=False) if any(s[0] is node for s in r.views) else r for r in v)

        if any(s[0] is node for v in (*self.names.values(), *self.fields.values()) for r in v for s in r.views):
            self.names = {n: aged(v) for n, v in self.names.items()}
            self.fields = {k: aged(v) for k, v in self.fields.items()}

    def _rename(self, new: Hashable, old: Hashable) -> None:
        def aged(v: Value) -> Value:
            return frozenset(replace(r, made=old, sure=False) if r.made == new else r for r in v)

        self.names = {n: aged(v) for n, v in self.names.items()}
        fields: dict[tuple[Hashable, str], Value] = {}
        for (made, key), v in self.fields.items():
            at = (old if made == new else made, key)
            fields[at] = fields.get(at, NOTHING) | aged(v)
        self.fields = fields

    def read(self, value: Value, key: str, symbolic: bool = False) -> Value:
        """What is under a key of each of some objects. `symbolic`: what nothing is known of is a thing of its own."""
        found: set[Ref] = set()
        for r in ordered(value):
            owner = r.owner
            keys = [(made, k) for made, k in self.fields if k[0] == "[" and made == owner] if key == ANY else [(owner, key)]
            if key != ANY and key.startswith("["):
                keys.append((owner, ANY))
            held = frozenset(x for at in keys for x in self.fields.get(at, NOTHING))
            if not held and symbolic:
                held = self.fields[owner, key] = frozenset([Ref(("field", owner, key))])
            found.update(held if r.sure and key != ANY else doubtful(held))
        return limited(frozenset(found))

    def write(self, value: Value, key: str, held: Value) -> None:
        """Puts something under a key."""
        for r in ordered(value):
            only = len(value) == 1 and r.sure and key != ANY
            self.fields[r.owner, key] = held if only else limited(self.fields.get((r.owner, key), NOTHING) | held)


def joined(states: Iterable[State | None]) -> State | None:
    """What may hold where several ways meet; None where none gets there."""
    found: State | None = None
    for s in states:
        if s is None:
            continue
        if found is None:
            found = s.copy()
            continue
        for name, v in s.names.items():
            found.names[name] = limited(found.names.get(name, NOTHING) | v)
        for key, v in s.fields.items():
            found.fields[key] = limited(found.fields.get(key, NOTHING) | v)
    return found


@dataclass(frozen=True)
class Shared:
    """Another place that holds what is written to. `how`: same, base (what is written to is a view of it), view (the other way round), other.

    `root` is the name by which the place is reached, `path` its text, `steps` the views between the two; `place`: name, attribute, element or deep.
    `at` is the field, where it is one.
    """

    root: str
    path: str
    place: str
    how: str
    sure: bool
    steps: tuple[Step, ...] = ()
    copied: bool = False
    at: tuple[Hashable, str] | None = None
    constant: bool = False  # the place is no part of a gradient


def sharing(state: State, target: Value) -> Iterator[Shared]:
    """The places that share memory with a value."""
    certain = len(target) == 1
    for name, value in state.names.items():
        for r in ordered(value):
            for t in ordered(target):
                if r.made == t.made and (found := _related(t, r)):
                    how, steps = found
                    yield Shared(name, name, "name", how, certain and len(value) == 1 and r.sure and t.sure, steps, r.copied or t.copied, constant=r.constant)
        yield from _held(state, target, name, value, certain)


def _held(state: State, target: Value, root: str, value: Value, certain: bool) -> Iterator[Shared]:
    """What the objects and containers under a name hold, three levels down."""
    level: list[tuple[str, Value, bool]] = [(root, value, True)]
    seen: set[Hashable] = set()
    for depth in range(3):
        below: list[tuple[str, Value, bool]] = []
        for path, objects, sure in level:
            sure = sure and len(objects) == 1 and all(o.sure for o in objects)
            for o in ordered(objects):
                if o.owner in seen:
                    continue
                seen.add(o.owner)
                owner = o.owner
                for key, made, held in sorted(((k, m, h) for (m, k), h in state.fields.items() if m == owner), key=lambda f: f[0]):
                    attribute, text = key.startswith("."), f"{path}{key}"
                    below.append((text, held, sure and key != ANY))
                    for r in ordered(held):
                        for t in ordered(target):
                            if r.made == t.made and (found := _related(t, r)):
                                place = "attribute" if attribute else "element" if depth == 0 and _assignable(made) else "deep"
                                known = certain and sure and key != ANY and len(held) == 1 and r.sure and t.sure
                                yield Shared(root, text, place, found[0], known, found[1], r.copied or t.copied, (made, key), r.constant)
        level = below


def _assignable(made: Hashable) -> bool:
    """Whether elements of a container can be assigned to."""
    return isinstance(made, tuple) and isinstance(made[0], (ast.List, ast.Dict))


def _related(target: Ref, other: Ref) -> tuple[str, tuple[Step, ...]] | None:
    """How another reference to the same memory relates to the target; None where the two are pieces that do not overlap."""
    t, o = target.views, other.views
    if t == o:
        return "same", ()
    if t[: len(o)] == o:
        return "base", t[len(o) :]
    if o[: len(t)] == t:
        return "view", o[len(t) :]
    at = next(i for i, (a, b) in enumerate(zip(t, o, strict=False)) if a != b)
    return None if _apart(t[at], o[at]) else ("other", ())


def _apart(a: Step, b: Step) -> bool:
    """Two pieces of one split, or two elements by different numbers."""
    if a[0] is b[0]:
        return isinstance(a[1], int) and isinstance(b[1], int) and a[1] != b[1]
    first, second = _number(a[0]), _number(b[0])
    return first is not None and second is not None and first != second and (first < 0) == (second < 0)


def _number(node: ast.AST) -> int | None:
    return node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int else None
