"""Import what a function of the code imports: `Rearrange, found = optional_import("einops.layers.torch", name="Rearrange")`.

Converted: one of something that has a row; the statement goes, or keeps only whether it was found.
Unchanged: one of another library, a function that imports nothing.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.removal import remove_statement
from migrate.rules.example import Example

RULE = "optional"


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """The statement that imports."""
    if node not in ctx.unit.shared.get("optional", ()) or ctx.owned(node):
        return
    target = node.targets[0]
    found = target.elts[1] if isinstance(target, ast.Tuple) else None
    if isinstance(found, ast.Name) and any(isinstance(n, ast.Name) and n.id == found.id and isinstance(n.ctx, ast.Load) for n in ctx.source.nodes):
        ctx.removed.update(ast.walk(node))
        ctx.edit(node, lambda e: Piece(f"{found.id} = True"), RULE, why="import")
    else:
        remove_statement(ctx, node, RULE)


GET = "from importlib import import_module\n\n\ndef get(module, name=''):\n    try:\n        return getattr(import_module(module), name), True\n    except ImportError:\n        return None, False\n\n\n"
EXAMPLES = (
    Example(f"{GET}Act, found = get('torch.nn', name='Hardtanh')\nmake = Act() if found else None\n", jax="found = True\nmake = Hardtanh() if found else None\n"),
    Example(f"{GET}relu, _ = get('torch.nn.functional', 'relu')\n\n\ndef f(x: torch.Tensor):\n    return relu(x)\n", jax="def f(x: jax.Array):\n    return jax.nn.relu(x)\n"),
    Example(f"{GET}rearrange, _ = get('einops', 'rearrange')\n\n\ndef f(x):\n    return rearrange(x, 'a b -> b a')\n"),
    Example("def get(module, name=''):\n    return module + name, True\n\n\nAct, found = get('torch.nn', name='Hardtanh')\n"),
)
