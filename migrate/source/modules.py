"""The classes and functions of all files of a unit: bases, module or not, methods, attributes and what is assigned to them."""
import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from migrate import libraries
from migrate.libraries import Boundary
from migrate.source.decorated import classes_of_functions
from migrate.source.fallbacks import prefer_known, prefer_own
from migrate.source.names import BUILTINS, FunctionNode, Names
from migrate.source.text import Source, children, walk
from migrate.tables import Row, Table

MODULE = "torch.nn.Module"
NOT_ASKED = object()
GRADIENT = "torch.autograd.Function"
# Classes of PyTorch that are modules without being layers with a row of their own.
CONTAINERS = frozenset({MODULE, "torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.ParameterList", "torch.nn.ParameterDict"})
MODULE_BASES = {"torch.jit.ScriptModule": MODULE, "pytorch_lightning.LightningModule": MODULE, "lightning.LightningModule": MODULE,
                "lightning.pytorch.LightningModule": MODULE, "lightning.pytorch.core.module.LightningModule": MODULE,
                "lightning.pytorch.core.LightningModule": MODULE, "pytorch_lightning.core.LightningModule": MODULE,
                "pytorch_lightning.core.module.LightningModule": MODULE, "torch.nn._Loss": MODULE, "torch.nn._WeightedLoss": MODULE}


@dataclass(eq=False)
class FunctionInfo:
    """A function or method. `owner` is its class. `makes`: makes modules; `builds`: takes `rngs`, as it makes modules or draws numbers.
    `escapes`: a nested function that is handed out, and makes something else than modules: who calls it has no `rngs` to pass."""

    name: str
    node: FunctionNode
    file: "FileInfo"
    owner: "ClassInfo | None" = None
    builds: bool = False
    makes: bool = False
    escapes: bool = False

    @property
    def is_static(self) -> bool:
        """A staticmethod, or a function of a class that is only called as `Class.name(...)` and has no `self`."""
        return self._is_unbound or any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in self.node.decorator_list)

    @cached_property
    def _is_unbound(self) -> bool:
        plain = self.node.args.posonlyargs + self.node.args.args
        if self.owner is None or not plain or plain[0].arg in ("self", "cls", "ctx") or self.node.decorator_list or self.name[:2] == "__":
            return False
        used = [n.value for n in self.file.source.nodes if isinstance(n, ast.Attribute) and n.attr == self.name]
        return bool(used) and all(isinstance(v, ast.Name) and v.id == self.owner.name for v in used)

    @property
    def is_classmethod(self) -> bool:
        """A classmethod."""
        return self.name == "__init_subclass__" or any(isinstance(d, ast.Name) and d.id == "classmethod" for d in self.node.decorator_list)

    @property
    def is_property(self) -> bool:
        """A property or cached property."""
        return any(ast.unparse(d).split(".")[-1] in ("property", "cached_property", "setter") for d in self.node.decorator_list)

    @property
    def parameters(self) -> list[ast.arg]:
        """Positional parameters without `self`, `cls` or the `ctx` of a torch.autograd.Function."""
        plain = self.node.args.posonlyargs + self.node.args.args
        return plain[1:] if self.owner is not None and plain and (not self.is_static or self.takes_context) else plain

    @property
    def takes_context(self) -> bool:
        """A method of a torch.autograd.Function: its first parameter is an object of its own kind that carries attributes from `forward` to `backward`."""
        plain = self.node.args.posonlyargs + self.node.args.args
        return self.owner is not None and self.is_static and self.name in ("forward", "backward", "setup_context") and bool(plain) and plain[0].arg in ("ctx", "context")

    @property
    def self_name(self) -> str | None:
        """What the method calls its object."""
        plain = self.node.args.posonlyargs + self.node.args.args
        return plain[0].arg if self.owner is not None and (not self.is_static or self.takes_context) and not self.is_classmethod and plain else None

    def default(self, name: str) -> ast.expr | None:
        """The default of a parameter."""
        a = self.node.args
        plain = a.posonlyargs + a.args
        for p, d in zip(plain[len(plain) - len(a.defaults) :], a.defaults, strict=True):
            if p.arg == name:
                return d
        for p, kd in zip(a.kwonlyargs, a.kw_defaults, strict=True):
            if p.arg == name:
                return kd
        return None


@dataclass(eq=False)
class Assignment:
    """`self.name = value` in a method. `value` is None where the target is unpacked, looped over or augmented."""

    method: FunctionInfo
    target: ast.expr
    value: ast.expr | None
    statement: ast.stmt


@dataclass(eq=False)
class ClassInfo:
    """A class. `bases` holds ClassInfo (local), Row (a layer) or a dotted name for each base."""

    name: str
    node: ast.ClassDef
    file: "FileInfo"
    dotted: str
    bases: list["ClassInfo | Row | str"] = field(default_factory=list)
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    attributes: dict[str, list[Assignment]] = field(default_factory=dict)
    body: dict[str, ast.expr | None] = field(default_factory=dict)
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    mixed: bool = False  # no module itself, but a base of modules only
    linked: bool = False  # its bases are known
    _order: "list[ClassInfo]" = field(default_factory=list)

    def mro(self) -> Iterator["ClassInfo"]:
        """The class and its local bases, nearest first (depth first; good enough for look-ups)."""
        if not self._order or not self.linked:
            seen: set[int] = set()
            stack, self._order = [self], []
            while stack:
                at = stack.pop(0)
                if id(at) not in seen:
                    seen.add(id(at))
                    self._order.append(at)
                    stack[:0] = [b for b in at.bases if isinstance(b, ClassInfo)]
        return iter(self._order)

    def foreign(self) -> list["Row | str"]:
        """The bases that are not local, of the class and its local bases."""
        return [b for c in self.mro() for b in c.bases if not isinstance(b, ClassInfo)]

    @property
    def is_module(self) -> bool:
        """Whether it is a torch.nn.Module."""
        return self._is_module if self.linked else self._derives()

    @cached_property
    def _is_module(self) -> bool:
        return self._derives()

    def _derives(self) -> bool:
        return any(b.kind == "layer" if isinstance(b, Row) else b in CONTAINERS or b in MODULE_BASES for b in self.foreign())

    @property
    def forwards(self) -> bool:
        """Whether a method `forward` of it is that of a module."""
        return self.is_module or self.mixed

    @property
    def is_gradient(self) -> bool:
        """Whether it is a torch.autograd.Function: a function with a gradient of its own."""
        return any(isinstance(b, Row) and b.torch == GRADIENT for b in self.foreign())

    @property
    def layer(self) -> Row | None:
        """The layer that it extends, if it extends one."""
        return next((b for b in self.foreign() if isinstance(b, Row) and b.kind == "layer"), None)

    def method(self, name: str) -> FunctionInfo | None:
        """A method, the class's own or inherited from a local class."""
        return next((c.methods[name] for c in self.mro() if name in c.methods), None)

    def assigned(self, name: str) -> list[Assignment]:
        """All assignments to an attribute, those of local bases included."""
        return [a for c in self.mro() for a in c.attributes.get(name, ())]


@dataclass(eq=False)
class FileInfo:
    """One file of a unit."""

    source: Source
    names: Names
    module: str
    classes: list[ClassInfo] = field(default_factory=list)
    functions: list[FunctionInfo] = field(default_factory=list)  # methods and nested functions included
    by_node: dict[ast.AST, ClassInfo | FunctionInfo] = field(default_factory=dict)


@dataclass(eq=False)
class Unit:
    """All files that are converted together."""

    table: Table
    files: dict[str, FileInfo] = field(default_factory=dict)
    subclasses: dict[ClassInfo, list[ClassInfo]] = field(default_factory=dict)
    told: frozenset[str] = frozenset()  # such strings of code elsewhere
    shared: dict[str, Any] = field(default_factory=dict)  # what rules find out of all files once
    boundary: Boundary = field(default_factory=libraries.standard)
    homes: dict[str, str] = field(default_factory=dict)  # names that a package hands out when asked, with the full names
    data: Callable[[], Iterable[tuple[Path, str, Path]]] = tuple  # the data files beside the code
    texts: set[str] | None = None  # the strings of all files that could be names, once asked for
    decorated: dict[FunctionInfo, ClassInfo] = field(default_factory=dict)  # functions that a decorator turns into classes of modules
    _resolved: "dict[ast.expr, ClassInfo | FunctionInfo | Row | str | None] | None" = None  # what was asked for, once all is linked

    def add(self, source: Source, module: str = "", package: bool = False, classes: bool = True) -> FileInfo:
        """Indexes a file; without its classes and functions where only foreign names are asked for."""
        file = FileInfo(source, Names(source, module, package), module)
        self.files[module] = file
        if classes:
            _index(file)
        return file

    def link(self) -> None:
        """Resolves the bases of all classes, once every file is added."""
        prefer_known(self)
        prefer_own(self)
        for file in self.files.values():
            for c in file.classes:
                c.bases = [b for b in (self._base(file, e) for e in c.node.bases) if b is not None]
        for file in self.files.values():
            for c in file.classes:
                c.linked = True
                for b in c.bases:
                    if isinstance(b, ClassInfo):
                        self.subclasses.setdefault(b, []).append(c)
            self._added_methods(file)
        for c in [c for file in self.files.values() for c in file.classes if c.is_module]:
            for b in c.mro():
                b.mixed = b.mixed or not b.is_module and self._of_modules_only(b)
        self.decorated = classes_of_functions(self)
        self._resolved = {}

    def _of_modules_only(self, c: ClassInfo) -> bool:
        below, seen = list(self.subclasses.get(c, ())), set[ClassInfo]()
        while below:
            at = below.pop()
            inner = self.subclasses.get(at, [])
            if not at.is_module and not inner:
                return False
            below += [i for i in inner if i not in seen and not at.is_module]
            seen.add(at)
        return True

    def defined(self, file: FileInfo, node: ast.AST) -> "ClassInfo | FunctionInfo | None":
        """What a definition makes: the class or function, or the class that its decorator turns it into."""
        found = file.by_node.get(node)
        return self.decorated.get(found, found) if isinstance(found, FunctionInfo) else found

    def _added_methods(self, file: FileInfo) -> None:
        """`Class.name = staticmethod(function)` after the class."""
        for s in file.source.tree.body:
            if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(t := s.targets[0], ast.Attribute) and isinstance(s.value, ast.Call) and s.value.args:
                owner = self.resolve(file, t.value) if isinstance(t.value, ast.Name) else None
                function = self.resolve(file, s.value.args[0])
                if isinstance(owner, ClassInfo) and isinstance(function, FunctionInfo) and isinstance(s.value.func, ast.Name) and s.value.func.id == "staticmethod":
                    owner.methods.setdefault(t.attr, function)

    def _base(self, file: FileInfo, node: ast.expr) -> "ClassInfo | Row | str | None":
        if isinstance(node, ast.Subscript):  # Generic[T]
            node = node.value
        found = self.resolve(file, node)
        if not isinstance(found, (ClassInfo, FunctionInfo, Row)) and (alias := self._alias(file, node, found)):
            return self._base(*alias)
        return found if not isinstance(found, FunctionInfo) else None

    def _alias(self, file: FileInfo, node: ast.expr, found: str | None) -> tuple[FileInfo, ast.expr] | None:
        """What a module-level name is another name of: `Up = Upsample`, here or in the file that it is imported from."""
        module, _, name = found.rpartition(".") if found else ("", "", node.id if isinstance(node, ast.Name) else "")
        home = self.files.get(module) if found else file
        bound = home.names.top.bindings.get(name, ()) if home is not None else ()
        if home is None or len(bound) != 1 or bound[0].kind != "assign" or not isinstance(bound[0].value, ast.Name):
            return None
        return home, bound[0].value

    def resolve(self, file: FileInfo, node: ast.expr) -> "ClassInfo | FunctionInfo | Row | str | None":
        """What a name or dotted expression means: a local class or function, a row, or a foreign dotted name."""
        if self._resolved is None:
            return self._meaning(file, node)
        found = self._resolved.get(node, NOT_ASKED)
        if found is NOT_ASKED:
            found = self._resolved[node] = self._meaning(file, node)
        return found  # type: ignore[return-value]

    def _meaning(self, file: FileInfo, node: ast.expr) -> "ClassInfo | FunctionInfo | Row | str | None":
        if isinstance(node, ast.Name):
            bound = file.names.lookup(node)
            local = [b for b in bound if b.kind in ("class", "function")]
            if local and len(bound) == len(local):
                return self.defined(file, local[-1].node)
            if not bound and file.names.top.stars:
                return self._starred(file, node.id)
            if len(bound) == 1 and bound[0].kind == "assign" and isinstance(bound[0].value, (ast.Name, ast.Attribute)) and file.names.dotted(bound[0].value):
                return None  # an alias: a value, not the thing itself
        name = file.names.dotted(node)
        if name is None and isinstance(node, ast.Attribute):
            return self._attribute(file, node)
        if name and isinstance(node, ast.Attribute) and self.boundary.of(name) and isinstance(self.resolve(file, node.value), Row):
            return None  # an attribute of what stands in for something of a library
        return self.named(name) if name else None

    def _starred(self, file: FileInfo, name: str) -> "ClassInfo | FunctionInfo | Row | str | None":
        """What a name means that only star imports can bind: a definition or an import of a local module, or PyTorch's."""
        for dotted in file.names.candidates(name):
            found = self.named(dotted)
            if not isinstance(found, str):
                return found
        carried = self.carried(file, name)
        return self.named(carried) if carried else self.by_star(file, name)

    def carried(self, file: FileInfo, name: str, depth: int = 0) -> str | None:
        """The foreign thing that a local module imports under a name, where a star import of that module hands it on."""
        for star in file.names.top.stars:
            inner = self.files.get(star)
            if inner is None or name.startswith("_") or "__all__" in inner.names.top.bindings or depth > 20:
                continue
            bound = inner.names.top.bindings.get(name, [])
            if bound and all(b.kind == "import" for b in bound):
                return bound[0].dotted
            if not bound and (found := self.carried(inner, name, depth + 1)):
                return found
        return None

    def by_star(self, file: FileInfo, name: str) -> str | None:
        """A name that only star imports of PyTorch can bind, or a builtin; None where another module may bind it."""
        stars = file.names.top.stars
        ours = [s for s in stars if s == "torch" or s.startswith("torch.")]
        if any(s not in ours and s not in self.files for s in stars):
            return None
        if not ours:
            return f"builtins.{name}" if name in BUILTINS else None
        known = [c for c in (self.canonical(f"{s}.{name}") for s in ours) if c in CONTAINERS or c in MODULE_BASES.values()]
        return known[0] if known else f"builtins.{name}" if name in BUILTINS else self.canonical(f"{ours[0]}.{name}")

    def _attribute(self, file: FileInfo, node: ast.Attribute) -> "ClassInfo | FunctionInfo | Row | str | None":
        """`Outer.Inner` or `Class.method`; `functional.relu` after `from torch.nn import *`."""
        outer = self.resolve(file, node.value) if isinstance(node.value, (ast.Name, ast.Attribute)) else None
        if isinstance(outer, str) and (outer == "torch" or outer.startswith("torch.")):
            return self.named(f"{outer}.{node.attr}")
        if not isinstance(outer, ClassInfo):
            return None
        if node.attr in outer.methods:
            return outer.methods[node.attr]
        return next((c for c in outer.file.classes if outer.file.source.parents.get(c.node) is outer.node and c.name == node.attr), None)

    def named(self, dotted: str, depth: int = 0) -> "ClassInfo | FunctionInfo | Row | str":
        """What a full dotted name means; re-exports are followed."""
        dotted = self.homes.get(dotted, dotted)
        module, _, name = dotted.rpartition(".")
        file = self.files.get(module)
        if file is not None and name and depth < 20:
            bound = file.names.top.bindings.get(name, [])
            imported = [b for b in bound if b.kind == "import"]
            if imported and len(imported) < len(bound) and all(b.kind == "import" or file.names.guarded(b) for b in bound):
                found = self.named(imported[0].dotted, depth + 1)
                if isinstance(found, Row):
                    return found  # PyTorch's own; what stands beside it is for versions that lack it
            for b in reversed(bound):
                if b.kind in ("class", "function"):
                    return self.defined(file, b.node) or dotted
                if b.kind == "import" and b.dotted != dotted:
                    return self.named(b.dotted, depth + 1)
            if not bound:
                for star in file.names.top.stars:
                    found = self.named(f"{star}.{name}", depth + 1)
                    if not isinstance(found, str):
                        return found
        canonical = self.canonical(dotted)
        return self.table.get(canonical) or self._unbound(canonical) or canonical

    def _unbound(self, canonical: str) -> Row | None:
        """The operator that `torch.Tensor.relu` is, a method that is named by its class."""
        name = canonical.removeprefix("torch.Tensor.")
        row = self.table.by_method.get(name) if name != canonical else None
        return row if row is not None and row.kind == "function" and not row.torch.startswith("torch.Tensor.") else None

    def canonical(self, dotted: str) -> str:
        """`torch.nn.modules.conv.Conv2d` is `torch.nn.Conv2d`."""
        if dotted.startswith("torch.nn.modules."):
            dotted = f"torch.nn.{dotted.rpartition('.')[2]}"
        dotted = self.boundary.short(self.homes.get(dotted, dotted))
        return MODULE_BASES.get(dotted, dotted)


def _index(file: FileInfo) -> None:
    """Finds the classes and functions of a file, nested ones included."""
    stack: list[tuple[ast.AST, ClassInfo | None]] = [(file.source.tree, None)]
    while stack:
        node, owner = stack.pop()
        for child in children(node):
            if isinstance(child, ast.ClassDef):
                info = ClassInfo(child.name, child, file, f"{file.module}.{child.name}" if file.module else child.name)
                file.classes.append(info)
                file.by_node[child] = info
                _class_body(info)
                stack.append((child, info))
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                function = FunctionInfo(child.name, child, file, owner)
                file.functions.append(function)
                file.by_node[child] = function
                if owner is not None:
                    owner.methods[child.name] = function
                    _attributes(owner, function)
                stack.append((child, None))
            elif isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                stack.append((child, owner))
    file.classes.sort(key=lambda c: (c.node.lineno, c.node.col_offset))
    file.functions.sort(key=lambda f: (f.node.lineno, f.node.col_offset))


def _class_body(info: ClassInfo) -> None:
    for s in info.node.body:
        if isinstance(s, ast.Assign):
            for t in s.targets:
                if isinstance(t, ast.Name):
                    info.body[t.id] = s.value
        elif isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
            info.annotations[s.target.id] = s.annotation
            if s.value is not None:
                info.body[s.target.id] = s.value


def _attributes(owner: ClassInfo, method: FunctionInfo) -> None:
    """Records `self.x = ...` of a method, its nested functions included."""
    name = method.self_name
    if name is None:
        return
    parents = owner.file.source.parents
    nodes = walk(method.node)
    wrappers = _wrappers(nodes, name)
    for node in nodes:
        if isinstance(node, ast.Call):
            if registered := _registers(node, name, wrappers):
                owner.attributes.setdefault(registered, []).append(Assignment(method, node, None, owner.file.source.statement(node)))
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name) and node.value.id == name:
            parent = parents[node]
            value = None
            if isinstance(parent, ast.Assign) and node in parent.targets or isinstance(parent, ast.AnnAssign):
                value = parent.value
            elif isinstance(parent, ast.Tuple) and isinstance(up := parents[parent], ast.Assign) and isinstance(up.value, ast.Tuple):
                value = up.value.elts[parent.elts.index(node)] if len(up.value.elts) == len(parent.elts) else None
            owner.attributes.setdefault(node.attr, []).append(Assignment(method, node, value, owner.file.source.statement(node)))


REGISTERS = ("register_buffer", "register_parameter", "add_module", "register_module")


def _wrappers(nodes: list[ast.AST], self_name: str) -> set[str]:
    """Local names of lambdas that register what they are given: `buffer = lambda name, x: self.register_buffer(name, x)`."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and isinstance(body := node.value.body, ast.Call):
            f = body.func
            if isinstance(f, ast.Attribute) and f.attr in REGISTERS and isinstance(f.value,
                ast.Name) and f.value.id == self_name and body.args and isinstance(body.args[0], ast.Name):
                found.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return found


def _registers(node: ast.Call, self_name: str, wrappers: set[str]) -> str | None:
    """The attribute that `self.register_buffer("name", ...)` and its like make."""
    f = node.func
    if isinstance(f, ast.Attribute):
        if f.attr not in REGISTERS or not (isinstance(f.value, ast.Name) and f.value.id == self_name):
            return None
    elif not (isinstance(f, ast.Name) and f.id in wrappers):
        return None
    first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "name"), None)
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
