"""Whether a value may depend on what a traced function is given: under `jax.jit` such a value is not known."""
import ast

from migrate.calls import template_names
from migrate.context import Context
from migrate.infer.kinds import Kind
from migrate.source.modules import ClassInfo, FunctionInfo
from migrate.source.names import Binding
from migrate.tables import Row

STATIC = frozenset(["int", "float", "number", "bool", "str", "none", "shape", "dtype", "device", "function", "class", "factory", "import"])
SIZES = frozenset(["shape", "ndim", "dtype", "device", "is_cuda"])
ASKED = frozenset(["size", "dim", "ndimension", "numel", "get_device"])
PLAIN = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List, ast.Slice, ast.Starred, ast.Subscript, ast.keyword)


def traced(ctx: Context, node: ast.AST, doubt: bool, seen: set[ast.AST] | None = None) -> bool:
    """Whether a value comes from a tensor that a function is given, a parameter or a buffer, or is drawn. `doubt` is the answer where the code does not tell."""
    seen = set() if seen is None else seen
    match node:
        case ast.Constant():
            return False
        case ast.Name():
            return _name(ctx, node, doubt, seen)
        case ast.Attribute(attr=attr) if attr in SIZES:
            return False
        case ast.Attribute():
            return _attribute(ctx, node, doubt, seen)
        case ast.Call():
            return _call(ctx, node, doubt, seen)
    if isinstance(node, PLAIN):
        return any(traced(ctx, n, doubt, seen) for n in ast.iter_child_nodes(node) if isinstance(n, (ast.expr, ast.keyword)))
    return doubt


def _name(ctx: Context, node: ast.Name, doubt: bool, seen: set[ast.AST]) -> bool:
    bound = ctx.file.names.lookup(node)
    if not bound:
        return doubt and not ctx.dotted(node).startswith("builtins.")
    if ctx.kind(node).tag in ("list", "dict", "set", "object") or node.id in _written(ctx, node):
        return doubt
    for b in bound:
        if b.node not in seen:
            seen.add(b.node)  # for good: what was asked on one way and found untraced need not be asked on another
            if _bound(ctx, b, doubt, seen):
                return True
    return False


def _written(ctx: Context, node: ast.Name) -> frozenset[str]:
    """The names whose tensors a function changes in place: where each change comes from is not followed."""
    held: dict[object, frozenset[str]] = ctx.shared.setdefault("written names", {})
    f = ctx.function_of(node)
    if f is not None and f not in held:
        changed = [n.value for n in ast.walk(f.node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
        changed += [n.func.value for n in ast.walk(f.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr.endswith("_")]
        held[f] = frozenset(m.id for n in changed for m in ast.walk(n) if isinstance(m, ast.Name))
    return held[f] if f is not None else frozenset()


def _bound(ctx: Context, b: Binding, doubt: bool, seen: set[ast.AST]) -> bool:
    if b.kind in ("import", "function", "class"):
        return False
    if b.kind == "parameter":
        return _given(ctx.kind(b.node), doubt)
    if b.value is not None:
        return traced(ctx, b.value, doubt, seen)
    at, up = b.node, ctx.source.parent(b.node)
    while isinstance(up, (ast.Tuple, ast.List, ast.Starred)):
        at, up = up, ctx.source.parent(up)
    match up:
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            return traced(ctx, value, doubt, seen)
        case ast.For(iter=value, target=target) | ast.comprehension(iter=value, target=target) if target is at:
            return traced(ctx, value, doubt, seen)
    return doubt


def _given(kind: Kind, doubt: bool) -> bool:
    return kind.sure or doubt if kind.is_tensor else doubt and kind.tag not in STATIC


def _attribute(ctx: Context, node: ast.Attribute, doubt: bool, seen: set[ast.AST]) -> bool:
    kind = ctx.kind(node)
    if kind.tag in STATIC or ctx.dotted(node):
        return False
    if kind.variable or kind.is_tensor and ctx.is_self(node.value):
        return True
    return doubt if ctx.is_self(node.value) else traced(ctx, node.value, doubt, seen)


def _call(ctx: Context, node: ast.Call, doubt: bool, seen: set[ast.AST]) -> bool:
    found, name = ctx.resolve(node.func), ctx.dotted(node.func)
    if name == "builtins.len" or isinstance(node.func, ast.Attribute) and node.func.attr in ASKED:
        return False
    if isinstance(found, (ClassInfo, FunctionInfo)) or ctx.kind(node.func).tag == "module":
        return doubt
    row = found if isinstance(found, Row) else ctx.unit.table.by_method.get(node.func.attr) if isinstance(node.func, ast.Attribute) else None
    if row is not None and any("rngs" in template_names(v.to) for v in row.for_target(ctx.target.name) if v.to):
        return True
    known = row is not None or name.startswith(("builtins.", "math.", "einops.")) or name.startswith("numpy.") and not name.startswith("numpy.random")
    parts: list[ast.AST] = [*node.args, *node.keywords]
    if isinstance(node.func, ast.Attribute) and not ctx.dotted(node.func):
        parts.append(node.func.value)
    return doubt and not known or any(traced(ctx, p, doubt, seen) for p in parts)
