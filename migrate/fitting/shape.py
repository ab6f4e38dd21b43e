"""What the support definitions are made of: their parameters, their bases, and which parameters decide something."""
import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from migrate.fitting.uses import Uses
from migrate.fitting.values import nodes_of, pairs

Place = tuple[str, int | None, ast.expr | None]  # a parameter: its name, its position, its default


@cache
def parsed(text: str) -> ast.stmt:
    """The definition that a text is."""
    return ast.parse(text).body[0]


def function_of(node: ast.stmt) -> ast.FunctionDef | None:
    """The function itself, or the constructor of a class."""
    if isinstance(node, ast.ClassDef):
        return next((m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
    return node if isinstance(node, ast.FunctionDef) else None


def parameters(function: ast.FunctionDef, method: bool) -> list[Place]:
    """The parameters of a function, but for stars and for a method's object."""
    a = function.args
    plain = [*a.posonlyargs, *a.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(a.defaults)), *a.defaults]
    found: list[Place] = [(p.arg, i - method, d) for i, (p, d) in enumerate(zip(plain, defaults, strict=True))]
    return found[method:] + [(p.arg, None, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]


def is_super(call: ast.AST) -> bool:
    """`super().__init__(...)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr="__init__")):
            return True
    return False


def passed(call: ast.Call, places: list[Place]) -> Iterator[tuple[str, ast.expr]]:
    """(parameter, argument) of a call."""
    by_position = {i: p for p, i, _ in places if i is not None}
    yield from ((by_position[i], a) for i, a in enumerate(call.args) if i in by_position)
    yield from ((k.arg, k.value) for k in call.keywords if k.arg)


def is_own(e: ast.AST) -> bool:
    """`self.name`"""
    return isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name) and e.value.id == "self"


@dataclass(eq=False)
class Families:
    """The definitions by name, with the classes' bases. `words`: the uses by the code that they are for; `roots`: what that names."""

    nodes: Mapping[str, ast.stmt]
    words: Collection[str]
    roots: Collection[str]

    @cached_property
    def absent(self) -> set[str]:
        """The classes that only `isinstance` names: there is no instance of them."""
        found: set[str] = set()
        stack = list(self.roots)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack += [n.id for n in uses_in(self.nodes[name]) if n.id in self.nodes]
        return {n for n, d in self.nodes.items() if isinstance(d, ast.ClassDef) and n not in found}

    @cached_property
    def bases(self) -> dict[str, str]:
        """class -> its base among the definitions."""
        return {n: b.id for n, c in self.nodes.items() if isinstance(c, ast.ClassDef) for b in c.bases if isinstance(b, ast.Name) and b.id in self.nodes}

    def root(self, name: str) -> str:
        """The topmost class among the definitions."""
        return self.root(self.bases[name]) if name in self.bases else name

    def is_plain(self, name: str) -> bool:
        """A class that nothing of Flax's looks into: its topmost base is `nnx.Module`."""
        node = self.nodes[self.root(name)]
        return isinstance(node, ast.ClassDef) and [ast.unparse(b) for b in node.bases] == ["nnx.Module"]

    def owner(self, name: str) -> str:
        """What takes the arguments of a call: the function, or the class whose constructor that is."""
        while function_of(self.nodes[name]) is None and name in self.bases:
            name = self.bases[name]
        return name

    def places(self, name: str) -> list[Place]:
        """The parameters of what a call of `name` calls."""
        node = self.nodes[self.owner(name)]
        function = function_of(node)
        return parameters(function, isinstance(node, ast.ClassDef)) if function else []

    def called(self, call: ast.Call, inside: str) -> str | None:
        """The definition whose function or constructor takes the arguments of a call within the definition `inside`."""
        if isinstance(call.func, ast.Name) and call.func.id in self.nodes:
            return self.owner(call.func.id)
        return self.owner(self.bases[inside]) if is_super(call) and inside in self.bases else None

    @cached_property
    def names(self) -> dict[str, set[str]]:
        """definition -> the others that it names."""
        return {n: set(names_in(d) & self.nodes.keys()) for n, d in self.nodes.items()}

    def calls_itself(self, name: str) -> bool:
        """Whether a definition names itself."""
        return name in self.names[name]

    def callers_first(self) -> list[str]:
        """The definitions, each after those that name it; of those that name each other, any goes first."""
        users: dict[str, set[str]] = defaultdict(set)
        for n, named in self.names.items():
            for m in named - {n}:
                users[m].add(n)
        order: list[str] = []
        waiting = list(self.nodes)
        while waiting:
            ready = [n for n in waiting if not users[n] - set(order)] or waiting[-1:]
            order += ready
            waiting = [n for n in waiting if n not in ready]
        return order

    @cached_property
    def written(self) -> dict[str, list[tuple[str, ast.Attribute]]]:
        """attribute -> (definition, target) where the definitions assign it."""
        found: dict[str, list[tuple[str, ast.Attribute]]] = defaultdict(list)
        for n, d in self.nodes.items():
            for x in _targets(d):
                found[x.attr].append((n, x))
        return found

    @cached_property
    def renamed(self) -> set[str]:
        """The attributes that have a second name."""
        return {name for d in self.nodes.values() for name in _renames(d)}

    def is_constant(self, name: str, attribute: str) -> bool:
        """Whether an attribute that a class's constructor assigns once keeps its value: nothing else of its family, and no code, assigns it."""
        if f"={attribute}" in self.words or "=*" in self.words or attribute in MODES or attribute in self.renamed:
            return False
        places = self.written[attribute]
        return all(is_own(x) for _, x in places) and [self.root(n) for n, _ in places].count(self.root(name)) == 1


MODES = frozenset({"deterministic", "use_running_average", "training"})  # what `train` and `eval` of Flax set


@cache
def _targets(tree: ast.AST) -> tuple[ast.Attribute, ...]:
    return tuple(x for x in nodes_of(tree) if isinstance(x, ast.Attribute) and not isinstance(x.ctx, ast.Load))


@cache
def _renames(tree: ast.AST) -> frozenset[str]:
    """What the calls of `renamed` in a tree name."""
    calls = [x for x in nodes_of(tree) if isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id == "renamed"]
    return frozenset(a.value for c in calls for a in c.args if isinstance(a, ast.Constant) and isinstance(a.value, str))


@cache
def names_in(tree: ast.AST) -> frozenset[str]:
    """All names in a tree."""
    return frozenset(n.id for n in nodes_of(tree) if isinstance(n, ast.Name))


@dataclass(eq=False)
class Decisive:
    """Which parameters decide, here or further down, whether some of the code is needed."""

    families: Families
    known: dict[tuple[str, str], bool] = field(default_factory=dict)

    def decides(self, name: str, parameter: str) -> bool:
        """Whether a parameter of a definition does."""
        return self._ask(name, parameter)

    def _ask(self, name: str, key: str) -> bool:
        if (name, key) not in self.known:
            self.known[name, key] = False
            self.known[name, key] = any(self._in(name, f, key) for f in self._functions(name, key))
        return self.known[name, key]

    def _functions(self, name: str, key: str) -> list[ast.AST]:
        node = self.families.nodes[name]
        if key.startswith("self."):
            kin = [d for n, d in self.families.nodes.items() if isinstance(d, ast.ClassDef) and self.families.root(n) == self.families.root(name)]
            return list(kin)
        return [f] if (f := function_of(node)) else []

    def _in(self, name: str, tree: ast.AST, key: str) -> bool:
        for n in nodes_of(tree):
            match n:
                case ast.If(test=test) | ast.While(test=test) if _mentions(test, key):
                    return True
                case ast.IfExp(test=test) if _mentions(test, key) and self._calls_support(n):
                    return True
                case ast.Call() if (called := self.families.called(n, name)) and self._passes_on(n, called, key):
                    return True
                case ast.Assign() if any(is_own(t) and _is(v, key) and self._ask(name, f"self.{t.attr}") for t, v in pairs(n)):  # type: ignore[attr-defined]
                    return True
        return False

    def _passes_on(self, call: ast.Call, called: str, key: str) -> bool:
        return any(_is(a, key) and self._ask(called, p) for p, a in passed(call, self.families.places(called)))

    def _calls_support(self, e: ast.expr) -> bool:
        return any(isinstance(n, ast.Name) and n.id in self.families.nodes for n in nodes_of(e))


def _is(e: ast.expr, key: str) -> bool:
    return isinstance(e, ast.Name) and e.id == key or is_own(e) and f"self.{e.attr}" == key  # type: ignore[attr-defined]


def _mentions(tree: ast.expr, key: str) -> bool:
    return any(isinstance(n, ast.expr) and _is(n, key) for n in nodes_of(tree))


@cache
def uses_in(node: ast.stmt) -> tuple[ast.Name, ...]:
    """The names that a definition looks up, but for what it asks whether something is an instance of."""
    asked = {id(x) for n in nodes_of(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "isinstance" for x in nodes_of(n.args[1])}
    return tuple(n for n in nodes_of(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in asked)


__all__ = ["Decisive", "Families", "Place", "Uses", "function_of", "is_own", "is_super", "pairs", "parameters", "parsed", "passed", "uses_in"]
