"""Lines of a file read as Python on their own: whole statements, or the head of one whose body follows."""

import ast
import re
from dataclasses import dataclass

_CODE = re.compile(r"^([ \t\f]*)([^\s#].*)$", re.M)
_WRAPS = {"elif": "if 1:", "else": "if 1:", "except": "try:", "finally": "try:"}


@dataclass(frozen=True)
class Fragment:
    """The statements of some lines, and the white space before the first."""

    statements: tuple[ast.stmt, ...]
    indent: str = ""


def fragment(text: str, is_open: bool) -> Fragment | None:
    """Reads lines; `is_open` says that they end in the head of a block. None where they are no whole statements."""
    first = _CODE.search(text)
    if first is None:
        return None if is_open else Fragment(())
    indent, code = first.groups()
    word = re.match(r"\w*", code)
    before = _WRAPS.get(word.group() if word else "", "")
    body = text if text.endswith("\n") else text + "\n"
    if is_open:
        body += f"{indent} pass\n"
    if before:
        body = f"{indent}{before}\n{indent} pass\n{body}"
    if (before == "try:" and word and word.group() not in ("except", "finally")) or (
        before == "try:" and "except" not in code and "finally" not in code
    ):
        return None
    try:
        tree = ast.parse("if 1:\n" + body if indent else body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    statements = tree.body
    if indent:
        assert isinstance(statements[0], ast.If)
        statements = statements[0].body if len(statements) == 1 and not statements[0].orelse else []
    return Fragment(tuple(statements), indent)


def replaces(old: str, new: str, is_open: bool) -> tuple[Fragment, Fragment] | None:
    """Both readings, where one text can stand for the other whatever stands around; else None."""
    before, after = fragment(old, is_open), fragment(new, is_open)
    if before is None or after is None:
        return None
    if before.statements and after.statements and before.indent != after.indent:
        return None
    if is_open and not (before.statements and after.statements):
        return None
    return before, after


def parses(text: str) -> SyntaxError | None:
    """What is wrong with a file's text, if anything."""
    try:
        ast.parse(text)
    except SyntaxError as e:
        return e
    except (ValueError, RecursionError, MemoryError) as e:
        return SyntaxError(str(e))
    return None
