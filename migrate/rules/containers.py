"""Name submodules: `add_module` and `register_module` become attributes.

Converted: `self.add_module("conv1", m)`, `self.add_module(f"block{i}", m)`.
Unchanged: `add_module` of something that is no module.
"""
import ast

from migrate.context import Context
from migrate.edits import Emitter, Piece
from migrate.rules.example import Example
from migrate.rules.state import renamed
from migrate.tables import Row

RULE = "containers"


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`self.add_module(name, module)`."""
    func = node.func
    if ctx.owned(node) or not isinstance(func, ast.Attribute) or func.attr not in ("add_module", "register_module") or len(node.args) + len(node.keywords) != 2:
        return
    kind, statement = ctx.kind(func.value), ctx.source.parent(node)
    if kind.tag != "module" or isinstance(kind.ref, Row) or not isinstance(statement, ast.Expr):
        return
    if kind.ref is not None and hasattr(kind.ref, "layer") and kind.ref.layer is not None:
        return  # a subclass of Sequential or ModuleDict keeps its own
    given = {k.arg: k.value for k in node.keywords}
    name = node.args[0] if node.args else given.get("name")
    module = node.args[1] if len(node.args) > 1 else given.get("module")
    if name is None or module is None:
        return

    def build(e: Emitter) -> Piece:
        owner = e.piece(func.value).at(17)
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier():
            return Piece(f"{owner}.{renamed(ctx, func.value, name.value)} = {e.piece(module).text}")
        return Piece(f"setattr({owner}, {e.piece(name).text}, {e.piece(module).text})")

    ctx.edit(statement, build, RULE, why=func.attr)


HEAD = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
EXAMPLES = (
    Example(f'{HEAD}        self.add_module("conv1", nn.Linear(3, 3))\n', "        self.conv1 = nnx.Linear(3, 3, rngs=rngs)\n", "        self.conv1 = Linear(3, 3)\n"),
    Example(
        f'{HEAD}        for i in range(2):\n            self.add_module(f"block{{i}}", nn.Linear(3, 3))\n',
        '            setattr(self, f"block{i}", nnx.Linear(3, 3, rngs=rngs))\n', '            setattr(self, f"block{i}", Linear(3, 3))\n',
    ),
    Example(f'{HEAD}        self.register_module(name="act", module=nn.ReLU())\n', jax="        self.act = "),
    Example(f'{HEAD}        self.add_module("a.b", nn.ReLU())\n', jax='        setattr(self, "a.b", '),
    Example('class Registry:\n    def add_module(self, name, module):\n        self.table[name] = module\n\n\nRegistry().add_module("a", print)\n'),
    Example('def f(tree):\n    tree.add_module("a", 1)\n'),
)
