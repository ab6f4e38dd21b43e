"""Functions that a decorator turns into classes of modules: `@module(size=3)` above the function that is their forward pass."""
import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.source.modules import ClassInfo, FunctionInfo, Unit


def classes_of_functions(unit: "Unit") -> "dict[FunctionInfo, ClassInfo]":
    """The functions of a unit under such a decorator, each with the class that the decorator makes."""
    found = {}
    for file in unit.files.values():
        for f in file.functions:
            made = [c for d in f.node.decorator_list if (c := _made(unit, f, d)) is not None]
            if made:
                found[f] = made[0]
    return found


def _made(unit: "Unit", f: "FunctionInfo", decorator: ast.expr) -> "ClassInfo | None":
    """The module class that a decorator gives back in place of a function."""
    from migrate.source.modules import ClassInfo, FunctionInfo

    func = decorator.func if isinstance(decorator, ast.Call) else decorator
    maker = unit.resolve(f.file, func) if isinstance(func, (ast.Name, ast.Attribute)) else None
    if not isinstance(maker, FunctionInfo):
        return None
    node: ast.AST | None = _returned(maker.node, ast.FunctionDef) if isinstance(decorator, ast.Call) else maker.node
    made = maker.file.by_node.get(_returned(node, ast.ClassDef) or node) if isinstance(node, ast.FunctionDef) else None
    return made if isinstance(made, ClassInfo) and made.is_module else None


def _returned(function: ast.AST, kind: type[ast.FunctionDef] | type[ast.ClassDef]) -> ast.AST | None:
    """The definition in a function that the function returns, where that is the only thing it returns."""
    body = getattr(function, "body", [])
    returns = [s.value for s in body if isinstance(s, ast.Return)]
    if len(returns) != 1 or not isinstance(returns[0], ast.Name):
        return None
    name = returns[0].id
    return next((s for s in body if isinstance(s, kind) and s.name == name), None)
