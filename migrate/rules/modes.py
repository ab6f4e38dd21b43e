"""Methods `train` of modules' own, which PyTorch calls for `eval()` too, and for modules inside others.

Converted: `super().train(mode)` in a module's own `train`; such a module gets an attribute through which its surroundings call it.
Unchanged: a `train` that is something else, such as a loop over data; `super().train(mode)` where a class of the code has that method.
Reported: a norm with running statistics that has a `train` of its own; any such method where the mode is an argument of calls.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.rules.example import Example
from migrate.source.modules import ClassInfo, FunctionInfo
from migrate.tables import Row

RULE = "modes"


def own_mode(c: ClassInfo) -> FunctionInfo | None:
    """The method `train` of a module that sets its mode."""
    f = c.methods.get("train")
    if f is None or not c.is_module or len(f.parameters) != 1 or f.is_static:
        return None
    return f if any(_is_base(n, f.self_name) for n in ast.walk(f.node)) else None


def decides(c: ClassInfo) -> bool:
    """Whether a class or one that it extends sets its mode itself."""
    return any(own_mode(b) is not None for b in c.mro())


def _is_base(node: ast.AST, me: str | None) -> bool:
    """`super().train(...)`, `nn.Linear.train(self, ...)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "train":
        return False
    of = node.func.value
    return isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id == "super" or bool(node.args) and isinstance(node.args[0], ast.Name) and node.args[0].id == me


def visit_function(ctx: Context, f: FunctionInfo) -> None:
    """What has no counterpart."""
    if f.owner is None or own_mode(f.owner) is not f:
        return
    norm = f.owner.layer is not None and "Norm" in f.owner.layer.torch
    if norm or not ctx.target.training_attribute:
        ctx.report("MIG201", f.node, "PyTorch calls this `train` for `eval()` and for modules around it too; nothing here does")


def visit_call(ctx: Context, node: ast.Call) -> None:
    """The call of the base class's method."""
    owner = ctx.class_of(node)
    if not _is_base(node, ctx.self_of(node)) or ctx.owned(node) or owner is None or not owner.is_module or "set_mode" not in ctx.support:
        return
    func = node.func
    assert isinstance(func, ast.Attribute)
    explicit = not isinstance(func.value, ast.Call)
    base = ctx.resolve(func.value) if explicit else None
    if explicit and not (isinstance(base, Row) and base.kind == "layer" or base == "torch.nn.Module" or isinstance(base, Row) and base.torch == "torch.nn.Module"):
        return
    if not explicit and any("train" in c.methods for c in owner.mro() if c is not owner):
        return
    given = [*node.args[int(explicit) :], *(k.value for k in node.keywords)]
    if len(given) > 1:
        return
    me, name = ctx.self_of(node), ctx.name("set_mode")
    ctx.removed.update(ast.walk(func))
    ctx.edit(node, lambda e: Piece(f"{name}({', '.join([str(me), *(e.piece(g).text for g in given)])})"), RULE, why="train")


HEAD = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(3, 3)\n        self.merged = False\n\n"
EXAMPLES = (
    Example(
        f"{HEAD}    def train(self, mode=True):\n        super().train(mode)\n        self.merged = not mode\n        return self\n", "    deterministic = OwnMode()\n", "        super().train(mode)\n",
        why="where the mode is an argument of calls, a warning says that nothing calls this",
    ),
    Example(f"{HEAD}    def train(self, mode=True):\n        self.merged = not mode\n        return super(Net, self).train(mode=mode)\n", "        return set_mode(self, mode)\n", "        return "),
    Example("class Frozen(nn.BatchNorm2d):\n    def train(self, mode=True):\n        return super().train(False)\n", "        return set_mode(self, False)\n", "        return ", reported="MIG201"),
    Example("class Net:\n    def train(self, mode=True):\n        self.mode = mode\n\n\nclass Other(Net):\n    def train(self, mode=True):\n        super().train(mode)\n"),
    Example(
        "class All(nn.Module):\n    def train(self, mode=True):\n        self.training = mode\n        for m in self.children():\n            m.train(mode)\n        return self\n", "        self.deterministic = not mode\n",
        why="it goes over its parts itself",
    ),
    Example("class Loop:\n    def train(self, data):\n        for x in data:\n            self.step(x)\n"),
)
