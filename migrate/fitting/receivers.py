"""Which methods of containers code calls on something else than lists and dicts: `layers.append(x)` of a list asks no container for `append`."""
import ast
from collections.abc import Iterable, Sequence

from migrate.fitting.values import pairs
from migrate.infer.liveness import own_nodes

METHODS = frozenset({"append", "extend", "insert", "pop", "update", "keys", "values", "items", "clear", "[]="})
MAKERS = frozenset({"list", "dict", "set", "tuple", "sorted", "OrderedDict", "defaultdict", "deque"})
IRRELEVANT = frozenset({ast.Name, ast.arg, ast.arguments, ast.keyword, ast.Tuple, ast.List, ast.BinOp, ast.Compare, ast.Expr, ast.Return, ast.If, ast.IfExp})
PLAIN = IRRELEVANT | {ast.Attribute, ast.Call, ast.Constant, ast.Subscript}
BUILT = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp, ast.Tuple, ast.JoinedStr)


def without_plain(attributes: set[str], nodes: Sequence[ast.AST]) -> set[str]:
    """The attribute names without the methods that code only calls on lists and dicts.

    `layers.append`: where that hangs on an attribute, and no other file may give it something else; `!layers`: something else is given to an attribute.
    """
    nodes = [n for n in nodes if n.__class__ not in IRRELEVANT]
    asked = attributes & METHODS
    texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    plain = {id(n) for scope in nodes if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) for n in _plain_names(scope)}
    found: set[str] = set()
    for n in nodes:
        if not isinstance(n, (ast.Attribute, ast.Subscript)):
            continue
        method = n.attr if isinstance(n, ast.Attribute) else "[]=" if isinstance(n.ctx, ast.Store) and not _is_whole(n.slice) else ""
        if method in asked and id(n.value) not in plain and not _is_plain(n.value):
            found.add(f"{n.value.attr}.{method}" if isinstance(n.value, ast.Attribute) else method)
    return attributes - (asked - texts) | found | {f"!{name}" for name in _given(nodes)}


def settled(words: Iterable[str]) -> set[str]:
    """The words of all files, with the methods that hang on attributes that may be something else than lists and dicts."""
    known = set(words)
    for w in list(known):
        name, dot, method = w.partition(".")
        if dot and method in METHODS and (f"!{name}" in known or f"={name}" not in known or "=*" in known):
            known.add(method)
    return known


def _is_whole(index: ast.expr) -> bool:
    """`[...]`: of a variable, or of an array."""
    return isinstance(index, ast.Constant) and index.value is ...


def _is_plain(e: ast.expr | None) -> bool:
    """A list, a dict, a set, a tuple or a text."""
    match e:
        case ast.Constant(value=str()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in MAKERS
        case ast.Call(func=ast.Attribute(value=ast.Name(id="nnx"), attr="List")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="nnx"), attr="data"), args=[held]):
            return _is_plain(held)
        case ast.IfExp(body=body, orelse=orelse):
            return _is_plain(body) and _is_plain(orelse)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add()):
            return _is_plain(left)
    return isinstance(e, BUILT)


def _plain_names(scope: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.Name]:
    """Where a scope looks up names that only lists, dicts and the like are given to."""
    nodes = list(own_nodes(scope))
    a = scope.args
    plain = {p.arg for p in (a.vararg, a.kwarg) if p is not None}
    other = {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
    targets: set[int] = set()
    for n in nodes:
        if n.__class__ in PLAIN:
            continue
        match n:
            case ast.Assign(targets=[ast.Name() as t], value=value) | ast.AnnAssign(target=ast.Name() as t, value=value):
                targets.add(id(t))
                (plain if _is_plain(value) else other).add(t.id)
            case ast.Assign(targets=[ast.Tuple()]):
                held = [(t, v) for t, v in pairs(n) if isinstance(t, ast.Name)]
                targets.update(id(t) for t, _ in held)
                plain.update(t.id for t, v in held if _is_plain(v))
                other.update(t.id for t, v in held if not _is_plain(v))
            case ast.AugAssign(target=ast.Name() as t):
                targets.add(id(t))
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                other.update(names)
            case ast.alias():
                other.add((n.asname or n.name).partition(".")[0])
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                other.add(n.name)
                other.update(x for d in ast.walk(n) if isinstance(d, ast.Nonlocal) for x in d.names)
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                other.add(n.name or "")
    other.update(n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) and id(n) not in targets)
    return [n for n in nodes if isinstance(n, ast.Name) and n.id in plain - other]


def _given(nodes: Sequence[ast.AST]) -> set[str]:
    """The attributes that something else than lists and dicts is given to."""
    found: set[str] = set()
    plain: set[int] = set()
    for n in nodes:
        match n:
            case ast.Assign(targets=targets, value=value) if _is_plain(value) and not any(isinstance(t, (ast.Tuple, ast.List)) for t in targets):
                plain.update(id(t) for t in targets)
            case ast.Assign():
                plain.update(id(t) for t, v in pairs(n) if _is_plain(v))
            case ast.AnnAssign(target=target, value=value) if _is_plain(value):
                plain.add(id(target))
            case ast.AugAssign(target=target):
                plain.add(id(target))
            case ast.ClassDef(body=body):
                found.update(m.name for m in body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)))
    for n in nodes:
        if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load) and id(n) not in plain:
            found.add(n.attr)
        elif isinstance(n, ast.ClassDef):
            names = [t for s in n.body for t in (s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else [])]
            found.update(t.id for t in names if isinstance(t, ast.Name) and id(t) not in plain)
    return found
