"""Report branches that depend on values: they are right when run eagerly, and `jax.jit` can't trace them.

Converted: `assert (x > 0).all()` is checked where values are known.
Unchanged: `if (x > 0).any():`, `while error > 1e-3:` of a tensor - reported; `if x is None`, `if n > 3` of a number - not reported.
"""
import ast

from migrate.context import Context
from migrate.edits import LAMBDA, Emitter, Piece
from migrate.rules.example import Example

RULE = "branching"
WHOLE = ("builtins.all", "builtins.any", "builtins.bool")


def visit(ctx: Context, node: ast.If | ast.While | ast.IfExp) -> None:
    """A condition that is a tensor."""
    if depends_on_data(ctx, node.test):
        ctx.report("MIG109", node.test, f"{ctx.source.segment(node.test).strip()}: which way it goes depends on values")


def visit_assert(ctx: Context, node: ast.Assert) -> None:
    """`assert (x > 0).all()`: checked where the value is known."""
    test, negated = node.test, False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, True
    if isinstance(test, (ast.BoolOp, ast.UnaryOp)) or ctx.owned(node) or not depends_on_data(ctx, test) or "check" not in ctx.support:
        return

    def build(e: Emitter) -> Piece:
        condition = f"{ctx.name('jnp')}.logical_not({e.piece(test).text})" if negated else e.piece(test).at(LAMBDA)
        if node.msg is None:
            return Piece(f"{ctx.name('check')}({condition})")
        lazy = "" if isinstance(node.msg, ast.Constant) else "lambda: "
        return Piece(f"{ctx.name('check')}({condition}, {lazy}{e.piece(node.msg).at(LAMBDA)})")

    ctx.edit(node, build, RULE, why="assert")


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
    Example("def f(x: torch.Tensor):\n    if all(x):\n        return 1\n    return 2\n", jax="    if all(x):\n", reported="MIG109", why="it works outside of jit"),
    Example("def f(x: torch.Tensor):\n    return 1 if (x > 0).any() else 2\n", jax="    return 1 if jnp.any(x > 0) else 2\n"),
    Example("def f(x: torch.Tensor):\n    assert (x > 0).all(), f'{x} below 0'\n    assert not x.isnan().any()\n", jax="    check(jnp.all(x > 0), lambda: f'{x} below 0')\n    check(jnp.logical_not(jnp.any(jnp.isnan(x))))\n"),
    Example("def f(n):\n    assert n > 3, 'small'\n    while n > 3:\n        n = n - 1\n    return n\n"),
    Example("def f(x=None):\n    return 1 if x is None else 2\n"),
)
