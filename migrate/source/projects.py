"""Finds the local modules that a file reaches, and which of their definitions are needed."""
import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from migrate import libraries
from migrate.libraries import Boundary, Library
from migrate.source.free import own_names
from migrate.source.installed import folder_of
from migrate.source.modules import MODULE_BASES
from migrate.source.text import Source, SourceError, children, walk
from migrate.source.text import read as read_text

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(eq=False)
class Module:
    """A local module: its top-level statements by the names they bind, and what is needed of it. `whole`: all of it."""

    name: str
    path: Path
    source: Source
    package: bool
    whole: bool = False
    needed: set[str] = field(default_factory=set)
    kept: set[ast.stmt] = field(default_factory=set)
    live: set[ast.stmt] = field(default_factory=set)  # of them, what a class needs
    binders: dict[str, list[ast.stmt]] = field(default_factory=dict)
    touchers: dict[str, list[ast.stmt]] = field(default_factory=dict)  # statements that change what a name holds
    stars: list[str] = field(default_factory=list)

    @property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return self.source.tree

    @cached_property
    def nested(self) -> dict[str, str]:
        """What the imports inside functions and other statements bind, to what; the outermost import of a name counts."""
        found: dict[str, str] = {}
        for node in walk(self.tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for name, dotted in _imports(self, node):
                    found.setdefault(name, dotted)
        return found

    def absolute(self, module: str | None, level: int) -> str:
        """The dotted name of a relative import."""
        if not level:
            return module or ""
        base = self.name.split(".") if self.package else self.name.split(".")[:-1]
        base = base[: len(base) - (level - 1)] if level > 1 else base
        return ".".join([*base, *([module] if module else [])])


class Reach:
    """Follows names through imports, from files that are needed whole."""

    def __init__(
        self, roots: Iterable[Path], known: Collection[str] = (), texts: Mapping[Path, bytes] | None = None, installed: bool = True, boundary: Boundary | None = None,
        hands_on: bool = True,
    ) -> None:
        self.boundary = boundary or libraries.standard()
        self.homes: dict[str, str] = {}  # names that a package of a library hands out when asked, with the full names
        self.texts = texts or {}  # what stands for the content of some files
        self.hands_on = hands_on  # whether what files hand on by star imports is needed: not where that is converted for itself
        self.installed = installed  # whether libraries of the environment that build on PyTorch count as local
        self.roots = [r.resolve() for r in roots]
        self.known = frozenset(known)  # libraries that the tables cover
        self.modules: dict[str, Module] = {}
        self.unreadable: dict[Path, SourceError] = {}
        self._missing: set[str] = set()
        self._folders: dict[tuple[Path, str], bool] = {}
        self._found: dict[str, Path | None] = {}
        self._definers: dict[str, dict[str, str]] = {}
        self._auto: set[str] = set()  # what makes the model of any configuration
        self._todo: list[tuple[Module, str]] = []
        self._seen: set[tuple[str, str, bool]] = set()
        self.reflected: set[str] = set()  # names that are looked up in modules found at run time
        self._live = False  # what is looked at now is needed by a class
        self._followed: set[str] = set()  # installed libraries that classes need

    def add(self, path: Path, name: str) -> None:
        """Needs a file whole."""
        module = self._load(name, path)
        if module is None:
            return
        module.whole = True
        for s in module.tree.body:
            self._keep(module, s)
        self._models_of_configurations()
        self._drain()

    def find(self, dotted: str) -> Path | None:
        """The file of a local module, None where it is not local."""
        if dotted not in self._found:
            self._found[dotted] = self._search(dotted)
        return self._found[dotted]

    def _search(self, dotted: str) -> Path | None:
        above = dotted.rpartition(".")[0]
        for root in self.roots:
            if above and not self._is_folder(root, above):
                continue
            base = root.joinpath(*dotted.split("."))
            for path in (base / "__init__.py", base.with_suffix(".py"))[self.boundary.of(dotted) is not None :]:
                if path.is_file():
                    return path
        return None

    def _in_environment(self, dotted: str) -> Path | None:
        """The file of a module of an installed library that builds on PyTorch, where a class needs it."""
        top = dotted.partition(".")[0]
        known = top in self.known and top not in self.boundary.libraries
        folder = folder_of(top) if self.installed and not known and (self._live or top in self._followed) else None
        if folder is None:
            return None
        self._followed.add(top)
        base = folder.joinpath(*dotted.split("."))
        files = (base / "__init__.py", base.with_suffix(".py"))[self.boundary.of(dotted) is not None :]
        return next((p for p in files if p.is_file()), None)

    def home_of(self, package: str, name: str) -> str:
        """The full name of what a package of a library hands out under a name; packages of libraries are not read, as they import when asked."""
        dotted = f"{package}.{name}"
        library = self.boundary.of(package)
        if dotted not in self.homes and library is not None:
            found = self._defining(library, package).get(name, "")
            self.homes[dotted] = f"{found}.{name}" if found else dotted
        return self.homes.get(dotted, dotted)

    def _defining(self, library: Library, package: str) -> dict[str, str]:
        """The public names that the converted modules of a package define, with the module that does."""
        if package in self._definers:
            return self._definers[package]
        found = self._definers[package] = {}
        for root in [*self.roots, *([folder_of(library.name)] if self.installed and folder_of(library.name) else [])]:
            folder = root.joinpath(*package.split("."))  # type: ignore[union-attr]
            for path in sorted(folder.rglob("*.py")):
                module = ".".join([package, *path.relative_to(folder).with_suffix("").parts])
                if path.name != "__init__.py" and not path.name.startswith(library.skipped) and library.converts(module):
                    text = path.read_text(encoding="utf-8", errors="replace")
                    listed = re.search(r"^__all__ = \[(.*?)\]", text, re.M | re.S)
                    names = re.findall(r"[\"'](\w+)[\"']", listed[1]) if listed else re.findall(r"^(?:class|def) (\w+)", text, re.M)
                    for n in names:
                        if listed or n not in found:
                            found[n] = module
            if found:
                break
        return found

    def is_namespace(self, dotted: str) -> bool:
        """A local folder without an `__init__`."""
        return any(self._is_folder(root, dotted) for root in self.roots)

    def _is_folder(self, root: Path, dotted: str) -> bool:
        """Asked once of each: the same few folders are asked for again and again."""
        if (root, dotted) not in self._folders:
            above = dotted.rpartition(".")[0]
            self._folders[root, dotted] = not above or self._is_folder(root, above)
            if self._folders[root, dotted]:
                self._folders[root, dotted] = root.joinpath(*dotted.split(".")).is_dir()
        return self._folders[root, dotted]

    def get(self, dotted: str) -> Module | None:
        """A local module, read when first asked for."""
        if dotted in self.modules:
            return self.modules[dotted]
        if self.boundary.outside(dotted):
            return None
        path = self.find(dotted) or self._in_environment(dotted)
        return self._load(dotted, path) if path is not None else None

    def _load(self, name: str, path: Path) -> Module | None:
        if name in self.modules:
            return self.modules[name]
        try:
            source = read_text(self.bytes(path), str(path))
        except SourceError as e:
            self.unreadable[path] = e
            self._found[name] = None
            return None
        module = Module(name, path, source, path.name == "__init__.py")
        for s in source.tree.body:
            for bound in _binds(s):
                module.binders.setdefault(bound, []).append(s)
            for touched in _touches(s):
                module.touchers.setdefault(touched, []).append(s)
            for star in _stars(s):
                module.stars.append(module.absolute(star.module, star.level))
        self.modules[name] = module
        parent = name.rpartition(".")[0]
        if parent and self.boundary.of(name) is None:
            self.get(parent)
        return module

    def bytes(self, path: Path) -> bytes:
        """The content of a file."""
        return self.texts[path] if path in self.texts else path.read_bytes()

    def need(self, module: Module, name: str) -> bool:
        """Needs one name of a module. False where the module does not have it."""
        if (module.name, name, True) in self._seen or (module.name, name, self._live) in self._seen:
            return name in module.needed
        if f"{module.name}.{name}" in MODULE_BASES or self.boundary.outside(f"{module.name}.{name}"):
            return True  # as good as torch.nn.Module, or replaced
        self._seen.add((module.name, name, self._live))
        statements = module.binders.get(name)
        if statements:
            first = not module.needed
            module.needed.add(name)
            if first:
                self._keep_registrations(module)
                for wanted in sorted(self.reflected & module.binders.keys()):
                    self.need(module, wanted)
            imported = all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in statements)
            touchers = [s for s in module.touchers.get(name, ()) if not (imported and isinstance(s, DEFINITIONS))]
            for s in [*statements, *touchers]:
                self._todo.append((module, name))
                self._keep(module, s, name)
            return True
        for star in sorted(module.stars, key=lambda s: not self._surely(s, name, set())):  # those that have it before those that may
            inner = self.get(star)
            if inner is not None and self.need(inner, name):
                module.needed.add(name)
                module.kept.update(s for s in module.tree.body if any(module.absolute(x.module, x.level) == star for x in _stars(s)))
                return True
        if self.get(f"{module.name}.{name}") is not None:
            return True
        foreign = {star for star in module.stars if self.get(star) is None and not star.startswith("torch")}
        if foreign and not hasattr(builtins, name):  # it may come from there
            module.needed.add(name)
            module.kept.update(s for s in module.tree.body if any(module.absolute(x.module, x.level) in foreign for x in _stars(s)))
            return True
        if "__getattr__" in module.binders:
            self.need(module, "__getattr__")
        return False

    def _surely(self, dotted: str, name: str, seen: set[str]) -> bool:
        """Whether a local module binds a name, or hands it on from one that does."""
        module = self.get(dotted) if dotted not in seen else None
        seen.add(dotted)
        return module is not None and (name in module.binders or any(self._surely(s, name, seen) for s in module.stars))

    def _keep_registrations(self, module: Module) -> None:
        """Keeps calls such as `register("conv", ConvBlock)`, that hand a class of the module to a function as it is imported."""
        for s in module.tree.body:
            if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Name):
                given = [a.id for a in [*s.value.args, *(k.value for k in s.value.keywords)] if isinstance(a, ast.Name)]
                if any(isinstance(b, ast.ClassDef) for a in given for b in module.binders.get(a, ())):
                    self._todo.append((module, s.value.func.id))
                    self._keep(module, s)

    def _models_of_configurations(self) -> None:
        """Where something makes the model of any configuration, the models of all configurations that are there are needed."""
        while ends := {end for name in self._auto for library in [self.boundary.of(name)] if library for end in [library.auto[name]]}:
            before = len(self._seen)
            for module in [m for m in self.modules.values() if ".configuration_" in m.name]:
                models = self.get(module.name.replace(".configuration_", ".modeling_"))
                for name in [n for n in module.needed if n.endswith("Config")]:
                    for end in ends if models is not None else ():
                        if f"{name.removesuffix('Config')}{end}" in models.binders:  # type: ignore[union-attr]
                            self.need(models, f"{name.removesuffix('Config')}{end}")  # type: ignore[arg-type]
            if len(self._seen) == before:
                return

    def _drain(self) -> None:
        self._todo.clear()

    def _keep(self, module: Module, s: ast.stmt, name: str | None = None) -> None:
        """Keeps a top-level statement, with all that it uses."""
        before = self._live
        self._live = before or isinstance(s, ast.ClassDef)
        if isinstance(s, (ast.Import, ast.ImportFrom)):
            self._import(module, s, name)
        elif s not in module.live and (self._live or s not in module.kept):
            module.live.update({s} if self._live else ())
            module.kept.add(s)
            self._follow(module, s)
        module.kept.add(s)
        self._live = before

    def _follow(self, module: Module, s: ast.stmt) -> None:
        """Needs what a statement uses."""
        nodes = walk(s)
        own = own_names(s) if self._may_hide(module, s, nodes) else set[ast.Name]()
        for node in _walk([s]):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(module, node, None)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in own:
                self._use(module, node.id)
            elif isinstance(node, (ast.Attribute, ast.Subscript)) and _is_globals(node.value):
                for bound in list(module.binders):  # a look-up by name: of anything that the module binds
                    self.need(module, bound)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier() and node.value in module.binders and module.whole:
                self._use(module, node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
                self._look_up(module, node.args[0], node.args[1])
        for attribute in _attributes(nodes):
            self._attribute(module, attribute)
        for wanted in sorted(_reflected(nodes) - self.reflected):
            self.reflected.add(wanted)
            for other in [m for m in self.modules.values() if m.needed and wanted in m.binders]:
                self.need(other, wanted)

    def _look_up(self, module: Module, holder: ast.expr, name: ast.expr) -> None:
        """Needs what `getattr(layers, name)` may give, where `layers` is a local module: any class or function that it defines."""
        path = ast.unparse(holder).split(".") if isinstance(holder, (ast.Name, ast.Attribute)) else [""]
        target = self._module_of(module, path[0])
        for part in path[1:]:
            target = self.get(f"{target.name}.{part}") if target is not None else None
        if target is None:
            return
        known = name.value if isinstance(name, ast.Constant) else None
        for bound, statements in list(target.binders.items()):
            if bound == known or known is None and all(isinstance(b, DEFINITIONS) for b in statements):
                self.need(target, bound)

    def _may_hide(self, module: Module, s: ast.stmt, nodes: list[ast.AST]) -> bool:
        """Whether something within a statement has the name of something of the module; what else is used is needed by no name."""
        binders = module.binders
        if module.stars or module.package or "__getattr__" in binders or self.is_namespace(module.name):
            return True
        if not isinstance(s, DEFINITIONS):
            return True
        return any(name in binders for n in nodes if n.__class__ in HIDING and n is not s for name in _bound_by(n))

    def _use(self, module: Module, name: str) -> None:
        self.need(module, name)

    def _import(self, module: Module, node: ast.Import | ast.ImportFrom, name: str | None) -> None:
        """Needs what an import statement binds (only `name`, where given)."""
        if isinstance(node, ast.Import):
            for a in node.names:
                bound = a.asname or a.name.partition(".")[0]
                if name is None or bound == name:
                    self.get(a.name)
            return
        base = module.absolute(node.module, node.level)
        for a in node.names:
            bound = a.asname or a.name
            if name is not None and bound != name and a.name != "*":
                continue
            source = self.get(base)
            if source is None and self.boundary.of(base) is not None and self._need_home(base, a.name):
                continue
            short = self.boundary.short(f"{base}.{a.name}")
            if (library := self.boundary.of(short)) is not None and short in library.auto:
                self._auto.add(short)
            if a.name == "*":
                if source is not None and module.whole and self.hands_on:
                    self._everything(source)
            elif source is not None:
                self.need(source, a.name)
            elif self.is_namespace(base):
                self.get(f"{base}.{a.name}")

    def _need_home(self, package: str, name: str) -> bool:
        """Needs what a package of a library hands out. False where that is not a definition of a converted module."""
        home, _, last = self.home_of(package, name).rpartition(".")
        module = self.get(home) if home != package else None
        return module is not None and self.need(module, last)

    def _everything(self, module: Module) -> None:
        for name in list(module.binders):
            if not name.startswith("_"):
                self.need(module, name)
        for star in module.stars:
            inner = self.get(star)
            if inner is not None:
                self._everything(inner)
                module.kept.update(s for s in module.tree.body if list(_stars(s)))

    def _attribute(self, module: Module, node: ast.Attribute) -> None:
        """`layers.Block` where `layers` is a local module."""
        path = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            path.append(at.attr)
            at = at.value
        if not isinstance(at, ast.Name):
            return
        target = self._module_of(module, at.id)
        if target is None:
            dotted = next((d for s in module.binders.get(at.id, ()) for bound, d in _imports(module, s) if bound == at.id), "")
            if self.boundary.of(dotted) is not None:
                self._need_home(dotted, path[-1])
            return
        for i, name in enumerate(reversed(path)):
            inner = self.get(f"{target.name}.{name}")
            if inner is not None and all(isinstance(b, (ast.Import, ast.ImportFrom)) for b in target.binders.get(name, ())):
                self.need(target, name)
                if name not in target.binders:
                    self._keep_loading(module, target, inner.name, path[-i - 2] if i + 1 < len(path) else "")
                target = inner
                continue
            self.need(target, name)
            return

    def _keep_loading(self, module: Module, package: Module, inner: str, wanted: str) -> None:
        """Keeps an import of a package that loads one of its modules, where `package.inner` is used and only that import makes it an attribute."""
        if any(isinstance(s, ast.Import) and any(f"{a.name}.".startswith(f"{inner}.") for a in s.names) for s in module.tree.body):
            return
        found = [s for s in package.tree.body if isinstance(s, ast.ImportFrom) and package.absolute(s.module, s.level) == inner]
        bound = [a.asname or a.name for s in found for a in s.names if a.name != "*"]
        if bound:
            self.need(package, wanted if wanted in bound else bound[0])

    def _module_of(self, module: Module, name: str) -> Module | None:
        """The local module that a name of a module is bound to."""
        if name not in module.binders:
            dotted = module.nested.get(name)
            return self.get(dotted) if dotted else None
        return next((self.get(dotted) for s in module.binders[name] for bound, dotted in _imports(module, s) if bound == name), None)


HIDING = frozenset(
    {ast.Name, ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping}
)


def _bound_by(n: ast.AST) -> Iterator[str]:
    """The names that a node itself binds."""
    match n:
        case ast.Name():
            if not isinstance(n.ctx, ast.Load):
                yield n.id
        case ast.arg():
            yield n.arg
        case ast.alias():
            yield (n.asname or n.name).partition(".")[0]
        case ast.MatchMapping():
            yield n.rest or ""
        case _:
            yield getattr(n, "name", None) or ""


def _imports(module: Module, s: ast.AST) -> Iterator[tuple[str, str]]:
    """(name, dotted name of what may be a module) for what an import statement binds."""
    if isinstance(s, ast.Import):
        for a in s.names:
            first = a.name.partition(".")[0]
            yield a.asname or first, a.name if a.asname else first
    elif isinstance(s, ast.ImportFrom):
        base = module.absolute(s.module, s.level)
        for a in s.names:
            yield a.asname or a.name, f"{base}.{a.name}" if base else a.name


def _walk(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    stack: list[ast.AST] = list(statements)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            stack += [node.test, *node.orelse]
            continue
        yield node
        stack += children(node)


def _is_globals(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "globals" and not node.args


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING" or isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"


def _attributes(nodes: list[ast.AST]) -> Iterator[ast.Attribute]:
    """The outermost attribute chains of a statement, given by its nodes."""
    found = [n for n in nodes if isinstance(n, ast.Attribute)]
    inner = {id(n.value) for n in found}
    return (n for n in found if id(n) not in inner)


def _binds(s: ast.stmt) -> Iterator[str]:
    """The names that a top-level statement binds."""
    match s:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield s.name
        case ast.Import():
            yield from (a.asname or a.name.partition(".")[0] for a in s.names)
        case ast.ImportFrom():
            yield from (a.asname or a.name for a in s.names if a.name != "*")
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.With():
            for n in ast.walk(s):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    yield n.id
        case ast.If() if _is_type_checking(s.test):
            for inner in s.orelse:
                yield from _binds(inner)
        case ast.If() | ast.Try() | ast.While():
            for inner in [*s.body, *s.orelse, *getattr(s, "finalbody", ())]:
                yield from _binds(inner)
            for h in getattr(s, "handlers", ()):
                for inner in h.body:
                    yield from _binds(inner)


def _touches(s: ast.stmt) -> Iterator[str]:
    """Names whose value a statement changes: `table["x"] = f`, `names.append(y)`, `Class.attribute = z`, `@table.register("x")`."""
    targets: list[ast.expr] = []
    if isinstance(s, ast.Assign):
        targets = s.targets
    elif isinstance(s, ast.AugAssign):
        targets = [s.target]
    elif isinstance(s, DEFINITIONS):
        targets = [d.func if isinstance(d, ast.Call) else d for d in s.decorator_list]
    elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Attribute):
        targets = [s.value.func]
    for t in targets:
        at = t
        while isinstance(at, (ast.Attribute, ast.Subscript)):
            at = at.value
        if isinstance(at, ast.Name) and at is not t:
            yield at.id


def _reflected(nodes: list[ast.AST]) -> set[str]:
    """Names that a statement, given by its nodes, looks up in whatever module `sys.modules[...]` gives it: `module.default_config`."""
    held = {
        t.id for n in nodes if isinstance(n, ast.Assign) and isinstance(n.value, ast.Subscript) and isinstance(n.value.value,
        ast.Attribute) and n.value.value.attr == "modules"
        and isinstance(n.value.value.value, ast.Name) and n.value.value.value.id == "sys" for t in n.targets if isinstance(t, ast.Name)
    }
    found = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in held} if held else set()
    return {name for name in found if not name.startswith("__")}


BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.ExceptHandler, ast.Match, ast.match_case, ast.TryStar)


def _stars(s: ast.stmt) -> Iterator[ast.ImportFrom]:
    """The star imports of a top-level statement: those of a function or class are no Python."""
    stack: list[ast.AST] = [s]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
            yield node
        elif isinstance(node, BLOCKS):
            stack.extend(c for c in ast.iter_child_nodes(node) if isinstance(c, (ast.stmt, *BLOCKS)))
