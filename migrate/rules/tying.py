"""Tie weights: two layers that share a parameter go on sharing it.

Converted: `self.head.weight = self.embedding.weight`, both ways round, and between layers of one kind.
Unchanged: an attribute called `weight` of something that is no layer.
Refused: layers whose kinds are not known.
"""
import ast

from migrate.context import Context
from migrate.edits import Emitter, Piece
from migrate.rules.example import Example
from migrate.rules.state import state_of
from migrate.source.modules import ClassInfo
from migrate.tables import Row

RULE = "tying"
LINEAR, EMBEDDING = "torch.nn.Linear", "torch.nn.Embedding"


def _layer(ctx: Context, node: ast.Attribute) -> Row | None:
    ref = ctx.kind(node.value).ref
    if isinstance(ref, ClassInfo):
        return ref.layer
    return ref if isinstance(ref, Row) else None


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`a.weight = b.weight`."""
    target, value = node.targets[0], node.value
    if not (isinstance(target, ast.Attribute) and isinstance(value, ast.Attribute) and len(node.targets) == 1) or ctx.owned(node):
        return
    if target.attr not in ("weight", "bias") or value.attr not in ("weight", "bias") or ctx.kind(target.value).tag != "module":
        return
    a, b = _layer(ctx, target), _layer(ctx, value)
    if a is None or b is None:
        if ctx.kind(value.value).tag == "module" and ctx.is_self(value.value) and a is None:
            return
        if isinstance(ctx.kind(target.value).ref, ClassInfo) and isinstance(ctx.kind(value.value).ref, ClassInfo):
            ctx.edit(node, lambda e: e.original(node), RULE)
            return
        ctx.refuse("MIG304", node, "which layers share the weight could not be told")
        return
    if {a.torch, b.torch} == {LINEAR, EMBEDDING} and target.attr == "weight" and state_of(ctx, a) != state_of(ctx, b):
        linear, table = (target, value) if a.torch == LINEAR else (value, target)
        ctx.edit(node, lambda e: _tied_linear(ctx, e, linear, table), RULE, why="tied weights")
        return
    ctx.edit(node, lambda e: _shared(ctx, e, node, a, b), RULE, why="tied weights")


def _tied_linear(ctx: Context, e: Emitter, linear: ast.Attribute, table: ast.Attribute) -> Piece:
    name = e.piece(linear.value).text
    return Piece(f"{name} = {ctx.name('TiedLinear')}({e.piece(table.value).text}, {name}.bias)")


def _shared(ctx: Context, e: Emitter, node: ast.Assign, a: Row, b: Row) -> Piece:
    target, value = node.targets[0], node.value
    assert isinstance(target, ast.Attribute) and isinstance(value, ast.Attribute)
    left = state_of(ctx, a).get(target.attr, target.attr).partition(":")[0].strip()
    right = state_of(ctx, b).get(value.attr, value.attr).partition(":")[0].strip()
    return Piece(f"{e.piece(target.value).text}.{left} = {e.piece(value.value).text}.{right}")


HEAD = "class Net(nn.Module):\n    def __init__(self, other):\n        super().__init__()\n        self.table = nn.Embedding(5, 3)\n        self.head = nn.Linear(3, 5, bias=False)\n        self.b = nn.Linear(3, 5)\n"
EXAMPLES = (
    Example(f"{HEAD}        self.head.weight = self.table.weight\n", "        self.head = TiedLinear(self.table, self.head.bias)\n", "        self.head.weight = self.table.weight\n"),
    Example(f"{HEAD}        self.table.weight = self.head.weight\n", "        self.head = TiedLinear(self.table, self.head.bias)\n", "        self.table.weight = self.head.weight\n", why="the other way round"),
    Example(f"{HEAD}        self.b.weight = self.head.weight\n", "        self.b.kernel = self.head.kernel\n", "        self.b.weight = self.head.weight\n"),
    Example("class Scale:\n    def __init__(self, other):\n        self.weight = 3\n        self.bias = other\n"),
    Example("def f(person, other):\n    person.weight = 3\n    person.bias = other\n"),
    Example(f"{HEAD}        self.other = other\n        self.head.weight = self.other.weight\n", refused="MIG304"),
)
