"""Ask a module for what only PyTorch's modules have: `hasattr(m, "parameters")`, `hasattr(m, "weight")`.

The target's modules have no such methods, and native layers call their weight otherwise: the question would be answered "no" in silence, and an
initialiser that asks it would leave everything as it is.

Converted: methods of `nn.Module` that became functions, the weight of what may be any layer.
Unchanged: attributes that modules keep, names that are not known before the run, objects that are no modules.
Reported: `reset_parameters`, which native layers lack.
"""
import ast

from migrate.context import Context
from migrate.edits import OR, Piece
from migrate.rules.example import Example
from migrate.rules.layers import qualified
from migrate.rules.traversal import CHECKPOINTS, WALKS
from migrate.source.modules import ClassInfo

RULE = "asking"
METHODS = WALKS | CHECKPOINTS | {"apply", "zero_grad", "requires_grad_", "register_buffer", "register_parameter", "add_module", "register_module"}


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`hasattr(m, name)` of a module, or of what may be one."""
    if ctx.owned(node) or ctx.dotted(node.func) != "builtins.hasattr" or len(node.args) != 2 or node.keywords:
        return
    asked, name = node.args
    kind = ctx.kind(asked)
    if not isinstance(name, ast.Constant) or kind.tag != "module" and not kind.is_unknown:
        return
    own = kind.ref.method(str(name.value)) if isinstance(kind.ref, ClassInfo) else None
    if name.value in METHODS and own is None:
        only = kind.tag == "module" and kind.ref is not None
        module = qualified(ctx, ctx.target.module_base)
        ctx.edit(node, lambda e: _is_module(e.piece(asked).text, "" if only else e.original(node).text, module), RULE, why="a method of nn.Module")
    elif name.value == "weight" and not isinstance(kind.ref, ClassInfo) and not ctx.is_self(asked) and "has_weight" in ctx.support:
        function = ctx.name("has_weight")
        ctx.edit(node, lambda e: Piece(f"{function}({e.piece(asked).text})"), RULE, why="weight")
    elif name.value == "reset_parameters" and kind.is_unknown and not ctx.is_self(asked) and name.value not in ctx.inf.method_names():
        ctx.refuse("MIG306", node, "layers have no `reset_parameters` here: what follows is left out for them")


def _is_module(asked: str, before: str, module: str) -> Piece:
    test = f"isinstance({asked}, {module})"
    return Piece(f"{before} or {test}", OR) if before else Piece(test)


EXAMPLES = (
    Example(
        "def init(m):\n    if hasattr(m, 'parameters'):\n        for p in m.parameters():\n            nn.init.zeros_(p)\n",
        "    if hasattr(m, 'parameters') or isinstance(m, nnx.Module):\n", "    if hasattr(m, 'parameters') or isinstance(m, Module):\n", why="it may be an optimiser as well",
    ),
    Example("def f(m):\n    return not hasattr(m, 'children')\n", "    return not (hasattr(m, 'children') or isinstance(m, nnx.Module))\n", "not (hasattr(m, 'children') or isinstance(m, Module))\n"),
    Example("def f(n):\n    layer = nn.Linear(n, n)\n    return hasattr(layer, 'state_dict')\n", "    return isinstance(layer, nnx.Module)\n", "    return isinstance(layer, Module)\n"),
    Example(
        "def init(m):\n    if hasattr(m, 'weight') and m.weight is not None:\n        nn.init.ones_(m.weight)\n",
        "    if has_weight(m) and weight_of(m) is not None:\n", "    if hasattr(m, 'weight') and m.weight is not None:\n", why="a kernel or a scale",
    ),
    Example("def f(m):\n    return hasattr(m, 'bias'), hasattr(m, 'in_channels'), hasattr(m, 'training')\n"),
    Example("def f(m, name):\n    return hasattr(m, name)\n"),
    Example("class Config:\n    weight = 1\n\n\ndef f():\n    return hasattr(Config(), 'weight'), hasattr(Config(), 'parameters')\n"),
    Example("def f(m):\n    if hasattr(m, 'reset_parameters'):\n        m.reset_parameters()\n", refused="MIG306", why="initial values would be lost"),
)
