"""Index tensors: a boolean mask selects a number of elements that depends on values.

Converted: nothing; `x[mask]` is the same in JAX.
Unchanged: every other index.
"""
import ast

from migrate.context import Context
from migrate.rules.example import Example

RULE = "indexing"


def visit_subscript(ctx: Context, node: ast.Subscript) -> None:
    """`x[mask]` is reported: it works eagerly, not under jit."""
    if isinstance(node.ctx, ast.Load) and ctx.kind(node.value).is_tensor:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(ctx.kind(p).is_tensor and ctx.kind(p).dtype == "bool" for p in parts):
            ctx.report("MIG105", node, f"{ctx.source.segment(node)}: how many elements a mask selects depends on values")


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    return x[x > 0]\n", jax="    return x[x > 0]\n", reported="MIG105", why="how many elements it gives depends on values"),
    Example("def f(x: torch.Tensor, keep: torch.BoolTensor):\n    return x[keep, 0]\n", jax="    return x[keep, 0]\n"),
    Example("def f(x, i):\n    return x[i] + x[1:, None] * x.shape[0]\n"),
    Example("def f(table):\n    return table['a'][0]\n"),
)
