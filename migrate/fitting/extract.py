"""Reads the support code as text: what each definition needs, and the module that a converted file's definitions make."""
import ast
import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

from migrate.fitting.fitting import Fitting
from migrate.fitting.receivers import settled, without_plain
from migrate.fitting.shape import names_in, parsed
from migrate.fitting.uses import words_of
from migrate.fitting.values import nodes_of
from migrate.source.text import walk

FOLDER = Path(__file__).parents[1] / "support"
FOLDERS = {"flax": ("jax", "flax"), "keras": ("jax", "keras")}
HEADER = '"""PyTorch semantics that {framework} has no function or layer for; only what this code uses. Made by migrate."""\n'
File = tuple[Path, str, ast.Module]
FRAMEWORK = {"flax": "Flax", "keras": "Keras"}
PACKAGE = "migrate.support."


@dataclass(frozen=True, eq=False)
class Definition:
    """A top-level definition of the support code: its text, the definitions and imports that it uses."""

    name: str
    text: str
    node: ast.stmt
    order: int
    local: frozenset[str]  # the support definitions that its file sees
    imported: Mapping[str, str]  # name -> import statement, of its file
    rngs: str = ""  # "required" or "optional" where a class or function takes rngs, else ""
    first: int = 0  # the line that `text` starts on

    @cached_property
    def _used(self) -> frozenset[str]:
        return names_in(self.node) - {self.name}

    @cached_property
    def attributes(self) -> set[str]:
        """The attribute names that it uses, as `receivers.py` words them."""
        nodes = nodes_of(self.node)
        written = {f"={n.attr}" for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
        found = attributes_of(self.node, nodes) - ({"a.b.c="} if self.name == "renamed" else set())  # it sets attributes of the layer that has it
        return without_plain(found, nodes) | written

    @cached_property
    def _pruned(self) -> "dict[tuple[str, ...], Definition]":
        return {}

    def without_unused(self, used: set[str]) -> "Definition":
        """A class without the methods that nothing uses."""
        if not isinstance(self.node, ast.ClassDef):
            return self
        named = {n.id for s in self.node.body if not isinstance(s, ast.FunctionDef) for n in nodes_of(s) if isinstance(n, ast.Name)}
        gone = [m for m in self.node.body if isinstance(m, ast.FunctionDef) and not _is_kept(m.name, used) and m.name not in named]
        names = tuple(m.name for m in gone)
        if gone and names not in self._pruned:
            self._pruned[names] = self._without(self.node, gone)
        return self._pruned[names] if gone else self

    def _without(self, whole: ast.ClassDef, gone: list[ast.FunctionDef]) -> "Definition":
        lines: list[str | None] = list(self.text.split("\n"))
        offset = self.first
        for m in gone:
            start = min([m.lineno, *(d.lineno for d in m.decorator_list)]) - offset
            end = (m.end_lineno or m.lineno) - offset
            while start > 0 and (before := lines[start - 1]) is not None and not before.strip():
                start -= 1
            lines[start : end + 1] = [None] * (end + 1 - start)
        node = copy.copy(whole)
        node.body = [m for m in node.body if m not in gone] or [ast.Pass()]
        return replace(self, text="\n".join(line for line in lines if line is not None).rstrip(), node=node)

    def with_text(self, text: str) -> "Definition":
        """The same with another text."""
        return replace(self, text=text, node=parsed(text), first=1)

    @property
    def needs(self) -> tuple[str, ...]:
        """The other definitions that it uses."""
        return tuple(sorted(self._used & self.local))

    @property
    def imports(self) -> tuple[str, ...]:
        """The import statements that it needs."""
        return tuple(sorted({self.imported[u] for u in self._used if u in self.imported}))


@dataclass(eq=False)
class Support:
    """All support definitions that a target sees, by name."""

    target: str
    definitions: dict[str, Definition] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.definitions

    def takes_rngs(self, name: str) -> str:
        """ "required", "optional" or "" """
        found = self.definitions.get(name)
        return found.rngs if found else ""

    def module(self, names: Iterable[str], used: Iterable[str] | None = None) -> str:
        """The text of a module with some definitions and all that they use, in the order of the support code.

        `used`: what `used_by` says of the code that it is for; methods that neither that nor the module itself uses are left out, and the definitions
        are fitted to their calls (None: neither).
        """
        if self.target not in PRUNED:
            used = None
        names = list(names)
        chosen = self._reached(names, None) if used is None else self._fitted(names, set(used))
        imports = sorted({i for d in chosen for i in d.imports}, key=_import_order)
        body = ""
        for before, d in zip([None, *chosen], chosen, strict=False):
            small = before is not None and "\n" not in d.text and "\n" not in before.text
            body += ("\n" if small else "\n\n\n") + d.text if before else "\n\n" + d.text
        split = [i for i in imports if _standard(i)], [i for i in imports if not _standard(i)]
        head = "\n\n".join("\n".join(group) for group in split if group)
        return HEADER.format(framework=FRAMEWORK[self.target]) + head + "\n" + body.rstrip() + "\n"


    def _reached(self, names: Iterable[str], used: set[str] | None) -> list[Definition]:
        """The definitions with all that they use; without the methods that nothing uses, where `used` is given."""
        while True:
            asked = set() if used is None else settled(used)
            wanted: dict[str, Definition] = {}
            stack = sorted(names)
            while stack:
                name = stack.pop()
                if name not in wanted:
                    d = self.definitions[name]
                    wanted[name] = d if used is None else d.without_unused(asked)
                    stack += [n for n in wanted[name].needs if n in self.definitions]  # of fitted ones, some only have the name of a local variable
            chosen = sorted(wanted.values(), key=lambda d: d.order)
            if used is None:
                return chosen
            seen = used.union(*(d.attributes for d in chosen))
            if seen == used:
                return chosen
            used = seen

    def _fitted(self, names: Iterable[str], used: set[str]) -> list[Definition]:
        """The definitions as their calls need them."""
        general = self._reached(names, used)
        texts = Fitting({d.name: d.text for d in general}, sorted(names), used).run()
        fitted = {d.name: d.with_text(texts[d.name]) for d in general if d.name in texts}
        return Support(self.target, fitted)._reached(names, used)


PRUNED = frozenset({"flax"})  # Keras calls methods of its layers by itself
SPECIAL = (
    "init", "call", "set", "getattr", "getitem", "len", "iter", "contains", "enter", "exit", "post_init", "init_subclass", "deepcopy",
)
KEPT = re.compile(
    r"build_from$|tree_flatten$|tree_unflatten$|set_value$|train$|eval$|extra_repr|_(?!conv_forward$)[^_]|__set_name|__get__|__eq|__hash|__repr"
    + f"|__({'|'.join(SPECIAL)})__",
)
SYNTAX = {"__setitem__": "[]=", "__delitem__": "del", "__setattr__": "a.b.c=", "__add__": "+", "__iadd__": "+", "__mul__": "*", "__delattr__": "del"}


TELLING = frozenset({ast.Attribute, ast.Constant, ast.Subscript, ast.Delete, ast.BinOp, ast.AugAssign, ast.Name})


def attributes_of(tree: ast.AST, nodes: Iterable[ast.AST] = ()) -> set[str]:
    """The attribute names that code uses, with what stands for special methods: "[]=", "del", "+", ... `nodes`: those of the tree, where they are known."""
    found: set[str] = set()
    for n in nodes or walk(tree):
        if n.__class__ not in TELLING:
            continue
        match n:
            case ast.Attribute():
                found.add(n.attr)
                if isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Attribute):
                    found.add("a.b.c=")
            case ast.Constant(value=str() as text) if text.isidentifier():
                found.add(text)
            case ast.Subscript(ctx=ast.Store()):
                found.add("[]=")
            case ast.Delete():
                found.add("del")
            case ast.BinOp(op=ast.Add()) | ast.AugAssign(op=ast.Add()):
                found.add("+")
            case ast.BinOp(op=ast.Mult()) | ast.AugAssign(op=ast.Mult()):
                found.add("*")
            case ast.Name():
                if n.id == "setattr":
                    found.add("a.b.c=")
    return found


def used_by(tree: ast.AST, nodes: Iterable[ast.AST] = ()) -> set[str]:
    """What of the support code a file's code uses: the attribute names, and the calls and other uses of definitions as `uses.py` writes them."""
    nodes = list(nodes) or walk(tree)
    return without_plain(attributes_of(tree, nodes), nodes) | words_of(nodes)


def _is_kept(method: str, used: set[str]) -> bool:
    if method in SYNTAX:
        return SYNTAX[method] in used or method in used
    return method in used or bool(KEPT.match(method))


def _standard(statement: str) -> bool:
    return statement.split()[1].partition(".")[0] not in ("jax", "flax", "keras", "numpy", "einops", "optax")


def _import_order(statement: str) -> tuple[bool, str, str]:
    words = statement.split()
    return words[0] == "from", words[1], statement


@cache
def load(target: str) -> Support:
    """The support code of a target."""
    support = Support(target)
    paths = [p for folder in FOLDERS[target] for p in sorted((FOLDER / folder).glob("*.py")) if p.name != "__init__.py"]
    files = []
    for p in paths:
        text = p.read_text(encoding="utf-8")
        files.append((p, text, ast.parse(text)))
    for rank, (path, text, tree) in enumerate(_dependency_order(files)):
        for d in _definitions(text, tree, rank * 10000):
            if d.name in support.definitions:
                raise ValueError(f"{path}: {d.name} is defined twice in the support code of {target}")
            support.definitions[d.name] = d
    return support


def _dependency_order(files: list[File]) -> list[File]:
    """Files after the support files that they import, so that base classes come first."""
    by_module = {f"{PACKAGE}{f[0].parent.name}.{f[0].stem}": f for f in files}
    done: dict[str, File] = {}

    def visit(module: str, path: tuple[str, ...] = ()) -> None:
        if module in done or module in path or module not in by_module:
            return
        for node in by_module[module][2].body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
                visit(node.module or "", (*path, module))
        done[module] = by_module[module]

    for m in by_module:
        visit(m)
    return list(done.values())


def _definitions(text: str, tree: ast.Module, position: int) -> list[Definition]:
    lines = text.split("\n")
    imports: dict[str, str] = {}
    local: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            for a in node.names:
                imports[(a.asname or a.name).partition(".")[0]] = f"import {a.name}" + (f" as {a.asname}" if a.asname else "")
        elif isinstance(node, ast.ImportFrom):
            for a in node.names:
                if (node.module or "").startswith(PACKAGE):
                    local.add(a.name)
                else:
                    imports[a.asname or a.name] = f"from {node.module} import {a.name}" + (f" as {a.asname}" if a.asname else "")
    names = [n for node in tree.body for n in _bound(node)]
    local.update(names)
    found = []
    for node in tree.body:
        for name in _bound(node):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            while first > 1 and lines[first - 2].startswith("#"):
                first -= 1
            body = "\n".join(lines[first - 1 : node.end_lineno])
            found.append(Definition(name, body, node, position + node.lineno, frozenset(local), imports, _rngs(node), first))
    return found


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _signature(node: ast.stmt) -> ast.arguments | None:
    if isinstance(node, ast.FunctionDef):
        return node.args
    if isinstance(node, ast.ClassDef):
        return next((s.args for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    return None


def _rngs(node: ast.stmt) -> str:
    args = _signature(node)
    if args is None:
        return "inherit" if isinstance(node, ast.ClassDef) else ""
    every = [*args.args, *args.kwonlyargs]
    for a in every:
        if a.arg == "rngs":
            required = a in args.kwonlyargs and args.kw_defaults[args.kwonlyargs.index(a)] is None or a in args.args and not args.defaults
            return "required" if required else "optional"
    return "inherit" if args.kwarg and isinstance(node, ast.ClassDef) else ""


def inherited_rngs(support: Support, name: str) -> str:
    """Whether a support class takes rngs, its bases among the support code considered."""
    seen: set[str] = set()
    while name in support.definitions and name not in seen:
        seen.add(name)
        d = support.definitions[name]
        if d.rngs != "inherit":
            return d.rngs
        bases = [b.id for b in getattr(d.node, "bases", ()) if isinstance(b, ast.Name)]
        name = next((b for b in bases if b in support.definitions), "")
    return "optional"
