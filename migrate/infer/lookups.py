"""Names of PyTorch that are looked up at run time: `getattr(nn, name)`, `hasattr(F, "silu")`."""
import ast
import re
from dataclasses import dataclass

from migrate.source.datafiles import words
from migrate.source.modules import FileInfo, Unit
from migrate.tables import Row

MODULES = frozenset({"torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.Tensor"})

ANY = "(.+)"


@dataclass(frozen=True)
class Lookup:
    """`getattr(module, name)`: the rows that the name may mean, by name. `literal`: the name itself, where it is known."""

    module: str
    name: ast.expr
    rows: dict[str, Row]
    literal: str = ""


def lookup(unit: Unit, file: FileInfo, node: ast.AST, function: str = "getattr") -> Lookup | None:
    """What a call of `getattr` or `hasattr` looks up in a module of PyTorch; None where it is something else."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function and len(node.args) in (2, 3) and not node.keywords):
        return None
    module = unit.resolve(file, node.args[0]) if isinstance(node.args[0], (ast.Name, ast.Attribute)) else None
    dotted = module.torch if isinstance(module, Row) else module
    if dotted not in MODULES or not isinstance(dotted, str):
        return None
    name = node.args[1]
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        row = unit.table.get(f"{dotted}.{name.value}")
        return Lookup(dotted, name, {name.value: row} if row is not None else {}, name.value)
    return Lookup(dotted, name, _candidates(unit, file, dotted, name))


def _candidates(unit: Unit, file: FileInfo, module: str, name: ast.expr) -> dict[str, Row]:
    """The rows of a module whose names stand in the code as text; or that an f-string, a `format` or a sum of texts can spell, also by way of a name."""
    patterns = [p for v in _values(file, name) if (p := _pattern(v)).replace(ANY, "")]
    rows = {r.torch.rpartition(".")[2]: r for r in unit.table.rows if r.torch.rpartition(".")[0] == module} if patterns else {}
    if spelled := {n: rows[n] for n in sorted(rows) if any(re.fullmatch(p, n) for p in patterns)}:
        return spelled
    found = ((s, unit.table.get(f"{module}.{s}")) for s in sorted(_texts(unit)))
    return {s: row for s, row in found if row is not None}


def _values(file: FileInfo, name: ast.expr) -> list[ast.expr]:
    """What a name may hold, by its assignments in its scope; the expression itself where it is no name."""
    if not isinstance(name, ast.Name):
        return [name]
    bound = file.names.lookup(name)
    given = [b.value for b in bound if b.kind == "assign" and b.value is not None]
    return given if len(given) == len(bound) else [name]


def _pattern(text: ast.expr) -> str:
    """A regular expression for what an expression of texts spells."""
    match text:
        case ast.Constant(value=str(value)):
            return re.escape(value)
        case ast.JoinedStr():
            return "".join(_pattern(v) if isinstance(v, ast.Constant) else ANY for v in text.values)
        case ast.BinOp(op=ast.Add()):
            return _pattern(text.left) + _pattern(text.right)
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str(value))):
            return ANY.join(re.escape(part) for part in re.split(r"%[sdr]", value))
        case ast.Call(func=ast.Attribute(attr="format", value=ast.Constant(value=str(value)))):
            return ANY.join(re.escape(part) for part in re.split(r"{[^{}]*}", value))
    return ANY


def _texts(unit: Unit) -> set[str]:
    """Every text in the code that could be a name."""
    if unit.texts is None:
        constants = (n.value for f in unit.files.values() for n in f.source.nodes if isinstance(n, ast.Constant))
        unit.texts = set(unit.told) | {v for v in constants if isinstance(v, str) and v.isidentifier()}
        unit.texts |= words({p for p, _, _ in unit.data()})
    return unit.texts
