"""Import what a function of the code imports: `Rearrange, found = optional_import("einops.layers.torch", name="Rearrange")`; leave out what would replace a class of the file.

Converted: one of something that has a row; the statement goes, or keeps only whether it was found. `try: from apex import Norm` where the file has a class `Norm` goes.
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


def visit_try(ctx: Context, node: ast.Try) -> None:
    """An import that replaces a class of the file where a package of PyTorch's is there."""
    if node in ctx.unit.shared.get("replacing", ()):
        remove_statement(ctx, node, RULE)
        ctx.report("MIG103", node, "left out: it would put a class of PyTorch in place of this file's")


GET = "from importlib import import_module\n\n\ndef get(module, name=''):\n    try:\n        return getattr(import_module(module), name), True\n    except ImportError:\n        return None, False\n\n\n"
EXAMPLES = (
    Example(
        "class Norm(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.w = nn.Parameter(torch.ones(n))\n\n\ntry:\n    from apex.normalization import FusedNorm\n\n    Norm = FusedNorm\n    print('apex')\nexcept ImportError:\n    pass\n\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.norm = Norm(3)\n",
        "nnx.Param(jnp.ones((n,)))\n\n\n\n\nclass Net(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.norm = Norm(3, rngs=rngs)\n", "\n\nclass Net(Module):\n", why="a class in place of the file's own", reported="MIG103",
    ),
    Example(f"{GET}Act, found = get('torch.nn', name='Hardtanh')\nmake = Act() if found else None\n", jax="found = True\nmake = Hardtanh() if found else None\n"),
    Example(f"{GET}relu, _ = get('torch.nn.functional', 'relu')\n\n\ndef f(x: torch.Tensor):\n    return relu(x)\n", jax="def f(x: jax.Array):\n    return jax.nn.relu(x)\n"),
    Example(f"{GET}rearrange, _ = get('einops', 'rearrange')\n\n\ndef f(x):\n    return rearrange(x, 'a b -> b a')\n"),
    Example("def get(module, name=''):\n    return module + name, True\n\n\nAct, found = get('torch.nn', name='Hardtanh')\n"),
)
