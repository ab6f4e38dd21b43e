"""Translate layers: a layer that is called by name becomes the native one, a layer used as a value the support class of the same name.

Converted: `nn.Linear(4, 8)`, `norm_layer=nn.BatchNorm2d`, `isinstance(m, nn.Conv2d)`, `class Head(nn.Linear)`, `partial(nn.LayerNorm, eps=1e-6)`.
Unchanged: a local class that is called `Linear`.
Refused: a layer that the tables don't know.
"""
import ast

from migrate.calls import Bound, Filler, Refusal, bind, choose, template_names
from migrate.context import Context
from migrate.edits import Emitter, Piece
from migrate.fitting.extract import inherited_rngs
from migrate.infer.expressions import makes
from migrate.infer.facts import SEQUENTIAL
from migrate.infer.kinds import UNKNOWN, Kind, refs
from migrate.rules import calling, rngs
from migrate.rules.example import Example
from migrate.rules.operators import forget, only_placement
from migrate.rules.shaping import in_shape
from migrate.source.modules import ClassInfo
from migrate.source.text import walk
from migrate.tables import Row, Variant

RULE = "layers"
MODULE_LIST, MODULE_DICT, IDENTITY = "torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.Identity"


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`nn.Linear(...)`."""
    if isinstance(node.func, ast.Attribute) and ctx.kind(node.func).tag == "class" and makes(ctx.kind(node.func), node.func.attr):
        _maker(ctx, node.func)
    row = ctx.resolve(node.func)
    if not isinstance(row, Row) or row.kind != "layer" or ctx.owned(node):
        return
    if row.torch in (SEQUENTIAL, MODULE_LIST):
        _container(ctx, node, row)
        return
    if (dtype := _other_dtype(ctx, node)) is not None:
        ctx.refuse("MIG302", node, f"dtype={ctx.source.segment(dtype)}: parameters are made in float32; cast them once they are loaded")
        return
    native = _native(ctx, node, row)
    if native is not None:
        bound, variant = native
        forget(ctx, node, bound, variant)
        for k in node.keywords:
            if k.arg is None:
                ctx.removed.update(ast.walk(k))
        stream = rngs.stream(ctx, node) if "rngs" in template_names(variant.to) else ""
        ctx.edit(node, lambda e: filled(ctx, node, bound, variant, stream, e), RULE, why=row.torch)
        return
    if not row.support or row.support not in ctx.support:
        ctx.refuse("MIG301", node, f"{row.torch} has no equivalent for this target yet")
        return
    support_call(ctx, node, row.support, row)


def _other_dtype(ctx: Context, node: ast.Call) -> ast.expr | None:
    """The `dtype` of a layer where it is another than float32: not None by the default of a parameter that is passed on."""
    given = next((k.value for k in node.keywords if k.arg == "dtype"), None)
    if given is None or ctx.kind(given).tag == "none" or ctx.kind(given).optional or ctx.kind(given).is_unknown:
        return None
    return None if ctx.dotted(given) in ("torch.float32", "torch.float") or ast.unparse(given) == "torch.get_default_dtype()" else given


def _maker(ctx: Context, func: ast.Attribute) -> None:
    """`Model.from_config(config)` is `Model(config)`."""
    ctx.edit(func, lambda e: e.piece(func.value), RULE, why=func.attr)


def _native(ctx: Context, node: ast.Call, row: Row) -> tuple[Bound, Variant] | None:
    """The native form, where the call is understood and nothing asks for a class."""
    placement = frozenset(k for k in node.keywords if k.arg is None and only_placement(ctx, k.value))
    bound = bind(row, node, None, ctx.kind, placement)
    if isinstance(bound, Refusal):
        return None
    variant = choose(row, bound, ctx.target.name, ctx.kind)
    if isinstance(variant, Refusal) or variant.deviates:
        return None
    if row.torch == IDENTITY and _hands_on_structures(ctx, node):
        return None
    if not makes_object(variant) and (ctx.facts.hooked_layers or ctx.facts.kept_children or row.torch in ctx.facts.tested_layers or not _holds_function(ctx, node)):
        return None
    return bound, variant


def _hands_on_structures(ctx: Context, node: ast.Call) -> bool:
    """`self.norm = Norm() if wanted else nn.Identity()` of what takes a dict, a list or a tuple: the target's function takes arrays only."""
    at, beside = ctx.source.parent(node), list[ast.expr]()
    while isinstance(at, ast.IfExp):
        beside += [at.body, at.orelse]
        at = ctx.source.parent(at)
    made = [k.ref for b in beside if isinstance((k := ctx.kind(b)).ref, ClassInfo)]
    if any(_takes_mapping(c) for c in made if isinstance(c, ClassInfo)):
        return True
    target = at.targets[0] if isinstance(at, ast.Assign) else None
    owner = ctx.class_of(node)
    if not isinstance(target, ast.Attribute) or owner is None:
        return False
    calls = (n for m in owner.methods.values() for n in walk(m.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == target.attr and n.args)
    return any(ctx.kind(n.args[0]).tag in ("dict", "list", "tuple") for n in calls)


def _takes_mapping(c: ClassInfo) -> bool:
    """Whether the forward pass of a class uses its first argument as a dict."""
    f = c.method("forward")
    if f is None or not f.parameters:
        return False
    name = f.parameters[0].arg
    used = (n.value for n in ast.walk(f.node) if isinstance(n, ast.Attribute) and n.attr in ("items", "keys", "values"))
    return any(isinstance(v, ast.Name) and v.id == name for v in used)


def makes_object(variant: Variant) -> bool:
    """Whether a native form makes an object of a class, not a plain function."""
    return isinstance(variant.template, ast.Call) and ast.unparse(variant.template.func) != "partial"


def _holds_function(ctx: Context, node: ast.Call) -> bool:
    """Whether a plain function may stand where the layer stands: an attribute of its own, an element of a Sequential, called at once."""
    at: ast.AST = node
    parent = ctx.source.parent(node)
    while isinstance(parent, (ast.IfExp, ast.BoolOp)):
        at, parent = parent, ctx.source.parent(parent)
    match parent:
        case ast.Assign(targets=[ast.Attribute() as target]):
            owner = ctx.class_of(node)
            return owner is not None and ctx.is_self(target.value) and len(owner.assigned(target.attr)) == 1
        case ast.Call() if parent.func is at:
            return True
        case ast.Call():
            row = ctx.resolve(parent.func)
            return isinstance(row, Row) and row.torch == SEQUENTIAL and ctx.target.threads_rngs
    return False


def filled(ctx: Context, node: ast.Call, bound: Bound, variant: Variant, stream: str, e: Emitter) -> Piece:
    """A template in the shape of the call: on several lines where the call is on several lines."""
    return in_shape(ctx, node, bound, variant, stream, e) or Filler(variant.to, variant, bound, ctx.name, ctx.kind, stream).fill(e)


def support_call(ctx: Context, node: ast.Call, name: str, row: Row) -> None:
    """The support class with PyTorch's own arguments."""
    drop = [k for k in node.keywords if k.arg in ("device", "dtype") and k.arg not in {p.name for p in row.parameters}]
    drop += [k for k in node.keywords if k.arg is None and only_placement(ctx, k.value)]
    takes = inherited_rngs(ctx.support, name)
    needed = ctx.target.threads_rngs and (takes == "required" or takes == "optional" and any(isinstance(a, ast.Starred) for a in node.args) and False)
    keywords = [f"rngs={rngs.stream(ctx, node)}"] if needed and not any(k.arg == "rngs" for k in node.keywords) else []
    local = ctx.name(name)
    for k in drop:
        ctx.removed.update(ast.walk(k))
    ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=local, keywords=keywords, drop=drop), RULE, why=row.torch)


def visit_value(ctx: Context, node: ast.Name | ast.Attribute) -> None:
    """A layer class that is not called here."""
    row = ctx.resolve(node)
    parent = ctx.source.parent(node)
    if ctx.owned(node) or not isinstance(node.ctx, ast.Load):
        return
    if row == "torch.nn.Module" or isinstance(row, Row) and row.torch == "torch.nn.Module":
        ctx.edit(node, lambda e: Piece(qualified(ctx, ctx.target.module_base)), RULE, why="torch.nn.Module")
        return
    if not isinstance(row, Row) or row.kind != "layer" or isinstance(parent, ast.Call) and parent.func is node:
        return
    text = _class_text(ctx, node, row)
    if text is None:
        ctx.refuse("MIG301", node, f"{row.torch} as a value has no equivalent for this target yet")
        return
    ctx.edit(node, lambda e: Piece(qualified(ctx, text)), RULE, why=row.torch)


def _class_text(ctx: Context, node: ast.AST, row: Row) -> str | None:
    if is_tested(ctx, node) or _is_annotation(ctx, node):
        native = native_class(ctx, row)
        if native:
            return native
    return row.support if row.support in ctx.support else None


def native_class(ctx: Context, row: Row) -> str | None:
    """The native class of a layer, where one of its variants makes one."""
    if row.torch == MODULE_LIST:
        return ctx.target.list_class
    for v in row.for_target(ctx.target.name):
        if v.to and makes_object(v) and isinstance(v.template, ast.Call):
            return ast.unparse(v.template.func)
    return None


def is_tested(ctx: Context, node: ast.AST) -> bool:
    """Whether a class stands in `isinstance` or `issubclass`."""
    parent = ctx.source.parent(node)
    if isinstance(parent, ast.Tuple):
        node, parent = parent, ctx.source.parent(parent)
    return isinstance(parent, ast.Call) and node in parent.args[1:] and ctx.dotted(parent.func) in ("builtins.isinstance", "builtins.issubclass")


def _is_annotation(ctx: Context, node: ast.AST) -> bool:
    at, up = node, ctx.source.parent(node)
    while isinstance(up, ast.expr):
        if isinstance(up, ast.Call):
            return False
        at, up = up, ctx.source.parent(up)
    return isinstance(up, ast.arg) or isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and up.returns is at or isinstance(up, ast.AnnAssign) and up.annotation is at


def qualified(ctx: Context, text: str) -> str:
    """A dotted name of the output, its root imported."""
    root, dot, rest = text.partition(".")
    return ctx.name(root) + dot + rest


def _container(ctx: Context, node: ast.Call, row: Row) -> None:
    if row.torch == MODULE_LIST:
        text = qualified(ctx, ctx.target.list_class)
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=text) if node.args else Piece(f"{text}([])"), RULE, why=row.torch)
    elif "." in ctx.target.sequential and _plain_sequential(ctx, node):
        text = qualified(ctx, ctx.target.sequential)
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=text), RULE, why=row.torch)
    else:
        support_call(ctx, node, row.support, row)


def _plain_sequential(ctx: Context, node: ast.Call) -> bool:
    """A Sequential that is only called, and whose elements each return one tensor."""
    if node.keywords or not node.args or SEQUENTIAL in ctx.facts.tested_layers or not all(_returns_tensor(ctx, a) for a in node.args):
        return False
    ctx.exchange.asked = True
    if ctx.facts.swapped_layers:
        return False
    parent = ctx.source.parent(node)
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Attribute):
        return only_called(ctx, parent.targets[0])
    if isinstance(parent, ast.Call) and isinstance(row := ctx.resolve(parent.func), Row) and row.torch == SEQUENTIAL:
        return True
    return not ctx.facts.opened_sequentials


def _returns_tensor(ctx: Context, node: ast.expr) -> bool:
    if isinstance(node, ast.Starred):
        return _kind_returns_tensor(ctx, ctx.kind(node.value).element)
    if isinstance(node, ast.IfExp):
        return _returns_tensor(ctx, node.body) and _returns_tensor(ctx, node.orelse)
    if isinstance(node, ast.Call) and isinstance(row := ctx.resolve(node.func), Row):
        return _row_returns_tensor(row) or row.torch == SEQUENTIAL and all(_returns_tensor(ctx, a) for a in node.args)
    return _kind_returns_tensor(ctx, ctx.kind(node))


def _row_returns_tensor(row: Row) -> bool:
    return row.kind == "layer" and row.returns in ("tensor", "tensor float", "same")


def _kind_returns_tensor(ctx: Context, kind: Kind) -> bool:
    """Whether every module that something may be is known to return one tensor."""
    if kind.tag != "module" or kind.optional or not refs(kind):
        return False
    for ref in refs(kind):
        if isinstance(ref, Row):
            if not _row_returns_tensor(ref):
                return False
        else:
            forward = ref.method("forward")
            if forward is None or not ctx.inf.returns.get(forward, UNKNOWN).is_tensor:
                return False
    return True


def only_called(ctx: Context, target: ast.Attribute) -> bool:
    """Whether an attribute of this name is used as `self.name(...)` only: not indexed, looped over, measured or passed on."""
    return target.attr not in ctx.facts.opened_attributes


HEAD = "class Net(nn.Module):\n    def __init__(self, n=4):\n        super().__init__()\n"
EXAMPLES = (
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(3, 3)\n        self.act = nn.ReLU()\n\n    def forward(self, x):\n        for name, m in self.named_children():\n            x = m(x)\n        return x\n",
        jax="        self.act = ReLU()\n", why="a walk over the children calls it",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.act = nn.ReLU()\n\n    def forward(self, x):\n        return self.act(x)\n\n    def count(self, m, n=0):\n        for c in m.children():\n            n += isinstance(c, nn.Linear) + self.count(c)\n        return n\n",
        "        self.act = nnx.relu\n", "        self.act = keras.activations.relu\n", why="a walk that only looks",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.act = nn.ReLU()\n\n    def forward(self, x):\n        return self.act(x)\n\n\ndef names(m, at=''):\n    for n, c in m.named_children():\n        n = '.'.join((at, n))\n        names(c, n)\n",
        "        self.act = nnx.relu\n", "        self.act = keras.activations.relu\n", why="a walk that hands on the names of children",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.act = nn.ReLU()\n\n    def forward(self, x):\n        return self.act(x)\n\n\ndef pairs(m):\n    return [(n, c) for n, c in m.named_children()]\n",
        jax="        self.act = ReLU()\n", why="a walk that hands on the children",
    ),
    Example(f"{HEAD}        self.a = nn.Linear(3, n, bias=False)\n", "        self.a = nnx.Linear(3, n, use_bias=False, rngs=rngs)\n", "        self.a = Linear(3, n, bias=False)\n"),
    Example(
        "class Net(nn.Module):\n    def __init__(self, norm_layer=nn.BatchNorm2d):\n        super().__init__()\n        self.norm = norm_layer(3)\n",
        "    def __init__(self, norm_layer=BatchNorm2d, *, rngs: nnx.Rngs):\n        self.norm = norm_layer(3, rngs=rngs)\n",
        "    def __init__(self, norm_layer=BatchNorm2d):\n        super().__init__()\n        self.norm = norm_layer(3)\n", why="a layer as a value",
    ),
    Example(f"{HEAD}        self.norm = partial(nn.LayerNorm, eps=1e-6)(n)\n", "        self.norm = partial(LayerNorm, eps=1e-6)(n, rngs=rngs)\n", "        self.norm = partial(LayerNorm, eps=1e-6)(n)\n"),
    Example(
        f"{HEAD}        self.conv = nn.Conv2d(\n            3, 4,\n            kernel_size=3,  # odd\n            padding=1,\n        )\n",
        "        self.conv = Conv2d(\n            3, 4,\n            kernel_size=3,  # odd\n            padding=1,\n            rngs=rngs,\n        )\n",
        "        self.conv = Conv2d(\n            3, 4,\n            kernel_size=3,  # odd\n            padding=1,\n        )\n",
    ),
    Example("def f(m: nn.Module) -> bool:\n    return isinstance(m, (nn.Conv2d, nn.Linear))\n", "    return isinstance(m, (Conv2d, nnx.Linear))\n", "    return isinstance(m, (Conv2d, Linear))\n"),
    Example(
        "class Head(nn.Linear):\n    def __init__(self, n: int):\n        super().__init__(n, 10)\n\n    def forward(self, x):\n        return super().forward(x) * 2\n",
        "class Head(Linear):\n    def __init__(self, n: int, *, rngs: nnx.Rngs):\n        super().__init__(n, 10, rngs=rngs)\n\n    def __call__(self, x):\n        return super().__call__(x) * 2\n",
        "class Head(Linear):\n    def __init__(self, n: int):\n        super().__init__(n, 10)\n\n    def call(self, x):\n        return super().call(x) * 2\n",
    ),
    Example(f"{HEAD}        self.a = nn.Linear(*[3, n], device=None)\n", "        self.a = Linear(*[3, n], rngs=rngs)\n", "        self.a = Linear(*[3, n])\n", why="arguments that are not known"),
    Example(
        "def f(n):\n    layers = [nn.Linear(n, n) for _ in range(3)]\n    return nn.Sequential(*layers)\n",
        "    layers = [nnx.Linear(n, n, rngs=rngs) for _ in range(3)]\n    return nnx.Sequential(*layers)\n", "    return Sequential(*layers)\n",
    ),
    Example(
        "def swap(net: nn.Module, block: nn.Module):\n    for name, child in net.named_children():\n        if isinstance(child, nn.ReLU):\n            setattr(net, name, nn.GELU())\n    return nn.Sequential(nn.Linear(3, 3), block)\n",
        "    return Sequential(nnx.Linear(3, 3, rngs=rngs), block)\n", "    return Sequential(Linear(3, 3), block)\n", why="layers that are swapped by their names",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, other: nn.Module):\n        super().__init__()\n        self.other = other\n        self.other.head = nn.Identity()\n        self.act = nn.Identity()\n",
        "        self.other.head = Identity()\n        self.act = nnx.identity\n", "        self.other.head = Identity()\n", why="a function takes no layer's place in another module",
    ),
    Example(
        "class Scale(nn.Module):\n    def forward(self, parts):\n        return {k: v * 2 for k, v in parts.items()}\n\n\nclass Net(nn.Module):\n    def __init__(self, scaled):\n        super().__init__()\n        self.a = Scale() if scaled else nn.Identity()\n        self.b = nn.Identity()\n\n    def forward(self, x):\n        return self.b({'a': self.a(x)})\n",
        "        self.a = Scale(rngs=rngs) if scaled else Identity()\n        self.b = Identity()\n", "        self.a = Scale() if scaled else Identity()\n        self.b = Identity()\n", why="what is handed on is no array",
    ),
    Example("class Linear:\n    def __init__(self, a, b):\n        self.a = a\n\n\nlayer = Linear(3, 4)\n"),
    Example("def Conv2d(n):\n    return n\n\n\nprint(Conv2d(3), isinstance(3, int))\n"),
    Example(
        f"{HEAD}        self.a = nn.Linear(3, n, dtype=torch.float32)\n\n\ndef make(n, dtype=None):\n    return nn.Linear(n, n, dtype=dtype)\n", "        self.a = nnx.Linear(3, n, rngs=rngs)\n", "        self.a = Linear(3, n)\n",
    ),
    Example("layer = nn.Linear(3, 4, dtype=torch.float64)\n", refused="MIG302"),
    Example("layer = nn.Frobnicate(3)\n", refused="MIG301"),
)
