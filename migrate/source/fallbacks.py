"""Imports that stand in for one another: `try: from kernels import Norm`, `except ImportError: from torch.nn import Norm`."""
import ast
from typing import TYPE_CHECKING

from migrate.source.names import Binding

if TYPE_CHECKING:
    from migrate.source.modules import FileInfo, Unit


def prefer_known(unit: "Unit") -> None:
    """Of imports of one name that are tried in turn, a known one comes before one of a package that is neither local nor known: such are PyTorch's extensions."""
    local = {name.partition(".")[0] for name in unit.files}
    for file in unit.files.values():
        for scope in file.names.scopes.values():
            for bound in scope.bindings.values():
                tried = [b for b in bound if b.kind == "import" and _is_tried(file, b)]
                if len(tried) > 1 and _is_foreign(unit, local, tried[0]):
                    known = next((b for b in tried[1:] if not isinstance(unit.named(b.dotted), str)), None)
                    if known is not None:
                        bound.remove(known)
                        bound.insert(0, known)


def _is_foreign(unit: "Unit", local: set[str], binding: Binding) -> bool:
    root = binding.dotted.partition(".")[0]
    return root not in local and root != "torch" and not unit.boundary.of(binding.dotted) and isinstance(unit.named(binding.dotted), str)


def _is_tried(file: "FileInfo", binding: Binding) -> bool:
    parents = file.source.parents
    at: ast.AST | None = binding.node
    while at is not None and not isinstance(at, ast.Try):
        at = parents.get(at)
    return at is not None
