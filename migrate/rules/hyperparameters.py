"""Lightning's `save_hyperparameters` becomes what it does: the constructor's arguments are kept in `self.hparams`.

Converted: `self.save_hyperparameters()`, `self.save_hyperparameters("dim", "heads")`, `self.save_hyperparameters(ignore=["net"])`.
Unchanged: a method of that name that the class has itself.
Refused: names that are known at run time only.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.rules.example import Example
from migrate.source.modules import FunctionInfo

RULE = "hyperparameters"


def visit_expr(ctx: Context, node: ast.Expr) -> None:
    """`self.save_hyperparameters(...)` in a constructor."""
    call, owner, function = node.value, ctx.class_of(node), ctx.function_of(node)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "save_hyperparameters" or ctx.owned(node):
        return
    if owner is None or not owner.is_module or owner.method("save_hyperparameters") or function is None or function.name != "__init__" or not ctx.is_self(call.func.value):
        return
    kept = _kept(call, function)
    if kept is None:
        ctx.refuse("MIG305", node, "which arguments are kept could not be told")
        return
    name, name_of_self = ctx.name("HParams"), function.self_name
    ctx.edit(node, lambda e: Piece(f"{name_of_self}.hparams = {name}({kept})"), RULE, why="save_hyperparameters")


def _kept(call: ast.Call, function: FunctionInfo) -> str | None:
    """The arguments of HParams; None where they are not known."""
    a = function.node.args
    names = [p.arg for p in [*function.parameters, *a.kwonlyargs]]
    chosen, ignored = [_text(n) for n in call.args], []
    if len(call.args) == 1 and isinstance(call.args[0], ast.Name):
        return call.args[0].id
    for k in call.keywords:
        if k.arg == "ignore":
            listed = k.value.elts if isinstance(k.value, (ast.List, ast.Tuple, ast.Set)) else [k.value]
            ignored += [_text(n) for n in listed]
        elif k.arg not in ("logger", "frame"):
            return None
    if None in chosen or None in ignored:
        return None
    kept = [n for n in (chosen or names) if n not in ignored]
    more = [f"**{a.kwarg.arg}"] if a.kwarg is not None and not chosen else []
    return ", ".join([*(f"{n}={n}" for n in kept), *more])


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


HEAD = "class Net(nn.Module):\n    def __init__(self, n, act=None, **more):\n        super().__init__()\n"
EXAMPLES = (
    Example(f"{HEAD}        self.save_hyperparameters()\n        self.a = nn.Linear(self.hparams.n, 3)\n", jax="        self.hparams = HParams(n=n, act=act, **more)\n"),
    Example(f"{HEAD}        self.save_hyperparameters(ignore=['act'], logger=False)\n", jax="        self.hparams = HParams(n=n, **more)\n"),
    Example(f"{HEAD}        self.save_hyperparameters('n')\n", jax="        self.hparams = HParams(n=n)\n"),
    Example("class Net(nn.Module):\n    def save_hyperparameters(self):\n        self.n = 3\n\n    def forward(self, x):\n        self.save_hyperparameters()\n        return x\n", jax="        self.save_hyperparameters()\n", why="the class's own"),
    Example("class Plain:\n    def __init__(self, n):\n        self.save_hyperparameters()\n"),
    Example("def f(net):\n    net.save_hyperparameters()\n"),
    Example(f"{HEAD}        self.save_hyperparameters(*more)\n", refused="MIG305"),
)
