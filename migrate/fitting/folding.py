"""Folds what constants decide in a function's text: conditions, conditional expressions, `and`, `or`, `not`. What stays, stays as it was written."""
import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cache

from migrate.fitting.values import Env, Evaluator, is_harmless, is_simple, literal, nodes_of, pairs

WIDTH = 120
ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class CannotFold(Exception):
    """The text can't be rewritten here."""


class Folder(Evaluator):
    """Writes a function again, with what is known of its parameters and its object's attributes."""

    def __init__(self, lines: list[str], env: Mapping[str, tuple[object, ...]], gone: Set[str] = frozenset()) -> None:
        self.lines = lines
        super().__init__(env)
        self.gone = gone  # the names that are replaced by their value; others only decide
        self._starts = [0, *itertools.accumulate(len(t) + 1 for t in lines)]
        self.changing: Set[str] = frozenset()  # the names that the function binds anew
        self.folded: set[str] = set()  # the names that have decided something

    # expressions

    def source(self, e: ast.AST) -> str:
        """The text of a node as it was written."""
        first, last = e.lineno - 1, e.end_lineno - 1  # type: ignore[attr-defined]
        a, b = e.col_offset, e.end_col_offset  # type: ignore[attr-defined]
        if first == last:
            return str(self.lines[first][a:b])
        return "\n".join([self.lines[first][a:], *self.lines[first + 1 : last], self.lines[last][:b]])

    def render(self, e: ast.expr, test: bool = False) -> str:
        """The new text of an expression. `test`: only its truth matters."""
        if not (names := self.used(e)):
            return self.source(e)
        known = self.outcomes(e)
        if isinstance(e, (ast.Name, ast.Attribute)) and known is not None:
            return literal(known[0]) if names <= self.gone else self.source(e)
        if known is not None and len(known) == 1 and is_simple(known[0]):
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

    def _edits(self, e: ast.AST, tests: Set[ast.expr]) -> list[tuple[ast.expr, str]]:
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
            if isinstance(target, ast.Name) and (values := self.outcomes(value)) and all(map(is_simple, values)):
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
        if not body and not rest and is_harmless(s.test):
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


@cache
def _stored(tree: ast.AST) -> frozenset[str]:
    return frozenset({n.id for n in nodes_of(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)} | {
        f"self.{n.attr}" for n in nodes_of(tree) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)
    })


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_elif(s: ast.If) -> bool:
    return len(s.orelse) == 1 and isinstance(s.orelse[0], ast.If) and s.orelse[0].col_offset == s.col_offset
