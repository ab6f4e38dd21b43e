"""Report a variance written as E[xy] - E[x] E[y]: what rounding leaves of two nearly equal numbers.

XLA rounds a division or an exponential otherwise than PyTorch in the last place, and a TPU multiplies matrices in bfloat16 unless told not to: this difference shows both, many times enlarged.

Converted: nothing.
Unchanged: `filter(x * x) - filter(x) ** 2` - reported; the mean of `(x - mean) ** 2`, other differences - not reported.
"""
import ast

from migrate.context import Context
from migrate.rules.example import Example
from migrate.source.text import walk

RULE = "cancelling"
SQUARES = ("square", "pow")


def visit(ctx: Context, node: ast.BinOp) -> None:
    """`f(x * y) - f(x) * f(y)`, spelled out or through local names."""
    if not isinstance(node.op, ast.Sub):
        return
    whole, parts = _averaged(ctx, _value(ctx, node.left)), _factors(_value(ctx, node.right))
    if not whole or not parts or not ctx.kind(node.right).is_tensor:
        return
    averages = [_averaged(ctx, _value(ctx, p)) for p in parts]
    of = _factors(_value(ctx, whole[1]))
    if of and all(a and a[0] == whole[0] for a in averages) and sorted(ast.dump(a[1]) for a in averages if a) == sorted(map(ast.dump, of)):
        text = ctx.source.segment(node).strip()
        ctx.report("MIG207", node, f"{text}: a variance as the difference of two nearly equal values; the mean of the squared distance from the mean keeps its digits")


def _factors(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """What is multiplied: two factors, the same one twice for a square."""
    match node:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return left, right
        case ast.BinOp(op=ast.Pow(), left=base, right=ast.Constant(value=2)):
            return base, base
        case ast.Call(func=ast.Attribute(attr="pow", value=base), args=[ast.Constant(value=2)]) | ast.Call(func=ast.Attribute(attr="square", value=base), args=[]):
            return base, base
        case ast.Call(func=ast.Attribute(attr=name), args=[base, *exponent]) if name in SQUARES and all(isinstance(e, ast.Constant) and e.value == 2 for e in exponent):
            return base, base
    return None


def _averaged(ctx: Context, node: ast.AST) -> tuple[str, ast.expr] | None:
    """A call of a tensor: what is called with which other arguments, and the tensor."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=tensor)) if ctx.kind(tensor).is_tensor:
            key = [name, *map(ast.dump, node.args), *map(ast.dump, node.keywords)]
            return "|".join(key), tensor
        case ast.Call(func=callee, args=[tensor, *rest]):
            key = [ast.dump(callee), *map(ast.dump, rest), *map(ast.dump, node.keywords)]
            return "|".join(key), tensor
    return None


def _value(ctx: Context, node: ast.expr) -> ast.AST:
    """What a local name was given, where it is given something once."""
    function = ctx.function_of(node) if isinstance(node, ast.Name) else None
    if function is None or not isinstance(node, ast.Name):
        return node
    nodes = walk(function.node)
    given = [n for n in nodes if isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Store)]
    values = [n.value for n in nodes if isinstance(n, ast.Assign) and any(g in n.targets for g in given)]
    return values[0] if len(given) == len(values) == 1 else node


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    mu = x.mean(1)\n    return (x * x).mean(1) - mu.pow(2)\n", jax="    return jnp.mean(x * x, axis=1) - mu ** 2\n", reported="MIG207", why="the digits cancel"),
    Example("def blur(x, w):\n    return F.conv2d(x, w)\n\n\ndef f(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor):\n    a, b = 1, 2\n    both = blur(x, w) * blur(y, w)\n    return blur(x * y, w) - both\n", jax="    return blur(x * y, w) - both\n", reported="MIG207", why="through a local name too"),
    Example("def f(x, y):\n    return x * x - y ** 2\n", why="not a variance"),
    Example("def f(x, y, n):\n    return g(x * y) - n * n\n\n\ndef g(x):\n    return x\n", why="other parts"),
)
