"""Scopes of a file, and the dotted name that an expression means: identity by what a name is bound to, never by its spelling."""
import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

from migrate.source.text import Source, children

BUILTINS = frozenset(dir(builtins))
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Nodes that bind names or open a scope; all others only hold nodes.
BINDING = frozenset(
    {*SCOPES, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Name, ast.NamedExpr, ast.ExceptHandler, ast.MatchAs, ast.MatchStar}
)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Binding:
    """One place that binds a name. `kind`: import, function, class, parameter, assign, loop, other. `dotted` is an import's full name."""

    kind: str
    node: ast.AST
    dotted: str = ""
    value: ast.expr | None = None


@dataclass(eq=False)
class Scope:
    """A module, class, function, lambda or comprehension with the names that it binds."""

    node: ast.AST
    parent: "Scope | None"
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)  # declared global or nonlocal
    stars: list[str] = field(default_factory=list)

    @property
    def is_class(self) -> bool:
        """Names of a class body are not seen from its methods."""
        return isinstance(self.node, ast.ClassDef)

    def bind(self, name: str, binding: Binding) -> None:
        """Records a binding."""
        self.bindings.setdefault(name, []).append(binding)

    def lookup(self, name: str) -> "tuple[Scope, list[Binding]] | None":
        """The scope that binds a name as seen from here, with the bindings."""
        at: Scope | None = self
        while at is not None:
            if name in at.bindings and name not in at.outer and (at is self or not at.is_class):
                return at, at.bindings[name]
            at = at.parent
        return None


class Names:
    """The scopes of one file. `module` is its dotted name, for relative imports."""

    def __init__(self, source: Source, module: str = "", package: bool = False) -> None:
        self.source = source
        self.module = module
        self.package = module if package else module.rpartition(".")[0]
        self.top = Scope(source.tree, None)
        self.scopes: dict[ast.AST, Scope] = {source.tree: self.top}
        self._at: dict[ast.AST, Scope] = {}
        self._visit_all(source.tree.body, self.top)

    def scope(self, node: ast.AST) -> Scope:
        """The scope that a node stands in."""
        found = self._at.get(node)
        while found is None:
            node = self.source.parents[node]
            found = self.scopes.get(node) or self._at.get(node)
        return found

    def lookup(self, name: ast.Name) -> list[Binding]:
        """What a name may be bound to; empty for builtins and unknown names."""
        found = self.scope(name).lookup(name.id)
        return found[1] if found else []

    def dotted(self, node: ast.AST) -> str | None:
        """The full dotted name of an expression that is an imported name or an attribute of one; "builtins.len" for builtins."""
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base and not base.startswith("builtins.") else None
        if not isinstance(node, ast.Name):
            return None
        bound = self.lookup(node)
        imports = [b for b in bound if b.kind == "import"]
        if imports and all(b.kind == "import" or self.guarded(b) for b in bound):
            return imports[0].dotted
        if not bound and node.id in BUILTINS and not self.top.stars:
            return f"builtins.{node.id}"
        return None

    def candidates(self, name: str) -> list[str]:
        """Where a name that nothing binds may come from, by star imports."""
        return [f"{star}.{name}" for star in self.top.stars]

    def guarded(self, binding: Binding) -> bool:
        """A fallback such as `x = None` beside an import in `try`."""
        return binding.kind in ("assign", "function", "class") and any(
            isinstance(p, (ast.Try, ast.If)) for p in self._ancestors(binding.node)
        )

    def _ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        at = self.source.parents.get(node)
        while at is not None:
            yield at
            at = self.source.parents.get(at)

    def absolute(self, module: str | None, level: int) -> str:
        """The dotted name of `from ..module import`."""
        if not level:
            return module or ""
        base = self.package.split(".") if self.package else []
        base = base[: len(base) - (level - 1)] if level > 1 else base
        return ".".join([*base, *([module] if module else [])])

    def _visit_all(self, nodes: list[ast.stmt] | list[ast.expr], scope: Scope) -> None:
        for node in nodes:
            self._visit(node, scope)

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        self._at[node] = scope
        if node.__class__ not in BINDING:
            for child in children(node):
                self._visit(child, scope)
            return
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope.bind(node.name, Binding("function", node))
                self._function(node, scope)
            case ast.ClassDef():
                scope.bind(node.name, Binding("class", node))
                self._visit_all([*node.decorator_list, *node.bases, *(k.value for k in node.keywords)], scope)
                self._visit_all(node.body, self._enter(node, scope))
            case ast.Lambda():
                self._function(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node, scope)
            case ast.Import() | ast.ImportFrom():
                self._import(node, scope)
            case ast.Global() | ast.Nonlocal():
                scope.outer.update(node.names)
            case ast.Name():
                if not isinstance(node.ctx, ast.Load):
                    scope.bind(node.id, Binding("assign", node, value=self._value(node)))
            case ast.NamedExpr():
                outer = scope
                while isinstance(outer.node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)) and outer.parent:
                    outer = outer.parent
                outer.bind(node.target.id, Binding("assign", node.target, value=node.value))
                self._at[node.target] = scope
                self._visit(node.value, scope)
            case ast.ExceptHandler():
                if node.name:
                    scope.bind(node.name, Binding("other", node))
                self._children(node, scope)
            case ast.MatchAs() | ast.MatchStar():
                if node.name:
                    scope.bind(node.name, Binding("other", node))
                self._children(node, scope)

    def _children(self, node: ast.AST, scope: Scope) -> None:
        for child in children(node):
            self._visit(child, scope)

    def _value(self, name: ast.Name) -> ast.expr | None:
        parent = self.source.parents.get(name)
        if isinstance(parent, ast.Assign) and name in parent.targets:
            return parent.value
        return parent.value if isinstance(parent, ast.AnnAssign) else None

    def _enter(self, node: ast.AST, scope: Scope) -> Scope:
        inner = Scope(node, scope)
        self.scopes[node] = inner
        return inner

    def _function(self, node: FunctionNode | ast.Lambda, scope: Scope) -> None:
        a = node.args
        every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *([a.vararg] if a.vararg else []), *([a.kwarg] if a.kwarg else [])]
        self._visit_all([d for d in [*a.defaults, *a.kw_defaults, *(p.annotation for p in every)] if d is not None], scope)
        if not isinstance(node, ast.Lambda):
            self._visit_all([*node.decorator_list, *([node.returns] if node.returns else [])], scope)
        inner = self._enter(node, scope)
        for p in every:
            inner.bind(p.arg, Binding("parameter", p))
            self._at[p] = inner
        if isinstance(node, ast.Lambda):
            self._visit(node.body, inner)
        else:
            self._visit_all(node.body, inner)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope) -> None:
        inner = self._enter(node, scope)
        for i, g in enumerate(node.generators):
            self._visit(g.iter, scope if i == 0 else inner)
            self._visit(g.target, inner)
            self._visit_all(g.ifs, inner)
        self._visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], inner)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        if isinstance(node, ast.Import):
            for a in node.names:
                dotted = a.name if a.asname else a.name.partition(".")[0]
                scope.bind(a.asname or dotted, Binding("import", node, dotted))
            return
        base = self.absolute(node.module, node.level)
        for a in node.names:
            if a.name == "*":
                self.top.stars.append(base)
            else:
                scope.bind(a.asname or a.name, Binding("import", node, f"{base}.{a.name}" if base else a.name))
