"""Where imports of libraries lead: converted modules are in a package of another name, and what is not converted stays in the library.

Changed: `from lib.models.a import A` where that module is converted, `lib.A`; `from ...utils import b` where `b` stays in the library.
Unchanged: imports among the converted modules of one library, and all others.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece

RULE = "relocation"


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """`lib.A` where `A` is a definition of a converted module: it is imported from there."""
    dotted = ctx.file.names.dotted(node) or ""
    home, _, name = ctx.unit.homes.get(dotted, "").rpartition(".")
    if not name or ctx.owned(node) or home not in ctx.unit.files:
        return
    ctx.shared.setdefault("imports", {})[name] = f"from {_placed(ctx, home)} import {name}"
    ctx.edit(node, lambda e: Piece(ctx.name(name)), RULE, why=dotted)


def statements(ctx: Context, node: ast.Import | ast.ImportFrom, kept: list[ast.alias]) -> list[str]:
    """The imports that take a statement's place; none where it may stay as it is."""
    if not kept:
        return []
    lines: dict[str, list[str]] = {}
    changed = False
    for a in kept:
        before, line, name = _import_from(ctx, node, a) if isinstance(node, ast.ImportFrom) else _import(ctx, a)
        changed = changed or before != line
        lines.setdefault(line, []).append(name)
    return [f"{line} {', '.join(names)}" for line, names in lines.items()] if changed else []


def _import(ctx: Context, a: ast.alias) -> tuple[str, str, str]:
    """`import lib.models.a as a`."""
    module = _placed(ctx, a.name) if a.asname else a.name
    return f"import {a.name}", f"import {module}", f"as {a.asname}" if a.asname else ""


def _import_from(ctx: Context, node: ast.ImportFrom, a: ast.alias) -> tuple[str, str, str]:
    """`from lib.models.a import A`: as it is, as it becomes, the name."""
    boundary = ctx.unit.boundary
    base = ctx.file.names.absolute(node.module, node.level)
    dotted = ctx.unit.homes.get(f"{base}.{a.name}", f"{base}.{a.name}")
    home, _, name = dotted.rpartition(".")
    before = f"from {'.' * node.level}{node.module or ''} import"
    text = f"{name} as {a.asname or a.name}" if (a.asname or a.name) != name else name
    if boundary.of(base) is None:
        return before, before, text
    inside = boundary.converted(ctx.file.module)
    if home == base and node.level and inside and (home in ctx.unit.files or dotted in ctx.unit.files):
        return before, before, text
    return before, f"from {_placed(ctx, home)} import", text


def _placed(ctx: Context, module: str) -> str:
    return ctx.unit.boundary.place(module, ctx.target.name) if module in ctx.unit.files else module
