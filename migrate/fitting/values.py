"""What constants decide: the values that an expression may have, and whether a condition holds."""
import ast
import itertools
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from migrate.source.text import walk

Env = dict[str, tuple[object, ...]]  # name or "self.name" -> the constants that it may be; a single one may replace it
OPERATORS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Is: lambda a, b: a is b, ast.IsNot: lambda a, b: a is not b,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b, ast.Lt: lambda a, b: a < b, ast.Gt: lambda a, b: a > b,
}
KINDS = {"int": int, "str": str, "float": float, "bool": bool, "tuple": tuple, "list": list}
ABSENT = object()  # a class that nothing makes instances of


class Unknown(Exception):
    """Not decided by constants."""


class Evaluator:
    """Values of expressions, by what is known of a function's parameters and its object's attributes."""

    def __init__(self, env: Mapping[str, tuple[object, ...]]) -> None:
        self.env: Env = dict(env)

    def value(self, e: ast.expr, env: Mapping[str, object]) -> object:
        """The value of an expression of constants. Raises Unknown."""
        match e:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
                key = name if isinstance(e, ast.Name) else f"self.{name}"
                if key in env:
                    return env[key]
            case ast.UnaryOp(op=ast.Not(), operand=x):
                return not self.value(x, env)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.BoolOp(op=op, values=values):
                stops = isinstance(op, ast.Or)
                for x in values:
                    if bool(last := self.value(x, env)) is stops:
                        break
                return last
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
                try:
                    return OPERATORS[type(op)](self.value(left, env), self.value(right, env))
                except TypeError as error:
                    raise Unknown from error
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if self.value(test, env) else orelse, env)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                return tuple(self.value(x, env) for x in elts)
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf" | "-inf" as text)]):
                return float(text)
            case ast.Call(func=ast.Name(id="isinstance"), args=[x, kinds]):
                names = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
                if all(isinstance(k, ast.Name) and env.get(k.id) is ABSENT for k in names):
                    return False
                if all(isinstance(k, ast.Name) and k.id in KINDS for k in names):
                    return isinstance(self.value(x, env), tuple(KINDS[k.id] for k in names if isinstance(k, ast.Name)))
        raise Unknown

    def used(self, e: ast.AST) -> frozenset[str]:
        """The known names in an expression."""
        return mentioned(e) & self.env.keys()

    def outcomes(self, e: ast.expr) -> tuple[object, ...] | None:
        """All values that an expression may have, or None."""
        names = sorted(self.used(e))
        found: list[object] = []
        if len(names) > 3:
            return None
        for values in itertools.product(*(self.env[n] for n in names)):
            try:
                value = self.value(e, dict(zip(names, values, strict=True)))
            except Unknown:
                return None
            if not any(same(value, f) for f in found):
                found.append(value)
        return tuple(found)

    def truth(self, e: ast.expr) -> bool | None:
        """Whether a condition holds, where constants decide it."""
        if (found := self.outcomes(e)) is not None and len({bool(f) for f in found}) == 1:
            return bool(found[0])
        if isinstance(e, ast.BoolOp):  # what comes before is only looked up
            stops = isinstance(e.op, ast.Or)
            for x in e.values:
                if self.truth(x) is stops:
                    return stops
                if not is_harmless(x):
                    break
        return None


def pairs(s: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """(target, value) of an assignment; those of `a, b = c, d` one by one."""
    match s:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            return list(zip(targets, values, strict=True))
        case ast.Assign(targets=[target], value=value):
            return [(target, value)]
    return []


@cache
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of a tree."""
    return tuple(walk(tree))


def same(a: object, b: object) -> bool:
    """Equal, and of the same type."""
    return type(a) is type(b) and a == b


def literal(value: object) -> str:
    """A constant as text."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    return repr(value)


def is_simple(value: object) -> bool:
    return isinstance(value, (str, int, float, bool, type(None)))


def is_harmless(e: ast.expr) -> bool:
    return all(isinstance(n, (ast.Name, ast.Attribute, ast.Constant, ast.expr_context, ast.UnaryOp, ast.Not, ast.Compare, ast.Is, ast.IsNot)) for n in nodes_of(e))


@cache
def mentioned(tree: ast.AST) -> frozenset[str]:
    """The names in a tree, those of its object's attributes as "self.name"."""
    found = {n.id for n in nodes_of(tree) if isinstance(n, ast.Name)}
    return frozenset(found | {f"self.{n.attr}" for n in nodes_of(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"})
