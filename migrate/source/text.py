"""A source file: its text, its tree, and where each node of the tree stands in the text."""
import ast
import io
import textwrap
import tokenize
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from migrate.source.mapped import written_out
from migrate.source.rebased import bases_named
from migrate.source.spoken import spelled_out


class SourceError(ValueError):
    """A file that can't be read as Python; the message says where and why."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(eq=False)
class Source:
    """A parsed file. `text` uses "\\n" only; `newline` is what the file used. Spans are (start, end) offsets in `text`."""

    filename: str
    text: str
    tree: ast.Module
    newline: str = "\n"
    encoding: str = "utf-8"
    dedents: list[tuple[int, int, int]] = field(default_factory=list)  # (start, end, columns) of blocks that move left

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node. Made when first asked for: of many files only the tree is looked at."""
        self.nodes, parents = _linked(self.tree)
        return parents

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes, each before its children, in source order."""
        nodes, self.parents = _linked(self.tree)
        return nodes

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.text.splitlines(keepends=True) if "\f" not in self.text and "\x1c" not in self.text else io.StringIO(self.text):
            starts.append(starts[-1] + len(line))
        return starts

    @cached_property
    def _ascii(self) -> bool:
        return self.text.isascii()

    def offset(self, line: int, column: int) -> int:
        """The offset of a 1-based line and a 0-based column in UTF-8 bytes, as `ast` gives them."""
        start = self._starts[line - 1]
        if self._ascii:
            return start + column
        text = self.text[start : start + column]  # a character is at least one byte
        while len(text.encode()) > column:
            text = text[: len(text) - max(1, (len(text.encode()) - column) // 4)]
        return start + len(text)

    def column(self, node: ast.AST) -> int:
        """The 1-based column of a node, in characters."""
        at = getattr(node, "col_offset", 0)
        return at + 1 if self._ascii or not at else self.offset(node.lineno, at) - self._starts[node.lineno - 1] + 1  # type: ignore[attr-defined]

    def start(self, node: ast.AST) -> int:
        """Where a node starts; a definition at its first decorator, a module at 0."""
        if isinstance(node, ast.Module):
            return 0
        if decorators := getattr(node, "decorator_list", None):
            return self.text.rfind("@", 0, self.start(decorators[0]))
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Where a node ends."""
        if isinstance(node, ast.Module):
            return len(self.text)
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Start and end of a node."""
        return self.start(node), self.end(node)

    def segment(self, node: ast.AST) -> str:
        """The original text of a node."""
        return self.text[self.start(node) : self.end(node)]

    def line_of(self, offset: int) -> int:
        """The 1-based line of an offset."""
        return bisect_right(self._starts, offset)

    def line_start(self, offset: int) -> int:
        """The offset at which the line of `offset` starts."""
        return self._starts[self.line_of(offset) - 1]

    def line_end(self, offset: int) -> int:
        """The offset after the newline that ends the line of `offset`."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end + 1

    def indent(self, node: ast.AST) -> str:
        """The white space that the node's line starts with in the output: blocks that are taken out of their `with` move left."""
        found = self.raw_indent(node)
        for start, end, width in self.dedents:
            if start <= self.start(node) < end:
                found = found[: max(0, len(found) - width)]
        return found

    def raw_indent(self, node: ast.AST) -> str:
        """The white space before the line that a node starts on."""
        start = self.line_start(self.start(node))
        line = self.text[start : self.start(node)]
        return line[: len(line) - len(line.lstrip(" \t\f"))]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around a node."""
        return self.parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that a node is part of."""
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.stmt):
            at = self.parents.get(at)
        assert at is not None
        return at

    def enclosing(self, node: ast.AST, *types: type[ast.AST]) -> ast.AST | None:
        """The nearest node of one of `types` around a node."""
        at = self.parents.get(node)
        while at is not None and not isinstance(at, types):
            at = self.parents.get(at)
        return at

    @cached_property
    def comments(self) -> dict[int, str]:
        """Comments by line."""
        found = {}
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type == tokenize.COMMENT:
                    found[token.start[0]] = token.string
        except (tokenize.TokenError, IndentationError):
            return found
        return found


def import_text(node: ast.Import | ast.ImportFrom, kept: list[ast.alias], indent: str = "") -> str:
    """An import of only some of its names, on no more lines than it had: on one where they fit, a line each where the original has it so."""
    names = [f"{a.name} as {a.asname}" if a.asname else a.name for a in kept]
    head = "import " if isinstance(node, ast.Import) else f"from {'.' * node.level}{node.module or ''} import "
    line = head + ", ".join(names)
    if isinstance(node, ast.Import) or len(indent) + len(line) <= 100 or node.end_lineno == node.lineno:
        return line
    if len({a.lineno for a in node.names}) == len(node.names):
        return f"{head}(\n" + "".join(f"{indent}    {n},\n" for n in names) + f"{indent})"
    body = textwrap.fill(", ".join(names) + ",", 116, initial_indent=f"{indent}    ", subsequent_indent=f"{indent}    ")
    wrapped = f"{head}(\n{body}\n{indent})"
    return wrapped if wrapped.count("\n") <= (node.end_lineno or 0) - node.lineno else line


def read(text: str | bytes, filename: str) -> Source:
    """Parses a file. Bytes are decoded as Python would. Raises SourceError."""
    encoding = "utf-8"
    if isinstance(text, bytes):
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
            text = text.decode(encoding)
        except (SyntaxError, UnicodeDecodeError, LookupError) as e:
            raise SourceError(f"can't be decoded: {e}") from None
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    text = text[len(bom) :]
    try:
        tree = ast.parse(text, filename, type_comments=False)
        if "exec(" in text and (said := spelled_out(text, tree)) != text:
            text, tree = said, ast.parse(said, filename, type_comments=False)
        if "__bases__ = " in text and (said := bases_named(text, tree)) != text:
            text, tree = said, ast.parse(said, filename, type_comments=False)
        if "**" in text and ".dtype" in text and (said := written_out(text, tree)) != text:
            text, tree = said, ast.parse(said, filename, type_comments=False)
    except SyntaxError as e:
        raise SourceError(f"not valid Python: {e.msg}", e.lineno or 0, e.offset or 0) from None
    except (ValueError, RecursionError, MemoryError) as e:
        raise SourceError(f"can't be parsed: {e}") from None
    return Source(filename, text, tree, newline, encoding)


PLAIN = frozenset({"ctx", "id", "attr", "arg", "name", "asname", "module", "level", "type_comment", "kind", "conversion", "is_async", "simple", "rest",
    "kwd_attrs", "tag"})  # never nodes
_fields: dict[type, tuple[str, ...]] = {}


def _fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a kind of node that may hold other nodes."""
    if kind in (ast.Constant, ast.MatchSingleton, ast.Global, ast.Nonlocal):
        found: tuple[str, ...] = ()
    else:
        found = tuple(f for f in kind._fields if f not in PLAIN or kind.__name__ == "TypeAlias" and f == "name")  # type: ignore[attr-defined]
    _fields[kind] = found
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below one, without the `ctx` of names."""
    found: list[ast.AST] = []
    kind = node.__class__
    for name in _fields[kind] if kind in _fields else _fields_of(kind):
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [v for v in value if v is not None]
        elif value is not None:
            found.append(value)
    return found


def walk(*trees: ast.AST) -> list[ast.AST]:
    """All nodes, as `ast.walk` orders them, without the `ctx` of names; it takes a quarter of the time, as it does not call `children`."""
    found = list(trees)
    for node in found:
        kind = node.__class__
        for name in _fields[kind] if kind in _fields else _fields_of(kind):
            value = getattr(node, name, None)
            if value.__class__ is list:
                found += [v for v in value if v is not None]
            elif value is not None:
                found.append(value)
    return found


def _linked(tree: ast.Module) -> tuple[list[ast.AST], dict[ast.AST, ast.AST]]:
    """(nodes, parents), without recursion: expressions may be thousands of levels deep. Calls nothing for a node, as `walk`."""
    nodes: list[ast.AST] = []
    parents: dict[ast.AST, ast.AST] = {}
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        nodes.append(node)
        below: list[ast.AST] = []
        kind = node.__class__
        for name in _fields[kind] if kind in _fields else _fields_of(kind):
            value = getattr(node, name, None)
            if value.__class__ is list:
                below += [v for v in value if v is not None]
            elif value is not None:
                below.append(value)
        for child in below:
            parents[child] = node
        below.reverse()
        stack += below
    return nodes, parents
