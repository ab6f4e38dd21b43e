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
    _trim_headings(source, lines)
    return "\n".join(lines), out


def _trim_headings(source: Source, lines: list[str]) -> None:
    """Blanks the comments between statements that were about what is gone: what followed one is left out, and another comment or the end comes next."""
    inside = {line for s in source.tree.body for line in range(s.lineno, (s.end_lineno or s.lineno) + 1)}
    first = min(inside, default=0)
    before = source.text.split("\n")
    followed = ""  # the next line that is left
    gone = False  # whether the next line of the source is left out
    for number in range(len(lines), first, -1):
        text, heading = before[number - 1], number not in inside and before[number - 1].startswith("#")
        if not text.strip():
            continue
        if heading and gone and (not followed or followed.startswith("#")):
            lines[number - 1] = ""
        elif heading:
            followed = text
        else:
            gone = not lines[number - 1].strip()
            followed = followed if gone else lines[number - 1]


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
    """At most two blank lines between top-level statements, and one between imports."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return code
    inside = {line for s in tree.body for line in range(s.lineno, (s.end_lineno or s.lineno) + 1)}
    imports = {s.lineno for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))}
    ends = {s.end_lineno for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))}
    out: list[str] = []
    blank, after_import = 0, False
    for number, line in enumerate(code.split("\n"), 1):
        if number not in inside and not line.strip():
            blank += 1
            continue
        if blank and out:
            out += [""] * min(blank, 1 if after_import and number in imports else 2)
        blank, after_import = 0, number in ends
        out.append(line)
    return "\n".join(out) + "\n"
