"""Copy modules: the random numbers of a copy are its own. `copy.deepcopy` copies the streams as well, so that all layers of a stack would drop the same.

Converted: `copy.deepcopy(layer)`.
Unchanged: a copy of anything else, `deepcopy` of something that is not the library's.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.rules.example import Example
from migrate.tables import Row

RULE = "copying"


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`copy.deepcopy(module)`."""
    if ctx.dotted(node.func) != "copy.deepcopy" or len(node.args) != 1 or node.keywords or "copy_module" not in ctx.support or ctx.owned(node):
        return
    if ctx.kind(node.args[0]).tag == "module" or _becomes_a_part(ctx, node):
        name = ctx.name("copy_module")
        ctx.removed.update(ast.walk(node.func))
        ctx.edit(node, lambda e: Piece(f"{name}({e.piece(node.args[0]).text})"), RULE, why="deepcopy")


def _becomes_a_part(ctx: Context, node: ast.expr) -> bool:
    """`nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])`, where the kind of `layer` is not known."""
    at: ast.AST | None = ctx.source.parent(node)
    while isinstance(at, (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Starred)):
        at = ctx.source.parent(at)
    row = ctx.resolve(at.func) if isinstance(at, ast.Call) else None
    return isinstance(row, Row) and row.torch in ("torch.nn.ModuleList", "torch.nn.Sequential")


EXAMPLES = (
    Example("import copy\n\n\nclass Slow(nn.Module):\n    def __init__(self, net: nn.Module):\n        super().__init__()\n        self.net = copy.deepcopy(net)\n", "        self.net = copy_module(net)\n", "        self.net = copy.deepcopy(net)\n"),
    Example("import copy\n\n\ndef clones(layer, n):\n    return nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])\n", "    return nnx.List([copy_module(layer) for _ in range(n)])\n", "copy.deepcopy(layer)", why="what a container holds is a module"),
    Example("import copy\n\n\ndef settings(options):\n    return copy.deepcopy(options), copy.deepcopy({'a': 1})\n", why="no modules, or not known to be"),
    Example("class Copier:\n    def deepcopy(self, net):\n        return net\n\n\ndef same(copy: Copier, net):\n    return copy.deepcopy(net)\n", why="another `copy`"),
)
