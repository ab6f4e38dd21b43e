"""Notes that code writes on parameters (`p.no_weight_decay = True`) go into the variable's metadata, where the target's variables take no attributes.

Converted: an attribute of a parameter or buffer, `setattr` of one, also where a function is given it.
Unchanged: `p.data`, `p.grad`, `p.requires_grad`, which are PyTorch's own; attributes of anything else; reading them (`p.no_weight_decay`, `getattr(p, "no_weight_decay", False)`).
Refused: an attribute of a tensor that is no parameter: arrays take none.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.rules.example import Example

RULE = "notes"
TENSORS_OWN = frozenset({"data", "grad", "requires_grad", "names", "real", "imag", "is_leaf", "grad_fn", "retains_grad", "device", "dtype", "shape", "T", "mT", "H", "mH"})


def is_note(node: ast.AST | None) -> bool:
    """An attribute that PyTorch's tensors have not, as it is assigned or by its name."""
    return isinstance(node, ast.Attribute) and node.attr not in TENSORS_OWN and (isinstance(node.ctx, ast.Store) or node.attr[0] == "_" and node.attr[:2] != "__")


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`p.name = value`."""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Attribute) or not is_note(target) or ctx.owned(node):
        return
    kind = ctx.kind(target.value)
    if not kind.is_tensor or not kind.sure:
        return
    if not kind.variable and not _is_given(ctx, target.value):
        ctx.refuse("MIG301", node, "an attribute that is written on a tensor has no equivalent yet: arrays take none")
        return
    if ctx.target.notes:
        ctx.edit(node, lambda e: Piece(f"{e.piece(target.value).at(17)}.{ctx.target.notes}({target.attr}={e.piece(node.value).text})"), RULE, why="a note on a parameter")


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`setattr(p, "name", value)`."""
    if len(node.args) != 3 or node.keywords or ctx.owned(node) or ctx.dotted(node.func) != "builtins.setattr" or not ctx.target.notes:
        return
    owner, name, value = node.args
    own = isinstance(name, ast.Constant) and name.value in TENSORS_OWN
    if ctx.kind(owner).variable and not own and not any(isinstance(a, ast.Starred) for a in node.args):
        ctx.edit(node, lambda e: Piece(f"{e.piece(owner).at(17)}.{ctx.target.notes}({e.piece(name).text}, {e.piece(value).text})"), RULE, why="a note on a parameter")


def _is_given(ctx: Context, owner: ast.expr) -> bool:
    """Whether a function got the tensor as an argument: what a note is written on is a parameter of the model then, as notes on results are lost."""
    function = ctx.function_of(owner)
    if function is None or not isinstance(owner, ast.Name):
        return False
    return any(p.arg == owner.id for p in function.parameters) and all(b.kind == "parameter" for b in ctx.file.names.lookup(owner))


HEAD = "class Net(nn.Module):\n    def __init__(self, rate):\n        super().__init__()\n        self.w = nn.Parameter(torch.ones(3))\n        self.lin = nn.Linear(3, 3)\n"
EXAMPLES = (
    Example("def tagged(p, name):\n    p.tag = name\n\n\ndef tag_all(module, name):\n    for p in module.parameters():\n        tagged(p, name)\n", "    p.set_metadata(tag=name)\n", "    p.tag = name\n", why="what a walk gives"),
    Example(
        f"{HEAD}        self.w._no_weight_decay = True\n        self.lin.weight.lr = 0.5 * rate\n        setattr(self.w, 'lr', rate)\n",
        "        self.w.set_metadata(_no_weight_decay=True)\n        self.lin.kernel.set_metadata(lr=0.5 * rate)\n        self.w.set_metadata('lr', rate)\n",
        "        self.w._no_weight_decay = True\n        self.lin.weight.lr = 0.5 * rate\n        setattr(self.w, 'lr', rate)\n",
    ),
    Example(f"{HEAD}        for n, p in self.named_parameters():\n            p.decays = n.endswith('weight')\n", "            p.set_metadata(decays=n.endswith('weight'))\n", "            p.decays = n.endswith('weight')\n", why="all of them"),
    Example(f"{HEAD}        w = nn.Parameter(torch.ones(3))\n        w.special = True\n        self.v = w\n", "        w.set_metadata(special=True)\n", "        w.special = True\n", why="before it has its place"),
    Example(
        f"def tagged(p: nn.Parameter, name):\n    p.tag = name\n    return p\n\n\n{HEAD}        tagged(self.w, 'a')\n",
        "    p.set_metadata(tag=name)\n", "    p.tag = name\n", why="a function is given it",
    ),
    Example(f"{HEAD}\n    def decays(self):\n        return not getattr(self.w, '_no_weight_decay', False) and self.w._free\n", "        return not getattr(self.w, '_no_weight_decay', False) and self.w._free\n", "        return not getattr(self.w, '_no_weight_decay', False) and self.w._free\n", why="read"),
    Example("class Options:\n    pass\n\n\ndef f(n):\n    o = Options()\n    o.tag = n\n    return getattr(o, 'tag', None)\n"),
    Example("def f(o, n):\n    o.tag = n\n    setattr(o, 'tag', n)\n"),
    Example("def f(x: torch.Tensor):\n    y = x.exp()\n    y.tag = 'a'\n    return y\n", refused="MIG301"),
)
