"""Fold conditions whose answer is known here: no script is traced, no CUDA device is there.

Converted: `if torch.jit.is_scripting(): ...` goes, `if not torch.jit.is_tracing():` leaves its body, `if mask.any(): x = torch.where(mask, y, x)` as well, `"cuda" if torch.cuda.is_available() else "cpu"` is "cpu".
Unchanged: conditions on values; an `elif` chain; a branch that yields.
"""
import ast

from migrate.context import Context
from migrate.removal import remove_statement
from migrate.rules.example import Example
from migrate.rules.masked import masked
from migrate.rules.noise import FALSE, move_left

RULE = "folding"


def visit_if(ctx: Context, node: ast.If) -> None:
    """A branch that is always or never taken."""
    answer = truth(ctx, node.test)
    answer = True if answer is None and masked(ctx, node) else answer
    if answer is None or any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)) or _is_elif(ctx, node) or node.orelse and _is_elif(ctx, node.orelse[0]):
        return
    taken, left_out = (node.body, node.orelse) if answer else (node.orelse, node.body)
    if truth(ctx, node.test) is None:
        ctx.report("MIG103", node, f"{ctx.source.segment(node.test).strip()}: not asked, the mask alone decides what changes")
    if left_out:
        ctx.report("MIG103", node, f"{ctx.source.segment(node.test).strip()} is {answer} here: the other branch is left out")
    if not taken:
        remove_statement(ctx, node, RULE)
        return
    src = ctx.source
    if src.line_of(src.start(taken[0])) == src.line_of(src.end(node.test)) or left_out and src.line_of(src.start(left_out[0])) == src.line_of(src.start(taken[0])):
        return
    ctx.removed.update(n for part in (node.test, *left_out) for n in ast.walk(part))
    at = _after_head(ctx, node, taken)
    ctx.plan.replace(src.line_start(src.start(node)), at, "", RULE)
    if answer and node.orelse:
        ctx.plan.replace(src.line_end(src.end(node.body[-1])), src.line_end(src.end(node)), "", RULE)
    move_left(ctx, node, taken, at)


def visit_choice(ctx: Context, node: ast.IfExp) -> None:
    """An expression that is always the same one."""
    answer = truth(ctx, node.test)
    if answer is None or ctx.owned(node):
        return
    taken, left_out = (node.body, node.orelse) if answer else (node.orelse, node.body)
    ctx.removed.update(n for part in (node.test, left_out) for n in ast.walk(part))
    ctx.edit(node, lambda e: e.piece(taken), RULE, "MIG103", "known")


def truth(ctx: Context, node: ast.expr) -> bool | None:
    """What a condition is, where it is known."""
    match node:
        case ast.UnaryOp(op=ast.Not()):
            inner = truth(ctx, node.operand)
            return None if inner is None else not inner
        case ast.BoolOp():
            answers, decisive = [truth(ctx, v) for v in node.values], isinstance(node.op, ast.Or)
            return decisive if decisive in answers else None if None in answers else not decisive
        case ast.Call():
            name = ctx.dotted(node.func)
            return False if name in FALSE else ctx.unit.boundary.answers.get(name)
    return None


def _is_elif(ctx: Context, node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ctx.source.text.startswith("elif", ctx.source.start(node))


def _after_head(ctx: Context, node: ast.If, taken: list[ast.stmt]) -> int:
    """Where the lines after `if ...:`, or after `else:`, start; comments above the first statement stay."""
    src = ctx.source
    if taken is node.body:
        return int(src.line_end(src.text.index(":", src.end(node.test))))
    return int(src.line_end(src.text.index("else", src.end(node.body[-1]))))


HEAD = "def f(x, y):\n"
EXAMPLES = (
    Example(f"{HEAD}    if torch.jit.is_scripting():\n        return y\n    return x\n", jax=f"{HEAD}    return x\n"),
    Example(f"{HEAD}    if not torch.jit.is_scripting() and not torch.jit.is_tracing():\n        # seen\n        print(x)\n\n        print(y)\n    return x\n", jax=f"{HEAD}    # seen\n    print(x)\n\n    print(y)\n    return x\n"),
    Example(f"{HEAD}    if torch.cuda.is_available():\n        x = x + y\n    else:\n        # slow\n        x = y\n    return x\n", jax=f"{HEAD}    # slow\n    x = y\n    return x\n"),
    Example(f"{HEAD}    if torch.cuda.is_available() or True:\n        print(x)\n    if not torch.cuda.is_available():\n        x = y\n    else:\n        x = 3\n    return x\n", jax="        print(x)\n    x = y\n    return x\n"),
    Example(f"{HEAD}    where = 'cuda' if torch.cuda.is_available() else 'cpu'\n    return [where, x]\n", jax="    where = 'cpu'\n"),
    Example(f"{HEAD}    if x:\n        return 1\n    elif torch.jit.is_scripting():\n        return 2\n    return 3\n", jax="    elif False:\n", why="a chain"),
    Example(f"{HEAD}    if x and y:\n        return x if y else 3\n", why="a value"),
    Example("def g(x, is_scripting):\n    if is_scripting():\n        return 1\n    return x\n", why="another function of that name"),
)
