"""Check what a tensor holds: PyTorch's tensor types say a dtype, which is no class in JAX.

Converted: `isinstance(x, torch.FloatTensor)`, `isinstance(x, torch.cuda.HalfTensor)`.
Unchanged: `isinstance` with other classes.
Refused: several of them in a tuple.
"""
import ast

from migrate.context import Context
from migrate.edits import ATOM, COMPARE, Piece
from migrate.rules.example import Example
from migrate.tables import Row

RULE = "checking"


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`isinstance(x, torch.FloatTensor)`."""
    if ctx.owned(node) or len(node.args) != 2 or node.keywords or ctx.dotted(node.func) != "builtins.isinstance":
        return
    value, kind = node.args
    if isinstance(kind, ast.Tuple):
        if any(_dtype(ctx, k) for k in kind.elts):
            ctx.removed.update(ast.walk(kind))
            ctx.refuse("MIG302", node, "a tensor's type is a dtype here, which is no class; compare `dtype`")
        return
    dtype = _dtype(ctx, kind)
    if dtype:
        sure = ctx.kind(value).is_tensor
        ctx.removed.update(ast.walk(kind))
        if not sure:
            ctx.report("MIG202", node, "that this is a tensor could not be told; anything else has no dtype")
        ctx.edit(node, lambda e: Piece(f"{e.piece(value).at(ATOM)}.dtype == {ctx.name('jnp')}.{dtype}", COMPARE), RULE, why="isinstance")


def _dtype(ctx: Context, node: ast.expr) -> str:
    """The dtype of a tensor type of PyTorch, "" of anything else."""
    row = ctx.resolve(node)
    if not isinstance(row, Row) or not row.torch.endswith("Tensor") or not row.value.startswith("jnp."):
        return ""
    return row.value.removeprefix("jnp.")


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    return isinstance(x, torch.FloatTensor)\n", jax="    return x.dtype == jnp.float32\n"),
    Example("def f(x: torch.Tensor):\n    return x + 1 if not isinstance(x, torch.cuda.HalfTensor) else x\n", jax="    return x + 1 if not x.dtype == jnp.float16 else x\n"),
    Example("def f(x):\n    return isinstance(x, torch.LongTensor)\n", jax="    return x.dtype == jnp.int32\n", reported="MIG202"),
    Example("def f(x: torch.Tensor):\n    return isinstance(x, (torch.FloatTensor, torch.HalfTensor))\n", refused="MIG302"),
    Example("def f(x, kind):\n    return isinstance(x, (int, float)) and not isinstance(x, kind)\n"),
    Example("def f(x, isinstance):\n    return isinstance(x, str)\n"),
)
