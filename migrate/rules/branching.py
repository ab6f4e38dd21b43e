"""Report branches that depend on values: they are right when run eagerly, and `jax.jit` can't trace them.

Converted: nothing.
Unchanged: `if (x > 0).any():`, `while error > 1e-3:` of a tensor - reported; `if x is None`, `if n > 3` of a number - not reported.
"""
import ast

from migrate.context import Context
from migrate.rules.example import Example

RULE = "branching"
WHOLE = ("builtins.all", "builtins.any", "builtins.bool")


def visit(ctx: Context, node: ast.If | ast.While | ast.IfExp) -> None:
    """A condition that is a tensor."""
    if depends_on_data(ctx, node.test):
        ctx.report("MIG109", node.test, f"{ctx.source.segment(node.test).strip()}: which way it goes depends on values")


def depends_on_data(ctx: Context, test: ast.expr) -> bool:
    """Whether Python needs the value of a tensor to decide."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            return depends_on_data(ctx, test.operand)
        case ast.BoolOp():
            return any(depends_on_data(ctx, v) for v in test.values)
        case ast.Call(args=[argument]) if ctx.dotted(test.func) in WHOLE:
            return ctx.kind(argument).is_tensor
    kind = ctx.kind(test)
    return kind.is_tensor and kind.sure and not kind.optional and not kind.variable


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    if all(x):\n        return 1\n    return 2\n", jax="    if all(x):\n", why="reported: it works outside of jit"),
    Example("def f(x: torch.Tensor):\n    return 1 if (x > 0).any() else 2\n", jax="    return 1 if jnp.any(x > 0) else 2\n"),
    Example("def f(n):\n    while n > 3:\n        n = n - 1\n    return n\n"),
    Example("def f(x=None):\n    return 1 if x is None else 2\n"),
)
