"""Writes in place that PyTorch records no gradient of: those through `x.detach()` and `x.data`.

Converted: `self.mean.data.copy_(y)` of a buffer, `z.data.copy_(y)` of zeros: what is written is constant to the gradient.
Unchanged: parameters outside of `forward`, constructors and initialisation, what nothing uses afterwards.
Reported: a tensor with a gradient, which it keeps in PyTorch as that of what it was before.
"""
import ast
from collections.abc import Hashable

from migrate.context import Context
from migrate.infer.writes import Event
from migrate.rules import aliases, constancy
from migrate.rules.constancy import hold, is_number
from migrate.rules.constraining import keeps_gradient, runs_forward
from migrate.rules.example import Example
from migrate.rules.regions import no_gradient, regions
from migrate.source.modules import FunctionInfo

WORDS = ("detach", "data")


def finish(ctx: Context) -> None:
    """Holds constant what is written so, or says that it can't be."""
    if not any(w in ctx.source.text for w in WORDS):
        return
    off = frozenset(n for r in regions(ctx) if not r.unsure for n in r.nodes)
    for n in ctx.source.nodes:
        if isinstance(n, (ast.Assign, ast.AugAssign, ast.Call)) and n not in ctx.kept:
            f = ctx.function_of(n)
            for e in aliases.events(ctx, n) if f is not None and not no_gradient(f) else ():
                if e.constant and not e.argument:
                    _write(ctx, f, n, e, off)


def _write(ctx: Context, f: FunctionInfo | None, n: ast.AST, e: Event, off: frozenset[ast.AST]) -> None:
    holders = [s for s in aliases.others(ctx, n, e, itself=True) if not s.constant]
    variable, kind = ctx.kind(e.target).variable, ctx.kind(e.target)
    if not holders or f is None or kind.dtype in ("int", "bool") or variable and not runs_forward(ctx, f) or keeps_gradient(ctx, e.target):
        return
    if variable == "buffer" or is_fresh(ctx, e, off):
        if all(is_number(ctx, v) for v in given(n)):
            return
        if not any(r.constant for r in e.value):  # it is `x.data` itself that is written to, not a name of it
            for v in given(n):
                hold(ctx, v, copied=True)
            return
    name = holders[0].path
    ctx.report("MIG201", n, said(name))


def said(name: str) -> str:
    """That a tensor loses the gradient that it has in PyTorch."""
    return f"{name} is written in place where no gradient is recorded: PyTorch's gradient is that of {name} as it was before; here it is that of what is computed"


def given(n: ast.AST) -> list[ast.expr]:
    """What a statement or a call writes."""
    match n:
        case ast.Assign() | ast.AugAssign():
            return [n.value]
        case ast.Call():
            return [*n.args, *(k.value for k in n.keywords)]
    return []


def is_fresh(ctx: Context, e: Event, off: frozenset[ast.AST]) -> bool:
    """Whether what is written to was made without a gradient, and got none by another write. `off`: the nodes that have no gradients anyway."""
    return bool(e.value) and all(_is_made_fresh(ctx, r.made) for r in e.value) and not _earns(ctx, e, off)


def _is_made_fresh(ctx: Context, made: Hashable) -> bool:
    node = made[0] if isinstance(made, tuple) else None
    return isinstance(node, ast.Call) and (ctx.kind(node).dtype in ("int", "bool") or constancy.is_fresh(ctx, node))


def _earns(ctx: Context, e: Event, off: frozenset[ast.AST]) -> bool:
    """Whether something with a gradient is written to the same tensor elsewhere in the function."""
    made = {r.made for r in e.value}
    return any(
        not isinstance(n, ast.AST) or n not in off and not all(is_number(ctx, v) for v in given(n))
        for n, found in aliases.all_events(ctx, e.node).items() for o in found if not o.constant and any(r.made in made for r in o.value)
    )


HEAD = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('mean', torch.zeros(3))\n        self.weight = nn.Parameter(torch.ones(3))\n\n"
EXAMPLES = (
    Example(HEAD + "    def forward(self, x):\n        self.mean.data.copy_(x.mean(0))\n        return x - self.mean\n", jax="jax.lax.stop_gradient(jnp.mean(x, axis=0))", why="what a buffer gets has no gradient"),
    Example("def f(x: torch.Tensor):\n    z = torch.zeros(3)\n    z.data.copy_(x)\n    return x * z\n", jax="jax.lax.stop_gradient(x)"),
    Example("def f(x: torch.Tensor):\n    y = x * 2\n    y.detach().clamp_(0, 1)\n    return y\n", jax="    return y\n", reported="MIG201", why="PyTorch's gradient is that of y before"),
    Example("def f(x: torch.Tensor):\n    y = x * 2\n    z = y.data\n    z[0] = 1.0\n    return y\n", jax="    return y\n", reported="MIG201", why="z is y without its gradient"),
    Example("def f(x: torch.Tensor):\n    y = x * 2\n    y.data = x.exp()\n    return y\n", jax="    y = jnp.exp(x)\n    return y\n", reported="MIG201"),
    Example(HEAD + "    def forward(self, x):\n        self.weight.data.clamp_(0, 1)\n        return x * self.weight\n", jax="with_gradient_of(self.weight, ", why="the gradient is that of the weight that is used"),
    Example(HEAD + "    def clip(self):\n        self.weight.data.clamp_(0, 1)\n\n    def forward(self, x):\n        return x * self.weight\n", jax="    def clip(self):\n", why="not part of forward"),
    Example("def f(x: torch.Tensor):\n    z = x.detach()\n    z = z.mul(2)\n    return z\n", jax="    z = z * 2\n", why="nothing is written in place"),
    Example("def f(record):\n    record.data = [1]\n    return record.data\n", why="no tensor"),
    Example("class Record:\n    def detach(self):\n        return self\n\n\ndef f(r: Record, n: int):\n    r.detach().n = n\n    return r\n", why="another's method"),
)
