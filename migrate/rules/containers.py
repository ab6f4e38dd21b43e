"""Name submodules: `add_module` and `register_module` become attributes; in a subclass of Sequential it is the other way round.

Converted: `self.add_module("conv1", m)`, `self.add_module(f"block{i}", m)`; `self.act = nn.ReLU()` in a Sequential, where the layer is one of its steps.
Unchanged: `add_module` of something that is no module; other attributes of a Sequential.
"""
import ast

from migrate.context import Context
from migrate.edits import Emitter, Piece
from migrate.infer.facts import SEQUENTIAL
from migrate.rules.example import Example
from migrate.rules.layers import MODULE_LIST
from migrate.rules.state import renamed
from migrate.tables import Row

RULE = "containers"


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`self.act = layer` in a subclass of Sequential: a function that takes the layer's place must be a step as well."""
    target, value, owner = node.targets[0], node.value, ctx.class_of(node)
    if len(node.targets) != 1 or not isinstance(target, ast.Attribute) or ctx.owned(node) or owner is None or not ctx.is_self(target.value):
        return
    if owner.layer is None or owner.layer.torch != SEQUENTIAL or ctx.kind(value).tag != "module":
        return

    def build(e: Emitter) -> Piece:
        return Piece(f'{e.piece(target.value).text}.add_module("{target.attr}", {e.piece(value).text})')

    ctx.edit(node, build, RULE, why="a step of the sequence")


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`self.add_module(name, module)`."""
    func = node.func
    if not ctx.owned(node) and ctx.dotted(func) == MODULE_LIST and _is_named(ctx, ctx.source.parent(node)):
        ctx.edit(node, lambda e: Piece(f"{ctx.name('ModuleDict')}()"), RULE, why="names in a list")
        return
    pair = [a for a in node.args if isinstance(a, ast.Starred)] if len(node.args) == 1 and not node.keywords else []
    if ctx.owned(node) or not isinstance(func, ast.Attribute) or func.attr not in ("add_module", "register_module") or len(node.args) + len(node.keywords) != 2 and not pair:
        return
    kind, statement = ctx.kind(func.value), ctx.source.parent(node)
    if isinstance(kind.ref, Row) and kind.ref.torch == MODULE_LIST:
        made = [a.statement for a in owner.assigned(func.value.attr)] if (owner := ctx.class_of(node)) and isinstance(func.value, ast.Attribute) else []
        if made and all(_is_named(ctx, s) for s in made):
            return
        ctx.refuse("MIG301", node, "a list of modules has numbers here, no names; use a Sequential or a ModuleDict")
        return
    if kind.tag != "module" or isinstance(kind.ref, Row) or not isinstance(statement, ast.Expr):
        return
    if kind.ref is not None and hasattr(kind.ref, "layer") and kind.ref.layer is not None:
        return  # a subclass of Sequential or ModuleDict keeps its own
    if pair:
        ctx.edit(statement, lambda e: Piece(f"setattr({e.piece(func.value).at(17)}, {e.render(pair[0])})"), RULE, why=func.attr)
        return
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


def _is_named(ctx: Context, statement: ast.AST | None) -> bool:
    """`self.paths = nn.ModuleList()` that only `add_module` fills, and only names are used to read."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Attribute) or not ctx.is_self(target.value) or not isinstance(value, ast.Call) or value.args or value.keywords or ctx.dotted(value.func) != MODULE_LIST:
        return False
    uses = [ctx.source.parent(n) for n in ctx.source.nodes if isinstance(n, ast.Attribute) and n.attr == target.attr and isinstance(n.ctx, ast.Load)]
    names = {u.attr if isinstance(u, ast.Attribute) else "" for u in uses}
    return "add_module" in names and not names & {"", "append", "extend", "insert", "keys", "values", "items", "pop", "update", "clear"}


HEAD = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
EXAMPLES = (
    Example(f'{HEAD}        self.add_module("conv1", nn.Linear(3, 3))\n', "        self.conv1 = nnx.Linear(3, 3, rngs=rngs)\n", "        self.conv1 = Linear(3, 3)\n"),
    Example(
        f'{HEAD}        for i in range(2):\n            self.add_module(f"block{{i}}", nn.Linear(3, 3))\n',
        '            setattr(self, f"block{i}", nnx.Linear(3, 3, rngs=rngs))\n', '            setattr(self, f"block{i}", Linear(3, 3))\n',
    ),
    Example(f'{HEAD}        self.register_module(name="act", module=nn.ReLU())\n', jax="        self.act = "),
    Example(f'{HEAD}        for pair in [("a", nn.ReLU())]:\n            self.add_module(*pair)\n', jax="            setattr(self, *pair)\n"),
    Example(f'{HEAD}        self.add_module("a.b", nn.ReLU())\n', jax='        setattr(self, "a.b", '),
    Example(
        "class Block(nn.Sequential):\n    def __init__(self, n):\n        super().__init__()\n        self.width = n\n        self.lin = nn.Linear(n, n)\n        self.act = nn.ReLU()\n",
        '        self.width = n\n        self.add_module("lin", nnx.Linear(n, n, rngs=rngs))\n        self.add_module("act", nnx.relu)\n',
        '        self.width = n\n        self.add_module("lin", Linear(n, n))\n        self.add_module("act", ',
    ),
    Example(f"{HEAD}        self.paths = nn.ModuleList()\n        self.paths.add_module('pool', nn.Linear(3, 3))\n\n    def forward(self, x):\n        return self.paths.pool(x)\n", jax="        self.paths = ModuleDict()\n        self.paths.add_module('pool', ", why="names in a list"),
    Example(f"{HEAD}        self.paths = nn.ModuleList()\n        self.paths.add_module('pool', nn.Linear(3, 3))\n        self.n = len(self.paths)\n", refused="MIG301"),
    Example('class Registry:\n    def add_module(self, name, module):\n        self.table[name] = module\n\n\nRegistry().add_module("a", print)\n'),
    Example('def f(tree):\n    tree.add_module("a", 1)\n'),
)
