"""How code uses the support definitions, as words that travel along with the attribute names that it uses.

`Conv2d(_, _, 3, bias=False)` is a call, with what is no constant left out; `=Conv2d` any other use; `=stride` an attribute that is written;
`=*` says that attributes with computed names are, and `type()` that classes may be called by way of their instances.
"""
import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

MODULE = "torch_support"
PLAIN = (str, bool, int, float, type(None))


@dataclass(eq=False)
class Uses:
    """The uses of definitions: the arguments of each call by position and by name (None: no constant), and the names that are used in other ways."""

    calls: dict[str, list["Call"]] = field(default_factory=dict)
    values: set[str] = field(default_factory=set)

    def add(self, name: str, call: "Call") -> None:
        self.calls.setdefault(name, []).append(call)


@dataclass(frozen=True, eq=False)
class Call:
    """A call's arguments: each the constants that it may be, or None."""

    args: tuple["tuple[object, ...] | None", ...]
    keywords: dict[str, "tuple[object, ...] | None"]


TELLING = frozenset({ast.Call, ast.Attribute, ast.Compare, ast.FormattedValue, ast.Subscript})
WORDS = frozenset({ast.Call, ast.Attribute, ast.Name, ast.Constant, ast.ImportFrom})


def words_of(nodes: Iterable[ast.AST]) -> set[str]:
    """The words of a converted file, from its nodes."""
    nodes = list(nodes)
    names, others, star = _imported(nodes)
    found: set[str] = set()
    plain: set[int] = set()
    for n in nodes:
        if n.__class__ not in TELLING:
            continue
        match n:
            case ast.Call(func=ast.Name(id=name)) if name in names and not star:
                plain.add(id(n.func))
                found.add(_word(names[name], n))
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, asked]):
                plain.update(id(a) for a in (asked.elts if isinstance(asked, ast.Tuple) else [asked]))
            case ast.Attribute(ctx=ast.Store()):
                found.add(f"={n.attr}")
            case ast.Call(func=ast.Name(id="setattr" | "vars"), args=[_, *rest]):
                found.add(f"={rest[0].value}" if rest and isinstance(rest[0], ast.Constant) and isinstance(rest[0].value, str) else "=*")
            case ast.Attribute(attr="__setattr__" | "__dict__" | "set_attributes"):
                found.add("=*")
        plain.update(_only_asked(n))
    for n in nodes:
        if n.__class__ not in WORDS:
            continue
        match n:
            case ast.Call(func=ast.Name(id="type"), args=[_]) | ast.Attribute(attr="__class__" | "__mro__" | "__bases__" | "__subclasses__") if id(n) not in plain:
                found.add("type()")
            case ast.Name(id=name) if id(n) not in plain and (star or name in names):
                found.add(f"={names.get(name, name)}")
            case ast.Attribute(attr=attr, value=value) if _root(value) in others:
                found.add(f"={attr}")
            case ast.Constant(value=str() as text) if text.isidentifier():
                found.add(f"={text}")
            case ast.ImportFrom(module=module) if not is_support(module):
                found.update(f"={a.name}" for a in n.names)
    return found


ASKING = frozenset({"isinstance", "issubclass", "print", "str", "repr", "id", "hash"})


def _only_asked(n: ast.AST) -> Iterator[int]:
    """Those of a node's parts that it does not call, should they be classes: `type(m) == Linear`, `type(m).__name__`."""
    match n:
        case ast.Call(func=func) if getattr(func, "id", "") in ASKING or getattr(func, "id", "").endswith(("Error", "Exception", "Warning")):
            yield from map(id, n.args)
        case ast.Attribute(attr="__name__" | "__qualname__" | "__module__" | "__doc__") | ast.Compare() | ast.FormattedValue() | ast.Subscript():
            yield from map(id, ast.iter_child_nodes(n))


def is_support(module: str | None) -> bool:
    """Whether a module is a support module, by its name."""
    return (module or "").rpartition(".")[2].startswith(MODULE)


KNOWN = frozenset({"jax", "jnp", "np", "numpy", "nnx", "math", "functools", "os", "sys", "random", "warnings", "logging", "copy"})


def _imported(nodes: list[ast.AST]) -> tuple[dict[str, str], set[str], bool]:
    """local name -> support definition; the names that other imports bind; whether one of those is a star."""
    names: dict[str, str] = {}
    others: set[str] = set()
    star = False
    for n in nodes:
        if isinstance(n, ast.ImportFrom) and is_support(n.module):
            names.update({a.asname or a.name: a.name for a in n.names})
            star = star or any(a.name == "*" for a in n.names)
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            others.update((a.asname or a.name).partition(".")[0] for a in n.names)
            star = star or any(a.name == "*" for a in n.names)
    return names, others - KNOWN, star


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _word(name: str, call: ast.Call) -> str:
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return f"={name}"
    words = [_shown(a) for a in call.args] + [f"{k.arg}={_shown(k.value)}" for k in call.keywords]
    return f"{name}({', '.join(words)})"


def _shown(e: ast.expr) -> str:
    return repr(e.value) if isinstance(e, ast.Constant) and isinstance(e.value, PLAIN) else "_"


def read(words: Iterable[str], names: Iterable[str]) -> Uses:
    """The uses that words tell, of `names`. A name without any is taken to be used as a value."""
    uses = Uses()
    wanted = set(names)
    for w in words:
        if w.startswith("="):
            uses.values.add(w[1:])
        elif w.endswith(")") and (name := w.partition("(")[0]) in wanted:
            uses.add(name, _read(w))
    uses.values |= {n for n in wanted if n not in uses.calls}
    return uses


@cache
def _read(word: str) -> Call:
    call = ast.parse(word, mode="eval").body
    assert isinstance(call, ast.Call)
    return call_of(call, lambda e: (e.value,) if isinstance(e, ast.Constant) else None)


def call_of(call: ast.Call, values: Callable[[ast.expr], tuple[object, ...] | None]) -> Call:
    """A call's arguments, with what `values` knows of each."""
    return Call(tuple(values(a) for a in call.args), {k.arg or "": values(k.value) for k in call.keywords})
