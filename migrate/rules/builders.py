"""Finds the functions that make modules: they take `rngs`."""
import ast
import builtins
from collections.abc import Callable

from migrate.calls import Refusal, bind, choose, template_names
from migrate.fitting.extract import Support, inherited_rngs
from migrate.infer.engine import Inference
from migrate.infer.kinds import Kind, refs
from migrate.rules.example import Example
from migrate.source.keep import kept_nodes
from migrate.source.modules import ClassInfo, FileInfo, FunctionInfo, Unit
from migrate.source.text import children
from migrate.tables import Row, Variant
from migrate.targets.base import Target

LOOKS = frozenset({"builtins.callable", "builtins.isinstance", "builtins.type", "inspect.isfunction", "inspect.signature", "inspect.isclass"})
CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict")


class Builders:
    """Finds the functions of a unit that make modules, to a fixed point."""

    def __init__(self, unit: Unit, inf: Inference, target: Target, support: Support) -> None:
        self.unit, self.inf, self.target, self.support = unit, inf, target, support
        self.lambdas: set[ast.Lambda] = set()
        self.closures: set[ast.Lambda] = set()  # those that use the stream around them, as nothing would hand them one
        self._calls: dict[FunctionInfo, list[ast.Call]] = {}
        self.kept: set[ast.AST] = set()  # what the user marked to stay: it takes no `rngs`
        self._holder: dict[ast.Call, FunctionInfo] = {}
        self._methods: dict[str, list[FunctionInfo]] = {}
        for f in (f for file in unit.files.values() for f in file.functions if f.owner is not None):
            self._methods.setdefault(f.name, []).append(f)
        self._constructors: set[ast.Call] = set()  # calls of the constructor that a replaced one keeps

    def run(self) -> None:
        """Sets `builds` of all functions; `lambdas` are those that make modules."""
        for file in self.unit.files.values():
            kept = kept_nodes(file.source)
            self.kept |= kept
            for node in file.source.nodes:
                if isinstance(node, ast.Lambda) and self.inf.kinds.get(node, Kind("unknown")).tag == "factory":
                    (self.closures if self.handed_on(file, node) else self.lambdas).add(node)
            for f in file.functions:
                if f.node in kept:
                    continue
                f.builds = f.makes = f.name == "__init__" and f.owner is not None and f.owner.is_module
                self._collect(f)
            self._escaping(file)
            self._replaced(file)
        changed = True
        while changed:
            changed = False
            for f, calls in self._calls.items():
                if not f.makes and f.name != "forward" and any(self._makes(c) or self._initialises(f, c) for c in calls):
                    f.makes = changed = True
                    self._takes(f)
                    for other in self._same_name(f):
                        other.makes = other.builds = True
                if not f.builds and not _holds_stream(f) and any(self.how(c) or self._draws(f, c) or self.mapped(c) for c in calls):
                    changed = self._takes(f) or changed
                    for other in self._overrides(f) if f.builds else ():
                        changed = self._takes(other) or changed

    def _takes(self, f: FunctionInfo) -> bool:
        """Has a function take `rngs`; one that is handed out uses that of the function around it. Whether that is news."""
        while f.escapes and (outer := _around(f)) is not None:
            f = outer
        news = not f.builds and not _holds_stream(f)
        f.builds = f.builds or news
        return news

    def _escaping(self, file: FileInfo) -> None:
        """Finds the nested functions that are handed out."""
        nested = {f.name: f for f in file.functions if f.owner is None and _around(f) is not None and self._result(f) not in ("module", "unknown", "factory", "class", "list", "none")}
        for node in file.source.nodes:
            if isinstance(node, ast.Name) and node.id in nested and isinstance(node.ctx, ast.Load):
                parent, f = file.source.parents.get(node), self.inf.of(node).ref
                if f is nested[node.id] and not (isinstance(parent, ast.Call) and parent.func is node):
                    nested[node.id].escapes = True

    def _replaced(self, file: FileInfo) -> None:
        """Finds functions that take the place of a module's constructor: `cls.__init__ = new_init` in a decorator of modules."""
        for node in file.source.nodes:
            if not (isinstance(node, ast.Assign) and isinstance(t := node.targets[0], ast.Attribute) and t.attr == "__init__" and isinstance(node.value, ast.Name)):
                continue
            f = next((f for f in file.functions if f.name == node.value.id and f.owner is None), None)
            if f is None or not self._decorates_modules(f):
                continue
            f.builds = f.makes = True
            kept = {s.targets[0].id for s in file.source.nodes if isinstance(s, ast.Assign) and isinstance(s.value, ast.Attribute) and s.value.attr == "__init__" and isinstance(s.targets[0], ast.Name)}
            self._constructors.update(c for c in self._calls[f] if isinstance(c.func, ast.Name) and c.func.id in kept)

    def _decorates_modules(self, f: FunctionInfo) -> bool:
        """Whether the outermost function around one decorates modules of the unit."""
        while (outer := _around(f)) is not None:
            f = outer
        modules = [c for file in self.unit.files.values() for c in file.classes if c.is_module]
        named = [(c, d.func if isinstance(d, ast.Call) else d) for c in modules for d in c.node.decorator_list]
        return any(isinstance(d, (ast.Name, ast.Attribute)) and self.unit.resolve(c.file, d) is f for c, d in named)

    def _result(self, f: FunctionInfo) -> str:
        found = self.inf.returns.get(f)
        return found.tag if found is not None else "none"

    def _collect(self, f: FunctionInfo) -> None:
        calls = []
        stack: list[ast.AST] = list(f.node.body)
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                if isinstance(node, ast.Lambda):
                    stack += [node.body] if node in self.closures else []
                    continue
                stack += node.decorator_list
                continue
            if isinstance(node, ast.Call):
                calls.append(node)
                self._holder[node] = f
            stack += children(node)
        self._calls[f] = calls

    def _same_name(self, f: FunctionInfo) -> list[FunctionInfo]:
        """Overrides of a method, up and down its hierarchy."""
        if f.owner is None or f.name == "__init__":
            return []
        found = []
        for c in [*f.owner.mro(), *_below(self.unit, f.owner)]:
            if f.name in c.methods:
                found.append(c.methods[f.name])
        return found

    def _overrides(self, f: FunctionInfo) -> list[FunctionInfo]:
        """The methods that may stand in for one of a class that is no module: what calls one of them may call any."""
        if f.owner is None or f.owner.is_module or f.name.startswith("__"):
            return []
        roots = [c for c in f.owner.mro() if f.name in c.methods]
        return [c.methods[f.name] for r in roots for c in [r, *_below(self.unit, r)] if f.name in c.methods and c.methods[f.name] is not f]

    def _makes(self, call: ast.Call) -> bool:
        """Whether a call makes modules, not only draws numbers."""
        kind = self.inf.of(call.func)
        if kind.tag == "function" and isinstance(kind.ref, FunctionInfo):
            return kind.ref.makes
        return bool(self.how(call)) or self.mapped(call)

    def _initialises(self, f: FunctionInfo, call: ast.Call) -> bool:
        """Whether a call gives parameters their first values."""
        row = self.unit.resolve(f.file, call.func)
        named = isinstance(row, Row) and row.torch.startswith("torch.nn.init.")
        return (named or f.name == "reset_parameters") and self._draws(f, call)

    def _draws(self, f: FunctionInfo, call: ast.Call) -> bool:
        """Whether a call draws random numbers."""
        row = self.unit.resolve(f.file, call.func)
        receiver = None
        held = self.inf.of(call.func.value) if isinstance(call.func, ast.Attribute) else None
        if not isinstance(row, Row) and isinstance(call.func, ast.Attribute) and held is not None and (held.is_tensor or held.is_unknown and call.func.attr.endswith("_")):
            row, receiver = self.unit.table.by_method.get(call.func.attr), call.func.value
        if not isinstance(row, Row) or row.kind != "function" or not any("rngs" in v.to for v in row.for_target(self.target.name)):
            return False
        bound = bind(row, call, receiver, self.inf.of)
        chosen = bound if isinstance(bound, Refusal) else choose(row, bound, self.target.name, self.inf.of)
        if isinstance(chosen, Variant) and "rngs" not in template_names(chosen.to):
            return False
        in_module = f.owner is not None and f.owner.is_module and not f.is_static and not f.is_classmethod
        return not in_module or row.torch.startswith("torch.nn.init.") or f.name == "reset_parameters"

    def how(self, call: ast.Call) -> str:
        """ "pass", "build" (through the support function) or "" """
        if call in self._constructors:
            return "pass"
        if (above := self._above(call)) is not None:
            return self._reference(above)
        if self._starts_draws(call):
            return "pass"
        return self.how_kind(self.inf.of(call.func), call) or ("build" if self._tested_method(call) or self._by_default(call) or self._by_attribute(call) else "")

    def _draws_later(self, row: object) -> bool:
        """Whether a class of PyTorch's becomes one whose objects draw from the stream that they are made with."""
        if not isinstance(row, Row) or row.kind != "function" or row.value not in self.support.definitions:
            return False
        made = self.support.definitions[row.value].node
        return isinstance(made, ast.ClassDef) and any("rngs" in template_names(v.to) for v in row.for_target(self.target.name))

    def _starts_draws(self, call: ast.Call) -> bool:
        """`super().__init__(loc, scale)` of such a class."""
        func, f = call.func, self._holder.get(call)
        if f is None or f.owner is None or f.owner.is_module or f.name != "__init__" or not isinstance(func, ast.Attribute) or func.attr != "__init__" or not isinstance(func.value, ast.Call):
            return False
        of_super = isinstance(func.value.func, ast.Name) and self.unit.resolve(f.file, func.value.func) == "builtins.super"
        return of_super and not any(c.methods.get("__init__") for c in f.owner.mro() if c is not f.owner) and any(map(self._draws_later, f.owner.foreign()))

    def _by_attribute(self, call: ast.Call) -> bool:
        """`self.made(loc, scale)` where the class or one of those below holds such a class under that name."""
        func, f = call.func, self._holder.get(call)
        if f is None or f.owner is None or not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name) or func.value.id != f.self_name:
            return False
        held = [(c.file, v) for c in [*f.owner.mro(), *_below(self.unit, f.owner)] if isinstance(v := c.body.get(func.attr), (ast.Name, ast.Attribute))]
        return any(self._draws_later(r) or isinstance(r, ClassInfo) and not r.is_module and self._reference(r) == "pass" for file, v in held for r in [self.unit.resolve(file, v)])

    def _above(self, call: ast.Call) -> FunctionInfo | None:
        """The method of a base class that `super().method()` calls."""
        func, f = call.func, self._holder.get(call)
        if f is None or f.owner is None or not isinstance(func, ast.Attribute) or func.attr in ("__init__", "forward") or not isinstance(func.value, ast.Call):
            return None
        if not (isinstance(func.value.func, ast.Name) and self.unit.resolve(f.file, func.value.func) == "builtins.super"):
            return None
        return next((c.methods[func.attr] for c in f.owner.mro() if c is not f.owner and func.attr in c.methods), None)

    def _by_default(self, call: ast.Call) -> bool:
        """`init(m)` after `init = init or start`, where `start` takes `rngs`."""
        f = self._holder.get(call)
        if f is None or not isinstance(call.func, ast.Name):
            return False
        given = [b.value for b in f.file.names.lookup(call.func) if b.kind == "assign" and isinstance(b.value, (ast.BoolOp, ast.IfExp))]
        chosen = [v for g in given for v in (g.values if isinstance(g, ast.BoolOp) else (g.body, g.orelse))]
        return any(isinstance(v, ast.Name) and isinstance(r := self.unit.resolve(f.file, v), FunctionInfo) and r.builds for v in chosen)

    def _tested_method(self, call: ast.Call) -> bool:
        """`m.init_weights()` of an unknown module that was made here or is looked at with isinstance or hasattr, where a method of that name takes `rngs`."""
        func, f = call.func, self._holder.get(call)
        if f is None or not isinstance(func, ast.Attribute) or not self.inf.of(func).is_unknown or not any(m.builds for m in self._methods.get(func.attr, ())):
            return False
        if becomes_module(self.inf, f, call):
            return True
        if not isinstance(func.value, ast.Name):
            return self._held_module(f, func)
        made = [b.value for b in f.file.names.lookup(func.value) if b.kind == "assign"]
        if made and all(isinstance(v, ast.Call) and v is not call and self.how_kind(self.inf.of(v.func), v) for v in made):
            return True
        tests = (n for n in ast.walk(f.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("isinstance", "hasattr") and n.args)
        return any(isinstance(n.args[0], ast.Name) and n.args[0].id == func.value.id for n in tests)

    def _held_module(self, f: FunctionInfo, func: ast.Attribute) -> bool:
        """`self.part.reset_parameters()` of an attribute that nothing is known of, where only modules have a method of that name and some of them take `rngs`."""
        held = func.value
        of_self = isinstance(held, ast.Attribute) and isinstance(held.value, ast.Name) and held.value.id == f.self_name and self.inf.of(held).is_unknown
        return of_self and f.name != "forward" and all(m.owner is not None and m.owner.is_module for m in self._methods[func.attr])

    def mapped(self, call: ast.Call) -> bool:
        """Whether `map` is given something that makes modules."""
        f = self._holder.get(call)
        file = f.file if f is not None else None
        if not (isinstance(call.func, ast.Name) and call.func.id == "map" and len(call.args) > 1) or file is not None and self.unit.resolve(file, call.func) != "builtins.map":
            return False
        return self.how_kind(self.inf.of(call.args[0]), None) == "pass"

    def handed_on(self, file: FileInfo, made: ast.Lambda) -> bool:
        """Whether a lambda within a function, or the name that holds it, is an argument where nothing shows that a maker of modules is called there."""
        holder = file.source.enclosing(made, ast.FunctionDef, ast.AsyncFunctionDef)
        if not isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef)) or made in self.kept:
            return False
        up, names = file.source.parents.get(made), list[str]()
        if isinstance(up, ast.Assign):
            names = [t.id for t in up.targets if isinstance(t, ast.Name)]
        places: list[ast.expr] = [made, *(use for n in names for use in self.inf.uses(holder).get(n, ()))]
        return any(_argument_of(file, p, lambda call, at: not self._expects(file, call, at)) for p in places)

    def _expects(self, file: FileInfo, call: ast.Call, given: ast.AST) -> bool:
        """Whether the callee of a call takes an argument for something that makes modules, or only looks at it."""
        kind, known = self.inf.of(call.func), self.unit.resolve(file, call.func)
        if isinstance(known, Row) or known in LOOKS or known == "builtins.map" and call.args[0] is given:
            return True
        if known == "builtins.map" and call.args:
            kind, place = self.inf.of(call.args[0]), 0
        else:
            place = next((i for i, a in enumerate(call.args) if a is given), -1)
        named = given.arg if isinstance(given, ast.keyword) else None
        for ref in refs(kind):
            f = ref.method("__init__") if isinstance(ref, ClassInfo) else ref
            if not isinstance(f, FunctionInfo):
                continue
            parameters = [*enumerate(f.parameters), *((-2, p) for p in f.node.args.kwonlyargs)]
            taken = next((p for i, p in parameters if p.arg == named or named is None and i == place), None)
            if taken is None or self.inf.arguments.get(taken, Kind("unknown")).tag == "factory":
                return True
        return not refs(kind) and known is None

    def how_kind(self, kind: Kind, call: ast.Call | None) -> str:
        """The same, by what the callee is."""
        if kind.tag == "class" or kind.tag in ("factory", "function") and refs(kind):
            ways = {self._reference(r) for r in refs(kind)}
            if ways == {"pass"}:
                return "pass"
            return "build" if "pass" in ways else ""
        if kind.tag == "factory":
            if not kind.sure and not refs(kind) and call is not None and self._on_tensors(call):
                return ""  # it was only taken for one, and this is no place to make modules
            return "build" if self.closures and not refs(kind) or not kind.sure and (kind.optional or call is not None and self._is_global(call)) else "pass"
        if kind.tag == "object":
            called = [c.method("__call__") for c in refs(kind) if isinstance(c, ClassInfo) and not c.is_module]
            return "pass" if called and all(m is not None and m.builds for m in called) else ""
        if kind.tag == "unknown" and call is not None and self._may_build(call):
            return "build"
        if kind.tag == "module" and not refs(kind) and call is not None and isinstance(call.func, ast.Name) and self._may_build(call) and not self._on_tensors(call):
            return "build"  # `block: nn.Module` that is a class: its result is a module
        return ""

    def _reference(self, ref: object) -> str:
        if isinstance(ref, ClassInfo):
            if ref.node in self.kept:
                return ""
            if ref.is_module:
                return "pass"
            init = ref.method("__init__")
            builds = init.builds if init is not None else any(map(self._draws_later, ref.foreign()))
            return "pass" if builds else ""
        if isinstance(ref, FunctionInfo):
            return "pass" if ref.builds and ref.node not in self.kept else ""
        if isinstance(ref, Row):
            return "pass" if ref.kind == "layer" and self._layer_takes(ref) else ""
        if isinstance(ref, ast.Lambda):
            return "pass" if ref in self.lambdas else ""
        return ""

    def _layer_takes(self, row: Row) -> bool:
        if row.torch.startswith("torch.nn.Module"):
            return False
        native = list(row.for_target(self.target.name))
        if native:
            return any("rngs" in v.to for v in native)
        return inherited_rngs(self.support, row.support) == "required"

    def _may_build(self, call: ast.Call) -> bool:
        """An unknown callee whose result becomes a module: assigned to an attribute of a module, or put into a container."""
        f = self._holder.get(call)
        if f is None or not isinstance(call.func, (ast.Name, ast.Subscript, ast.Attribute, ast.Call)) or self._is_foreign(f, call):
            return False
        return becomes_module(self.inf, f, call)

    def _is_global(self, call: ast.Call) -> bool:
        """A callee that the file's own statements bind, such as `Rearrange, found = optional_import("einops", "Rearrange")`."""
        f = self._holder.get(call)
        return f is not None and isinstance(call.func, ast.Name) and f.file.names.lookup(call.func) == f.file.names.top.bindings.get(call.func.id)

    def _on_tensors(self, call: ast.Call) -> bool:
        """A call in a forward pass, or with a tensor: of a module, not of a class."""
        f = self._holder.get(call)
        return f is None or f.name == "forward" or any(self.inf.of(a).is_tensor for a in [*call.args, *(k.value for k in call.keywords)])

    def _is_foreign(self, f: FunctionInfo, call: ast.Call) -> bool:
        """A call of something imported, or of a method of an object: it can't take `rngs`."""
        if self.unit.resolve(f.file, call.func) is not None or isinstance(call.func, ast.Name) and hasattr(builtins, call.func.id) and not f.file.names.lookup(call.func):
            return True
        if isinstance(call.func, ast.Attribute):
            base = call.func.value
            return not (isinstance(base, ast.Name) and base.id == f.self_name and self.inf.of(call.func).is_unknown)
        return False


def _argument_of(file: FileInfo, value: ast.AST, holds: Callable[[ast.Call, ast.AST], bool]) -> bool:
    """Whether a condition holds of a call that a value is an argument of, by itself or in a tuple, a list or a choice."""
    at = value
    while (up := file.source.parents.get(at)) is not None:
        if isinstance(up, ast.Call):
            return up.func is not at and holds(up, at)
        if not isinstance(up, (ast.Tuple, ast.List, ast.IfExp, ast.BoolOp, ast.keyword)):
            return False
        at = up
    return False


def _around(f: FunctionInfo) -> FunctionInfo | None:
    """The function that a nested function is defined in."""
    outer = f.file.source.enclosing(f.node, ast.FunctionDef, ast.AsyncFunctionDef)
    found = f.file.by_node.get(outer) if outer is not None else None
    return found if isinstance(found, FunctionInfo) else None


def _holds_stream(f: FunctionInfo) -> bool:
    """Whether a method can use the stream that its module holds."""
    return f.owner is not None and f.owner.is_module and not f.is_static and not f.is_classmethod and f.name != "__init__"


def _below(unit: Unit, owner: ClassInfo) -> list[ClassInfo]:
    found: list[ClassInfo] = []
    stack = list(unit.subclasses.get(owner, ()))
    while stack:
        c = stack.pop()
        found.append(c)
        stack += unit.subclasses.get(c, ())
    return found


def becomes_module(inf: Inference, f: FunctionInfo, call: ast.Call) -> bool:
    """Whether the value of a call ends in an attribute of a module, or in a container of modules; a local name may hold it on the way."""
    if _ends_in_module(inf, f, call):
        return True
    name = f.file.source.parents.get(call)
    if not isinstance(name, (ast.Assign, ast.AnnAssign)):
        return False
    held = {t.id for t in (name.targets if isinstance(name, ast.Assign) else [name.target]) if isinstance(t, ast.Name)}
    return any(_ends_in_module(inf, f, use) or _used_as_module(f, use) for n in held for use in inf.uses(f.node).get(n, ()))


HOLDERS = frozenset({"builtins.dict", "builtins.list", "builtins.tuple", "builtins.zip", "builtins.reversed", "collections.OrderedDict"})
MODULE_METHODS = frozenset({"load_state_dict", "state_dict", "parameters", "named_parameters", "named_modules", "named_children", "children"})


def _used_as_module(f: FunctionInfo, value: ast.expr) -> bool:
    """`net.load_state_dict(...)`."""
    parents = f.file.source.parents
    up = parents.get(value)
    return isinstance(up, ast.Attribute) and up.attr in MODULE_METHODS and isinstance(parents.get(up), ast.Call)


def _ends_in_module(inf: Inference, f: FunctionInfo, value: ast.expr) -> bool:
    parents = f.file.source.parents
    at: ast.AST = value
    while (up := parents.get(at)) is not None:
        match up:
            case ast.Call() if up.func is not at:
                callee = inf.of(up.func)
                if any(isinstance(r, Row) and r.torch in CONTAINERS for r in refs(callee)):
                    return True
                if inf.resolve(f.file, up.func) in HOLDERS:
                    at = up
                    continue
                adds = isinstance(up.func, ast.Attribute) and up.func.attr in ("append", "extend", "insert", "add_module", "register_module")
                return adds and isinstance(up.func, ast.Attribute) and inf.of(up.func.value).tag in ("module", "list")
            case ast.Return() if isinstance(value, ast.Call):
                others = [n.value for n in ast.walk(f.node) if isinstance(n, ast.Return) and n is not up and n.value is not None]
                return any(inf.of(o).tag == "module" for o in others)
            case ast.Assign():
                return any(isinstance(t, ast.Attribute) and inf.of(t.value).tag == "module" for t in up.targets) and isinstance(value, ast.Call)
            case ast.IfExp() | ast.BoolOp() | ast.List() | ast.Tuple() | ast.Starred() | ast.ListComp() | ast.GeneratorExp() | ast.Dict() | ast.keyword() | ast.DictComp():
                at = up
            case _:
                return False
    return False


EXAMPLES = (
    Example(
        "class Wide(torch.distributions.Normal):\n    def __init__(self, x):\n        super().__init__(x, 2.0)\n\n\nclass Narrow(torch.distributions.Normal):\n    pass\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return Wide(x).sample() + Narrow(x, 1.0).sample()\n",
        "    def __init__(self, x, *, rngs: nnx.Rngs):\n        super().__init__(x, 2.0, rngs=rngs)\n", "        super().__init__(x, 2.0)\n", why="what extends a class that draws",
    ),
    Example(
        "class Narrow(torch.distributions.Normal):\n    pass\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return Narrow(x, 1.0).sample()\n",
        "        return Narrow(x, 1.0, rngs=self.rngs).sample()\n", "        return Narrow(x, 1.0).sample()\n", why="its constructor is that of the class that draws",
    ),
    Example(
        "class Head:\n    made = None\n\n    def spread(self, x):\n        return self.made(x, 1.0)\n\n\nclass Bell(Head):\n    made: type = torch.distributions.Normal\n\n\nclass Net(nn.Module):\n    def __init__(self, head=Bell()):\n        super().__init__()\n        self.head = head\n\n    def forward(self, x):\n        return self.head.spread(x).sample()\n",
        "    def spread(self, x, *, rngs: nnx.Rngs):\n        return build(self.made, x, 1.0, rngs=rngs)\n", "        return self.made(x, 1.0)\n", why="a class attribute holds a class that draws",
    ),
    Example(
        "def start(m):\n    m.a = nn.Linear(3, 3)\n\n\ndef begin(m, init=None):\n    init = init or start\n    init(m)\n",
        "def begin(m, init=None, *, rngs: nnx.Rngs):\n    init = init or start\n    build(init, m, rngs=rngs)\n", "    init(m)\n", why="one that may be given, or a function of the code",
    ),
    Example(
        "class Maker:\n    def __call__(self, n):\n        return [nn.Linear(n, n)]\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        maker = Maker()\n        self.a = nn.Sequential(*maker(3))\n",
        "        self.a = Sequential(*maker(3, rngs=rngs))\n", "        self.a = Sequential(*maker(3))\n", why="an object that is called",
    ),
    Example(
        "class Maker:\n    def net(self, n):\n        return nn.Linear(n, n)\n\n\nclass Net(nn.Module):\n    def __init__(self, maker):\n        super().__init__()\n        self.maker = maker\n        self.a = self.maker.net(3)\n",
        "        self.a = build(self.maker.net, 3, rngs=rngs)\n", "        self.a = self.maker.net(3)\n", why="a method of an unknown object that makes a module",
    ),
    Example(
        "TABLE = {}\n\n\ndef named(name):\n    def put(cls):\n        TABLE[name] = cls\n        return cls\n\n    return put\n\n\n@named('a')\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n\n\n"
        "def get(name, n):\n    return dict(a=TABLE[name](n))\n",
        "    return dict(a=TABLE[name](n, rngs=rngs))\n", "    return dict(a=TABLE[name](n))\n", why="a decorator puts classes into a table",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n\n\nTABLE = dict(net=Net)\n\n\ndef put(name: str, net: nn.Module):\n    TABLE[name] = net\n\n\ndef get(name, n):\n    return TABLE[name](n)\n",
        "    return TABLE[name](n, rngs=rngs)\n", "    return TABLE[name](n)\n", why="what is put there later is of the same kind",
    ),
    Example(
        "class Base(nn.Module):\n    known = {}\n\n    def __init_subclass__(cls):\n        Base.known[cls.__name__] = cls\n\n\nclass Net(Base):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n\n\ndef get(name):\n    return Base.known[name](3).n\n",
        "    return Base.known[name](3, rngs=rngs).n\n", "    return Base.known[name](3).n\n", why="a class keeps the table of its subclasses",
    ),
    Example(
        "class Outer(nn.Module):\n    def __init__(self, parts, n):\n        super().__init__()\n        self.a = nn.ModuleDict(dict((k, p(n)) for k, p in parts))\n",
        "        self.a = ModuleDict(dict((k, build(p, n, rngs=rngs)) for k, p in parts))\n", "        self.a = ModuleDict(dict((k, p(n)) for k, p in parts))\n", why="by way of a mapping",
    ),
    Example(
        "TABLE = {}\n\n\ndef get(name, n):\n    if name == '':\n        return nn.Identity()\n    made = TABLE[name]\n    return made(n)\n",
        "def get(name, n, *, rngs: nnx.Rngs):\n    if name == '':\n        return Identity()\n    made = TABLE[name]\n    return build(made, n, rngs=rngs)\n", "    return made(n)\n", why="what is returned where else a module is",
    ),
    Example(
        "TABLE = {}\n\n\ndef get(name, state):\n    made = TABLE[name]\n    net = made(3)\n    net.load_state_dict(state)\n    return net\n", "    net = build(made, 3, rngs=rngs)\n", "    net = made(3)\n", why="what is used as a module", refused="MIG306",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, n, block: nn.Module):\n        super().__init__()\n        self.a = block(n)\n", "        self.a = build(block, n, rngs=rngs)\n", "        self.a = block(n)\n", why="a class that is annotated as a module",
    ),
    Example("class Net(nn.Module):\n    def keep(self, x: torch.Tensor, block: nn.Module):\n        self.last = block(x)\n", "        self.last = nnx.data(block(x))\n", "        self.last = block(x)\n", why="a module that is called"),
    Example(
        "class Block(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.init_weights(n)\n\n    def init_weights(self, n):\n        self.a = nn.Linear(n, n)\n\n\n"
        "def start(module):\n    if hasattr(module, 'init_weights'):\n        module.init_weights(3)\n",
        "def start(module, *, rngs: nnx.Rngs):\n    if hasattr(module, 'init_weights'):\n        build(module.init_weights, 3, rngs=rngs)\n", "        module.init_weights(3)\n", why="a method of whatever module has it",
    ),
    Example(
        "def block(d):\n    return nn.Linear(d, d)\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = block(3)\n",
        "def block(d, *, rngs: nnx.Rngs):\n    return nnx.Linear(d, d, rngs=rngs)\n\n\nclass Net(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.a = block(3, rngs=rngs)\n",
        "def block(d):\n    return Linear(d, d)\n",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n\n        def make(n):\n            return nn.Linear(n, n)\n\n        self.a = make(d)\n",
        "        def make(n, *, rngs: nnx.Rngs):\n            return nnx.Linear(n, n, rngs=rngs)\n\n        self.a = make(d, rngs=rngs)\n", why="a nested function",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = Net.make(3)\n\n    @staticmethod\n    def make(n):\n        return nn.Linear(n, n)\n",
        "        self.a = Net.make(3, rngs=rngs)\n\n    @staticmethod\n    def make(n, *, rngs: nnx.Rngs):\n        return nnx.Linear(n, n, rngs=rngs)\n",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, make=None):\n        super().__init__()\n        self.a = make(3)\n",
        "        self.a = build(make, 3, rngs=rngs)\n", "        self.a = make(3)\n", why="a callee that may or may not take rngs",
    ),
    Example(
        "def setup():\n    def step(x):\n        return nn.Linear(3, 3)(x) * 2\n\n    return step\n",
        "def setup(*, rngs: nnx.Rngs):\n    def step(x):\n        return nnx.Linear(3, 3, rngs=rngs)(x) * 2\n", "    def step(x):\n        return Linear(3, 3)(x) * 2\n", why="a nested function that is handed out",
    ),
    Example("async def make(n):\n    return nn.Linear(n, n)\n", "async def make(n, *, rngs: nnx.Rngs):\n", "async def make(n):\n"),
    Example(
        "def noise(x):\n    return x + torch.randn(3)\n\n\ndef twice(x):\n    return noise(noise(x))\n",
        "def twice(x, *, rngs: nnx.Rngs):\n    return noise(noise(x, rngs=rngs), rngs=rngs)\n", "def twice(x):\n    return noise(noise(x))\n", why="functions that draw",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        make = partial(nn.Linear, n)\n        self.a, self.b = map(make, (3, 4))\n",
        "        self.a, self.b = map(partial(make, rngs=rngs), (3, 4))\n", "        self.a, self.b = map(make, (3, 4))\n", why="called by map",
    ),
    Example(
        "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = Maker.make(3)\n\n\ndef make(n):\n    return nn.Linear(n, n)\n\n\nclass Maker:\n    pass\n\n\nMaker.make = staticmethod(make)\n",
        "        self.a = Maker.make(3, rngs=rngs)\n", "        self.a = Maker.make(3)\n", why="a function that a class gets afterwards",
    ),
    Example(
        "def noted(cls):\n    old = cls.__init__\n\n    def new(self, **kwargs):\n        self.options = kwargs\n        old(self, **kwargs)\n\n    cls.__init__ = new\n    return cls\n\n\n"
        "@noted\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.a = nn.Linear(n, n)\n",
        "    def new(self, *, rngs: nnx.Rngs, **kwargs):\n        self.options = kwargs\n        old(self, **kwargs, rngs=rngs)\n", "        old(self, **kwargs)\n", why="a decorator that replaces the constructor",
    ),
    Example(
        "def signs_(x):\n    return nn.init.uniform_(x)\n\n\ndef init(x, how):\n    if how == 'ones':\n        f = nn.init.ones_\n    else:\n        f = signs_\n    return f(x)\n",
        "    return build(f, x, rngs=rngs)\n", "    return f(x)\n", why="one of several functions",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, table, key):\n        super().__init__()\n        make = table[key]\n        conv = make(3)\n        self.add_module('conv', conv)\n",
        "        conv = build(make, 3, rngs=rngs)\n        self.conv = conv\n", "        conv = make(3)\n", why="through a local name",
    ),
    Example(
        "def default(value, make):\n    return value if value is not None else (make() if callable(make) else make)\n\n\nclass Net(nn.Module):\n    def __init__(self, n, part=None):\n        super().__init__()\n        n = default(n, 2 * n)\n        self.a = default(part, lambda: nn.Linear(n, n))\n",
        "        self.a = default(part, lambda: nnx.Linear(n, n, rngs=rngs))\n", "        self.a = default(part, lambda: Linear(n, n))\n", why="a function that calls whatever it is given",
    ),
    Example(
        "from functools import wraps\n\n\ndef once(f):\n    made = {}\n\n    @wraps(f)\n    def inner(key):\n        if key not in made:\n            made[key] = f()\n        return made[key]\n\n    return inner\n\n\n"
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        make, other = map(once, (lambda: nn.Linear(n, n), lambda: nn.Linear(n, 2 * n)))\n        self.a = make('a')\n",
        "map(once, (lambda: nnx.Linear(n, n, rngs=rngs), lambda: nnx.Linear(n, 2 * n, rngs=rngs)))", "(lambda: Linear(n, n), lambda: Linear(n, 2 * n))", why="a decorator that does not hand on `rngs`",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.a = self.stack(lambda: nn.Linear(n, n))\n\n    def stack(self, make):\n        return nn.Sequential(*[make() for _ in range(3)])\n",
        "        self.a = self.stack(lambda *, rngs: nnx.Linear(n, n, rngs=rngs), rngs=rngs)\n", "        self.a = self.stack(lambda: Linear(n, n))\n", why="a method that hands it on",
    ),
    Example("def width(n):\n    return 2 * n\n\n\nsize = width(3)\n"),
    Example("def choose(names, make=print):\n    return [make(n) for n in names]\n", why="what is made is no module"),
)
