"""Tensors that are defaults of a dataclass are made by a function: arrays can't be hashed, and Python takes no such default.

Converted: `mean: Tensor = torch.zeros(3)` in a dataclass.
Unchanged: other defaults, fields that have a function already, classes that are no dataclasses.
"""
import ast

from migrate.context import Context
from migrate.rules.example import Example

RULE = "fields"


def visit_annassign(ctx: Context, node: ast.AnnAssign) -> None:
    """A field with its default."""
    owner = ctx.source.parent(node)
    kind = ctx.kind(node.value)
    if node.value is None or not isinstance(owner, ast.ClassDef) or not kind.is_tensor or not kind.sure or kind.variable or not _is_dataclass(ctx, owner):
        return
    start, end = ctx.source.span(node.value)
    ctx.plan.insert(start, f"{ctx.name('field')}(default_factory=lambda: ", RULE)
    ctx.plan.insert(end, ")", RULE)


def _is_dataclass(ctx: Context, owner: ast.ClassDef) -> bool:
    return any(ctx.dotted(d.func if isinstance(d, ast.Call) else d) == "dataclasses.dataclass" for d in owner.decorator_list)


EXAMPLES = (
    Example(
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Options:\n    size: int = 3\n    mean: torch.Tensor = torch.tensor([0.5, 0.4])  # of each channel\n    last: torch.Tensor = torch.zeros(2)\n",
        jax="    mean: jax.Array = field(default_factory=lambda: jnp.array([0.5, 0.4]))  # of each channel\n    last: jax.Array = field(default_factory=lambda: jnp.zeros((2,)))\n",
    ),
    Example(
        "import dataclasses\n\n\n@dataclasses.dataclass(frozen=True)\nclass Options:\n    mean: torch.Tensor = -torch.ones(2)\n",
        jax="    mean: jax.Array = field(default_factory=lambda: -jnp.ones((2,)))\n", why="of a frozen one",
    ),
    Example("class Options:\n    mean: float = 0.5\n\n\nfrom dataclasses import dataclass, field\n\n\n@dataclass\nclass Other:\n    n: int = 3\n    names: list = field(default_factory=list)\n"),
    Example("from dataclasses import dataclass\n\n\n@dataclass\nclass Options:\n    low: float = 1.0\n    high: float = 2.0\n"),
)
