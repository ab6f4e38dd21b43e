"""Names of PyTorch that are looked up at run time: `getattr(nn, name)`, `hasattr(F, "silu")`."""
import ast
import re
from dataclasses import dataclass

from migrate.source.datafiles import words
from migrate.source.modules import FileInfo, Unit
from migrate.tables import Row

MODULES = frozenset({"torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.Tensor"})


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
    return Lookup(dotted, name, _candidates(unit, dotted, name))


def _candidates(unit: Unit, module: str, name: ast.expr) -> dict[str, Row]:
    """The rows of a module whose names stand in the code as text; or that an f-string can spell."""
    if isinstance(name, ast.JoinedStr):
        pattern = re.compile("".join(re.escape(str(v.value)) if isinstance(v, ast.Constant) else "(.+)" for v in name.values))
        if pattern.pattern.replace("(.+)", ""):
            rows = {r.torch.rpartition(".")[2]: r for r in unit.table.rows if r.torch.rpartition(".")[0] == module}
            return {n: rows[n] for n in sorted(rows) if pattern.fullmatch(n)}
    found = ((s, unit.table.get(f"{module}.{s}")) for s in sorted(_texts(unit)))
    return {s: row for s, row in found if row is not None}


def _texts(unit: Unit) -> set[str]:
    """Every text in the code that could be a name."""
    if unit.texts is None:
        constants = (n.value for f in unit.files.values() for n in f.source.nodes if isinstance(n, ast.Constant))
        unit.texts = set(unit.told) | {v for v in constants if isinstance(v, str) and v.isidentifier()}
        unit.texts |= words({p for p, _, _ in unit.data()})
    return unit.texts
