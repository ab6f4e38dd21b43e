"""Writes a call anew in the shape that it has: its arguments' own text, comments and line breaks stay."""
import ast
from collections.abc import Collection, Mapping, Sequence

from migrate.context import Context
from migrate.edits import LAMBDA, Emitter, Piece
from migrate.rules.example import Example


def inplace(
    ctx: Context, e: Emitter, node: ast.Call, *, func: str | None = None, first: Sequence[ast.expr] = (), keywords: Sequence[str] = (),
    drop: Collection[ast.AST] = (), rename: Mapping[ast.keyword, str] | None = None, texts: Mapping[ast.AST, str] | None = None,
) -> Piece:
    """The call with another function, arguments before its own (`first`), added `keywords` ("rngs=rngs"), and some dropped, renamed or replaced."""
    src = ctx.source
    func = func if func is not None else e.render(node.func)
    args = sorted([*node.args, *node.keywords], key=src.start)
    drop = {*drop, *ctx.shared.get("placed", ())}
    kept = [a for a in args if a not in drop]
    opened, closed = opening(ctx, node), src.end(node) - 1
    if len(args) == 1 and isinstance(args[0], ast.GeneratorExp):
        return Piece(f"{func}({', '.join([*(e.piece(f).at(LAMBDA) for f in first), e.render(args[0]), *keywords])})")
    lead = "".join(f"{e.piece(f).at(LAMBDA)}, " for f in first)
    if not kept:
        return Piece(f"{func}({', '.join([*(e.piece(f).at(LAMBDA) for f in first), *keywords])})")
    out = [f"{func}({src.text[opened + 1 : src.start(args[0])]}{lead}"]
    for i, a in enumerate(args):
        if a in drop:
            continue
        if a is not kept[0]:
            out.append(src.text[src.end(args[i - 1]) : src.start(a)])
        out.append((texts or {}).get(a) or _argument(e, a, rename))
    tail = src.text[src.end(args[-1]) : closed]
    out.append(_with_keywords(ctx, tail if kept[-1] is args[-1] else _closing(tail), kept[-1], keywords))
    return Piece("".join(out) + ")")


def _closing(text: str) -> str:
    return text.lstrip(", ") if "\n" not in text else text


def _argument(e: Emitter, a: ast.AST, rename: Mapping[ast.keyword, str] | None) -> str:
    if isinstance(a, ast.keyword):
        name = (rename or {}).get(a, a.arg)
        value = e.render(a.value)
        return f"{name}={value}" if name is not None else f"**{value}"
    return e.render(a)


def _with_keywords(ctx: Context, tail: str, last: ast.AST, keywords: Sequence[str]) -> str:
    if not keywords:
        return tail
    added = ", ".join(keywords)
    comma = trailing_comma(tail)
    if comma < 0 and _on_lines(ctx, last, tail):
        return f",\n{ctx.source.indent(last)}{added},{tail}"
    if comma < 0:
        close = len(tail) - len(tail.lstrip(") \n\t")) if tail.strip().startswith(")") else 0
        return f"{tail[:close]}, {added}{tail[close:]}"
    if "\n" in tail:
        return f"{tail[: comma + 1]}{_same_line_comment(tail[comma + 1 :])}\n{ctx.source.indent(last)}{added},{_rest(tail[comma + 1 :])}"
    return f"{tail[: comma + 1]} {added}"


def _on_lines(ctx: Context, last: ast.AST, tail: str) -> bool:
    """Whether the last argument, without a comma behind it, has several lines to itself: what is added gets one too."""
    src = ctx.source
    start, end = src.span(last)
    return tail[:1] == "\n" and not tail.strip() and "\n" in src.text[start:end] and not src.text[src.line_start(start) : start].strip()


def _same_line_comment(text: str) -> str:
    return text[: text.index("\n")] if "\n" in text else ""


def _rest(text: str) -> str:
    return text[text.index("\n") :] if "\n" in text else ""


def opening(ctx: Context, call: ast.Call) -> int:
    """The offset of the call's opening parenthesis."""
    text, at = ctx.source.text, ctx.source.end(call.func)
    while text[at] != "(":
        at = text.index("\n", at) if text[at] == "#" else at + 1
    return int(at)


def insert_keyword(ctx: Context, node: ast.Call, keyword: str, rule: str) -> None:
    """Adds a keyword argument at the end of a call, in the shape that the call has."""
    offset, text = keyword_place(ctx, node, keyword)
    if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.GeneratorExp) and ctx.source.end(node.args[0]) == ctx.source.end(node):
        ctx.plan.insert(opening(ctx, node) + 1, "(", rule)  # the call's parentheses are the generator's own
        text = f"){text}"
    ctx.plan.insert(offset, text, rule)


def keyword_place(ctx: Context, node: ast.Call, keyword: str) -> tuple[int, str]:
    """Where a keyword argument goes, and the text to insert there."""
    src = ctx.source
    args = [*node.args, *node.keywords]
    close = src.end(node) - 1
    if not args or all(a in ctx.shared.get("placed", ()) for a in args):
        return close, keyword
    last = max(src.end(a) for a in args)
    if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.GeneratorExp):
        return close, f", {keyword}"
    tail = src.text[last:close]
    comma = trailing_comma(tail)
    if comma >= 0:
        last += comma + 1
        start = max(args, key=lambda a: src.end(a))
        if "\n" in src.text[last:close]:
            return last, f"\n{src.indent(start)}{keyword},"
        return last, f" {keyword}"
    final = max(args, key=lambda a: src.end(a))
    if _on_lines(ctx, final, tail):
        return last, f",\n{src.indent(final)}{keyword},"
    extra = 0
    while tail[extra : extra + 1] in (")", " ") and tail[extra:].lstrip().startswith(")"):
        extra += 1  # parentheses of the argument's own
    return last + extra, f", {keyword}"


def trailing_comma(tail: str) -> int:
    """Where the comma after the last argument is in the text behind it; -1 where there is none."""
    at = 0
    while at < len(tail):
        if tail[at] == ",":
            return at
        if tail[at] == "#":
            at = tail.find("\n", at)
            if at < 0:
                return -1
        at += 1
    return -1


BLOCK = "\n\nclass Block(nn.Module):\n    def __init__(self, n=1, width=1):\n        super().__init__()\n        self.a = nn.Linear(n, width)\n"
EXAMPLES = (
    Example(
        "def f():\n    return Block(\n        3,\n        # the width\n        width=4,  # four\n    )\n" + BLOCK,
        "    return Block(\n        3,\n        # the width\n        width=4,\n        rngs=rngs,  # four\n    )\n", why="comments and a trailing comma",
    ),
    Example("def f():\n    return Block(3, width=4,)\n" + BLOCK, "    return Block(3, width=4, rngs=rngs)\n"),
    Example("def f(sizes):\n    return Block(*sizes)\n" + BLOCK, "    return Block(*sizes, rngs=rngs)\n"),
    Example("def f(sizes):\n    return Block(n for n in sizes)\n" + BLOCK, "    return Block((n for n in sizes), rngs=rngs)\n", why="a generator without parentheses of its own"),
    Example("def f():\n    return Block(\n        max(\n            3,\n            4,\n        )\n    )\n" + BLOCK, "            4,\n        ),\n        rngs=rngs,\n    )\n", why="the last argument has lines of its own"),
    Example("def f():\n    return Block(\n        (3)\n    )\n" + BLOCK, "    return Block(\n        (3), rngs=rngs\n    )\n"),
    Example("def f():\n    return Block(), Block(\n    )\n" + BLOCK, "    return Block(rngs=rngs), Block(\n    rngs=rngs)\n"),
    Example("def f():\n    return Block(3)  # parenthesis: (\n" + BLOCK, "    return Block(3, rngs=rngs)  # parenthesis: (\n"),
    Example("def f(x):\n    return print(\n        x,  # one\n    )\n"),
    Example("def g(a, b=1):\n    return a + b\n\n\nprint(g(1, b=2,), g(\n    3,  # c\n))\n"),
)
