"""Calls, for the walk that notes writes in place: what they write to, and what of their arguments they return."""
import ast
from collections.abc import Hashable

from migrate.calls import Refusal, bind
from migrate.infer.kinds import refs
from migrate.infer.sharing import ANY, NOTHING, Ref, Value, constant, doubtful, limited, nesting, ordered, position
from migrate.infer.writes import COPIES, PIECES, RESHAPES, SAME, VIEWS, Summary, Walker
from migrate.source.modules import ClassInfo, FunctionInfo
from migrate.tables import Row

DROPOUTS = ("torch.nn.Dropout", "torch.nn.AlphaDropout", "torch.nn.FeatureAlphaDropout")
GROWS = frozenset({"append", "add", "insert", "extend", "update", "setdefault", "appendleft"})
MOVES = frozenset({"insert", "pop", "reverse", "sort", "remove", "clear"})
PASSES_ON = frozenset({"list", "tuple", "set", "sorted", "reversed", "iter"})


def call(w: Walker, node: ast.Call) -> Value:
    """What a call may return; its writes are noted."""
    f = node.func
    receiver = w.value(f.value) if isinstance(f, ast.Attribute) else NOTHING
    args = [w.value(a) for a in node.args]
    keywords = {k.arg: w.value(k.value) for k in node.keywords}
    if isinstance(f, ast.Attribute) and w.is_inplace_method(node):
        w.event(node, f.value, receiver)
        return receiver
    found = w.writes.unit.resolve(w.file, f) if isinstance(f, (ast.Name, ast.Attribute)) else None
    kind = w.kind(f)
    if isinstance(found, Row) and found.kind == "function" or isinstance(found, str) and found.startswith(("torch.", "einops.")):
        return _function(w, node, found, args)
    if isinstance(found, str) and found.startswith("builtins."):
        return _builtin(w, node, found.removeprefix("builtins."), args)
    if kind.tag == "module":
        return _layer(w, node, args, keywords)
    if kind.tag == "class" and len(refs(kind)) == 1 and isinstance(c := next(iter(refs(kind))), ClassInfo):
        return _made(w, node, c, args, keywords)
    if isinstance(kind.ref, FunctionInfo):
        return _local(w, node, kind.ref, receiver, args, keywords)
    if isinstance(f, ast.Attribute):
        return _method(w, node, f, receiver, args, keywords)
    return w.state.fresh(node)


def _method(w: Walker, node: ast.Call, f: ast.Attribute, receiver: Value, args: list[Value], keywords: dict[str | None, Value]) -> Value:
    kind, name = w.kind(f.value), f.attr
    if kind.is_tensor or kind.is_unknown and name in VIEWS | PIECES | SAME | RESHAPES | COPIES:
        return _derived(w, node, name, receiver)
    if name in GROWS:
        for a in [*args, *keywords.values()]:
            held = w.state.read(a, ANY) if name in ("extend", "update") else a
            w.state.write(receiver, ANY, held)
    if name in MOVES:
        w.state.write(receiver, ANY, doubtful(w.state.read(receiver, ANY)))
    match name:
        case "get" | "pop" | "setdefault":
            return w.state.read(receiver, _key(node.args[0]) if node.args and name != "pop" else ANY)
        case "values":
            return _container(w, node, w.state.read(receiver, ANY))
        case "items":
            pair = w.state.fresh((node, "pair"))
            w.state.write(pair, "[1]", w.state.read(receiver, ANY))
            return _container(w, node, pair)
    return w.state.fresh(node)


def _key(index: ast.expr) -> str:
    return f"[{index.value!r}]" if isinstance(index, ast.Constant) else ANY


def _container(w: Walker, node: ast.AST, held: Value) -> Value:
    made = w.state.fresh(node)
    w.state.write(made, ANY, held)
    return made


def _derived(w: Walker, node: ast.Call, name: str, value: Value) -> Value:
    """What an operator makes of a tensor: a view, pieces, the same, or something new."""
    if name in SAME:
        return constant(value) if name == "detach" else value
    if name in VIEWS:
        return w.view(value, node)
    if name in RESHAPES:
        return doubtful(w.view(value, node))
    if name in COPIES:
        return doubtful(value, copied=True)
    if name in PIECES:
        made = w.state.fresh(node)
        for i in range(8):
            w.state.write(made, f"[{i}]", w.view(value, node, i))
        return made
    return w.state.fresh(node)


def _function(w: Walker, node: ast.Call, found: Row | str, args: list[Value]) -> Value:
    """An operator of PyTorch."""
    name = ast.unparse(node.func).rpartition(".")[2] if isinstance(found, Row) else found.rpartition(".")[2]
    if not args:
        return w.state.fresh(node)
    own = found.torch if isinstance(found, Row) else name  # `from torch.nn.init import zeros_ as clear`
    if any(n.endswith("_") and not n.endswith("__") for n in (name, own)) or isinstance(found, Row) and says_inplace(w, node, found):
        w.event(node, node.args[0], args[0])
        return args[0]
    kind = w.kind(node.args[0])
    return _derived(w, node, name, args[0]) if kind.is_tensor or kind.is_unknown else w.state.fresh(node)


def says_inplace(w: Walker, node: ast.Call, row: Row) -> bool:
    """Whether a call gives `inplace=True`, by position or name."""
    if any(k.arg == "inplace" and _is_true(k.value) for k in node.keywords):
        return True
    if not any(p.name == "inplace" for p in row.parameters):
        return False
    bound = bind(row, node, None, w.kind)
    return not isinstance(bound, Refusal) and _is_true(bound.arguments.get("inplace"))


def _is_true(node: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _builtin(w: Walker, node: ast.Call, name: str, args: list[Value]) -> Value:
    state = w.state
    if name in PASSES_ON and args:
        return _container(w, node, w.elements(args[0], node.args[0], ANY))
    match name:
        case "enumerate" | "zip":
            pair = state.fresh((node, "pair"))
            for i, (a, v) in enumerate(zip(node.args, args, strict=True)):
                state.write(pair, f"[{i + (name == 'enumerate')}]", w.elements(v, a, ANY))
            return _container(w, node, pair)
        case "next" if args:
            return state.read(args[0], ANY)
        case "dict":
            made = state.fresh(node)
            for k in node.keywords:
                state.write(made, f"[{k.arg!r}]" if k.arg else ANY, w.value(k.value))
            return made
        case "getattr" if len(args) > 1 and isinstance(node.args[1], ast.Constant):
            return state.read(args[0], f".{_text(node.args[1])}", symbolic=True)
        case "setattr" if len(args) == 3:
            state.write(args[0], f".{_text(node.args[1])}", args[2])
    return state.fresh(node) if w.kind(node).is_unknown or w.kind(node).is_tensor else NOTHING


def _text(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else "*"


def _layer(w: Walker, node: ast.Call, args: list[Value], keywords: dict[str | None, Value]) -> Value:
    """A call of a module."""
    made = constructed(w, node.func)
    if args and (how := inplace_layer(w, made)):
        w.event(node, node.args[0], args[0], argument=True, returned=how == "returned")
        return args[0] if how == "returned" else w.state.fresh(node)
    ways = [_one_layer(w, node, ref, args, keywords) for ref in refs(w.kind(node.func))]
    if len(ways) > 1:
        return limited(frozenset(r for v in ways for r in doubtful(v)))
    return ways[0] if ways else w.state.fresh(node)


def _one_layer(w: Walker, node: ast.Call, ref: object, args: list[Value], keywords: dict[str | None, Value]) -> Value:
    """What a call of a module returns if the module is of that class."""
    if isinstance(ref, ClassInfo) and (forward := ref.method("forward")) is not None:
        return _local(w, node, forward, w.value(node.func), args, keywords)
    if isinstance(ref, Row) and args:
        if ref.torch == "torch.nn.Identity":
            return args[0]
        if ref.torch.startswith(DROPOUTS):
            return doubtful(args[0], copied=True)
        if ref.torch in ("torch.nn.Flatten", "torch.nn.Unflatten"):
            return doubtful(w.view(args[0], node))
    return w.state.fresh(node)


def constructed(w: Walker, func: ast.expr) -> list[ast.Call]:
    """The calls that make a module which is called by name, as an attribute of a local class, or at once."""
    if isinstance(func, ast.Call):
        return [func]
    if isinstance(func, ast.Attribute):
        owner = w.kind(func.value).ref
        return [a.value for a in owner.assigned(func.attr) if isinstance(a.value, ast.Call)] if isinstance(owner, ClassInfo) else []
    if isinstance(func, ast.Name):
        return [b.value for b in w.file.names.lookup(func) if isinstance(b.value, ast.Call)]
    return []


def inplace_layer(w: Walker, made: list[ast.Call]) -> str:
    """Whether one of the calls makes a layer that writes to its input: "returned" of `nn.ReLU(inplace=True)`, "written" of a Sequential that starts with one, else ""."""
    for c in made:
        if any(k.arg == "inplace" and _is_true(k.value) for k in c.keywords):
            return "returned"
        row = next((r for r in refs(w.kind(c.func)) if isinstance(r, Row)), None)
        if row is None:
            continue
        if row.torch == "torch.nn.Sequential":
            first = next((a for a in c.args if not (isinstance(a, ast.Call) and w.kind(a).ref is not None and getattr(w.kind(a).ref, "torch",
                "") == "torch.nn.Identity")), None)
            if isinstance(first, ast.Call) and (how := inplace_layer(w, [first])):
                return how if len(c.args) == 1 else "written"
        elif says_inplace(w, c, row):
            return "returned"
    return ""


def _made(w: Walker, node: ast.Call, c: ClassInfo, args: list[Value], keywords: dict[str | None, Value]) -> Value:
    made = w.state.fresh(node)
    init = c.method("__init__")
    if init is not None and not c.is_module:
        _local(w, node, init, made, args, keywords)
    return made


def _local(w: Walker, node: ast.Call, f: FunctionInfo, receiver: Value, args: list[Value], keywords: dict[str | None, Value]) -> Value:
    """A call of a local function or method."""
    summary = w.writes.summary(f)
    bound: dict[str, tuple[Value, ast.expr | None]] = {}
    parameters = [p.arg for p in f.parameters]
    if f.self_name is not None:
        method = f.takes_context or isinstance(node.func, ast.Attribute) and w.kind(node.func.value).tag != "class" or w.kind(node.func).tag in ("module", "class")
        if method:
            bound[f.self_name] = receiver, None
        else:
            parameters = [f.self_name, *parameters]
    if not any(isinstance(a, ast.Starred) for a in node.args):
        bound |= {p: (v, a) for p, v, a in zip(parameters, args, node.args, strict=False)}
    bound |= {k.arg: (keywords[k.arg], k.value) for k in node.keywords if k.arg is not None}
    return Application(w, node, summary, bound).run()


DEEP = 6  # what calls within calls within calls make is one thing


class Application:
    """What a summary says, in terms of the caller."""

    def __init__(self, w: Walker, node: ast.Call, summary: Summary, bound: dict[str, tuple[Value, ast.expr | None]]) -> None:
        self.w, self.node, self.summary, self.bound = w, node, summary, bound
        self.inner: dict[Hashable, Value] = {}

    def run(self) -> Value:
        """Notes the writes and gives what is returned."""
        returned = self._mapped(self.summary.returned)
        for r in ordered(frozenset(self.summary.writes)):
            self._write(r, returned)
        for (made, key), held in self.summary.fields.items():
            if made in self.inner:
                self.w.state.write(self.inner[made], key, self._mapped(held))
        for made, key in sorted(self.summary.rebinds, key=position):
            held = self.summary.fields.get((made, key), NOTHING)
            for owner in ordered(self._of(made)):
                before = self.w.state.fields.get((owner.owner, key), NOTHING)
                self.w.state.fields[owner.owner, key] = doubtful(before) | self._mapped(held) | self.w.state.fresh((self.node, key))
        return returned

    def _write(self, r: Ref, returned: Value) -> None:
        root = r.made
        while isinstance(root, tuple) and root[0] in ("field", "seen"):
            root = root[1]
        given = self.bound.get(root[1]) if isinstance(root, tuple) and root[0] == "param" else None
        value = self._mapped(frozenset([r]))
        if given is None or not value and (r.made != root or not isinstance(given[1], (ast.Name, ast.Attribute, ast.Subscript))):
            return
        if isinstance(r.made, tuple) and r.made[0] == "field":
            target = given[1] if given[1] is not None else self.node.func
            self.w.event(self.node, target, value, argument=True, key=str(r.made[2]))
        elif given[1] is not None:
            event = self.w.event(self.node, given[1], value, argument=True, returned=returned == given[0] and len(returned) == 1 and not r.views)
            event.given = given[1]
            event.product = r.made == root and isinstance(root, tuple) and root[1] in self.summary.products and isinstance(self.w.file.source.parent(self.node), ast.Expr)

    def _mapped(self, value: Value) -> Value:
        return limited(frozenset(_through(r, x) for r in ordered(value) for x in self._of(r.made)))

    def _of(self, made: Hashable) -> Value:
        """What the callee's thing is in the caller."""
        if isinstance(made, tuple):
            if made[0] == "param":
                return self.bound[made[1]][0] if made[1] in self.bound else NOTHING
            if made[0] == "field":
                return self.w.state.read(self._of(made[1]), made[2], symbolic=True)
            if made[0] == "seen":
                return frozenset(Ref(x.made, (*x.views, *made[2])[-4:], False, x.copied, x.constant) for x in self._of(made[1]))
            if made[0] == "free":
                return frozenset([Ref(made)])
        if made not in self.inner:
            deep = nesting(made) > DEEP
            found = self.w.state.fresh((self.node, "deep" if deep else made))
            self.inner[made] = doubtful(found) if deep else found
        return self.inner[made]


def _through(inner: Ref, outer: Ref) -> Ref:
    """What the callee sees of a thing of the caller."""
    return Ref(outer.made, (*outer.views, *inner.views)[-4:], outer.sure and inner.sure, outer.copied or inner.copied, outer.constant or inner.constant)


__all__ = ["call", "constructed", "inplace_layer", "says_inplace"]
