"""Names that a function of the code imports: `Rearrange, found = optional_import("einops.layers.torch", name="Rearrange")`."""
import ast
from collections.abc import Iterator

from migrate.source.modules import FileInfo, FunctionInfo, Unit
from migrate.source.names import Binding
from migrate.tables import Row

IMPORTERS = ("importlib.import_module", "builtins.__import__")
LIBRARIES = ("einops.",)  # that work on arrays of any kind


def bind(unit: Unit) -> None:
    """Makes imports of such names where they are known.

    `unit.shared` holds the statements: of all as "imported", of those that the output imports itself as "optional".
    """
    for file in unit.files.values():
        for statement, name, dotted in _found(unit, file):
            row = unit.named(dotted)
            if len(file.names.top.bindings.get(name, ())) != 1 or not (isinstance(row, Row) or dotted.startswith(LIBRARIES)):
                continue
            unit.shared.setdefault("imported", set()).add(statement)
            file.names.top.bindings[name] = [Binding("import", statement, dotted)]
            if isinstance(row, Row):
                unit.shared.setdefault("optional", set()).add(statement)


def _found(unit: Unit, file: FileInfo) -> Iterator[tuple[ast.Assign, str, str]]:
    """The statements of a file, each with the name that it binds and what that is imported as."""
    for s in file.source.tree.body:
        if not isinstance(s, ast.Assign) or len(s.targets) != 1 or not isinstance(s.value, ast.Call) or not isinstance(s.value.func, (ast.Name, ast.Attribute)):
            continue
        target = s.targets[0].elts[0] if isinstance(s.targets[0], ast.Tuple) and len(s.targets[0].elts) == 2 else s.targets[0]
        texts = [a.value for a in [*s.value.args, *(k.value for k in s.value.keywords)] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if isinstance(target, ast.Name) and len(texts) > 1:
            function = unit.resolve(file, s.value.func)
            given = _imported(function, s.value) if isinstance(function, FunctionInfo) else None
            if given:
                yield s, target.id, given


def _imported(function: FunctionInfo, call: ast.Call) -> str | None:
    """The dotted name that a call imports: the function imports the module that one parameter names, and gets the attribute that another names."""
    names = [p.arg for p in function.parameters]
    texts = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
    module, attribute = "", ""
    for n in ast.walk(function.node):
        if isinstance(n, ast.Call) and (called := function.file.names.dotted(n.func)):
            if called in IMPORTERS and n.args:
                module = _text(texts, n.args[0]) or module
            elif called == "builtins.getattr" and len(n.args) == 2:
                attribute = _text(texts, n.args[1]) or attribute
    return f"{module}.{attribute}" if module and attribute else None


def _text(texts: dict[str, ast.expr], node: ast.expr) -> str:
    given = texts.get(node.id) if isinstance(node, ast.Name) else None
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
