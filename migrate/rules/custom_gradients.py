"""Functions with gradients of their own: a `torch.autograd.Function` extends the support class of that name, whose `apply` is a `jax.custom_vjp`.

Converted: `class Swish(torch.autograd.Function)` with `forward`, `backward`, `setup_context` and what they keep on `ctx`.
Unchanged: a class with such methods that is no torch.autograd.Function.
Refused: a `forward` that writes into its input or draws random numbers, `vmap` and `jvp` of its own.
"""
import ast

from migrate.context import Context
from migrate.rules.example import Example
from migrate.source.modules import ClassInfo

RULE = "custom_gradients"


def visit_class(ctx: Context, c: ClassInfo) -> None:
    """What `jax.custom_vjp` has no counterpart for."""
    if not c.is_gradient:
        return
    forward = c.method("forward")
    if forward is not None and forward.builds:
        ctx.report("MIG306", forward.node, f"{c.name}.forward draws random numbers: draw them before, and pass them to apply")
    for name in ("vmap", "jvp"):
        if name in c.methods:
            ctx.report("MIG306", c.methods[name].node, f"{c.name}.{name} is not used: jax.custom_vjp takes a backward only")
    for node in ast.walk(c.node):
        if isinstance(node, ast.Attribute) and node.attr == "mark_dirty":
            ctx.refuse("MIG306", node, "a function of JAX can't write into its arguments")


HEAD = "class Twice(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
TAIL = "        return x * 2\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad * 2\n"
EXAMPLES = (
    Example(
        f"{HEAD}        ctx.save_for_backward(x)\n        ctx.n = x.size(0)\n{TAIL}\n\ndef f(x):\n    return Twice.apply(x)\n",
        jax="class Twice(Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        ctx.n = x.shape[0]\n" + TAIL + "\n\ndef f(x):\n    return Twice.apply(x)\n",
    ),
    Example(
        "class Sum(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x.sum()\n\n    @staticmethod\n    @torch.autograd.function.once_differentiable\n"
        "    def backward(ctx, grad):\n        (x,) = ctx.saved_tensors\n        return grad.expand(x.size())\n",
        jax="    def backward(ctx, grad):\n        (x,) = ctx.saved_tensors\n        return expand(grad, x.shape)\n", why="the gradient's own kinds",
    ),
    Example(
        "class Less(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, n=1):\n        x -= n\n        return x * 2\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad * 2, None\n\n\nless = Less.apply\n\n\n"
        "class Net:\n    def __init__(self, n):\n        self.n = n\n\n    def go(self, x: torch.Tensor):\n        return less(x, self.n)\n",
        jax="        return less(x, self.n)\n", why="the first argument is written to, not the second",
    ),
    Example(f"{HEAD}        ctx.mark_dirty(x)\n{TAIL}", refused="MIG306"),
    Example(f"{HEAD}        x = x + torch.rand_like(x)\n{TAIL}", refused="MIG306"),
    Example("class Twice:\n    @staticmethod\n    def forward(ctx, x):\n        return ctx.mark_dirty(x)\n"),
    Example("class Function:\n    def apply(self, x):\n        return x\n\n\nclass Twice(Function):\n    def backward(ctx, grad):\n        return grad + ctx.x\n"),
)
