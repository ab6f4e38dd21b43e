"""Walk modules and parameters in PyTorch's order.

Converted: `self.modules()`, `net.named_parameters()`, `self.apply(fn)`, `len(list(self.parameters()))`.
Unchanged: `modules()` of something that is no module, a method of that name that the class defines itself.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.infer.calls import ALL, uses_torch
from migrate.infer.calls import WALKS as UNIQUE
from migrate.infer.facts import HOOKS
from migrate.infer.kinds import refs
from migrate.rules import calling, rngs
from migrate.rules.example import Example
from migrate.source.modules import ClassInfo, FileInfo, FunctionInfo
from migrate.tables import Row

RULE = "traversal"
WALKS = frozenset({"modules", "named_modules", "children", "named_children", "parameters", "named_parameters", "buffers", "named_buffers", "get_submodule", "get_parameter"})
CHECKPOINTS = frozenset({"state_dict", "load_state_dict"})
BACKWARD = frozenset({"register_full_backward_hook", "register_backward_hook", "register_full_backward_pre_hook"})  # names that only modules have
TRANSPARENT = CHECKPOINTS | BACKWARD | frozenset({"zero_grad", "half", "double", "bfloat16", "_apply"})


def visit_call(ctx: Context, node: ast.Call) -> None:
    """A walk over a module."""
    func = node.func
    if ctx.owned(node) or not isinstance(func, ast.Attribute):
        return
    kind = ctx.kind(func.value)
    row = ctx.resolve(func.value) if func.attr == "reset_parameters" else None
    explicit = isinstance(row, Row) and row.kind == "layer" and len(node.args) == 1 and ctx.is_self(node.args[0])
    if func.attr == "reset_parameters" and (explicit or _of_super_layer(ctx, node, func)) and "start_anew" in ctx.support:
        ctx.removed.update(ast.walk(func))
        name, stream = ctx.name("start_anew"), _stream(ctx, node)
        ctx.edit(node, lambda e: Piece(f"{name}({ctx.self_of(node)}{stream})"), RULE, why=func.attr)
        return
    only_module = kind.is_unknown and (func.attr in UNIQUE | BACKWARD or _of_part(ctx, node, func) or _of_all(ctx, node, func)) and func.attr not in ctx.inf.method_names() and ctx.resolve(func) is None
    if kind.is_unknown and not only_module and _is_checkpoint(ctx, node, func):
        ctx.refuse("MIG306", node, "whether this is of a module, for which the output has a function, or of an optimizer is not known: annotate it as nn.Module")
        return
    if kind.tag != "module" and not only_module or isinstance(kind.ref, ClassInfo) and kind.ref.method(func.attr) is not None:
        return
    if func.attr in WALKS and func.attr in ctx.support:
        ordered = func.attr.replace("parameters", "torch_parameters")
        name = ctx.name(ordered if ordered in ctx.support and _in_torch_order(ctx, node) else func.attr)
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=name, first=(func.value,)), RULE, why=func.attr)
    elif func.attr == "apply" and len(node.args) == 1 and "apply" in ctx.support:
        _apply(ctx, node, func)
    elif func.attr == "train" and isinstance(ctx.source.parent(node), ast.Expr) and len(given := [*node.args, *(k.value for k in node.keywords)]) == 1 and "train_mode" in ctx.support:
        _set_mode(ctx, node, func, given[0])
    elif func.attr in ("eval", "train") and not isinstance(ctx.source.parent(node), ast.Expr) and f"{func.attr}_mode" in ctx.support:
        name = ctx.name(f"{func.attr}_mode")
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=name, first=(func.value,)), RULE, why=func.attr)
    elif func.attr in HOOKS and func.attr in ctx.support and len(node.args) == 1 and not node.keywords:
        name = ctx.name(func.attr)
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=name, first=(func.value,)), RULE, why=func.attr)
    elif func.attr in CHECKPOINTS and func.attr in ctx.support and {k.arg for k in node.keywords} <= {"strict", "state_dict"}:
        name = ctx.name(func.attr)
        renames = {k: "state" for k in node.keywords if k.arg == "state_dict"}
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=name, first=(func.value,), rename=renames), RULE, why=func.attr)
    elif func.attr == "reset_parameters" and func.attr in ctx.support and not node.args and (isinstance(kind.ref, Row) or not refs(kind)):
        name, stream = ctx.name(func.attr), _stream(ctx, node)
        ctx.edit(node, lambda e: Piece(f"{name}({e.piece(func.value).text}{stream})"), RULE, why=func.attr)
    elif func.attr in TRANSPARENT | HOOKS:
        ctx.refuse("MIG306", node, "PyTorch's machinery around modules has no counterpart here")


def _set_mode(ctx: Context, node: ast.Call, func: ast.Attribute, mode: ast.expr) -> None:
    """`m.train(mode)` as a statement; the target's method takes no mode."""
    if isinstance(mode, ast.Constant):
        ctx.edit(node, lambda e: Piece(f"{e.piece(func.value).at(17)}.{'train' if mode.value else 'eval'}()"), RULE, why=func.attr)
        return
    ctx.edit(node, lambda e: Piece(f"{ctx.name('train_mode')}({e.piece(func.value).text}, {e.piece(mode).text})"), RULE, why=func.attr)


def _is_checkpoint(ctx: Context, node: ast.Call, func: ast.Attribute) -> bool:
    """`model.state_dict()`, `model.load_state_dict(state)` of a name that nothing is known of."""
    given = len(node.args) + len(node.keywords)
    fits = func.attr == "state_dict" and not given or func.attr == "load_state_dict" and given
    return bool(fits) and func.attr not in ctx.inf.method_names() and ctx.resolve(func) is None and uses_torch(ctx.file)


def _of_part(ctx: Context, node: ast.Call, func: ast.Attribute) -> bool:
    """`self.net.parameters()`, `net.children()` in a module: what it is given and walks over is a module."""
    owner = ctx.class_of(node)
    part = isinstance(func.value, ast.Name) or isinstance(func.value, ast.Attribute) and ctx.is_self(func.value.value)
    return func.attr in WALKS and not node.args and not node.keywords and part and owner is not None and owner.is_module


def _of_all(ctx: Context, node: ast.Call, func: ast.Attribute) -> bool:
    """`net.parameters()`, `net.buffers()` in a file that uses PyTorch: what has no other meaning there."""
    if func.attr not in ALL or node.args or any(k.arg != "recurse" for k in node.keywords):
        return False
    return uses_torch(ctx.file)


def _stream(ctx: Context, node: ast.Call) -> str:
    """The argument that hands on the random stream, where the target threads one."""
    return f", rngs={rngs.stream(ctx, node)}" if ctx.target.threads_rngs else ""


def _of_super_layer(ctx: Context, node: ast.Call, func: ast.Attribute) -> bool:
    """`super().method()` where the next class is a layer of PyTorch."""
    owner = ctx.class_of(node)
    return ctx.is_super(func.value) and owner is not None and isinstance(next((b for b in owner.bases if not isinstance(b, str)), None), Row)


HELD = {"_modules": ("named_children", ""), "_parameters": ("named_parameters", ", recurse=False")}


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """`self._modules.values()`."""
    if node.attr not in HELD or ctx.owned(node) or ctx.kind(node.value).tag != "module" or not isinstance(node.ctx, ast.Load):
        return
    walk, more = HELD[node.attr]
    if walk in ctx.support and not isinstance(getattr(ctx.source.parent(node), "ctx", None), ast.Store):
        ctx.edit(node, lambda e: Piece(f"dict({ctx.name(walk)}({e.piece(node.value).text}{more}))"), RULE, why=node.attr)


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`self._modules[name] = module`."""
    target = node.targets[0]
    if len(node.targets) > 1 or not isinstance(target, ast.Subscript) or not isinstance(held := target.value, ast.Attribute) or held.attr != "_modules" or ctx.owned(node):
        return
    if ctx.kind(held.value).tag == "module":
        ctx.removed.add(held)
        ctx.edit(node, lambda e: Piece(f"setattr({e.piece(held.value).text}, {e.piece(target.slice).text}, {e.piece(node.value).text})"), RULE, why="_modules")


def _in_torch_order(ctx: Context, walk: ast.Call) -> bool:
    """Whether the axes of the parameters have to be in PyTorch's order. Where one loop of a file wants them so, all that keep values of
    parameters or write to them have them so: what one loop stores, the next may put back."""
    if _depends_on_axes(ctx, walk):
        return True
    known: dict[FileInfo, bool] = ctx.shared.setdefault("walks in PyTorch's order", {})
    if ctx.file not in known:
        walks = [n for n in ctx.source.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("parameters", "named_parameters")]
        known[ctx.file] = any(_depends_on_axes(ctx, w) and _hands_on(ctx, w) for w in walks)
    return known[ctx.file] and _hands_on(ctx, walk)


def _hands_on(ctx: Context, walk: ast.Call) -> bool:
    """Whether a loop over parameters does more with them than look at what they are, or start them."""
    for n in _uses(ctx, walk):
        up = ctx.source.parent(n)
        if not (isinstance(up, ast.Attribute) and up.attr in LOOKED_AT) and not (isinstance(up, ast.Call) and ctx.dotted(up.func).startswith(("torch.nn.init.", "builtins."))):
            return True
    return False


def _uses(ctx: Context, walk: ast.Call) -> list[ast.Name]:
    """The places where a loop over parameters reads one."""
    loop: ast.AST | None = ctx.source.parent(walk)
    while isinstance(loop, (ast.Call, ast.Starred)):
        loop = ctx.source.parent(loop)
    if not isinstance(loop, (ast.For, ast.comprehension)):
        return []
    held = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name) and ctx.kind(n).variable}
    body = loop if isinstance(loop, ast.For) else ctx.source.parent(loop)
    return [n for n in ast.walk(body or loop) if isinstance(n, ast.Name) and n.id in held and isinstance(n.ctx, ast.Load)]


def _depends_on_axes(ctx: Context, walk: ast.Call) -> bool:
    """Whether a loop over parameters does something with one that the order of its axes matters to."""
    around: ast.AST | None = ctx.source.parent(walk)
    while isinstance(around, (ast.Call, ast.Starred)):
        if isinstance(around, ast.Call) and ctx.dotted(around.func).endswith(("parameters_to_vector", "vector_to_parameters")):
            return True
        around = ctx.source.parent(around)
    return any(_in_axes(ctx, n) for n in _uses(ctx, walk))


def _in_axes(ctx: Context, node: ast.expr) -> bool:
    """Whether a parameter, or its shape, is used axis by axis."""
    parent = ctx.source.parent(node)
    match parent:
        case ast.Subscript():
            return parent.value is node
        case ast.Attribute(attr="data" | "shape"):
            return _in_axes(ctx, parent)
        case ast.Attribute():
            call = ctx.source.parent(parent)
            called = isinstance(call, ast.Call) and bool(call.args or call.keywords)
            return parent.attr in ("T", "t") or called and parent.attr in BY_AXES or parent.attr == "size" and isinstance(call, ast.Call) and not called and _in_axes(ctx, call)
        case ast.Call() if node in parent.args:
            name = ctx.dotted(parent.func)
            shaped = isinstance(parent.func, ast.Attribute) and parent.func.attr in ("view_as", "reshape_as", "view", "reshape", "expand_as", "matmul", "mm")
            return shaped or name.startswith("torch.nn.init.") and name.rpartition(".")[2].rstrip("_").rpartition(".")[2] not in BY_ELEMENT
        case ast.BinOp():
            return isinstance(parent.op, ast.MatMult)
        case ast.Assign():
            return node in parent.targets or any(isinstance(t, (ast.Tuple, ast.List)) for t in parent.targets)
    return False


LOOKED_AT = frozenset(["numel", "nelement", "shape", "size", "dim", "ndim", "requires_grad", "requires_grad_", "grad", "dtype", "device", "is_cuda", "is_floating_point", "element_size"])
BY_ELEMENT = frozenset({"uniform", "normal", "trunc_normal", "constant", "zeros", "ones"})
BY_AXES = frozenset(["size", "view", "reshape", "flatten", "transpose", "permute", "sum", "mean", "norm", "std", "var", "amax", "amin", "max", "min", "argmax", "argmin", "index_select", "select", "narrow", "matmul", "mm", "unbind", "chunk", "split"])


def _apply(ctx: Context, node: ast.Call, func: ast.Attribute) -> None:
    """`self.apply(fn)`: fn is called with each module; it may need the random stream."""
    name = ctx.name("apply")
    callee = ctx.kind(node.args[0]).ref
    builds = isinstance(callee, FunctionInfo) and callee.builds
    keywords = (f"rngs={rngs.stream(ctx, node)}",) if builds and ctx.target.threads_rngs else ()
    ctx.edit(node, lambda e: Piece(calling.inplace(ctx, e, node, func=name, first=(func.value,), keywords=keywords).text), RULE, why="apply")


HEAD = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(3, 3)\n"
EXAMPLES = (
    Example("def f(module, hook):\n    return module.register_backward_hook(hook)\n", refused="MIG306"),
    Example(
        "def asked(f):\n    def inner(model, *args):\n        before = model.training\n        model.eval()\n        out = f(model, *args)\n        model.train(before)\n        return out\n    return inner\n\n\n"
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.lin = nn.Linear(n, n)\n        self.lin.train(False)\n\n    @asked\n    def go(self, x):\n        return self.lin(x)\n",
        "        before = not model.deterministic\n        model.eval()\n        out = f(model, *args)\n        train_mode(model, before)\n", "        before = model.training\n", why="a function around a method",
    ),
    Example("class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.lin = nn.Linear(n, n)\n        self.lin.train(False)\n", "        self.lin.eval()\n", "        self.lin.", why="the target's method takes no mode"),
    Example(f"{HEAD}        for m in self.modules():\n            print(m)\n", jax="        for m in modules(self):\n"),
    Example(f"{HEAD}        for name, p in self.named_parameters():\n            print(name, p.shape)\n", jax="        for name, p in named_parameters(self):\n"),
    Example(f"{HEAD}        for p in self.parameters():\n            p.data.copy_(torch.arange(p.numel()).view(p.shape))\n", "        for p in torch_parameters(self):\n", "        for p in parameters(self):\n"),
    Example(f"{HEAD}        for n, p in self.named_parameters():\n            p.data = torch.zeros(p.shape)\n", "        for n, p in named_torch_parameters(self):\n            p[...] = jnp.zeros(p.shape)\n"),
    Example(
        f"{HEAD}        self.held = [p.clone() for p in self.parameters()]\n        for p, h in zip(self.parameters(), self.held):\n            p.data = h\n        self.n = sum(p.numel() for p in self.parameters())\n",
        "        self.held = nnx.data([p[...] for p in torch_parameters(self)])\n        for p, h in zip(torch_parameters(self), self.held):\n            p[...] = h\n        self.n = sum(p.size for p in parameters(self))\n",
        "        self.held = [p.value for p in parameters(self)]\n", why="what one loop keeps, another puts back",
    ),
    Example(f"{HEAD}        for p in self.parameters():\n            nn.init.kaiming_normal_(p)\n", "        for p in torch_parameters(self):\n", why="what depends on the order of axes"),
    Example(f"{HEAD}        self.n = len(list(self.parameters()))\n", jax="        self.n = len(list(parameters(self)))\n"),
    Example(f"{HEAD}        self.apply(self._init)\n\n    def _init(self, m):\n        nn.init.zeros_(m.bias)\n", jax="        apply(self, self._init)\n"),
    Example(
        f"{HEAD}        gains = {{self.a: 0.1}}\n        gains[nn.Linear(3, 3)] = 1.0\n        for m, gain in gains.items():\n            m.apply(print)\n        for m in gains:\n            m.apply(print)\n",
        jax="            apply(m, print)\n        for m in gains:\n            apply(m, print)\n", why="modules as the keys of a mapping",
    ),
    Example("def f(names):\n    gains = {names[0]: 0.1, 'a': 1.0}\n    for m in gains:\n        m.apply(print)\n", why="keys that are no modules"),
    Example(f"{HEAD}        self.a.register_forward_hook(lambda m, args, out: out * 2)\n", jax="        register_forward_hook(self.a, lambda m, args, out: out * 2)\n"),
    Example(f"{HEAD}        self.a.register_forward_hook(print, prepend=True)\n", refused="MIG306"),
    Example("class Site:\n    def modules(self):\n        return []\n\n\ndef f(site: Site):\n    return site.modules(), list(site.modules())\n"),
    Example("def f(net):\n    return [n for n, p in net.named_parameters()]\n", jax="    return [n for n, p in named_parameters(net)]\n", why="only modules have it"),
    Example("def f(names):\n    return names.parameters(3), names.apply(print)\n"),
    Example("class Net(nn.Module):\n    def modules(self):\n        return []\n\n    def forward(self, x):\n        return self.modules()\n", jax="        return self.modules()\n", why="the class's own"),
    Example(f"{HEAD}\n    def forward(self, x):\n        for m in self._modules.values():\n            x = m(x)\n        return x\n", jax="        for m in dict(named_children(self)).values():\n"),
    Example(f"{HEAD}        self._modules['b'] = nn.Linear(3, 3)\n", "        setattr(self, 'b', nnx.Linear(3, 3, rngs=rngs))\n", "        setattr(self, 'b', Linear(3, 3))\n"),
    Example(
        "class Scaled(nn.Conv2d):\n    def __init__(self, n):\n        super().__init__(n, n, 3)\n        self.reset_parameters()\n\n    def reset_parameters(self):\n        super().reset_parameters()\n        nn.init.zeros_(self.bias)\n",
        "        start_anew(self, rngs=self.rngs)\n", "        start_anew(self)\n", why="of the layer that it derives from",
    ),
    Example("class Low(nn.Linear):\n    def reset_parameters(self):\n        nn.Linear.reset_parameters(self)\n", "        start_anew(self, rngs=self.rngs)\n", "        start_anew(self)\n"),
    Example(
        "class Copy(nn.Module):\n    def __init__(self, net):\n        super().__init__()\n        self.net = net\n        self.n = sum(p.numel() for p in self.net.parameters())\n", jax="        self.n = sum(p.size for p in parameters(self.net))\n", why="a module that is given",
    ),
    Example("class Other:\n    def __init__(self, net):\n        self.n = list(net.children())\n", why="it may be anything"),
    Example("def count(net):\n    return sum(p.numel() for p in net.parameters())\n", jax="    return sum(p.size for p in parameters(net))\n", why="whatever it is, it has parameters"),
    Example("class Job:\n    def parameters(self):\n        return []\n\n\ndef show(job):\n    return list(job.parameters())\n", why="another class has such a method"),
    Example(f"{HEAD}        self.a.reset_parameters()\n", "        reset_parameters(self.a, rngs=rngs)\n", "        reset_parameters(self.a)\n", why="a layer starts anew"),
    Example(f"{HEAD}        self.n = len(self.state_dict())\n", "        self.n = len(state_dict(self))\n", ),
    Example(f"{HEAD}\n    def load(self, state):\n        self.load_state_dict(state, strict=False)\n", "        load_state_dict(self, state, strict=False)\n"),
    Example("def f():\n    net = nn.Linear(3, 3)\n    return net.state_dict(prefix='a')\n", refused="MIG306"),
    Example("def save(thing):\n    return {'state': thing.state_dict()}\n", refused="MIG306", why="a module or an optimizer"),
    Example("class Run:\n    def state_dict(self):\n        return {}\n\n\ndef save(run):\n    return run.state_dict()\n", why="another class has such a method"),
)
