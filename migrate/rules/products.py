"""Give back what a function writes to its arguments, where it has no other result: arrays are immutable, so the caller must get the new ones.

Converted: `def fill_(x): x.zero_()` with `fill_(w)`: it returns `x`, and the caller writes `w = fill_(w)`.
Unchanged: a function that writes to nothing that it is given; methods of objects, which others may stand in for.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.infer.liveness import own_nodes
from migrate.rules import aliases
from migrate.rules.example import Example
from migrate.source.modules import FunctionInfo

RULE = "products"


def visit_function(ctx: Context, f: FunctionInfo) -> None:
    """Its returns."""
    found = ", ".join(aliases.products(ctx, f.node))
    if not found:
        return
    for n in own_nodes(f.node):
        if isinstance(n, ast.Return) and not ctx.owned(n):
            ctx.edit(n, lambda e: Piece(f"return {found}"), RULE, why="written to in place")
    last = f.node.body[-1]
    if not isinstance(last, (ast.Return, ast.Raise)):
        at = ctx.source.line_end(ctx.source.end(last))  # the statement itself may go
        lead = "" if ctx.source.text[at - 1] == "\n" else "\n"
        ctx.plan.insert(at, f"{lead}{ctx.source.raw_indent(f.node.body[0])}return {found}\n", RULE, order=-1)


EXAMPLES = (
    Example(
        "def fill_(x: torch.Tensor):\n    x[0] = 1\n\n\ndef f(x: torch.Tensor):\n    y = x + 1\n    fill_(y)\n    return y\n",
        jax="    x = x.at[0].set(1)\n    return x\n\n\ndef f(x: jax.Array):\n    y = x + 1\n    y = fill_(y)\n    return y\n",
    ),
    Example(
        "def init_(w, d):\n    if w is None:\n        return\n    with torch.no_grad():\n        w.fill_(d)\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = nn.Parameter(torch.zeros(3))\n        init_(self.w, 2)\n",
        jax="        return w\n    w = jnp.full_like(w, d)\n    return w\n", why="early returns too",
    ),
    Example(
        "def swap_(a: torch.Tensor, b: torch.Tensor):\n    a[0] = 1\n    b[0] = 2\n\n\ndef f(x: torch.Tensor):\n    y, z = x + 1, x + 2\n    swap_(y, z)\n    return y + z\n",
        jax="    return a, b\n\n\ndef f(x: jax.Array):\n    y, z = x + 1, x + 2\n    y, z = swap_(y, z)\n", why="several",
    ),
    Example("def init_(w: torch.Tensor):\n    w.data.zero_()\n\n\ndef reset(m):\n    init_(m.weight)\n", "    set_torch_weight(m, init_(torch_weight(m)))\n", why="the weight of any layer"),
    Example("def f(x: torch.Tensor):\n    fill_(x[0])\n    return x\n\n\ndef fill_(x: torch.Tensor):\n    x.zero_()\n", jax="    x = x.at[0].set(fill_(x[0]))\n", why="a part"),
    Example("def half_(w: torch.Tensor):\n    w.data *= 0.5\n    w.requires_grad = False\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = nn.Parameter(torch.ones(3))\n        half_(self.w)\n", "    w = w * 0.5\n    return w\n\n\n", "    w = w * 0.5\n    return w\n\n\n", why="after a statement that goes"),
    Example("def fill_(x: torch.Tensor, n: int):\n    x.zero_()\n    if n:\n        fill_(x[0], n - 1)\n", refused="MIG303", why="it calls itself"),
    Example("def show(x):\n    print(x + 1)\n\n\ndef f(x):\n    show(x)\n    return x\n"),
    Example("def fill_(items: list):\n    items[0] = 1\n\n\ndef f():\n    held = [0]\n    fill_(held)\n    return held\n", why="lists are written to in Python as well"),
    Example(
        "def fill_(x: torch.Tensor):\n    y = x[0]\n    y[0] = 1\n\n\ndef f(x: torch.Tensor):\n    y = x + 1\n    fill_(y)\n    return y\n", refused="MIG303", why="through another name",
    ),
)
