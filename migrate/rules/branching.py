"""Report branches that depend on values: they are right when run eagerly, and `jax.jit` can't trace them.

Converted: `assert (x > 0).all()` and `if (x < 0).any(): raise ...` are checked where values are known.
Unchanged: `if (x > 0).any():`, `while error > 1e-3:`, `x.max().item()` of a tensor - reported; `if x is None`, `if n > 3` of a number - not reported.
"""
import ast

from migrate.context import Context
from migrate.edits import LAMBDA, Emitter, Piece
from migrate.rules.example import Example
from migrate.rules.tracing import traced

RULE = "branching"
WHOLE = ("builtins.all", "builtins.any", "builtins.bool")


def visit(ctx: Context, node: ast.If | ast.While | ast.IfExp) -> None:
    """A condition that is a tensor."""
    if node.test in ctx.removed or not depends_on_data(ctx, node.test):
        return
    if isinstance(node, ast.If) and _only_refuses(ctx, node):
        lazy = "lambda: " if isinstance(node.test, (ast.BoolOp, ast.UnaryOp)) else ""
        ctx.plan.insert(ctx.source.start(node.test), f"{ctx.name('known')}({lazy}", RULE)
        ctx.plan.insert(ctx.source.end(node.test), ")", RULE)
        return
    ctx.report("MIG109", node.test, f"{ctx.source.segment(node.test).strip()}: which way it goes depends on values")


def _only_refuses(ctx: Context, node: ast.If) -> bool:
    """Whether a branch does nothing but raise an error that nothing around it catches."""
    at: ast.AST | None = node
    while at is not None and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(at, (ast.Try, ast.TryStar, ast.With, ast.ClassDef)):
            return False
        at = ctx.source.parent(at)
    names = (ast.Assign, ast.AnnAssign)
    before = all(isinstance(s, names) and all(isinstance(t, ast.Name) for t in (s.targets if isinstance(s, ast.Assign) else [s.target])) for s in node.body[:-1])
    return "known" in ctx.support and before and isinstance(node.body[-1], ast.Raise) and not any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)) for n in ast.walk(node.test))


def visit_comprehension(ctx: Context, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
    """`[layer for layer, drop in zip(layers, dropped) if not drop]`."""
    for test in (t for g in node.generators for t in g.ifs if depends_on_data(ctx, t)):
        ctx.report("MIG109", test, f"{ctx.source.segment(test).strip()}: whether it is kept depends on values")


INIT = frozenset(["__init__", "__repr__", "extra_repr", "reset_parameters", "init_weights", "_init_weights", "load_state_dict"])
NUMBERS = frozenset(["builtins.int", "builtins.float"])


def visit_value(ctx: Context, node: ast.Call) -> None:
    """`int(lengths.max())`, `x.item()`, `x.tolist()` on the way of the data."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="item" | "tolist" | "numpy"), args=[]):
            pass
        case ast.Call(args=[value], keywords=[]) if ctx.dotted(node.func) in NUMBERS:
            pass
        case _:
            return
    f, kind = ctx.function_of(node), ctx.kind(value)
    if f is None or f.name in INIT or not kind.is_tensor or not kind.sure or not traced(ctx, value, doubt=False):
        return
    ctx.report("MIG109", node, f"{ctx.source.segment(node)}: Python needs the value")


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
    return kind.is_tensor and kind.sure and not kind.optional and kind.variable != "param"


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    if all(x):\n        return 1\n    return 2\n", jax="    if all(x):\n", reported="MIG109", why="it works outside of jit"),
    Example("def f(x: torch.Tensor):\n    return 1 if (x > 0).any() else 2\n", jax="    return 1 if jnp.any(x > 0) else 2\n"),
    Example("def f(x: torch.Tensor):\n    assert (x > 0).all(), f'{x} below 0'\n    assert not x.isnan().any()\n", jax="    check(jnp.all(x > 0), lambda: f'{x} below 0')\n    check(jnp.logical_not(jnp.any(jnp.isnan(x))))\n"),
    Example("def f(x: torch.Tensor):\n    if (x < 0).any():\n        raise ValueError('below 0')\n    return x\n", jax="    if known(jnp.any(x < 0)):\n        raise"),
    Example(
        "def f(x: torch.Tensor, n: int):\n    if n and not x.any():\n        at = x.argmin()\n        raise ValueError(f'0 at {at}')\n    elif x.isnan().all():\n        raise ValueError\n    return x\n",
        jax="    if known(lambda: n and not jnp.any(x)):\n", why="several conditions",
    ),
    Example("def f(x: torch.Tensor):\n    try:\n        if x.any():\n            raise ValueError\n    except ValueError:\n        x = x + 1\n    return x\n", jax="        if jnp.any(x):\n", reported="MIG109", why="the error is caught"),
    Example("def f(x: torch.Tensor):\n    return int(x.max().item()), x.shape[0]\n", jax="    return int(jnp.max(x).item()), x.shape[0]\n", reported="MIG109", why="a value becomes a number"),
    Example("def f(x: torch.Tensor):\n    y, i = x.topk(2)\n    return y, i.detach().cpu().numpy()\n", jax="np.asarray(", reported="MIG109", why="NumPy computes with it"),
    Example("def f(x: torch.Tensor):\n    return [n for n in range(3) if x[n] > 0]\n", jax="    return [n for n in range(3) if x[n] > 0]\n", reported="MIG109"),
    Example("def f(n):\n    assert n > 3, 'small'\n    while n > 3:\n        n = n - 1\n    return n\n"),
    Example("def f(x=None):\n    return 1 if x is None else 2\n"),
)
