"""Folds what constants decide in a function's text: conditions, conditional expressions, `and`, `or`, `not`. What stays, stays as it was written."""
import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cache

from migrate.source.text import walk

Env = dict[str, tuple[object, ...]]  # name or "self.name" -> the constants that it may be; a single one may replace it
OPERATORS = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Is: lambda a, b: a is b, ast.IsNot: lambda a, b: a is not b,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b, ast.Lt: lambda a, b: a < b, ast.Gt: lambda a, b: a > b,
}
KINDS = {"int": int, "str": str, "float": float, "bool": bool, "tuple": tuple, "list": list}
WIDTH = 120
ABSENT = object()  # a class that nothing makes instances of
ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Unknown(Exception):
    """Not decided by constants."""


class CannotFold(Exception):
    """The text can't be rewritten here."""


class Folder:
    """Writes a function again, with what is known of its parameters and its object's attributes."""

    def __init__(self, lines: list[str], env: Mapping[str, tuple[object, ...]], gone: Set[str] = frozenset()) -> None:
        self.lines = lines
        self.env: Env = dict(env)
        self.gone = gone  # the names that are replaced by their value; others only decide
        self._starts = [0, *itertools.accumulate(len(t) + 1 for t in lines)]
        self.changing: Set[str] = frozenset()  # the names that the function binds anew
        self.folded: set[str] = set()  # the names that have decided something

    # values

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
                    if bool(value := self.value(x, env)) is stops:
                        return value
                return value
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
        return _mentioned(e) & self.env.keys()

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
                if not _harmless(x):
                    break
        return None

    # expressions

    def source(self, e: ast.AST) -> str:
        """The text of a node as it was written."""
        first, last = e.lineno - 1, e.end_lineno - 1  # type: ignore[attr-defined]
        a, b = e.col_offset, e.end_col_offset  # type: ignore[attr-defined]
        if first == last:
            return self.lines[first][a:b]
        return "\n".join([self.lines[first][a:], *self.lines[first + 1 : last], self.lines[last][:b]])

    def render(self, e: ast.expr, test: bool = False) -> str:
        """The new text of an expression. `test`: only its truth matters."""
        if not (names := self.used(e)):
            return self.source(e)
        known = self.outcomes(e)
        if isinstance(e, (ast.Name, ast.Attribute)) and known is not None:
            return literal(known[0]) if names <= self.gone else self.source(e)
        if known is not None and len(known) == 1 and _simple(known[0]):
            self.folded |= names
            return literal(known[0])
        match e:
            case ast.IfExp() if (decided := self.truth(e.test)) is not None:
                self.folded |= self.used(e.test)
                return self.render(e.body if decided else e.orelse, test)
            case ast.BoolOp():
                return self._logic(e, test)
            case ast.IfExp():
                return self._spliced(e, {e.test})
            case ast.UnaryOp(op=ast.Not()):
                return self._spliced(e, {e.operand})
            case ast.JoinedStr():  # parts of these have no place of their own
                return self.source(e)
            case ast.Lambda():
                with self._without({a.arg for a in nodes_of(e.args) if isinstance(a, ast.arg)} | self.changing):
                    return self._spliced(e)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                with self._without(_stored(e) | (self.changing if isinstance(e, ast.GeneratorExp) else frozenset())):
                    return self._spliced(e)
        return self._spliced(e)

    def _logic(self, e: ast.BoolOp, test: bool) -> str:
        """`and` / `or` without the operands that change nothing."""
        stops = isinstance(e.op, ast.Or)
        kept: list[ast.expr] = []
        for i, x in enumerate(e.values):
            truth = self.truth(x)
            if truth is (not stops) and (test or i < len(e.values) - 1):
                self.folded |= self.used(x)
                continue
            kept.append(x)
            if truth is stops:
                break
        if len(kept) == 1:
            return self.render(kept[0], test)
        words = [f"({t})" if isinstance(x, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)) else t for x in kept for t in [self.render(x, test)]]
        return (" or " if stops else " and ").join(words)

    @contextmanager
    def _without(self, names: Set[str]) -> Iterator[None]:
        before = self.env
        self.env = {k: v for k, v in before.items() if k not in names}
        yield
        self.env = before

    def _spliced(self, e: ast.AST, tests: set[ast.expr] | None = None) -> str:
        """The text of a node with that of its parts."""
        text, edits = self.source(e), self._edits(e, tests or set())
        return self._applied(text, e.lineno - 1, e.col_offset, edits)  # type: ignore[attr-defined]

    def _edits(self, e: ast.AST, tests: set[ast.expr]) -> list[tuple[ast.expr, str]]:
        found: list[tuple[ast.expr, str]] = []
        for child in ast.iter_child_nodes(e):
            if isinstance(child, ast.expr):
                if isinstance(getattr(child, "ctx", None), (ast.Store, ast.Del)) and not isinstance(child, (ast.Subscript, ast.Tuple, ast.List)):
                    continue
                new = self.render(child, child in tests)
                if isinstance(e, ast.Attribute) and re.match(r"-?\d", new):
                    new = f"({new})"
                if new != self.source(child):
                    found.append((child, new))
            elif not isinstance(child, ast.stmt):
                found += self._edits(child, set())
        return found

    def _applied(self, text: str, line: int, column: int, edits: list[tuple[ast.expr, str]]) -> str:
        starts = self._starts
        base = starts[line] + column
        if not edits:
            return text
        for node, new in sorted(edits, key=lambda x: (x[0].lineno, x[0].col_offset), reverse=True):
            a = starts[node.lineno - 1] + node.col_offset - base
            b = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0) - base
            text = text[:a] + new + text[b:]
        return text

    # statements

    def function(self, f: ast.FunctionDef) -> list[str]:
        """The lines of a function's body."""
        self.changing = _stored(f)
        return self.block(f.body, 0, f.body[0].lineno - 1)[0]

    def block(self, body: list[ast.stmt], shift: int, above: int) -> tuple[list[str], bool]:
        """The lines of a block, moved left by `shift`, with the comments between its statements, and whether what follows is never reached.

        `above`: the line before it.
        """
        out: list[str] = []
        for s in body:
            lead = self._moved("\n".join(self.lines[above : s.lineno - 1]), shift) if above < s.lineno - 1 else []
            above = s.end_lineno or s.lineno
            new, ended = self.statement(s, shift)
            out += [*lead, *new] if new else []
            if ended:
                return out, True
        return out, False

    def statement(self, s: ast.stmt, shift: int) -> tuple[list[str], bool]:
        """The new lines of a statement, and whether what follows it is never reached."""
        match s:
            case ast.If():
                return self._if(s, shift, "if")
            case ast.For() | ast.While() | ast.With():
                self._forget(_stored(s))
                lines = self._compound(s, shift)
                self._forget(_stored(s))
                return lines, False
            case ast.FunctionDef():
                with self._without({a.arg for a in nodes_of(s.args) if isinstance(a, ast.arg)} | _stored(s) | self.changing):
                    return self._compound(s, shift) if self.used(s) else self._plain(s, shift), False
            case ast.ClassDef() | ast.Try() | ast.Match() if self.used(s):
                raise CannotFold
        new = self._plain(s, shift)
        known = self._bound(s)
        self._forget(_stored(s))
        self.env.update(known)
        return new, isinstance(s, ENDS)

    def _bound(self, s: ast.stmt) -> Env:
        """What a plain assignment of constants makes known."""
        found: Env = {}
        for target, value in pairs(s):
            if isinstance(target, ast.Name) and (values := self.outcomes(value)) and all(map(_simple, values)):
                found[target.id] = values
        return found

    def _forget(self, names: Set[str]) -> None:
        for n in names:
            self.env.pop(n, None)

    def _if(self, s: ast.If, shift: int, word: str) -> tuple[list[str], bool]:
        if s.body[0].lineno == s.lineno:
            raise CannotFold
        decided = self.truth(s.test) if self.used(s.test) else None
        if decided is None:
            return self._undecided(s, shift, word), False
        self.folded |= self.used(s.test)
        if not decided and _is_elif(s):
            return self._if(s.orelse[0], shift, word)  # type: ignore[arg-type]
        body = s.body if decided else s.orelse
        if not body:
            return [], False
        above = s.test.end_lineno or s.lineno if decided else self._else_line(s)
        if word == "elif":
            return [" " * (s.col_offset - shift) + "else:", *self.block(body, shift, above)[0]], False
        return self.block(body, shift + body[0].col_offset - s.col_offset, above)

    def _else_line(self, s: ast.If) -> int:
        return next(i for i in range(s.orelse[0].lineno - 1, 0, -1) if self.lines[i - 1].strip().startswith("else:"))

    def _undecided(self, s: ast.If, shift: int, word: str) -> list[str]:
        last = s.test.end_lineno or s.lineno
        head = self._applied("\n".join(self.lines[s.lineno - 1 : last]), s.lineno - 1, 0, [(s.test, self.render(s.test, True))])
        head = head[: s.col_offset] + re.sub(r"^(el)?if", word, head[s.col_offset :])
        margin = " " * (s.col_offset - shift)
        before = dict(self.env)
        body = self.block(s.body, shift, last)[0]
        self.env = dict(before)
        rest: list[str] = []
        if _is_elif(s):
            rest = self._if(s.orelse[0], shift, "elif")[0]  # type: ignore[arg-type]
        elif s.orelse and (other := self.block(s.orelse, shift, at := self._else_line(s))[0]):
            rest = [*self._moved(self.lines[at - 1], shift), *other]
        self.env = before
        self._forget(_stored(s))
        if not body and not rest and _harmless(s.test):
            return []
        return [*self._moved(head, shift), *(body or [f"{margin}    pass"]), *rest]

    def _moved(self, text: str, shift: int) -> list[str]:
        return [t[min(shift, _indent(t)) :] for t in text.split("\n")]

    def _plain(self, s: ast.stmt, shift: int) -> list[str]:
        text = "\n".join(self.lines[s.lineno - 1 : s.end_lineno])
        edits = self._edits(s, set()) if self.used(s) and not isinstance(s, ast.FunctionDef) else []
        moved = self._moved(self._applied(text, s.lineno - 1, 0, edits), shift)
        return joined(moved) if edits else moved

    def _compound(self, s: ast.For | ast.While | ast.With | ast.FunctionDef, shift: int) -> list[str]:
        """A statement with blocks: its heads as they were, but for what is known in them."""
        blocks: list[list[ast.stmt]] = [b for name in ("body", "orelse") if (b := getattr(s, name, None))]
        out, at = [], s.lineno - 1
        edits = self._edits(s, {s.test} if isinstance(s, ast.While) else frozenset())
        for b in blocks:
            head_end = b[0].lineno - 1
            if head_end <= at:
                raise CannotFold
            out += self._moved(self._applied("\n".join(self.lines[at:head_end]), at, 0, edits), shift)
            out += self.block(b, shift, head_end)[0] or [" " * (b[0].col_offset - shift) + "pass"]
            at, edits = b[-1].end_lineno or at, []
        return out


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


def joined(lines: list[str]) -> list[str]:
    """A statement on one line, where it fits and holds no comment."""
    if len(lines) < 2 or any("#" in t or '"""' in t for t in lines):
        return lines
    text = lines[0].rstrip()
    for t in lines[1:]:
        part = t.strip()
        if part[:1] in ")]}":
            text = text.rstrip(",") + part
        else:
            text += ("" if text[-1] in "([{" else " ") + part
    return [text] if len(text) <= WIDTH else lines


def _simple(value: object) -> bool:
    return isinstance(value, (str, int, float, bool, type(None)))


def _harmless(e: ast.expr) -> bool:
    return all(isinstance(n, (ast.Name, ast.Attribute, ast.Constant, ast.expr_context, ast.UnaryOp, ast.Not, ast.Compare, ast.Is, ast.IsNot)) for n in nodes_of(e))


@cache
def _mentioned(tree: ast.AST) -> frozenset[str]:
    """The names in a tree, those of its object's attributes as "self.name"."""
    found = {n.id for n in nodes_of(tree) if isinstance(n, ast.Name)}
    return frozenset(found | {f"self.{n.attr}" for n in nodes_of(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"})


@cache
def _stored(tree: ast.AST) -> frozenset[str]:
    return frozenset({n.id for n in nodes_of(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)} | {
        f"self.{n.attr}" for n in nodes_of(tree) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)
    })


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_elif(s: ast.If) -> bool:
    return len(s.orelse) == 1 and isinstance(s.orelse[0], ast.If) and s.orelse[0].col_offset == s.col_offset
