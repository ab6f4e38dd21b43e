"""Edits of a source text and the emitter: all edits are made on the original tree, and composed in one pass.

A `NodeEdit` replaces the span of one node by a text that its `build` makes, with the children it asks for already rewritten.
A `TextEdit` replaces a span that no node owns (an added keyword, a removed line).
"""
import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from migrate.source.text import Source, children, walk

# Precedence of Python's expressions, loosest first.
LOOSE, NAMED, LAMBDA, TERNARY, OR, AND, NOT, COMPARE, BITOR, BITXOR, BITAND, SHIFT, ADD, MULTIPLY, UNARY, POWER, AWAIT, ATOM = range(18)
BINARY = {
    ast.BitOr: BITOR, ast.BitXor: BITXOR, ast.BitAnd: BITAND, ast.LShift: SHIFT, ast.RShift: SHIFT, ast.Add: ADD, ast.Sub: ADD, ast.Mult: MULTIPLY,
    ast.MatMult: MULTIPLY, ast.Div: MULTIPLY, ast.FloorDiv: MULTIPLY, ast.Mod: MULTIPLY, ast.Pow: POWER,
}


def precedence(node: ast.AST) -> int:
    """How tightly an expression binds."""
    match node:
        case ast.BinOp():
            return BINARY[type(node.op)]
        case ast.BoolOp():
            return OR if isinstance(node.op, ast.Or) else AND
        case ast.UnaryOp():
            return NOT if isinstance(node.op, ast.Not) else UNARY
        case ast.Compare():
            return COMPARE
        case ast.IfExp():
            return TERNARY
        case ast.Lambda():
            return LAMBDA
        case ast.NamedExpr():
            return NAMED
        case ast.Await():
            return AWAIT
        case ast.Tuple() | ast.Yield() | ast.YieldFrom() | ast.Starred():
            return LOOSE
        case ast.Constant(value=int() | float() | complex()) if not isinstance(node.value, bool):
            return AWAIT  # `1 .real`: a number is no atom before a dot
    return ATOM


def required(parent: ast.AST | None, child: ast.AST) -> int:
    """How tightly the place of `child` in `parent` wants it to bind."""
    match parent:
        case ast.Attribute() | ast.Await():
            return ATOM
        case ast.Subscript():
            return ATOM if parent.value is child else LOOSE
        case ast.Call():
            return ATOM if parent.func is child else LAMBDA
        case ast.keyword():
            return LAMBDA
        case ast.BinOp():
            own = BINARY[type(parent.op)]
            if isinstance(parent.op, ast.Pow):
                return AWAIT if parent.left is child else UNARY
            return own if parent.left is child else own + 1
        case ast.UnaryOp():
            return NOT if isinstance(parent.op, ast.Not) else UNARY
        case ast.Compare():
            return BITOR
        case ast.BoolOp():
            return (OR if isinstance(parent.op, ast.Or) else AND) + 1
        case ast.IfExp():
            return LAMBDA if parent.orelse is child else OR
        case ast.Starred():
            return BITOR
        case ast.comprehension():
            return LOOSE if parent.target is child else OR
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            return LAMBDA
        case ast.Lambda() | ast.NamedExpr() | ast.FormattedValue() | ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            return LAMBDA
        case ast.Return() | ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr():
            return LOOSE if isinstance(child, (ast.Tuple, ast.Yield, ast.YieldFrom, ast.Starred)) else LAMBDA
    return LOOSE


@dataclass(frozen=True)
class Piece:
    """Text of an expression and how tightly it binds."""

    text: str
    precedence: int = ATOM

    @classmethod
    def of(cls, made: "Piece | str") -> "Piece":
        """What an edit built, as a piece."""
        return made if isinstance(made, Piece) else cls(made)

    def at(self, wanted: int) -> str:
        """The text, in parentheses where the place wants something tighter."""
        return self.text if self.precedence >= wanted else f"({self.text})"


def piece(text: str) -> Piece:
    """A piece from a complete expression's text."""
    try:
        return Piece(text, precedence(ast.parse(text, mode="eval").body))
    except SyntaxError:
        try:
            return Piece(text, precedence(ast.parse(f"({text}\n)", mode="eval").body))
        except SyntaxError:
            return Piece(text, LOOSE)


def _stands_alone(text: str) -> bool:
    """Whether an expression's text is one without parentheses around it."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _is_parenthesized(node: ast.expr, text: str) -> bool:
    """Whether a tuple's text has parentheses around all of it: `(1, 2)`, but not `(1), (2)`."""
    if not isinstance(node, ast.Tuple) or not (text.startswith("(") and text.endswith(")")):
        return False
    try:
        ast.parse(f"[{text[1:-1]}\n]")
    except SyntaxError:
        return False
    return True


Build = Callable[["Emitter"], "Piece | str"]


@dataclass(eq=False)
class NodeEdit:
    """Replaces a node. `build` returns a Piece for an expression, plain text for a statement."""

    node: ast.AST
    build: Build
    code: str = "MIG101"
    why: str = ""
    rule: str = ""
    group: str = ""


@dataclass(eq=False)
class TextEdit:
    """Replaces the text between two offsets; `start == end` inserts. `order` ranks insertions at one place."""

    start: int
    end: int
    text: str
    rule: str = ""
    group: str = ""
    order: int = 0


@dataclass(frozen=True, eq=False)
class Change:
    """A span of the original and its new text; `what` is the edited node, or the edit."""

    start: int
    end: int
    text: str
    what: ast.AST | TextEdit


class Conflict(Exception):
    """Two edits claim the same node."""


@dataclass(eq=False)
class Plan:
    """The edits of one file. A node has at most one owner; `claim` raises Conflict for a second."""

    source: Source
    nodes: dict[ast.AST, NodeEdit] = field(default_factory=dict)
    texts: list[TextEdit] = field(default_factory=list)

    def claim(self, edit: NodeEdit) -> None:
        """Adds an edit of a node."""
        if edit.node in self.nodes:
            raise Conflict(f"{self.nodes[edit.node].rule} and {edit.rule} both rewrite line {getattr(edit.node, 'lineno', 0)}")
        self.nodes[edit.node] = edit

    def insert(self, offset: int, text: str, rule: str = "", order: int = 0) -> None:
        """Inserts text."""
        self.texts.append(TextEdit(offset, offset, text, rule, order=order))

    def replace(self, start: int, end: int, text: str, rule: str = "") -> None:
        """Replaces the text of a span."""
        self.texts.append(TextEdit(start, end, text, rule))


class Emitter:
    """Composes a plan's edits into the new text. It enters only the ancestors of edited nodes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.source = plan.source
        self._dirty: set[ast.AST] = set()
        for node in plan.nodes:
            at = self.source.parents.get(node)
            while at is not None and at not in self._dirty:
                self._dirty.add(at)
                at = self.source.parents.get(at)
        self._texts = sorted(plan.texts, key=lambda t: (t.start, t.start != t.end, t.order))
        self._starts = [t.start for t in self._texts]

    def text(self) -> str:
        """The whole new text."""
        return self._compose(0, len(self.source.text), self.source.tree)

    def render(self, node: ast.AST) -> str:
        """The new text of a node, in parentheses where its place in the original wants them."""
        if node not in self.plan.nodes:
            return self._compose(*self.source.span(node), node)
        made = self.piece(node)
        if not isinstance(node, ast.expr):
            return made.text
        if made.precedence >= required(self.source.parents.get(node), node) or self._parenthesised(node):
            return made.text
        return f"({made.text})"

    def piece(self, node: ast.AST) -> Piece:
        """The new text of a node with its precedence, to be placed anywhere."""
        edit = self.plan.nodes.get(node)
        if edit is None:
            return self.original(node)
        made = edit.build(self)
        return made if isinstance(made, Piece) else Piece(made)

    def original(self, node: ast.AST) -> Piece:
        """The node's own text with only its children rewritten."""
        text = self._compose(*self.source.span(node), node)
        level = precedence(node) if isinstance(node, ast.expr) and not _is_parenthesized(node, text) else ATOM
        if "\n" in text and isinstance(node, ast.expr) and level < ATOM and not isinstance(node, ast.Starred):
            return Piece(f"({text})")  # line breaks that only parentheses around it allow
        if "\n" in text and isinstance(node, (ast.Constant, ast.JoinedStr)) and not _stands_alone(text):
            return Piece(f"({text})")  # strings side by side on several lines
        return Piece(text, level)

    def between(self, start: int, end: int, inside: ast.AST) -> str:
        """The new text of a part of a node."""
        return self._compose(start, end, inside)

    def changes(self) -> list["Change"]:
        """The same as a flat list: which spans of the original become what."""
        parts = self._parts(0, len(self.source.text), self.source.tree)
        return [Change(s, e, what.text if isinstance(what, TextEdit) else self.render(what), what) for s, e, what in parts]

    def _compose(self, start: int, end: int, inside: ast.AST) -> str:
        out, at = [], start
        for s, e, what in self._parts(start, end, inside):
            out.append(self.source.text[at:s])
            out.append(what.text if isinstance(what, TextEdit) else self.render(what))
            at = e
        out.append(self.source.text[at:end])
        return "".join(out)

    def _parts(self, start: int, end: int, inside: ast.AST) -> list[tuple[int, int, "ast.AST | TextEdit"]]:
        """The outermost changes of a span, in order, none over another."""
        pieces: list[tuple[int, int, ast.AST | TextEdit]] = []
        spans = sorted(((s, e, n) for s, e, n in self._topmost(inside) if start <= s and e <= end), key=lambda p: (p[0], p[1])) if inside in self._dirty else []
        pieces.extend(spans)
        starts, ends = [s for s, _, _ in spans], list(accumulate((e for _, e, _ in spans), max))
        whole = inside is self.source.tree
        for t in self._texts[bisect_left(self._starts, start) :]:
            if t.start > end:
                break
            boundary = t.start == t.end and t.start in (start, end) and not whole
            before = bisect_left(starts, t.end)  # spans that start before it ends
            if t.end <= end and not boundary and not (before and t.start < ends[before - 1]):
                pieces.append((t.start, t.end, t))
        pieces.sort(key=lambda p: (p[0], p[1]))
        kept, at = [], start
        for p in pieces:
            if p[0] >= at:
                kept.append(p)
                at = p[1]
        return kept

    def _topmost(self, node: ast.AST) -> list[tuple[int, int, ast.AST]]:
        """The outermost edited nodes below a node."""
        found = []
        stack = children(node)
        while stack:
            child = stack.pop()
            if child in self.plan.nodes:
                found.append((*self.source.span(child), child))
            elif child in self._dirty:
                stack.extend(children(child))
        return found

    def _parenthesised(self, node: ast.AST) -> bool:
        """Whether the original has parentheses of its own around the node."""
        start, end = self.source.span(node)
        before = _BEFORE.search(self.source.text, max(0, start - 400), start)
        if not (before and _AFTER.match(self.source.text, end)):
            return False
        parent = self.source.parents.get(node)
        if isinstance(parent, (ast.Call, ast.keyword, ast.ClassDef)) and getattr(parent, "func", None) is not node:
            return False  # the parentheses of the call
        return parent is None or isinstance(parent, ast.stmt) or self.source.start(parent) <= before.start()


_BEFORE = re.compile(r"\((?:\s|\\\n)*\Z")
_AFTER = re.compile(r"(?:\s|\\\n|#[^\n]*\n)*\)")


def all_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Every identifier in some trees, bound or used."""
    found: set[str] = set()
    for root in nodes:
        for node in walk(root):
            match node:
                case ast.Name():
                    found.add(node.id)
                case ast.arg():
                    found.add(node.arg)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    found.add(node.name)
                case ast.alias():
                    found.add((node.asname or node.name).partition(".")[0])
    return found
