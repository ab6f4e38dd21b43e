"""Read the training state as the target keeps it.

Converted: `if self.training`, `F.dropout(x, 0.1, self.training)`, `not self.training`. Where the mode is an argument of a call, `net.train(); net(x)` of a module
that the same function makes is `net(x, training=True)`: the module that the function returns is in the mode that every other starts in.
`net.training = False` sets that state of one module.
Unchanged: an attribute `training` of something that is no module, a method that is called `training`.
Refused: writing `self.training`.
"""
import ast

from migrate.context import Context
from migrate.edits import NOT, Emitter, Piece
from migrate.infer.kinds import refs
from migrate.removal import remove_statement
from migrate.rules import calling
from migrate.rules.example import Example
from migrate.rules.state import fill
from migrate.source.modules import ClassInfo, FunctionInfo

RULE = "training"


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """`self.training`."""
    if node.attr != "training" or ctx.owned(node):
        return
    owner = ctx.class_of(node)
    if not ctx.is_self(node.value):
        _of_another(ctx, node)
        return
    if owner is None or not owner.is_module or owner.method("training"):
        return
    if not isinstance(node.ctx, ast.Load) and _set(ctx, node):
        owner.traits.add("training")
        return
    if not isinstance(node.ctx, ast.Load):
        ctx.refuse("MIG308", node, "the training state is set by train() and eval()")
        return
    owner.traits.add("training")
    parent = ctx.source.parent(node)
    negated = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    text = ctx.target.training
    if negated and text.startswith("not ") and not ctx.owned(parent):
        ctx.edit(parent, lambda e: fill(ctx, text.removeprefix("not "), self=Piece(ctx.source.segment(node.value))), RULE)
        return

    def build(e: Emitter) -> Piece:
        return fill(ctx, text, self=e.piece(node.value))

    ctx.edit(node, build, RULE)


def _of_another(ctx: Context, node: ast.Attribute) -> None:
    """`module.training` in a function that is handed a module."""
    kind = ctx.kind(node.value)
    if kind.tag == "module" and isinstance(node.ctx, ast.Store) and not ctx.owned(node):
        known = [c for c in refs(kind) if isinstance(c, ClassInfo)]
        if not any(c.method("training") or c.assigned("training") for c in known):
            _set(ctx, node)
        return
    if kind.tag != "module" or not isinstance(node.ctx, ast.Load) or not ctx.target.training_attribute:
        return
    known = [c for c in refs(kind) if isinstance(c, ClassInfo)]
    if not known and not refs(kind):
        known = ctx.shared.get("handed_modules") or _handed(ctx)
    for c in known:
        c.traits.add("training")
    if known and not any(c.method("training") for c in known):
        ctx.edit(node, lambda e: fill(ctx, ctx.target.training, self=e.piece(node.value)), RULE)


def _handed(ctx: Context) -> list[ClassInfo]:
    """The module classes whose methods hand `self` to a call, or are wrapped by a function of the code that may do so."""
    found = {}
    for file in ctx.unit.files.values():
        for f in file.functions:
            if f.owner is not None and f.owner.is_module and f.self_name:
                calls = (n for n in ast.walk(f.node) if isinstance(n, ast.Call))
                wrapped = any(isinstance(ctx.unit.resolve(file, d), FunctionInfo) for d in f.node.decorator_list if isinstance(d, (ast.Name, ast.Attribute)))
                if wrapped or any(isinstance(a, ast.Name) and a.id == f.self_name for c in calls for a in [*c.args, *(k.value for k in c.keywords)]):
                    found[f.owner] = True
    ctx.shared["handed_modules"] = list(found)
    return list(found)


def _set(ctx: Context, node: ast.Attribute) -> bool:
    """`self.training = value`, where the target has an attribute of its own for it. PyTorch sets no child's state here either."""
    statement = ctx.source.parent(node)
    name = ctx.target.training_attribute.partition(" ")[0]
    if not name or not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.value, (ast.Constant, ast.Name)):
        return False
    value = statement.value
    ctx.edit(node, lambda e: Piece(f"{e.piece(node.value).text}.{name}"), RULE)
    if isinstance(value, ast.Constant):
        ctx.edit(value, lambda e: Piece(str(not value.value)), RULE)
    else:
        ctx.edit(value, lambda e: Piece(f"not {e.original(value).at(NOT)}", NOT), RULE)
    return True


def visit_function(ctx: Context, f: FunctionInfo) -> None:
    """The modes of the modules that a function makes for itself."""
    if not ctx.target.call_mode or f.name == "__init__":
        return
    made = {t.id for s in f.node.body if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and ctx.kind(s.value).tag == "module" for t in s.targets if isinstance(t, ast.Name)}
    for name in sorted(made):
        uses = [n for n in ast.walk(f.node) if isinstance(n, ast.Name) and n.id == name]
        modes = [m for n in uses if (m := _mode_of(ctx, f, n)) is not None]
        calls = [p for n in uses if isinstance(p := ctx.source.parent(n), ast.Call) and p.func is n]
        if any(mode for _, mode in modes) and calls and all(_is_plain(ctx, f, n) for n in uses):
            _explicit(ctx, modes, calls)


def _mode_of(ctx: Context, f: FunctionInfo, node: ast.Name) -> tuple[ast.Expr, bool] | None:
    """The statement `node.train()` or `node.eval()` of a function's own body, and whether it is training."""
    attribute = ctx.source.parent(node)
    call = ctx.source.parent(attribute) if isinstance(attribute, ast.Attribute) and attribute.attr in ("train", "eval") else None
    statement = ctx.source.parent(call) if isinstance(call, ast.Call) and not call.args and not call.keywords else None
    if not isinstance(statement, ast.Expr) or not isinstance(attribute, ast.Attribute) or statement not in f.node.body:
        return None
    return statement, attribute.attr == "train"


def _is_plain(ctx: Context, f: FunctionInfo, node: ast.Name) -> bool:
    """Whether a use of a module can't depend on the mode it was left in: a call, a mode, an attribute that is read, a result."""
    if ctx.source.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda) is not f.node:
        return False
    parent = ctx.source.parent(node)
    match parent:
        case ast.Call():
            return parent.func is node
        case ast.Assign():
            return node in parent.targets
        case ast.Attribute():
            return _mode_of(ctx, f, node) is not None or not isinstance(ctx.source.parent(parent), ast.Call)
        case ast.Return():
            return True
    return isinstance(parent, ast.Tuple) and isinstance(ctx.source.parent(parent), ast.Return)


def _explicit(ctx: Context, modes: list[tuple[ast.Expr, bool]], calls: list[ast.Call]) -> None:
    for statement, _ in modes:
        remove_statement(ctx, statement, RULE)
    for call in calls:
        before = [(ctx.source.start(s), mode) for s, mode in modes if ctx.source.start(s) < ctx.source.start(call)]
        if before and max(before)[1]:
            calling.insert_keyword(ctx, call, ctx.target.call_mode, RULE)


HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
EXAMPLES = (
    Example(f"{HEAD}        if self.training:\n            return x\n        return x + 1\n", "        if not self.deterministic:\n            return x\n", "        if self.training:\n            return x\n"),
    Example(f"{HEAD}        return x if not self.training else x + 1\n", "return x if self.deterministic else x + 1\n", "return x if not self.training else x + 1\n"),
    Example(f"{HEAD}        return (lambda: self.training)() and x\n", "return (lambda: not self.deterministic)() and x\n", "return (lambda: self.training)() and x\n"),
    Example(
        "class Net(nn.Module):\n    def forward(this, x):\n        return F.dropout(x, 0.1, this.training)\n",
        "dropout(x, p=0.1, training=not this.deterministic, rngs=this.rngs)", "dropout(x, p=0.1, training=this.training, rngs=this.rngs)", why="self under another name",
    ),
    Example(
        "def f(x):\n    net = nn.Linear(3, 3)\n    net.train()\n    y = net(x)\n    net.eval()\n    return net, y + net(x)\n", "    net.train()\n    y = net(x)\n",
        "    net = Linear(3, 3)\n    y = net(x, training=True)\n    return net, y + net(x)\n", why="the mode of a call",
    ),
    Example("def f(net: nn.Module, on):\n    net.training = True\n    net.head.training = on\n", "    net.deterministic = False\n    net.head.", "    net.training = True\n", why="one module's state"),
    Example("def f(step, x):\n    net = nn.Linear(3, 3)\n    net.train()\n    y = net(x)\n    return step(net, y)\n", keras="    net.train()\n    y = net(x)\n", why="another function is handed the module"),
    Example(
        "def mix(module: nn.Module, x):\n    return F.dropout(x, 0.1, module.training)\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return mix(self, x)\n",
        "training=not module.deterministic, rngs=rngs)\n\n\nclass Net(nnx.Module):\n    deterministic = False\n", "training=module.training", why="a function that is handed a module",
    ),
    Example("class Config:\n    def __init__(self):\n        self.training = True\n"),
    Example("def f(config):\n    return config.training\n"),
    Example(
        "class Net(nn.Module):\n    def training(self):\n        return 1\n\n    def forward(self, x):\n        return self.training()\n", jax="        return self.training()\n", why="a method of that name",
    ),
    Example(f"{HEAD}        self.training = False\n        return x\n", "        self.deterministic = True\n"),
    Example("class Net(nn.Module):\n    def __init__(self, training):\n        super().__init__()\n        self.training = training\n", "        self.deterministic = not training\n"),
    Example(f"{HEAD}        self.training, y = False, x\n        return y\n", refused="MIG308"),
)
