"""Thread the random stream: what makes modules or draws numbers takes `rngs`, and passes it on.

Converted: a constructor, a factory, a helper method, a nested function or lambda that makes layers; the calls of them.
Unchanged: a call of a local function that makes nothing.
A callee that may or may not make modules is called through the support function `build`, which looks at its signature.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.rules import calling
from migrate.rules.builders import Builders
from migrate.rules.example import Example
from migrate.source.modules import ClassInfo, FunctionInfo

RULE = "rngs"


def stream(ctx: Context, node: ast.AST) -> str:
    """The expression of the random stream where a node stands."""
    if takes_rngs_here(ctx, node):
        found = ctx.file.names.scope(node).lookup("rngs")
        if found is not None and found[0] is not ctx.file.names.top:
            ctx.report("MIG301", node, "`rngs` is a name of this code, and the random stream needs it: give it another name")
        return "rngs"
    if _is_default(ctx, node):
        return new_stream(ctx)
    owner, name = ctx.class_of(node), ctx.self_of(node)
    if owner is not None and owner.is_module and name:
        owner.traits.add("rngs")
        return f"{name}.{stream_attribute(owner)}"
    return _fresh(ctx, node)


def _is_default(ctx: Context, node: ast.AST) -> bool:
    """Whether a node is in a default or a decorator of a function: it runs once, where there is no `self`."""
    at = node
    while (up := ctx.source.parent(at)) is not None:
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return not _in_body(up, at)
        at = up
    return False


LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp, ast.Lambda, ast.FunctionDef)


def _fresh(ctx: Context, node: ast.AST) -> str:
    """A stream of the code's own: one for the whole file where the place may run again, as a new one would draw the same numbers."""
    if ctx.target.threads_rngs and ctx.source.enclosing(node, *LOOPS) is not None:
        if "file_stream" not in ctx.shared:
            ctx.shared["file_stream"] = ctx.new_name("rngs"), new_stream(ctx)
        return str(ctx.shared["file_stream"][0])
    return new_stream(ctx)


def block(ctx: Context) -> str:
    """The statement that makes the file's stream, where one is used."""
    return "{} = {}\n".format(*ctx.shared["file_stream"]) if "file_stream" in ctx.shared else ""


def new_stream(ctx: Context, seed: str = "") -> str:
    """A stream of its own; from a `seed`, where one is given."""
    head, _, rest = ctx.target.rngs_new.partition("(")
    root, dot, tail = head.partition(".")
    return f"{ctx.name(root)}{dot}{tail}({seed + ')' if seed else rest}"


def stream_attribute(owner: ClassInfo) -> str:
    """The attribute that holds a module's stream."""
    return "rngs"


def takes_rngs_here(ctx: Context, node: ast.AST) -> bool:
    """Whether a function around the node has a parameter `rngs` in the output."""
    if not ctx.target.threads_rngs:
        return False
    at = node
    while (up := ctx.source.parent(at)) is not None:
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and _in_body(up, at):
            info = ctx.file.by_node.get(up)
            if isinstance(info, FunctionInfo) and info.builds:
                return True
        if isinstance(up, ast.Lambda) and at is up.body and up in ctx.shared.get("building_lambdas", ()):
            return True
        at = up
    return False


def _in_body(function: ast.FunctionDef | ast.AsyncFunctionDef, child: ast.AST) -> bool:
    return child in function.body


def visit_call(ctx: Context, node: ast.Call) -> None:
    """Passes `rngs` to calls of local classes, functions and factories. Layers by row are the layers rule's."""
    if not ctx.target.threads_rngs or ctx.owned(node):
        return
    builders: Builders = ctx.shared["builders"]
    how = builders.how(node)
    if how == "pass" and not any(k.arg == "rngs" for k in node.keywords) and not _of_base(ctx, node):
        calling.insert_keyword(ctx, node, f"rngs={stream(ctx, node)}", RULE)
    elif how == "build":
        name, given = ctx.name("build"), stream(ctx, node)
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=name, first=(node.func,), keywords=(f"rngs={given}",)), RULE)
    elif builders.mapped(node):
        made, given, partial = node.args[0], stream(ctx, node), ctx.name("partial")
        inner = ctx.plan.nodes.pop(made, None)
        ctx.edit(made, lambda e: Piece(f"{partial}({Piece.of(inner.build(e) if inner else e.original(made)).text}, rngs={given})"), RULE, why="map")


def _of_base(ctx: Context, node: ast.Call) -> bool:
    """`Base.__init__(self, ...)` in a module: the modules' rule passes the stream."""
    owner = ctx.class_of(node)
    return isinstance(node.func, ast.Attribute) and node.func.attr == "__init__" and owner is not None and owner.is_module


def visit_lambda(ctx: Context, node: ast.Lambda) -> None:
    """A lambda that makes modules takes `rngs`."""
    if ctx.target.threads_rngs and node in ctx.shared["building_lambdas"]:
        from migrate.rules.modules import add_parameter

        add_parameter(ctx, node, "rngs")


EXAMPLES = (
    Example(
        "class Net(nn.Module):\n    def forward(self, x):\n        return x + torch.randn(3)\n",
        "    def __init__(self, *, rngs: nnx.Rngs):\n        self.rngs = rngs.fork()\n\n    def __call__(self, x):\n        return x + jax.random.normal(self.rngs(), (3,))\n",
        "        return x + jax.random.normal(self.rngs(), (3,))\n",
    ),
    Example(
        "make = lambda: nn.Linear(3, 3)\nsizes = [lambda n, m=2: nn.Linear(n, m), lambda *a, **k: nn.Linear(*a, **k)]\n",
        "make = lambda *, rngs: nnx.Linear(3, 3, rngs=rngs)\nsizes = [lambda n, m=2, *, rngs: nnx.Linear(n, m, rngs=rngs), lambda *a, rngs, **k: Linear(*a, **k, rngs=rngs)]\n",
        "make = lambda: Linear(3, 3)\n",
    ),
    Example(
        "class A(nn.Module):\n    def forward(self, x):\n        return x + torch.randn(3)\n\n\nclass B(A):\n    n = 3\n", "        self.rngs = rngs.fork()\n\n    def __call__(self, x):\n", "class B(A):\n    n = 3\n",
        why="a subclass uses its base's stream",
    ),
    Example(
        "class A(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.a = nn.Linear(n, n)\n\n\nclass B(A):\n    def __init__(self, n):\n        A.__init__(self, n)\n",
        "        A.__init__(self, n, rngs=rngs)\n", "        A.__init__(self, n)\n",
    ),
    Example(
        "for step in range(3):\n    x = torch.randn(2, 3)\n    print(x)\n", "rngs = nnx.Rngs(0)\n\n\nfor step in range(3):\n    x = jax.random.normal(rngs(), (2, 3))\n", "    x = jax.random.normal(Rngs()(), (2, 3))\n", why="a new stream would draw the same numbers each time",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, act=nn.Linear(3, 3)):\n        super().__init__()\n        self.act = act\n", "    def __init__(self, act=nnx.Linear(3, 3, rngs=nnx.Rngs(0)), *, rngs: nnx.Rngs):\n",
        "    def __init__(self, act=Linear(3, 3)):\n", why="a default is made once, outside",
    ),
    Example(
        "class Draw:\n    def make(self, x):\n        raise NotImplementedError\n\n\nclass Noisy(Draw):\n    def make(self, x):\n        return x + torch.randn(3)\n\n\nclass Fixed(Draw):\n    def make(self, x):\n        return x\n\n\n"
        "def chosen(n):\n    if n:\n        return Noisy()\n    return Fixed()\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.draw = chosen(n)\n\n    def forward(self, x):\n        return self.draw.make(x)\n",
        "        return self.draw.make(x, rngs=self.rngs)\n", "        return self.draw.make(x)\n", why="methods that stand in for one another take the same",
    ),
    Example(
        "class Base(nn.Module):\n    def start(self):\n        nn.init.zeros_(self.a.weight)\n        nn.init.normal_(self.a.bias)\n\n\nclass Net(Base):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(3, 3)\n        self.start()\n\n    def start(self):\n        super().start()\n",
        "        super().start(rngs=rngs)\n", "        super().start()\n", why="a method of the base class",
    ),
    Example(
        "class Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Parameter(torch.empty(3))\n        self.restart()\n\n    def restart(self):\n        nn.init.normal_(self.a)\n\n\nclass Net(nn.Module):\n    def __init__(self, part):\n        super().__init__()\n        self.part = part\n\n    def restart(self):\n        self.part.restart()\n",
        "        build(self.part.restart, rngs=rngs)\n", "        self.part.restart()\n", why="what the part is shows at run time only",
    ),
    Example(
        "def found(query, table):\n    if not isinstance(query, str):\n        return query\n    for name, cls in table.items():\n        if name == query:\n            return cls\n    return nn.ReLU\n\n\nclass Net(nn.Module):\n    def __init__(self, act, table):\n        super().__init__()\n        self.act = found(act, table)\n\n    def forward(self, x):\n        return self.act(x)\n",
        jax="        return self.act(x)\n", why="what may be a class or a layer is a layer where it is given a tensor",
    ),
    Example("def width(n):\n    return 2 * n\n\n\nsize = width(3)\n"),
    Example("double = lambda n: 2 * n\nrngs = double(3)\n"),
)
