"""Walks a function and notes each write in place: what it writes to, and what else shares that memory there.

One walker a function, made when asked for. Calls of local functions bring the writes that their summaries tell of.
"""
import ast
from collections.abc import Hashable
from dataclasses import dataclass, field

from migrate.infer.engine import Inference
from migrate.infer.kinds import Kind
from migrate.infer.sharing import ANY, NOTHING, Ref, Shared, State, Value, constant, doubtful, joined, sharing, viewed
from migrate.source.modules import ClassInfo, FileInfo, FunctionInfo, Unit
from migrate.source.text import children, walk
from migrate.tables import Row

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
VIEWS = frozenset(
    ["view", "transpose", "permute", "t", "squeeze", "unsqueeze", "expand", "narrow", "select", "T", "mT", "H", "mH", "swapaxes", "swapdims", "movedim",
    "moveaxis", "diagonal", "view_as", "unflatten", "unfold", "real", "imag", "expand_as", "broadcast_to"]
)
PIECES = frozenset(["chunk", "split", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes"])
SAME = frozenset({"detach", "requires_grad_", "data", "share_memory_", "retain_grad"})
COPIES = frozenset(["contiguous", "to", "float", "double", "half", "bfloat16", "int", "long", "bool", "type", "type_as", "cpu", "cuda", "as_tensor", "asarray",
    "dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d"])  # mostly
RESHAPES = frozenset(["reshape", "reshape_as", "flatten", "ravel"])  # views, mostly
NO_WRITES = frozenset({"requires_grad_", "share_memory_", "retain_grad_"})
CONTAINERS = ("list", "tuple", "dict", "set")


@dataclass(eq=False)
class Event:
    """A write in place: by a statement or call `node`, to `target`. `sure` is False where it may be no tensor.

    `argument`: the callee writes, this code does not; `returned`: and returns what it has written to. `key`: the field that the callee brings up to date itself.
    `places`: the fields that `target` is. `product`: the callee is to return it; `given` is the argument. `constant`: the write is no part of a gradient.
    """

    node: ast.AST
    target: ast.expr
    value: Value
    shared: list[Shared]
    sure: bool = True
    argument: bool = False
    returned: bool = False
    key: str = ""
    places: frozenset[tuple[Hashable, str]] = frozenset()
    product: bool = False
    given: ast.expr | None = None
    constant: bool = False


@dataclass(eq=False)
class Summary:
    """What a call of a function does: the places it writes to and rebinds, by the parameter they are reached from, and what it returns.

    `products`: the parameters that it is to return, as it has no result but what it writes to them.
    """

    writes: set[Ref] = field(default_factory=set)
    rebinds: set[tuple[Hashable, str]] = field(default_factory=set)
    returned: Value = NOTHING
    products: tuple[str, ...] = ()
    fields: dict[tuple[Hashable, str], Value] = field(default_factory=dict)


class Writes:
    """The writes of all functions of a unit, each walked when first asked for."""

    def __init__(self, unit: Unit, inf: Inference) -> None:
        self.unit, self.inf = unit, inf
        self._walked: dict[ast.AST, Walker] = {}
        self._open: set[ast.AST] = set()

    def walker(self, file: FileInfo, root: FunctionNode | ast.Module) -> "Walker":
        """The walker of a function or of a module's own statements."""
        if root not in self._walked:
            walker = Walker(self, file, root)
            self._open.add(root)
            walker.run()
            self._open.discard(root)
            self._walked[root] = walker
        return self._walked[root]

    def summary(self, f: FunctionInfo) -> Summary:
        """What a call of a function does; nothing is known of one that is being walked."""
        return Summary() if f.node in self._open else self.walker(f.file, f.node).summary


class Walker:
    """Walks one function in order; loops twice, so that what one round leaves meets the next."""

    def __init__(self, writes: Writes, file: FileInfo, root: FunctionNode | ast.Module) -> None:
        self.writes, self.file, self.root = writes, file, root
        self.inf = writes.inf
        self.events: dict[ast.AST, list[Event]] = {}
        self.summary = Summary()
        self.state = State()
        self._breaks: list[State] = []
        self._dead = False

    def run(self) -> None:
        """Fills `events` and `summary`."""
        if not isinstance(self.root, ast.Module):
            a = self.root.args
            for p in [*a.posonlyargs, *a.args, *a.kwonlyargs, *([a.vararg] if a.vararg else []), *([a.kwarg] if a.kwarg else [])]:
                self.state.names[p.arg] = frozenset([Ref(("param", p.arg))])
        self.block(self.root.body)
        self._leave()
        from migrate.infer.products import products

        self.summary.products = products(self)

    def kind(self, node: ast.AST | None) -> Kind:
        """What an expression is."""
        return self.inf.of(node)

    # Statements

    def block(self, body: list[ast.stmt]) -> None:
        """Statements in order, up to one that control does not pass."""
        for s in body:
            if not self._dead:
                self.statement(s)

    def statement(self, s: ast.stmt) -> None:
        """One statement."""
        match s:
            case ast.Assign():
                value = self.value(s.value)
                for t in s.targets:
                    self.assign(s, t, value, s.value)
            case ast.AnnAssign() if s.value is not None:
                self.assign(s, s.target, self.value(s.value), s.value)
            case ast.AugAssign():
                self._augmented(s)
            case ast.If():
                self.value(s.test)
                self._branches([s.body, s.orelse])
            case ast.For() | ast.AsyncFor() | ast.While():
                self._loop(s)
            case ast.With() | ast.AsyncWith():
                for item in s.items:
                    held = self.value(item.context_expr)
                    if item.optional_vars is not None:
                        self.assign(s, item.optional_vars, held, item.context_expr)
                self.block(s.body)
            case ast.Try() | ast.TryStar():
                before = self.state.copy()
                self.block([*s.body, *s.orelse])
                ends = self._ended()
                self._branches([h.body for h in s.handlers], joined([before, ends]) or before, [ends])
                self.block(s.finalbody)
            case ast.Match():
                self.value(s.subject)
                self._branches([*(c.body for c in s.cases), []])
            case ast.Return():
                if s.value is not None:
                    self._return(self.value(s.value))
                self._leave()
                self._dead = True
            case ast.Raise():
                self._dead = True
            case ast.Break() | ast.Continue():
                self._breaks.append(self.state.copy())
                self._dead = True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.state.names[s.name] = NOTHING
            case ast.Delete():
                for t in s.targets:
                    if isinstance(t, ast.Name):
                        self.state.names.pop(t.id, None)
            case _:
                for child in children(s):
                    if isinstance(child, ast.expr):
                        self.value(child)

    def _ended(self) -> State | None:
        """The state in hand, None where control does not get here; walking goes on either way."""
        found, self._dead = (None if self._dead else self.state), False
        return found

    def _branches(self, bodies: list[list[ast.stmt]], before: State | None = None, also: list[State | None] | None = None) -> None:
        before = before or self.state
        ends: list[State | None] = list(also or ())
        for body in bodies:
            self.state = before.copy()
            self.block(body)
            ends.append(self._ended())
        after = joined(ends)
        self._dead = after is None
        self.state = after or before

    def _loop(self, s: ast.For | ast.AsyncFor | ast.While) -> None:
        outer, self._breaks = self._breaks, []
        iterated = NOTHING
        if not isinstance(s, ast.While):
            iterated = self.value(s.iter)
        entry = self.state.copy()
        for _ in range(2):
            if isinstance(s, ast.While):
                self.value(s.test)
            else:
                self.assign(s, s.target, self.elements(iterated, s.iter, ANY), None)
            self.block(s.body)
            self.state = joined([entry, self._ended(), *self._breaks]) or entry
        self._breaks = outer
        self.block(s.orelse)

    def _return(self, value: Value) -> None:
        self.summary.returned |= value
        for r in value:
            for (made, key), held in self.state.fields.items():
                if made == r.made:
                    self.summary.fields[made, key] = self.summary.fields.get((made, key), NOTHING) | held

    def _leave(self) -> None:
        """Notes what the fields that were bound anew hold at the end."""
        if not self._dead:
            for at in self.summary.rebinds:
                self.summary.fields[at] = self.summary.fields.get(at, NOTHING) | self.state.fields.get(at, NOTHING)

    def _augmented(self, s: ast.AugAssign) -> None:
        value = self.value(s.value)
        kind = self.kind(s.target)
        target = self.value(s.target)
        if kind.tag in CONTAINERS or kind.tag == "unknown" and isinstance(s.value, (ast.List, ast.Tuple)):
            self.state.write(target, ANY, self.state.read(value, ANY))
        elif kind.is_tensor or isinstance(s.target, ast.Subscript) and self.kind(s.target.value).is_tensor:
            self.event(s, s.target, target)
        elif kind.is_unknown and not isinstance(s.target, ast.Subscript) and self.kind(s.value).tag in ("unknown", "tensor", "float", "number"):
            self.event(s, s.target, target, sure=self.kind(s.value).is_tensor)
        elif isinstance(s.target, ast.Name):
            self.state.names[s.target.id] = NOTHING

    def assign(self, s: ast.stmt, target: ast.expr, value: Value, node: ast.expr | None) -> None:
        """Binds a target."""
        match target:
            case ast.Name():
                self.state.names[target.id] = value
            case ast.Starred():
                self.assign(s, target.value, self._container(target, value), None)
            case ast.Attribute() if target.attr == "data" and self.kind(target.value).is_tensor:
                self.event(s, target.value, constant(self.value(target.value)))
            case ast.Attribute():
                base = self.value(target.value)
                self.state.write(base, f".{target.attr}", value)
                self.summary.rebinds.update((r.owner, f".{target.attr}") for r in base if _outside(r.owner))
            case ast.Subscript():
                self._store(s, target, value)
            case ast.Tuple() | ast.List():
                starred = any(isinstance(t, ast.Starred) for t in target.elts)
                for i, t in enumerate(target.elts):
                    self.assign(s, t, self.elements(value, node if node is not None else target, ANY if starred else f"[{i}]", t), None)

    def _store(self, s: ast.stmt, target: ast.Subscript, value: Value) -> None:
        base, kind = self.value(target.value), self.kind(target.value)
        self.value(target.slice)
        if kind.is_tensor:
            self.event(s, target, base)
        elif kind.is_unknown or kind.tag in CONTAINERS:
            if kind.is_unknown and (tensor_index(target.slice) or self.kind(target.slice).is_tensor):
                self.event(s, target, base)
            self.state.write(base, _key(target.slice), value)

    # Writes

    def event(self, node: ast.AST, target: ast.expr, value: Value, sure: bool = True, argument: bool = False, returned: bool = False, key: str = "") -> Event:
        """Notes a write."""
        root, seen = self.root_of(target) if not key else (None, None)
        held = seen if seen is not None else value
        shared = [s for s in sharing(self.state, held) if not key or s.place == "name"]
        unrecorded = any(r.constant for r in value)
        found = Event(node, root if root is not None else target, held, shared, sure, argument, returned, key, self._places(root), constant=unrecorded)
        before = self.events.setdefault(node, [])
        before[:] = [e for e in before if (e.target, e.key) != (found.target, found.key)] + [found]
        if sure:
            self.summary.writes.update(r for r in held if _outside(r.made))
        return found

    def _places(self, target: ast.expr | None) -> frozenset[tuple[Hashable, str]]:
        match target:
            case ast.Attribute():
                return frozenset((r.owner, f".{target.attr}") for r in self.value(target.value))
            case ast.Subscript():
                return frozenset((r.owner, _key(target.slice)) for r in self.value(target.value))
        return frozenset()

    def root_of(self, target: ast.expr) -> tuple[ast.expr | None, Value | None]:
        """The name, attribute or element that holds the tensor that is written to, and what it holds: `x` of `x[0].T`."""
        match target:
            case ast.Name():
                return target, self.value(target)
            case ast.Attribute():
                if target.attr in VIEWS | SAME and (self.kind(target.value).is_tensor or self.kind(target.value).is_unknown):
                    return self.root_of(target.value)
                return target, self.value(target)
            case ast.Subscript():
                kind = self.kind(target.value)
                if kind.is_tensor or kind.is_unknown and not _container_index(target.slice):
                    return self.root_of(target.value)
                return target, self.value(target)
            case ast.Call(func=ast.Attribute() as f) if f.attr in VIEWS | SAME | RESHAPES or self.is_inplace_method(target):
                if self.kind(f.value).is_tensor or self.kind(f.value).is_unknown:
                    return self.root_of(f.value)
        return None, None

    def is_inplace_method(self, node: ast.Call) -> bool:
        """`x.add_(y)` of a tensor."""
        f = node.func
        if not isinstance(f, ast.Attribute) or not f.attr.endswith("_") or f.attr.startswith("_") or f.attr.endswith("__") or f.attr in NO_WRITES:
            return False
        kind = self.kind(f.value)
        if self.writes.unit.resolve(self.file, f) is not None:
            return False
        methods = self.writes.unit.table.by_method
        return kind.is_tensor or kind.is_unknown and (f.attr in methods or f.attr.removesuffix("_") in methods)

    # Expressions

    def value(self, node: ast.expr) -> Value:
        """What an expression may be."""
        match node:
            case ast.Name():
                if node.id not in self.state.names:
                    self.state.names[node.id] = frozenset([Ref(("free", node.id))])
                return self.state.names[node.id]
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                base = self.value(node.value)
                self.value(node.slice)
                return self._subscript(node, base)
            case ast.Call():
                from migrate.infer.written_calls import call

                return call(self, node)
            case ast.NamedExpr():
                value = self.value(node.value)
                self.state.names[node.target.id] = value
                return value
            case ast.IfExp():
                self.value(node.test)
                return self.value(node.body) | self.value(node.orelse)
            case ast.BoolOp():
                return frozenset[Ref]().union(*(self.value(v) for v in node.values))
            case ast.Tuple() | ast.List() | ast.Set():
                return self._display(node)
            case ast.Dict():
                held = [(_key(k) if k is not None else ANY, self.value(v)) for k, v in zip(node.keys, node.values, strict=True)]
                made = self.state.fresh(node)
                for key, v in held:
                    self.state.write(made, key, v)
                return made
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.Starred() | ast.Await() | ast.FormattedValue():
                return self.value(node.value)
            case ast.Lambda() | ast.Constant():
                return NOTHING
        for child in children(node):
            if isinstance(child, ast.expr):
                self.value(child)
        kind = self.kind(node)
        return self.state.fresh(node) if kind.is_tensor or kind.is_unknown else NOTHING

    def view(self, value: Value, node: ast.AST, piece: Hashable = None, sure: bool = True) -> Value:
        """A view that an expression takes now."""
        if not isinstance(piece, int) or piece == 0:
            self.state.taken(node)
        return viewed(value, node, piece, sure)

    def _attribute(self, node: ast.Attribute) -> Value:
        base, kind = self.value(node.value), self.kind(node.value)
        if kind.is_tensor or kind.is_unknown and node.attr in VIEWS | SAME:
            return (constant(base) if node.attr == "data" else base) if node.attr in SAME else self.view(base, node) if node.attr in VIEWS else NOTHING
        if kind.tag in ("import", "class", "function", "dtype", "device", "numpy") or kind.is_number:
            return NOTHING
        return self.state.read(base, f".{node.attr}", symbolic=True)

    def _subscript(self, node: ast.Subscript, base: Value) -> Value:
        kind = self.kind(node.value)
        if kind.is_tensor:
            return NOTHING if self._copies(node.slice) else self.view(base, node)
        if kind.tag in CONTAINERS or kind.tag == "module":
            if isinstance(node.slice, ast.Slice):
                return self._container(node, self.state.read(base, ANY))
            return self.state.read(base, _key(node.slice), symbolic=True)
        if kind.is_unknown:
            return doubtful(self.view(base, node)) | self.state.read(base, _key(node.slice))
        return NOTHING

    def _copies(self, index: ast.expr) -> bool:
        """Indexing by tensors or lists copies."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return any(self.kind(p).is_tensor or isinstance(p, ast.List) or self.kind(p).tag == "list" for p in parts)

    def _display(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        starred = any(isinstance(e, ast.Starred) for e in node.elts)
        held = [(e, self.value(e)) for e in node.elts]
        made = self.state.fresh(node)
        for i, (e, v) in enumerate(held):
            self.state.write(made, ANY if starred else f"[{i}]", self.state.read(v, ANY) if isinstance(e, ast.Starred) else v)
        return made

    def _container(self, node: ast.AST, held: Value) -> Value:
        made = self.state.fresh(node)
        self.state.write(made, ANY, held)
        return made

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        outer = dict(self.state.names)
        for g in node.generators:
            self.assign(ast.Pass(), g.target, self.elements(self.value(g.iter), g.iter, ANY), None)
            for c in g.ifs:
                self.value(c)
        held = self.value(node.value if isinstance(node, ast.DictComp) else node.elt)
        self.state.names = {n: self.state.names[n] for n in self.state.names if n in outer or n in self._walrus(node)} | {
            n: v for n, v in outer.items() if n not in self._walrus(node)
        }
        return self._container(node, held)

    def _walrus(self, node: ast.AST) -> set[str]:
        return {n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr)}

    def elements(self, value: Value, node: ast.AST, key: str, target: ast.AST | None = None) -> Value:
        """What iterating or unpacking gives: rows of a tensor, elements of a container."""
        kind = self.kind(node)
        if kind.is_tensor:
            piece = int(key[1:-1]) if key != ANY else None
            return self.view(value, node, piece, sure=piece is not None)
        arrays = kind.tag in CONTAINERS and kind.element.is_tensor and not kind.element.variable
        held = self.state.read(value, key, symbolic=arrays)
        if kind.is_unknown and not held:
            return doubtful(self.view(value, node))
        return held


def _outside(made: Hashable) -> bool:
    """Whether something is reached from a parameter or from outside the function."""
    while isinstance(made, tuple) and made[0] in ("field", "seen"):
        made = made[1]
    return isinstance(made, tuple) and made[0] == "param"


def _key(index: ast.expr) -> str:
    match index:
        case ast.Constant():
            return f"[{index.value!r}]"
    return ANY


def _container_index(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant) and isinstance(index.value, str)


def tensor_index(index: ast.expr) -> bool:
    if isinstance(index, ast.Tuple):
        return any(isinstance(e, ast.Slice) or isinstance(e, ast.Constant) and e.value in (None, Ellipsis) for e in index.elts)
    return isinstance(index, ast.Constant) and index.value is Ellipsis


__all__ = ["ClassInfo", "Event", "Row", "Summary", "Walker", "Writes"]
