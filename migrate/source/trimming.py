"""The text of a module without what nothing needs. Lines keep their numbers: what goes leaves blank lines, which the output closes up."""
import ast

from migrate.source.projects import Module
from migrate.source.text import Source, import_text


def trim(module: Module, source: Source) -> tuple[str, list[str]]:
    """(the text to convert, the names of the definitions left out). `source` is the parse of the module's own text."""
    if module.whole:
        return source.text, []
    positions = {(s.lineno, s.col_offset) for s in module.kept}
    lines = source.text.split("\n")
    out: list[str] = []
    for s in source.tree.body:
        first = min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))])
        last = s.end_lineno or s.lineno
        if _is_docstring(s, source) or isinstance(s, ast.ImportFrom) and s.module == "__future__":
            continue
        if isinstance(s, (ast.Import, ast.ImportFrom)):
            _trim_import(module, s, lines, first, last)
        elif (s.lineno, s.col_offset) not in positions:
            first = _with_comments(lines, first)
            lines[first - 1 : last] = [""] * (last - first + 1)
            out += _names(s)
    return "\n".join(lines), out


def _is_docstring(s: ast.stmt, source: Source) -> bool:
    return s is source.tree.body[0] and isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)


def _with_comments(lines: list[str], first: int) -> int:
    """The line where the comments directly above a statement start."""
    while first > 1 and lines[first - 2].startswith("#") and first > 2:
        first -= 1
    return first


def _trim_import(module: Module, s: ast.Import | ast.ImportFrom, lines: list[str], first: int, last: int) -> None:
    if isinstance(s, ast.ImportFrom) and any(a.name == "*" for a in s.names):
        if (s.lineno, s.col_offset) not in {(k.lineno, k.col_offset) for k in module.kept}:
            lines[first - 1 : last] = [""] * (last - first + 1)
        return
    kept = [a for a in s.names if (a.asname or (a.name.partition(".")[0] if isinstance(s, ast.Import) else a.name)) in module.needed]
    if len(kept) == len(s.names):
        return
    written = import_text(s, kept).split("\n") if kept else [""]
    lines[first - 1 : last] = [*written, *[""] * (last - first + 1 - len(written))]


def _names(s: ast.stmt) -> list[str]:
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [s.name]
    return []


def close_gaps(code: str) -> str:
    """At most two blank lines between top-level statements."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return code
    lines = code.split("\n")
    inside: set[int] = set()
    for s in tree.body:
        inside.update(range(s.lineno, (s.end_lineno or s.lineno) + 1))
    out: list[str] = []
    blank = 0
    for number, line in enumerate(lines, 1):
        if number not in inside and not line.strip():
            blank += 1
            if blank > 2 or not out:
                continue
        else:
            blank = 0
        out.append(line)
    while len(out) > 1 and not out[-1].strip() and not out[-2].strip():
        out.pop()
    return "\n".join(out)
