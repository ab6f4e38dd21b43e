"""Branches that change only what a mask selects, asked whether it selects anything: without the question the values are the same, and JAX can trace them.

Converted: `if mask.any(): x = torch.where(mask, y, x)`.
Unchanged: a branch with another effect, or with an operator that may have no derivative where the mask is false.
"""
import ast
from collections.abc import Iterator

from migrate.context import Context
from migrate.rules.aliases import liveness
from migrate.rules.example import Example
from migrate.source.modules import ClassInfo
from migrate.tables import Row

SMOOTH = frozenset(
    ["torch." + n for n in ("abs", "clamp", "clamp_min", "clamp_max", "where", "add", "sub", "mul", "cat", "stack", "unsqueeze", "squeeze", "reshape", "permute", "transpose", "ones_like", "zeros_like", "full_like", "arange")]
    + ["torch.Tensor." + n for n in ("long", "int", "float", "bool", "view", "expand", "expand_as", "view_as", "type_as", "repeat", "masked_fill")]
    + ["torch.masked_fill"]
)
LAYERS = frozenset(["torch.nn.Embedding", "torch.nn.Linear", "torch.nn.Identity"])


def masked(ctx: Context, node: ast.If) -> bool:
    """Whether a branch does nothing where its mask is false everywhere, and can be computed all the same."""
    mask = _mask(ctx, node.test)
    if mask is None or node.orelse or not all(isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name) for s in node.body):
        return False
    written = [(s.targets[0].id, s.value) for s in node.body if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)]
    later = liveness(ctx, node).after(node.body[-1])
    names = [name for name, _ in written]
    if mask.id in names or len(set(names)) < len(names):
        return False
    return all((name not in later or _selected(ctx, name, value, mask)) and _harmless(ctx, value) for name, value in written)


def _mask(ctx: Context, test: ast.expr) -> ast.Name | None:
    """The mask of `mask.any()` or `torch.any(mask)`."""
    match test:
        case ast.Call(func=ast.Attribute(value=ast.Name() as mask, attr="any"), args=[], keywords=[]):
            pass
        case ast.Call(args=[ast.Name() as mask], keywords=[]) if ctx.dotted(test.func) == "torch.any":
            pass
        case _:
            return None
    kind = ctx.kind(mask)
    return mask if kind.is_tensor and kind.sure and kind.dtype == "bool" and not kind.optional else None


def _selected(ctx: Context, name: str, value: ast.expr, mask: ast.Name) -> bool:
    """Whether a name gets something new only where the mask is true: `torch.where(mask, y, x)`, `x.masked_fill(mask, y)`."""
    match value:
        case ast.Call(args=[where, _, ast.Name(id=kept)], keywords=[]) if ctx.dotted(value.func) == "torch.where":
            return kept == name and _is_mask(where, mask)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=kept), attr="masked_fill"), args=[where, _], keywords=[]):
            return kept == name and _is_mask(where, mask)
    return False


def _is_mask(node: ast.expr, mask: ast.Name) -> bool:
    """The mask, or the mask with more axes: `mask[..., None]`, `mask.unsqueeze(-1)`."""
    match node:
        case ast.Name(id=name):
            return name == mask.id
        case ast.Subscript(value=value, slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            plain = all(isinstance(p, ast.Constant) and p.value in (None, ...) or isinstance(p, ast.Slice) and not (p.lower or p.upper or p.step) for p in parts)
            return plain and _is_mask(value, mask)
        case ast.Call(func=ast.Attribute(value=value, attr="unsqueeze")):
            return _is_mask(value, mask)
    return False


def _harmless(ctx: Context, value: ast.expr) -> bool:
    """Whether an expression changes nothing else, draws nothing, and has a derivative everywhere."""
    plain = (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript, ast.Slice, ast.Tuple, ast.keyword, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Add, ast.Sub, ast.Mult)
    others = (ast.expr_context, ast.unaryop, ast.cmpop)
    return all(isinstance(n, plain + others) and (not isinstance(n, ast.Call) or _known(ctx, n)) for n in _below(value))


def _known(ctx: Context, call: ast.Call) -> bool:
    kind, found = ctx.kind(call.func), ctx.resolve(call.func)
    if kind.tag == "module":
        layer = kind.ref.layer if isinstance(kind.ref, ClassInfo) and not kind.ref.methods else kind.ref
        return isinstance(layer, Row) and layer.torch in LAYERS
    if isinstance(found, Row):
        return found.torch in SMOOTH
    if isinstance(call.func, ast.Attribute) and ctx.kind(call.func.value).is_tensor:
        row = ctx.unit.table.by_method.get(call.func.attr)
        return row is not None and row.torch in SMOOTH and not call.func.attr.endswith("_")
    return False


def _below(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _below(child)


HEAD = "def f(x: torch.Tensor, y: torch.Tensor):\n    mask = x < 0\n"
EXAMPLES = (
    Example(
        f"{HEAD}    if mask.any():\n        # the others\n        z = (y + 1).abs()\n        x = torch.where(mask, z, x)\n    return x\n",
        jax="    mask = x < 0\n    # the others\n    z = absolute(y + 1)\n    x = jnp.where(mask, z, x)\n    return x\n",
    ),
    Example(f"{HEAD}    if torch.any(mask):\n        x = x.masked_fill(mask.unsqueeze(-1), 0)\n    return x\n", jax="    mask = x < 0\n    x = jnp.where(jnp.expand_dims(mask, -1), 0, x).astype(x.dtype)\n"),
    Example(f"{HEAD}    if mask.any():\n        x = torch.where(mask, y.log(), x)\n    return x\n", jax="    if jnp.any(mask):\n", reported="MIG109", why="the logarithm's derivative may be no number"),
    Example(f"{HEAD}    if mask.any():\n        x = torch.where(~mask, x + 1, x)\n    return x\n", jax="    if jnp.any(mask):\n", reported="MIG109", why="it changes the others"),
    Example(f"{HEAD}    if mask.any():\n        y = y + 1\n        x = torch.where(mask, y, x)\n    return x + y\n", jax="    if jnp.any(mask):\n", reported="MIG109"),
    Example("def f(names, any):\n    if any(names):\n        names = names + 1\n    return names\n"),
    Example("def f(x, n=0):\n    if n:\n        x = x + n\n    return x\n"),
)
