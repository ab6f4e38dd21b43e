"""Functions that are called for what they write to their arguments: their products."""
import ast

from migrate.infer.liveness import own_nodes
from migrate.infer.writes import Event, Walker
from migrate.source.modules import FileInfo


def products(w: Walker) -> tuple[str, ...]:
    """The parameters that a function without a result writes to, in their order; none where the names may not hold what was written when it ends."""
    root = w.root
    if not isinstance(root, ast.FunctionDef) or not is_procedure(w.file, root):
        return ()
    parameters = [p.arg for p in [*root.args.posonlyargs, *root.args.args, *root.args.kwonlyargs]]
    written = {r.made[1] for r in w.summary.writes if isinstance(r.made, tuple) and r.made[0] == "param"}
    found = tuple(p for p in parameters if p in written)
    if len(found) != len(written) or any(_bound(root, p) for p in found) or not all(_direct(e) for events in w.events.values() for e in events):
        return ()
    return found


def lost(w: Walker, node: ast.AST) -> str:
    """The parameter of a function without a result that a write reaches through views alone: nothing of it would be left."""
    root = w.root
    if not isinstance(root, ast.FunctionDef) or w.summary.products or not is_procedure(w.file, root):
        return ""
    written = (r.made[1] for e in w.events.get(node, ()) if e.sure and not e.argument and not _direct(e) for r in e.value if isinstance(r.made,
        tuple) and r.made[0] == "param")
    return str(next(written, ""))


def is_procedure(file: FileInfo, root: ast.AST) -> bool:
    """A function with lines of its own and no result. Methods of objects are left alone: others may stand in for them."""
    if not isinstance(root, ast.FunctionDef):
        return False
    info = file.by_node.get(root)
    owner = getattr(info, "owner", None)
    if owner is not None and not getattr(info, "is_static", False) or root.name.startswith("__") or root.body[0].lineno == root.lineno:
        return False
    own = list(own_nodes(root))
    results = [n.value for n in own if isinstance(n, ast.Return) and n.value is not None]
    return not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own) and all(isinstance(r, ast.Constant) and r.value is None for r in results)


def _bound(root: ast.FunctionDef, name: str) -> bool:
    """Whether a name gets another value than by a write in place."""
    steps = {n.target for n in ast.walk(root) if isinstance(n, ast.AugAssign)}
    return any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) and n not in steps for n in ast.walk(root))


def _direct(event: Event) -> bool:
    """Whether a write to a parameter goes by the parameter's own name."""
    names = {r.made[1] for r in event.value if isinstance(r.made, tuple) and r.made[0] == "param"}
    return not names or not event.sure or isinstance(event.target, ast.Name) and names == {event.target.id} and not event.argument


__all__ = ["is_procedure", "lost", "products"]
