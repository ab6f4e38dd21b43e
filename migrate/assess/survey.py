"""What a file uses: modules, operators, and constructs that run badly on a TPU."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrate.source.modules import FileInfo, Unit
from migrate.source.text import SourceError, read
from migrate.tables import Row, Table

# kind -> (what it means on a TPU, the way out)
HOSTILE = {
    "data-dependent shape": (
        "XLA compiles for fixed shapes; a result whose shape depends on values can't be compiled.",
        "Pad to a fixed size and keep a mask (`size=` of the jax.numpy functions).",
    ),
    "data-dependent control flow": (
        "Python's `if` and `while` need values that a traced computation does not have.",
        "jnp.where, jax.lax.cond, jax.lax.while_loop.",
    ),
    "host round trip": ("Each one waits for the device and copies over.", "Keep values on the device; read them after the step."),
    "sparse embedding": (
        "There are no sparse gradients or sparse tensors on a TPU.",
        "Dense gradients, or a lookup that is sharded over devices.",
    ),
    "float64": ("TPUs have no 64-bit arithmetic; it is emulated, and off by default in JAX.", "float32, or bfloat16 with float32 sums."),
    "dynamic batch": ("A last batch of another size compiles everything again.", "drop_last=True, or pad the last batch."),
}
CALLS = {
    **dict.fromkeys(
        ("torch.nonzero", "torch.argwhere", "torch.masked_select", "torch.unique", "torch.unique_consecutive", "torch.bincount"),
        "data-dependent shape",
    ),
    **dict.fromkeys(("torch.sparse_coo_tensor", "torch.sparse_csr_tensor", "torch.sparse.mm", "torch.nn.EmbeddingBag"), "sparse embedding"),
}
METHODS = {
    **dict.fromkeys(("nonzero", "masked_select", "unique", "unique_consecutive", "argwhere"), "data-dependent shape"),
    **dict.fromkeys(("item", "tolist", "numpy"), "host round trip"),
    **dict.fromkeys(("to_sparse", "to_sparse_csr"), "sparse embedding"),
    "double": "float64",
}
NAMES = dict.fromkeys(("torch.float64", "torch.double", "torch.complex128", "torch.DoubleTensor"), "float64")
BY_CODE = {"MIG105": "data-dependent shape", "MIG109": "data-dependent control flow"}  # what the conversion found


def survey(path: Path, module: str, table: Table) -> dict[str, Any]:
    """Counts and places: `modules`, `functions`, `operators` (name -> [times, whether it is known]), `hostile` ([line, kind, text])."""
    try:
        source = read(path.read_bytes(), path.name)
    except SourceError:
        return {"modules": 0, "functions": 0, "operators": {}, "hostile": []}
    unit = Unit(table)
    file = unit.add(source, module, path.name == "__init__.py")
    unit.link()
    operators: Counter[str] = Counter()
    known: set[str] = set()
    for name, row in _operators(unit, file):
        operators[name] += 1
        if row:
            known.add(name)
    modules = sum(c.is_module or "forward" in c.methods for c in file.classes)
    found = sorted({(n.lineno, kind, source.segment(n).partition("\n")[0][:80]) for n, kind in _hostile(unit, file)})
    return {
        "modules": modules,
        "functions": len(file.functions),
        "operators": {name: [count, name in known] for name, count in sorted(operators.items())},
        "hostile": [list(f) for f in found],
    }


def _operators(unit: Unit, file: FileInfo) -> Iterator[tuple[str, bool]]:
    """The names of PyTorch that the file looks up, each at its outermost attribute."""
    parents = file.source.parents
    for node in file.source.nodes:
        if (
            not isinstance(node, (ast.Name, ast.Attribute))
            or isinstance(parents.get(node), ast.Attribute)
            or not isinstance(node.ctx, ast.Load)
        ):
            continue
        found = unit.resolve(file, node)
        if isinstance(found, Row):
            yield found.torch, True
        elif isinstance(found, str) and found.startswith("torch.") and isinstance(parents.get(node), ast.Call):
            yield found, False


def _hostile(unit: Unit, file: FileInfo) -> Iterator[tuple[ast.expr, str]]:
    if not any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in file.source.tree.body):
        return
    for node in file.source.nodes:
        if isinstance(node, ast.Call):
            if kind := _call(unit, file, node):
                yield node, kind
        elif isinstance(node, (ast.Attribute, ast.Name)):
            kind = NAMES.get(_dotted(unit, file, node), "")
            if kind and not isinstance(file.source.parents.get(node), ast.Attribute):
                yield node, kind


def _call(unit: Unit, file: FileInfo, node: ast.Call) -> str:
    dotted = _dotted(unit, file, node.func)
    given = {k.arg: k.value for k in node.keywords}
    if dotted == "torch.nn.Embedding" and isinstance(s := given.get("sparse"), ast.Constant) and s.value is True:
        return "sparse embedding"
    if dotted == "torch.utils.data.DataLoader" and not (isinstance(d := given.get("drop_last"), ast.Constant) and d.value is True):
        return "dynamic batch"
    if dotted == "torch.where" and len(node.args) == 1:
        return "data-dependent shape"
    if dotted in CALLS:
        return CALLS[dotted]
    if isinstance(node.func, ast.Attribute) and not dotted and not node.args:
        return METHODS.get(node.func.attr, "")
    return ""


def _dotted(unit: Unit, file: FileInfo, node: ast.expr) -> str:
    found = unit.resolve(file, node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    return found.torch if isinstance(found, Row) else found if isinstance(found, str) else ""
