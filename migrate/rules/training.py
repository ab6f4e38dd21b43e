"""Read the training state as the target keeps it.

Converted: `if self.training`, `F.dropout(x, 0.1, self.training)`, `not self.training`.
Unchanged: an attribute `training` of something that is no module, a method that is called `training`.
Refused: writing `self.training`.
"""
import ast

from migrate.context import Context
from migrate.edits import Emitter, Piece
from migrate.rules.example import Example
from migrate.rules.state import fill

RULE = "training"


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """`self.training`."""
    if node.attr != "training" or ctx.owned(node):
        return
    owner = ctx.class_of(node)
    if not ctx.is_self(node.value) or owner is None or not owner.is_module or owner.method("training"):
        return
    if not isinstance(node.ctx, ast.Load):
        ctx.refuse("MIG308", node, "the training state is set by train() and eval()")
        return
    owner.traits.add("training")
    parent = ctx.source.parent(node)
    negated = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    text = ctx.target.training
    if negated and text.startswith("not ") and not ctx.owned(parent):
        ctx.edit(parent, lambda e: fill(ctx, text.removeprefix("not "), self=Piece(ctx.source.segment(node.value))), RULE)
        return

    def build(e: Emitter) -> Piece:
        return fill(ctx, text, self=e.piece(node.value))

    ctx.edit(node, build, RULE)


HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
EXAMPLES = (
    Example(f"{HEAD}        if self.training:\n            return x\n        return x + 1\n", "        if not self.deterministic:\n            return x\n", "        if self.training:\n            return x\n"),
    Example(f"{HEAD}        return x if not self.training else x + 1\n", "return x if self.deterministic else x + 1\n", "return x if not self.training else x + 1\n"),
    Example(f"{HEAD}        return (lambda: self.training)() and x\n", "return (lambda: not self.deterministic)() and x\n", "return (lambda: self.training)() and x\n"),
    Example(
        "class Net(nn.Module):\n    def forward(this, x):\n        return F.dropout(x, 0.1, this.training)\n",
        "dropout(x, p=0.1, training=not this.deterministic, rngs=this.rngs)", "dropout(x, p=0.1, training=this.training, rngs=this.rngs)", why="self under another name",
    ),
    Example("class Config:\n    def __init__(self):\n        self.training = True\n"),
    Example("def f(config):\n    return config.training\n"),
    Example(
        "class Net(nn.Module):\n    def training(self):\n        return 1\n\n    def forward(self, x):\n        return self.training()\n", jax="        return self.training()\n", why="a method of that name",
    ),
    Example(f"{HEAD}        self.training = False\n        return x\n", refused="MIG308"),
)
