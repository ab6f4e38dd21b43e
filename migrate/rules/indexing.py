"""Index tensors: a boolean mask selects a number of elements that depends on values.

Converted: nothing here; `x[mask]` is the same in JAX.
Unchanged: every other index.
"""
import ast

from migrate.context import Context
from migrate.rules.constants import is_fixed
from migrate.rules.example import Example

RULE = "indexing"


def visit_subscript(ctx: Context, node: ast.Subscript) -> None:
    """`x[mask]` is reported: it works eagerly, not under jit."""
    if isinstance(node.ctx, ast.Load) and ctx.kind(node.value).is_tensor:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(ctx.kind(p).is_tensor and ctx.kind(p).dtype == "bool" and not is_fixed(ctx, p) for p in parts):
            ctx.report("MIG105", node, f"{ctx.source.segment(node)}: how many elements a mask selects depends on values")


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`x.masked_select(mask)` is reported as well."""
    masks = [*node.args, *(k.value for k in node.keywords if k.arg == "mask")]
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "masked_select" and masks and (ctx.dotted(node.func) == "torch.masked_select" or not ctx.dotted(node.func)) and ctx.kind(node).is_tensor and not is_fixed(ctx, masks[-1]):
        ctx.report("MIG105", node, f"{ctx.source.segment(node)}: how many elements a mask selects depends on values")


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    return x[x > 0]\n", jax="    return x[x > 0]\n", reported="MIG105", why="how many elements it gives depends on values"),
    Example("def f(x: torch.Tensor, keep: torch.BoolTensor):\n    return x[keep, 0]\n", jax="    return x[keep, 0]\n"),
    Example("def f(x: torch.Tensor):\n    return x.masked_select(x > 0)\n", jax="    return masked_select(x, x > 0)\n", reported="MIG105"),
    Example("def f(x, i):\n    return x[i] + x[1:, None] * x.shape[0]\n"),
    Example("def f(table):\n    return table['a'][0]\n"),
)
