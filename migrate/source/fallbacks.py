"""Imports that stand in for one another (`try: from kernels import Norm`, `except ImportError: from torch.nn import Norm`) or for a class of the file itself."""
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


def prefer_own(unit: "Unit") -> None:
    """A class of the file comes before one of another package that is bound to its name where that package is there: such are PyTorch's extensions."""
    local = {name.partition(".")[0] for name in unit.files}
    for file in unit.files.values():
        for s in file.source.tree.body:
            if isinstance(s, ast.Try) and _only_replaces(s):
                inside = set(ast.walk(s))
                for bound in file.names.top.bindings.values():
                    replacing = [b for b in bound if b.node in inside]
                    own = [b for b in bound if b.kind == "class" and isinstance(b.node, ast.ClassDef) and b.node.bases and b.node not in inside]
                    foreign = all(b.kind == "assign" or _is_foreign(unit, local, b) for b in [*replacing, *_imports(file, inside)])
                    if own and replacing and foreign:
                        bound[:] = [b for b in bound if b not in replacing]
                        unit.shared.setdefault("replacing", set()).add(s)


def _imports(file: "FileInfo", inside: set[ast.AST]) -> list[Binding]:
    return [b for bound in file.names.top.bindings.values() for b in bound if b.kind == "import" and b.node in inside]


def _only_replaces(s: ast.Try) -> bool:
    """Whether a statement imports something, gives it another name and says so, and where that fails does nothing."""
    plain = all(isinstance(b, (ast.Import, ast.ImportFrom)) or isinstance(b, ast.Assign) and isinstance(b.value, ast.Name) or _speaks(b) for b in s.body)
    quiet = all(isinstance(b, ast.Pass) or _speaks(b) for h in s.handlers for b in h.body)
    return isinstance(s.body[0], (ast.Import, ast.ImportFrom)) and plain and not s.orelse and not s.finalbody and quiet


def _speaks(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
