"""Say where an option of a layer is written after the layer was made: `self.drop.p = 0.0`, `m.eps = 1e-3`, `setattr(m, "p", 0)`.

The target's own layers keep options under other names, or in a function, and would not see it.

Reported: options of layers that have a native form, and those that only the constructor of a layer reads.
Unchanged: attributes of other objects, a module's own attributes, weights and biases.
"""
import ast

from migrate.context import Context
from migrate.infer.kinds import refs
from migrate.rules.example import Example
from migrate.tables import Row

RULE = "late_options"
BY_CONSTRUCTOR = frozenset({"padding_mode", "track_running_stats"})  # no layer of any target reads them later
UNKNOWN = BY_CONSTRUCTOR | {"p", "eps", "max_norm"}  # names that hardly anything else has
NO_OPTIONS = frozenset({"weight", "bias", "device", "dtype", "inplace", "_weight", "args", "modules"})


def visit_assign(ctx: Context, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> None:
    """An assignment to an attribute."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Attribute) and not ctx.is_self(target.value):
            _look(ctx, node, target.value, target.attr)


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`setattr(m, "p", 0)`."""
    if ctx.dotted(node.func) == "builtins.setattr" and len(node.args) == 3 and isinstance(node.args[1], ast.Constant) and not ctx.is_self(node.args[0]):
        _look(ctx, node, node.args[0], str(node.args[1].value))


def _look(ctx: Context, node: ast.AST, layer: ast.expr, name: str) -> None:
    kind = ctx.kind(layer)
    known = [r for r in refs(kind) if isinstance(r, Row)] if kind.tag == "module" else []
    if name in NO_OPTIONS or not known and not (kind.is_unknown and name in UNKNOWN):
        return
    if not known or any(_unseen(row, name) for row in known):
        ctx.report("MIG201", node, f"`{name}` is an option of layers: what is written to it after a layer was made need not reach it here; give it to the constructor")


def _unseen(row: Row, name: str) -> bool:
    return any(p.name == name for p in row.parameters) and (name in BY_CONSTRUCTOR or bool(row.variants))


HEAD = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
EXAMPLES = (
    Example(f"{HEAD}        self.drop = nn.Dropout(0.5)\n        self.drop.p = 0.0\n", "        self.drop.p = 0.0\n", reported="MIG201"),
    Example("def quiet(m):\n    for c in m.modules():\n        if isinstance(c, nn.Dropout):\n            c.p = 0.0\n", reported="MIG201", jax="            c.p = 0.0\n"),
    Example("def circular(conv: nn.Conv2d):\n    setattr(conv, 'padding_mode', 'circular')\n", reported="MIG201", jax="    setattr(conv, 'padding_mode', 'circular')\n"),
    Example("def f(config, m):\n    config.dim = 3\n    m.name = 'a'\n    m.momentum = 0.1\n"),
    Example("class Options:\n    p = 1\n\n\ndef f():\n    o = Options()\n    o.p = 3\n    return o\n"),
)
