"""`# migrate: keep`: a statement, function or class whose (first) line carries this comment stays as it is."""
import ast
import re

from migrate.source.text import Source

MARK = re.compile(r"#\s*migrate:\s*keep\b")


def kept_statements(source: Source) -> list[ast.stmt]:
    """The outermost statements that stay, in order."""
    if not MARK.search(source.text):
        return []
    lines = {line for line, comment in source.comments.items() if MARK.search(comment)}
    found: list[ast.stmt] = []
    covered = 0
    for node in source.nodes:
        if isinstance(node, ast.stmt) and node.lineno > covered and lines.intersection(_own_lines(node)):
            found.append(node)
            covered = node.end_lineno or node.lineno
    return found


def kept_nodes(source: Source) -> set[ast.AST]:
    """These statements with all that they hold."""
    return {n for s in kept_statements(source) for n in ast.walk(s)}


def _own_lines(node: ast.stmt) -> range:
    """The lines of a statement, of a compound one those of its head."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    inner = min([body[0].lineno, *(d.lineno for d in getattr(body[0], "decorator_list", ()))]) if isinstance(body[0], ast.stmt) else node.lineno + 1
    return range(first, max(inner, node.lineno + 1))
