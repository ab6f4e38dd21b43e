"""Which names of a function are read after a statement before they are bound anew."""
import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from migrate.source.text import children

Names = frozenset[str]
NOTHING: Names = frozenset()
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class _Jumps:
    """What is live where control leaves the statement in hand: at the end of the loop, at its head, in the handlers of a `try`."""

    end: Names = NOTHING
    head: Names = NOTHING
    raised: Names = NOTHING


class Liveness:
    """The live names of one function, or of a module's own statements. `captured`: what inner functions read or rebind, which may happen at any time."""

    def __init__(self, root: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> None:
        self.captured = NOTHING if isinstance(root, ast.Module) else frozenset(_captured(root))
        self._after: dict[ast.stmt, Names] = {}
        self._block(root.body, NOTHING, _Jumps())

    def after(self, statement: ast.stmt) -> Names:
        """The names that are read after a statement; for an `if` or a loop: after its head."""
        return self._after.get(statement, NOTHING) | self.captured

    def _block(self, body: list[ast.stmt], after: Names, jumps: _Jumps) -> Names:
        for s in reversed(body):
            after = after | jumps.raised
            self._after[s] = self._after.get(s, NOTHING) | after
            after = self._before(s, after, jumps)
        return after

    def _inside(self, s: ast.stmt, names: Names) -> Names:
        """Notes what is live after the head of a compound statement."""
        self._after[s] |= names
        return names

    def _before(self, s: ast.stmt, after: Names, jumps: _Jumps) -> Names:
        match s:
            case ast.Return():
                return _loads(s) | jumps.raised
            case ast.Raise():
                return _loads(s) | jumps.raised
            case ast.Break():
                return jumps.end
            case ast.Continue():
                return jumps.head
            case ast.If():
                return _loads(s.test) | self._inside(s, self._block(s.body, after, jumps) | self._block(s.orelse, after, jumps))
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(s, after, jumps)
            case ast.With() | ast.AsyncWith():
                inner = self._inside(s, self._block(s.body, after, jumps))
                return inner - _stores(*s.items) | _loads(*s.items)
            case ast.Try() | ast.TryStar():
                final = self._block(s.finalbody, after, jumps)
                caught = frozenset[str]().union(*(self._block(h.body, final, jumps) for h in s.handlers)) | (final if s.finalbody else NOTHING)
                return self._block(s.body, self._block(s.orelse, final, jumps), replace(jumps, raised=jumps.raised | caught))
            case ast.Match():
                inner = frozenset[str]().union(*(self._block(c.body, after, jumps) | _loads(*([c.guard] if c.guard else [])) for c in s.cases))
                return _loads(s.subject) | self._inside(s, inner | after)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return after - {s.name} | _loads(s)
            case ast.AugAssign():
                return after | _loads(s) | _stores(s.target)
        return after - _stores(s) | _loads(s)

    def _loop(self, s: ast.For | ast.AsyncFor | ast.While, after: Names, jumps: _Jumps) -> Names:
        otherwise = self._block(s.orelse, after, jumps)
        bound, test = (_stores(s.target), NOTHING) if not isinstance(s, ast.While) else (NOTHING, _loads(s.test))
        head = otherwise | test
        for _ in range(3):
            inner = self._block(s.body, head, replace(jumps, end=after, head=head))
            head = otherwise | test | (inner - bound)
        self._inside(s, head)
        return head if isinstance(s, ast.While) else head | _loads(s.iter)


def _loads(*roots: ast.AST) -> Names:
    return frozenset(n.id for root in roots for n in ast.walk(root) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _stores(*roots: ast.AST) -> Names:
    """The names that are certainly bound: not those of comprehensions, lambdas and conditional parts."""
    found: set[str] = set()
    stack: list[ast.AST] = list(roots)
    while stack:
        n = stack.pop()
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)):
            found.add(n.id)
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            found.update((a.asname or a.name).partition(".")[0] for a in n.names)
        if not isinstance(n, (*NESTED, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp)):
            stack += children(n)
    return frozenset(found)


def _captured(root: ast.AST) -> Iterator[str]:
    for inner in _nested(root):
        own: set[str] = {a.arg for a in ast.walk(inner) if isinstance(a, ast.arg)}
        for n in ast.walk(inner):
            if isinstance(n, ast.Name) and n.id not in own:
                yield n.id
    for n in own_nodes(root):
        if isinstance(n, (ast.Global, ast.Nonlocal)):
            yield from n.names


def _nested(root: ast.AST) -> Iterable[ast.AST]:
    return [n for n in own_nodes(root) if isinstance(n, NESTED) and n is not root]


def own_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, nested functions included but not entered."""
    stack = children(root)
    while stack:
        n = stack.pop()
        yield n
        if not isinstance(n, NESTED):
            stack += children(n)
