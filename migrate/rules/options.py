"""Read an option of a layer under the name that the target's own layer gives it: `self.drop.p` is `self.drop.rate`.

Converted: options of layers that have a native form with another name for them, however the layer is reached (an attribute, an element of a container).
Unchanged: options that the native layer names as PyTorch does, those of support classes, attributes of anything else.
Refused: options that the native form keeps nowhere.
"""
import ast

from migrate.context import Context
from migrate.edits import Emitter, Piece
from migrate.infer.kinds import refs
from migrate.rules.example import Example
from migrate.rules.late_options import NO_OPTIONS
from migrate.tables import Row

RULE = "options"


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """`layer.option`."""
    kind = ctx.kind(node.value)
    if kind.tag != "module" or not isinstance(node.ctx, ast.Load) or node.attr in NO_OPTIONS or ctx.owned(node):
        return
    rows = [r for r in refs(kind) if isinstance(r, Row) and r.kind == "layer" and any(p.name == node.attr for p in r.parameters)]
    native = [r for r in rows if any(v.to.startswith("nnx.") for v in r.for_target(ctx.target.name))]
    if not native:
        return
    names = {r.attributes.get(node.attr, "") if r in native else node.attr for r in rows}
    if names == {node.attr}:
        return
    if "" in names or len(names) > 1:
        ctx.refuse("MIG301", node, f"{native[0].torch}.{node.attr} has no equivalent yet: the layer does not keep it under one name")
        return

    def build(e: Emitter) -> Piece:
        return Piece(f"{e.piece(node.value).at(17)}.{next(iter(names))}")

    ctx.edit(node, build, RULE, why="the layer's name for it")


HEAD = (
    "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.drop = nn.Dropout(0.5)\n        self.norm = nn.LayerNorm(4)\n        self.lin = nn.Linear(4, n)\n"
    "        self.conv = nn.Conv2d(3, 4, 3)\n        self.act = nn.ELU(0.5)\n        self.tables = nn.ModuleList([nn.Embedding(n, 4) for _ in range(2)])\n\n    def forward(self, x):\n"
)
EXAMPLES = (
    Example(f"{HEAD}        return F.dropout(x, self.drop.p, self.training) + self.norm.eps\n", "self.drop.rate", "self.drop.p", why="other names"),
    Example(f"{HEAD}        return x + self.norm.eps\n", "        return x + self.norm.epsilon\n", "        return x + self.norm.eps\n"),
    Example(f"{HEAD}        return x * self.tables[0].embedding_dim ** -0.5\n", "        return x * self.tables[0].features ** -0.5\n", "        return x * self.tables[0].embedding_dim ** -0.5\n", why="an element of a list"),
    Example(f"{HEAD}        return x * self.lin.in_features + self.conv.out_channels\n", jax="        return x * self.lin.in_features + self.conv.out_channels\n", why="the same names"),
    Example("def f(config, rows):\n    return [r.eps for r in rows] + [config.embedding_dim]\n"),
    Example("class Options:\n    p = 1\n    eps = 2\n\n\ndef f(o: Options):\n    return o.p + o.eps\n"),
)
