"""Optimizers that a module makes for itself are left out, and said: the rest of the module works without, and both targets make them outside of the model.

Refused, and None from then on: `self.optimizer = torch.optim.Adam(self.parameters())`, the same with a class that was passed in.
Unchanged: an optimizer that a function or a class without parameters makes, an attribute of that name that holds something else.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.rules.example import Example
from migrate.source.modules import ClassInfo

RULE = "optimizers"
OPTIM = "torch.optim."


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`self.optimizer = ...` in a method of a module."""
    target, made, owner = node.targets[0], node.value, ctx.class_of(node)
    if len(node.targets) > 1 or not isinstance(target, ast.Attribute) or not ctx.is_self(target.value) or not isinstance(made, ast.Call) or ctx.owned(node):
        return
    if owner is None or not owner.is_module or not (ctx.dotted(made.func).startswith(OPTIM) or _given(ctx, owner, made)):
        return
    ctx.refuse("MIG307", node, "optimizers are made outside of the model; this one is left out")
    ctx.removed.update(ast.walk(made))
    ctx.edit(node, lambda e: Piece(f"{e.render(target)} = None"), RULE, "MIG307", "an optimizer")


def _given(ctx: Context, owner: ClassInfo, call: ast.Call) -> bool:
    """Whether a call is given parameters and its callee is the class of an optimizer, by annotation or default of the parameter that it comes from."""
    walks = [n for a in call.args[:1] for n in ast.walk(a) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("parameters", "named_parameters")]
    func = call.func
    assigned = owner.assigned(func.attr) if isinstance(func, ast.Attribute) and ctx.is_self(func.value) else []
    names = [a.value.id for a in assigned if isinstance(a.value, ast.Name)] or ([func.id] if isinstance(func, ast.Name) else [])
    methods = [m for c in owner.mro() for m in c.methods.values()]
    told = [t for m in methods for p in m.parameters if p.arg in names for t in (p.annotation, m.default(p.arg)) if t is not None]
    return bool(walks) and any(ctx.dotted(n).startswith(OPTIM) for t in told for n in ast.walk(t) if isinstance(n, (ast.Name, ast.Attribute)))


HEAD = "class Net(nn.Module):\n    def __init__(self, make: type[torch.optim.Optimizer], other=print):\n        super().__init__()\n        self.a = nn.Linear(3, 3)\n        self.make, self.other = make, other\n"
EXAMPLES = (
    Example(f"{HEAD}        self.optimizer = torch.optim.Adam(self.a.parameters(), lr=0.1)\n", jax="this one is left out\n        self.optimizer", refused="MIG307"),
    Example(f"{HEAD}        self.opt = self.make(self.parameters())\n", jax="        self.opt = None\n", refused="MIG307", why="a class that was passed in"),
    Example(f"{HEAD}        self.opt = self.other(self.parameters())\n", jax="        self.opt = self.other(", why="what this makes is not known"),
    Example("class Net:\n    def __init__(self, make):\n        self.optimizer = make(self)\n"),
    Example("class Net:\n    def __init__(self, make, other):\n        self.optimizer = other.optimizer\n"),
)
