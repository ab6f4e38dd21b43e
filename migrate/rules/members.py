"""Refuse the members of a distribution that its class here does not have.

Refused: `Normal(a, b).enumerate_support()`, `d.sample_n(3)` where `d` was given a distribution.
Unchanged: members that are there, the same names of anything else.
"""
import ast
from functools import cache

from migrate.context import Context
from migrate.fitting.extract import Support
from migrate.rules.example import Example
from migrate.tables import Row

RULE = "members"
PREFIX = "torch.distributions."


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """`d.member`, called or not."""
    row = _distribution(ctx, node.value) if isinstance(node.ctx, ast.Load) else None
    if row is None or node.attr.startswith("_") or node.attr in members(ctx.support, row.torch.rpartition(".")[2]):
        return
    parent = ctx.source.parent(node)
    whole = parent if isinstance(parent, ast.Call) and parent.func is node else node
    if not ctx.owned(whole):
        ctx.refuse("MIG301", whole, f"{row.torch}.{node.attr} has no equivalent yet")


def visit_call(ctx: Context, node: ast.Call) -> None:
    """Before other rules take the method for one of a tensor."""
    if isinstance(node.func, ast.Attribute):
        visit_attribute(ctx, node.func)


@cache
def members(support: Support, name: str) -> frozenset[str]:
    """The names that a class of the support code and its bases define or set."""
    held = support.definitions.get(name)
    if held is None or not isinstance(held.node, ast.ClassDef):
        return frozenset()
    found = {n.name for n in held.node.body if isinstance(n, ast.FunctionDef)}
    found |= {n.attr for n in ast.walk(held.node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    found |= {t.id for n in held.node.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    return frozenset(found).union(*(members(support, b.id) for b in held.node.bases if isinstance(b, ast.Name)))


def _distribution(ctx: Context, node: ast.expr) -> Row | None:
    """The row of the distribution that an expression is, where the code shows it."""
    match node:
        case ast.Call():
            row = ctx.resolve(node.func)
            known = isinstance(row, Row) and row.torch.startswith(PREFIX) and members(ctx.support, row.torch.rpartition(".")[2])
            return row if known and isinstance(row, Row) else None
        case ast.Name():
            bound = ctx.file.names.lookup(node)
            return _distribution(ctx, bound[0].value) if len(bound) == 1 and isinstance(bound[0].value, ast.Call) else None
        case ast.Attribute() if ctx.is_self(node.value):
            owner = ctx.class_of(node)
            made = owner.assigned(node.attr) if owner is not None else []
            return _distribution(ctx, made[0].value) if len(made) == 1 and isinstance(made[0].value, ast.Call) else None
    return None


HEAD = "from torch.distributions import Categorical, Normal\n\n\n"
EXAMPLES = (
    Example(f"{HEAD}def f(a, b):\n    return Normal(a, b).enumerate_support()\n", refused="MIG301"),
    Example(f"{HEAD}def f(a, b):\n    d = Normal(a, b)\n    return d.expand((4, 3)), d.mean\n", refused="MIG301", why="the method of a distribution, not of a tensor"),
    Example(f"{HEAD}class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.d = Normal(0.0, 1.0)\n\n    def forward(self, x):\n        return self.d.sample_n(3)\n", refused="MIG301"),
    Example(f"{HEAD}def f(a, b):\n    d = Normal(a, b)\n    return d.icdf(a), d.loc, d.variance\n", jax="    return d.icdf(a), d.loc, d.variance\n"),
    Example(f"{HEAD}def f(p):\n    return Categorical(logits=p).entropy()\n", "    return Categorical(logits=p, rngs=rngs).entropy()\n", "    return Categorical(logits=p, rngs=Rngs()).entropy()\n"),
    Example("def f(d):\n    return d.perplexity(), d.enumerate_support()\n"),
    Example("class Normal:\n    pass\n\n\ndef f():\n    return Normal().perplexity()\n"),
)
