"""Take one of a pair: `x.max(1)[0]` needs only the values.

Converted: `x.max(dim=1)[0]`, `torch.topk(x, 3).indices`, `x.sort()[1]`, by the `pick` of the row.
Unchanged: an index into a pair that is kept in a name, an operator without `pick`.
"""
import ast

from migrate.calls import Refusal, bind, choose
from migrate.context import Context
from migrate.rules.example import Example
from migrate.rules.operators import fill, forget, is_tensor_method, note
from migrate.tables import Row

RULE = "picking"


def visit_subscript(ctx: Context, node: ast.Subscript) -> None:
    """`call[0]`."""
    if isinstance(node.value, ast.Call) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int) and isinstance(node.ctx, ast.Load):
        _pick(ctx, node, node.value, node.slice.value)


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """`call.values`."""
    if isinstance(node.value, ast.Call) and node.attr in ("values", "indices"):
        parent = ctx.source.parent(node)
        if not (isinstance(parent, ast.Call) and parent.func is node):
            _pick(ctx, node, node.value, node.attr)


def _pick(ctx: Context, node: ast.expr, call: ast.Call, which: int | str) -> None:
    if ctx.owned(node) or ctx.owned(call):
        return
    row, receiver = ctx.resolve(call.func), None
    if not isinstance(row, Row) and isinstance(call.func, ast.Attribute) and is_tensor_method(ctx, call.func, ctx.kind(call.func.value), call):
        row, receiver = ctx.unit.table.by_method.get(call.func.attr), call.func.value
    if not isinstance(row, Row) or row.kind != "function":
        return
    bound = bind(row, call, receiver, ctx.kind)
    if isinstance(bound, Refusal):
        return
    variant = choose(row, bound, ctx.target.name, ctx.kind)
    if isinstance(variant, Refusal) or not variant.pick:
        return
    name = which if isinstance(which, str) else (list(variant.pick)[which] if 0 <= which < len(variant.pick) else "")
    text = variant.pick.get(name)
    if not text:
        return
    note(ctx, call, row, variant)
    forget(ctx, call, bound, variant)
    ctx.edit(node, lambda e: fill(ctx, call, bound, variant, e, text), RULE, why=row.torch)
    ctx.edit(call, lambda e: e.original(call), RULE)


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    return x.max(dim=1)[0], torch.topk(x, 3).indices, x.sort()[1]\n", jax="    return max_dim(x, 1).values, jax.lax.top_k(x, 3)[1], jnp.argsort(x)\n"),
    Example("def f(x: torch.Tensor):\n    return x.max(\n        1,  # rows\n    )[0]\n", jax="max_dim(x, 1).values"),
    Example("def f(x: torch.Tensor):\n    values, indices = x.max(dim=1)\n    return values[0], indices\n", jax="    values, indices = max_dim(x, dim=1)\n    return values[0], indices\n"),
    Example("def f(x: torch.Tensor):\n    a, b = x.chunk(2, 1)\n    return [p for p in a.chunk(2)], b\n", jax="    a, b = jnp.array_split(x, 2, axis=1)\n    return [p for p in chunk(a, 2)], b\n", why="an axis of one gives one piece"),
    Example("def f(d, g):\n    return d.values(), g(1)[0]\n"),
    Example("def f(text: str):\n    return text.split(',')[0]\n"),
)
