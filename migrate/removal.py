"""Removal of whole statements."""
import ast
import re

from migrate.context import Context
from migrate.edits import Piece


def remove_statement(ctx: Context, statement: ast.stmt, rule: str, *, replaced: bool = False) -> None:
    """Removes a statement with its line; leaves `pass` where a body would be empty. `replaced`: something else comes in its place."""
    if ctx.owned(statement):
        return
    src = ctx.source
    ctx.removed.update(ast.walk(statement))
    siblings = _siblings(ctx, statement)
    doomed = ctx.shared.setdefault("doomed", set())
    doomed.add(statement)
    left = [s for s in siblings if s not in doomed and not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str))]
    start, end = src.span(statement)
    line_start, line_end = src.line_start(start), src.line_end(end)
    alone = not src.text[line_start:start].strip() and src.text[end:line_end].strip()[:1] in ("", "#")
    following = re.match(r"[ \t]*;[ \t]*(?=[^\s#])", src.text[end:line_end])
    if following and left:
        ctx.plan.replace(start, end + following.end(), "", rule)
        return
    if not left or not alone:
        ctx.edit(statement, lambda e: Piece("pass"), rule)
        return
    after = src.text[line_end : src.line_end(line_end)] if line_end < len(src.text) else ""
    first = siblings and siblings[0] is statement
    if first and not replaced and not after.strip() and after:
        line_end = src.line_end(line_end)  # the blank line that set it off
    ctx.plan.replace(line_start, line_end, "", rule)


def _siblings(ctx: Context, statement: ast.stmt) -> list[ast.stmt]:
    parent = ctx.source.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        body = getattr(parent, name, None)
        if isinstance(body, list) and statement in body:
            return body
    return [statement]
