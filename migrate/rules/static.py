"""Wrap what an attribute holds where the target must be told that it may hold modules or arrays.

Converted: `self.norm = None` where another branch assigns a layer; `self.taps = [a, b]` of tensors; `self.seen = x` in `forward` only.
Unchanged: attributes that always hold plain Python values, or always modules.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.infer.kinds import Kind
from migrate.rules.example import Example
from migrate.rules.state import fill
from migrate.source.modules import ClassInfo
from migrate.source.text import walk

RULE = "static"
STATIC = frozenset({"none", "int", "float", "bool", "number", "str", "function", "class", "factory", "shape"})


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`self.x = value`."""
    if len(node.targets) != 1:
        return
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Attribute):
        _wrap(ctx, node, target, value)
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for t, v in zip(target.elts, value.elts, strict=True):
            if isinstance(t, ast.Attribute):
                _wrap(ctx, node, t, v)


def visit_annassign(ctx: Context, node: ast.AnnAssign) -> None:
    """`self.x: T = value`."""
    if isinstance(node.target, ast.Attribute) and node.value is not None:
        _wrap(ctx, node, node.target, node.value)


def _wrap(ctx: Context, node: ast.stmt, target: ast.Attribute, value: ast.expr) -> None:
    if not ctx.target.wraps_static or ctx.owned(node):
        return
    owner = ctx.class_of(node)
    if owner is None or not owner.is_module or not ctx.is_self(target.value):
        return
    kind = ctx.kind(value)
    if isinstance(value, ast.Call) and ctx.dotted(value.func) == "collections.defaultdict" and len(value.args) == 1 and not value.keywords:
        kind = Kind("dict", items=())
    if _holds_data(kind) or kind.items == () and kind.tag in ("list", "dict") and (_stated(ctx, node) or _filled(ctx, owner, target.attr)) or (kind.tag in STATIC or kind.optional and isinstance(value, ast.Name)) and _data_elsewhere(ctx, owner, target, kind.tag == "none", _closes(ctx, value)):
        if not ctx.owned(value) or kind.tag != "dict":
            ctx.shared.setdefault("stored", []).append(value)
    elif _only_later(ctx, owner, target, kind):
        ctx.shared.setdefault("stored", []).append(value)


def finish(ctx: Context) -> None:
    """Values whose own rules come after the statement's."""
    for value in ctx.shared.pop("stored", ()):
        if value not in ctx.removed and value not in ctx.kept:
            _told(ctx, value)


def _told(ctx: Context, value: ast.expr) -> None:
    inner = ctx.plan.nodes.pop(value, None)

    def build(e: object) -> Piece:
        made = inner.build(e) if inner is not None else e.original(value)  # type: ignore[arg-type, attr-defined]
        return fill(ctx, ctx.target.wraps_static, x=made if isinstance(made, Piece) else Piece(made))

    ctx.shared["wrapped"] = ctx.shared.get("wrapped", set()) | {value}
    ctx.edit(value, build, RULE)


def _stated(ctx: Context, node: ast.stmt) -> bool:
    """Whether the annotation of an empty container says that it will hold tensors or modules."""
    inner = node.annotation.slice if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Subscript) else None
    return inner is not None and any(ctx.inf.annotation(ctx.file, n).tag in ("tensor", "module") for n in ast.walk(inner) if isinstance(n, (ast.Name, ast.Attribute)))


def _filled(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """Whether a method puts tensors or modules into a container: `self.taps[key] = x`, `self.taps.append(x)`."""
    for c in [*owner.mro(), *_below(ctx, owner)]:
        for method in c.methods.values():
            for n in walk(method.node):
                match n:
                    case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(value=ast.Name(id=holder), attr=attr))], value=value):
                        pass
                    case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id=holder), attr=attr), attr="append" | "insert" | "extend"), args=[*_, value]):
                        pass
                    case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(value=ast.Name(id=holder), attr=attr)), attr="append" | "insert" | "extend"), args=[*_, value]):
                        pass  # what an element holds
                    case ast.AugAssign(target=ast.Attribute(value=ast.Name(id=holder), attr=attr), value=value) if ctx.inf.of(value).tag in ("list", "tuple"):
                        pass
                    case _:
                        continue
                if attr == name and holder == method.self_name and _reaches_data(ctx.inf.of(value)):
                    return True
    return False


def _reaches_data(kind: Kind) -> bool:
    """Tensors or modules, also in a list or in a tuple beside other values."""
    return kind.tag in ("module", "tensor") or _holds_data(kind) or any(map(_reaches_data, kind.items or ()))


def _only_later(ctx: Context, owner: ClassInfo, target: ast.Attribute, kind: Kind) -> bool:
    """Whether it is a tensor, under a name that no `__init__` sets: Flax takes what is set first within a trace for a static value (isinstance and the
    Union of its leaves do not know tracers before Python 3.12)."""
    classes = [*owner.mro(), *_below(ctx, owner)]
    methods = {a.method.name for c in classes for a in c.attributes.get(target.attr, ())}
    return kind.tag == "tensor" and "__init__" not in methods and not any(target.attr in c.methods for c in classes)


def _below(ctx: Context, owner: ClassInfo) -> list[ClassInfo]:
    direct = ctx.unit.subclasses.get(owner, ())
    return [c for s in direct for c in (s, *_below(ctx, s))]


def _holds_data(kind: Kind) -> bool:
    """A list, tuple or dict of modules or tensors."""
    return kind.tag in ("list", "tuple", "dict") and kind.items != () and kind.element.tag in ("module", "tensor")


def _closes(ctx: Context, value: ast.expr) -> bool:
    """Whether a value is, or may be, a function that holds on to what the constructor has, such as `self`: static, it would keep the weights of before tracing."""
    f = ctx.function_of(value)
    if ctx.kind(value).is_number or ctx.kind(value).tag in ("str", "shape") or f is None:
        return False
    own = ctx.file.names.scopes[f.node].bindings
    return any(isinstance(n, ast.Name) and n.id in own and any(b in own[n.id] for b in ctx.file.names.lookup(n)) for n in ast.walk(value))


def _data_elsewhere(ctx: Context, owner: ClassInfo, target: ast.Attribute, is_none: bool, closes: bool) -> bool:
    for c in [*owner.mro(), *_below(ctx, owner)]:
        for a in c.attributes.get(target.attr, ()):
            kind = ctx.inf.kinds.get(a.target, Kind("unknown"))
            if a.target is target or not is_none and not closes and _either(ctx, target, a.target):
                continue
            if kind.tag in ("module", "tensor") or _holds_data(kind) or kind.is_unknown and is_none and a.value is not None:
                return True
    return False


def _either(ctx: Context, a: ast.AST, b: ast.AST) -> bool:
    """Whether two statements of a constructor are in the two branches of one `if` and in no loop, so that never both are run."""
    over, under = _above(ctx, a), _above(ctx, b)
    f = ctx.function_of(a)
    if f is None or f.name != "__init__" or ctx.function_of(b) is not f or any(isinstance(n, (ast.For, ast.While)) for n in over | under):
        return False
    common = next((n for n in under if n in over), None)
    return isinstance(common, ast.If) and (over[common] in common.orelse) != (under[common] in common.orelse)


def _above(ctx: Context, node: ast.AST) -> dict[ast.AST, ast.AST]:
    """What is around a node in its function, from the inside, each with the part of it that holds the node."""
    found: dict[ast.AST, ast.AST] = {}
    at, up = node, ctx.source.parent(node)
    while up is not None and not isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
        found[up] = at
        at, up = up, ctx.source.parent(up)
    return found


HEAD = "class Net(nn.Module):\n    def __init__(self, norm=False):\n        super().__init__()\n"
EXAMPLES = (
    Example(
        "from collections import defaultdict\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.layers = nn.ModuleList()\n        self.at = defaultdict(list)\n        self.seen = defaultdict(int)\n"
        "        for i in range(n):\n            lin = nn.Linear(3, 3)\n            self.layers.append(lin)\n            self.at[i // 2].append(lin)\n",
        "        self.at = nnx.data(defaultdict(list))\n        self.seen = defaultdict(int)\n", "        self.at = defaultdict(list)\n", why="lists of modules by a number",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lin = nn.Linear(3, 3)\n        self.decayed = []\n        self.all = []\n        self.names = []\n"
        "        self.decayed.append((self.lin.bias, 0.1))\n        self.all.extend(self.lin.parameters())\n        self.names.append(('lin', 0.1))\n",
        "        self.decayed = nnx.data([])\n        self.all = nnx.data([])\n        self.names = []\n", "        self.decayed = []\n        self.all = []\n", why="what a list gets later",
    ),
    Example(
        f"{HEAD}        if norm:\n            self.norm = nn.Linear(3, 3)\n        else:\n            self.norm = None\n",
        "            self.norm = nnx.Linear(3, 3, rngs=rngs)\n        else:\n            self.norm = nnx.data(None)\n", "            self.norm = None\n",
    ),
    Example(
        "class Base(nn.Module):\n    def __init__(self, head: Optional[nn.Module] = None):\n        super().__init__()\n        self.head = head\n\n\nclass Net(Base):\n    def __init__(self):\n        super().__init__()\n        self.head = nn.Linear(3, 3)\n",
        "        self.head = nnx.data(head)\n", "        self.head = head\n", why="a parameter that may be None, and a layer in a subclass",
    ),
    Example(f"{HEAD}        self.taps: dict[str, torch.Tensor] = {{}}\n", "        self.taps: dict[str, jax.Array] = nnx.data({})\n", "        self.taps: dict[str, jax.Array] = {}\n"),
    Example(f"{HEAD}        self.taps, self.n = 3, 4\n        self.taps = []\n\n    def forward(self, x):\n        self.taps.append(x)\n        return x\n", "        self.taps = nnx.data([])\n", "        self.taps = []\n", why="filled later"),
    Example(f"{HEAD}        self.taps = [torch.zeros(3), torch.ones(3)]\n", "        self.taps = nnx.data([jnp.zeros((3,)), jnp.ones((3,))])\n", "        self.taps = [jnp.zeros((3,)), jnp.ones((3,))]\n"),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.cache = None\n        self.count = 0\n\n    def forward(self, x):\n        self.cache = x\n        return x\n",
        "        self.cache = nnx.data(None)\n        self.count = 0\n", "        self.cache = None\n        self.count = 0\n",
    ),
    Example(
        f"{HEAD}        self.head: Optional[nn.Module] = None\n        if norm:\n            self.head = norm(3)\n",
        "        self.head: Optional[nnx.Module] = nnx.data(None)\n", "        self.head: Optional[Module] = None\n", why="with an annotation",
    ),
    Example(
        f"{HEAD}        self.a, self.n = None, 3\n        if norm:\n            self.a = nn.Linear(3, 3)\n", "        self.a, self.n = nnx.data(None), 3\n", "        self.a, self.n = None, 3\n", why="several at once",
    ),
    Example(
        f"def same(x):\n    return x\n\n\n{HEAD}        if norm:\n            self.norm = nn.Linear(3, 3)\n        else:\n            self.norm = same\n",
        "        else:\n            self.norm = same\n", "        else:\n            self.norm = same\n", why="a function is no data, and the attribute is either of both",
    ),
    Example(
        f"{HEAD}        self.mean = torch.zeros(3)\n\n    def forward(self, x):\n        self.mean, self.seen = x + 1, x.unsqueeze(0)\n        return x\n",
        "        self.mean, self.seen = x + 1, nnx.data(jnp.expand_dims(x, 0))\n", "        self.mean, self.seen = x + 1, jnp.expand_dims(x, 0)\n", why="first set while it runs",
    ),
    Example(
        f"{HEAD}        if norm:\n            self.norm = nn.Linear(3, 3)\n        else:\n            self.norm = lambda x: x @ self.w\n",
        "            self.norm = nnx.data(lambda x: x @ self.w)\n", "            self.norm = lambda x: x @ self.w\n", why="it holds the module",
    ),
    Example("class Plain:\n    def __init__(self):\n        self.a = None\n        self.b = [1, 2]\n\n    def go(self):\n        self.a = [3]\n"),
    Example("def f(config):\n    config.sizes = [1, 2]\n    config.norm = None\n    return config\n"),
)
