"""Functions that surely write to nothing in place, themselves or by what they call: their nodes tell, and they need not be walked."""
import ast

from migrate.infer.kinds import refs
from migrate.infer.writes import Walker, Writes, tensor_index
from migrate.infer.written_calls import constructed, inplace_layer, says_inplace
from migrate.source.modules import ClassInfo, FileInfo, FunctionInfo
from migrate.source.text import walk
from migrate.tables import Row


class Quiet:
    """Asks of each function once. One that calls itself, over others too, is walked."""

    def __init__(self, writes: Writes) -> None:
        self.writes = writes
        self._known: dict[ast.AST, bool] = {}

    def holds(self, file: FileInfo, root: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> bool:
        """Whether nothing in a function, or in a module outside of its functions, may be a write."""
        if root not in self._known:
            self._known[root] = False  # while it is looked at
            w = Walker(self.writes, file, root)  # not run: it tells what expressions are
            self._known[root] = not isinstance(root, ast.Module) and not any(self._may_write(w, n) for s in root.body for n in walk(s))
        return self._known[root]

    def _may_write(self, w: Walker, n: ast.AST) -> bool:
        match n:
            case ast.Call():
                return self._call_writes(w, n)
            case ast.AugAssign():
                held = isinstance(n.target, ast.Subscript) and w.kind(n.target.value).is_tensor
                return held or w.kind(n.target).is_unknown or w.kind(n.target).is_tensor
            case ast.Subscript() if not isinstance(n.ctx, ast.Load):
                kind = w.kind(n.value)
                return kind.is_tensor or kind.is_unknown and (tensor_index(n.slice) or w.kind(n.slice).is_tensor)
            case ast.Attribute():
                return n.attr == "data" and not isinstance(n.ctx, ast.Load)
        return False

    def _call_writes(self, w: Walker, node: ast.Call) -> bool:
        f = node.func
        if _ends_as_writing(f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""):
            return True
        found = self.writes.unit.resolve(w.file, f) if isinstance(f, (ast.Name, ast.Attribute)) else None
        if isinstance(found, Row) and found.kind == "function":
            return _ends_as_writing(found.torch) or says_inplace(w, node, found)
        if isinstance(found, str) and found.startswith(("torch.", "einops.", "builtins.")):
            return _ends_as_writing(found)
        kind = w.kind(f)
        callees = [ref for ref in refs(kind) if isinstance(ref, (ClassInfo, FunctionInfo))]
        if kind.tag == "module" and inplace_layer(w, constructed(w, f)):
            return True
        return any(self._callee_writes(c, "forward" if kind.tag == "module" else "__init__") for c in callees)

    def _callee_writes(self, called: ClassInfo | FunctionInfo, method: str) -> bool:
        f = called.method(method) if isinstance(called, ClassInfo) else called
        return f is not None and not self.holds(f.file, f.node)


def _ends_as_writing(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")
