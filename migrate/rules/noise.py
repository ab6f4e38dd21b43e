"""Remove what has no counterpart and changes no value: gradient switches, seeds, devices, compilation hints.

Converted: `with torch.no_grad():`, `@torch.jit.export`, `torch.manual_seed(0)`, `model.to(device)`, `torch.backends.cudnn.benchmark = True`.
Unchanged: `with open(path) as f`, a decorator of another library.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.removal import remove_statement
from migrate.rules.example import Example
from migrate.rules.regions import condition_of
from migrate.source.modules import FunctionInfo
from migrate.tables import Row

RULE = "noise"
CONTEXTS = frozenset({
    "torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.set_grad_enabled", "torch.autograd.set_detect_anomaly", "torch.autograd.no_grad", "torch.autograd.profiler.record_function",
    "torch.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast", "torch.cpu.amp.autocast", "torch.autograd.profiler.profile", "torch.cuda.device", "torch.device", "torch.jit.optimized_execution",
    "torch.autograd.enable_grad", "torch.autograd.inference_mode", "torch.autograd.grad_mode.no_grad", "torch.nn.attention.sdpa_kernel", "torch.backends.cuda.sdp_kernel", "torch.random.fork_rng", "torch.profiler.record_function",
})
PRECISION = frozenset({"torch.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast", "torch.cpu.amp.autocast"})
DECORATORS = CONTEXTS | {
    "torch.jit.script", "torch.jit.export", "torch.jit.ignore", "torch.jit.unused", "torch.jit.script_method", "torch.jit.interface", "torch.compile", "torch.compiler.disable", "torch._dynamo.disable",
    "torch.fx.wrap", "torch.jit.script_if_tracing", "torch.jit._overload_method", "torch.jit._overload", "torch.cuda.amp.custom_fwd", "torch.cuda.amp.custom_bwd", "torch.amp.custom_fwd", "torch.amp.custom_bwd", "torch.autograd.function.once_differentiable", "torch.compiler.allow_in_graph",
}
STATEMENTS = frozenset({
    "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.seed", "torch.set_num_threads", "torch.cuda.empty_cache", "torch.cuda.synchronize",
    "torch.use_deterministic_algorithms", "torch.set_grad_enabled", "torch.set_printoptions", "torch.autograd.set_detect_anomaly", "torch.fx.wrap", "torch.cuda.set_device",
    "torch.set_float32_matmul_precision", "torch._C._log_api_usage_once", "torchvision.utils._log_api_usage_once", "torch.set_default_dtype", "torch.set_default_tensor_type", "torch.jit.annotate_",
    "torch._assert_",
})
FLAGS = ("torch.backends.", "torch._C.", "torch._dynamo.config", "torch._inductor.config")
SAME = frozenset({"torch.jit.script", "torch.compile", "torch.jit.optimize_for_inference", "torch.jit.freeze", "torch.compiler.disable", "torch.jit.ignore", "torch.jit.unused", "torch.jit.export"})
FALSE = frozenset({"torch.jit.is_scripting", "torch.jit.is_tracing", "torch.compiler.is_compiling", "torch._dynamo.is_compiling", "torch.is_autocast_enabled", "torch.onnx.is_in_onnx_export",
                   "torch.cuda.is_available", "torch.xpu.is_available", "torch.backends.mps.is_available", "torch.distributed.is_initialized", "torch.distributed.is_available", "torch.compiler.is_dynamo_compiling",
                   "torch.overrides.has_torch_function", "torch.overrides.has_torch_function_unary", "torch.overrides.has_torch_function_variadic", "torch.is_inference_mode_enabled",
                   "torch.is_grad_enabled_"})
BASES = frozenset({"torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset"})  # a length and items by number are all that any loader asks of a data set
MODULE_NOISE = frozenset({"to", "cpu", "cuda", "requires_grad_", "share_memory"})


def _name(ctx: Context, node: ast.expr) -> str:
    return ctx.dotted(node.func if isinstance(node, ast.Call) else node)


def visit_with(ctx: Context, node: ast.With | ast.AsyncWith) -> None:
    """`with torch.no_grad():` - the body stays, one level out."""
    noise = [i for i in node.items if _name(ctx, i.context_expr) in CONTEXTS | ctx.unit.boundary.noise]
    if not noise:
        return
    for i in noise:
        _warn_precision(ctx, i.context_expr)
        kept = condition_of(ctx, i.context_expr)  # asked once more, after the body
        ctx.removed.update(set(ast.walk(i)) - set(ast.walk(kept) if kept is not None else ()))
    if len(noise) < len(node.items):
        _drop_items(ctx, node, noise)
        return
    src = ctx.source
    head, first = src.start(node), node.body[0]
    if src.line_of(src.start(first)) == src.line_of(head):
        ctx.plan.replace(head, src.start(first), "", RULE)
        return
    ctx.plan.replace(src.line_start(head), _head_end(ctx, node), "", RULE)
    move_left(ctx, node, node.body, _head_end(ctx, node))


def _head_end(ctx: Context, node: ast.With | ast.AsyncWith) -> int:
    end = max(ctx.source.end(i.optional_vars or i.context_expr) for i in node.items)
    colon = ctx.source.text.index(":", end)
    line_end = ctx.source.line_end(colon)
    return int(line_end)


def _drop_items(ctx: Context, node: ast.With | ast.AsyncWith, noise: list[ast.withitem]) -> None:
    src, kept = ctx.source, [i for i in node.items if i not in noise]
    start = src.start(node.items[0].context_expr)
    end = max(src.end(i.optional_vars or i.context_expr) for i in node.items)
    text = ", ".join(src.text[src.start(i.context_expr) : src.end(i.optional_vars or i.context_expr)] for i in kept)
    ctx.plan.replace(start, end, text, RULE)


def move_left(ctx: Context, node: ast.stmt, body: list[ast.stmt], at: int) -> None:
    """Moves the lines of a body, from `at` on, to the statement's own indentation; text inside strings stays."""
    src = ctx.source
    outer, inner = src.raw_indent(node), src.raw_indent(body[0])
    extra, last = inner[len(outer) :], src.end(body[-1])
    src.dedents.append((at, last, len(extra)))
    texts = (n for s in body for n in ast.walk(s) if isinstance(n, (ast.Constant, ast.JoinedStr)) and (n.end_lineno or 0) > n.lineno)
    strings = {line for n in texts for line in range(n.lineno + 1, (n.end_lineno or 0) + 1)}
    while at < last:
        if src.text.startswith(inner, at) and src.line_of(at) not in strings:
            ctx.plan.replace(at + len(outer), at + len(outer) + len(extra), "", RULE)
        at = src.line_end(at)


def _warn_precision(ctx: Context, node: ast.expr) -> None:
    if _name(ctx, node) in PRECISION and not any(isinstance(k.value, ast.Constant) and k.value.value is False for k in getattr(node, "keywords", ()) if k.arg == "enabled"):
        ctx.report("MIG201", node, "autocast: computed in the arrays' own precision; PyTorch would use a lower one where autocast is on")


def visit_decorators(ctx: Context, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
    """Decorators of compilation and gradient modes go."""
    src = ctx.source
    for d in node.decorator_list:
        if _name(ctx, d) in DECORATORS | ctx.unit.boundary.noise or _name(ctx, d) == "abc.abstractmethod" and _not_abstract(ctx, node):
            ctx.removed.update(ast.walk(d))
            start = src.text.rindex("@", 0, src.start(d))
            ctx.plan.replace(src.line_start(start), src.line_end(src.end(d)), "", RULE)


def _not_abstract(ctx: Context, node: ast.AST) -> bool:
    """A method of a module that is no abstract base class: the decorator says nothing in PyTorch, and forbids making one where modules are such classes."""
    info = ctx.file.by_node.get(node)
    owner = info.owner if isinstance(info, FunctionInfo) else None
    if owner is None or not owner.is_module or not ctx.target.wraps_static:
        return False
    return not any(b in ("abc.ABC", "typing.Protocol") for b in owner.foreign()) and not any(k.arg == "metaclass" for c in owner.mro() for k in c.node.keywords)


def visit_bases(ctx: Context, node: ast.ClassDef) -> None:
    """Bases that only a library's own loading uses go: `class Net(nn.Module, HubMixin)`, `class Pictures(Dataset)`."""
    gone = [b for b in node.bases if ctx.dotted(b) in ctx.unit.boundary.noise | BASES]
    if not gone:
        return
    src = ctx.source
    kept = [b for b in [*node.bases, *node.keywords] if b not in gone]
    if not kept:
        ctx.removed.update(n for b in gone for n in ast.walk(b))
        ctx.plan.replace(src.text.rindex("(", 0, src.start(gone[0])), src.text.index(")", src.end(gone[-1])) + 1, "", RULE)
        return
    for b in gone:
        ctx.removed.update(ast.walk(b))
        before = [k for k in kept if src.start(k) < src.start(b)]
        after = [o for o in [*node.bases, *node.keywords] if src.start(o) > src.start(b)]
        if before:
            previous = max((o for o in [*node.bases, *node.keywords] if src.end(o) <= src.start(b)), key=src.end)
            ctx.plan.replace(src.end(previous), src.end(b), "", RULE)
        elif after:
            ctx.plan.replace(src.start(b), min(src.start(o) for o in after), "", RULE)


def visit_expr(ctx: Context, node: ast.Expr) -> None:
    """Statements such as `torch.manual_seed(0)`."""
    if isinstance(node.value, ast.Call) and not ctx.owned(node):
        name = _name(ctx, node.value)
        if name == "torch._assert" and len(node.value.args) == 2:
            test, message = node.value.args
            ctx.edit(node, lambda e: Piece(f"assert {e.piece(test).at(1)}, {e.piece(message).at(1)}"), RULE, "MIG103", name)
            return
        if _loads(ctx, node.value):
            ctx.report("MIG201", node, "a hook on state dicts is left out: names of older checkpoints must be changed before they are loaded")
            remove_statement(ctx, node, RULE)
            return
        if isinstance(node.value.func, ast.Attribute) and node.value.func.attr == "requires_grad_" and ctx.kind(node.value.func.value).is_tensor:
            _warn_module(ctx, node.value)
            remove_statement(ctx, node, RULE)
            return
        if name in STATEMENTS or name in ctx.unit.boundary.noise or name.startswith(FLAGS) or _logs(ctx, node.value):
            remove_statement(ctx, node, RULE)


def _logs(ctx: Context, node: ast.Call) -> bool:
    """`self.log("loss", loss)` of a module of Lightning: only its trainer reads that."""
    func, owner = node.func, ctx.class_of(node)
    if not isinstance(func, ast.Attribute) or func.attr not in ("log", "log_dict") or owner is None or not owner.is_module or not ctx.is_self(func.value):
        return False
    return owner.method(func.attr) is None and not owner.assigned(func.attr)


LOADING = frozenset({
    "_register_load_state_dict_pre_hook", "register_load_state_dict_pre_hook", "register_load_state_dict_post_hook", "_register_state_dict_hook", "register_state_dict_post_hook", "register_state_dict_pre_hook",
})


def _loads(ctx: Context, node: ast.Call) -> bool:
    """`self.register_load_state_dict_post_hook(hook)`."""
    return isinstance(node.func, ast.Attribute) and node.func.attr in LOADING and ctx.kind(node.func.value).tag == "module"


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`torch.backends.cudnn.benchmark = True`, `p.requires_grad = False`."""
    target = node.targets[0]
    if len(node.targets) == 1 and isinstance(target, ast.Attribute) and target.attr == "requires_grad" and (ctx.kind(target.value).is_tensor or ctx.kind(target.value).is_unknown):
        ctx.report("MIG201", node, "what is trained is told to the optimizer in JAX; nothing is frozen here")
        remove_statement(ctx, node, RULE)
    elif all(isinstance(t, ast.Attribute) and ctx.dotted(t).startswith(FLAGS) for t in node.targets):
        remove_statement(ctx, node, RULE)


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`torch.compile(f)`, `torch.jit.is_scripting()`, `module.to(device)`."""
    if ctx.owned(node):
        return
    name = _name(ctx, node)
    if name in SAME and node.args and not isinstance(node.args[0], ast.Starred) and all(isinstance(a, ast.Starred) for a in node.args[1:]):
        ctx.edit(node, lambda e: e.piece(node.args[0]), RULE, "MIG103", name)
        ctx.removed.update([node.func, *(n for a in [*node.args[1:], *node.keywords] for n in ast.walk(a))])
    elif name in FALSE or name in ctx.unit.boundary.answers:
        answer = str(ctx.unit.boundary.answers.get(name, False))
        ctx.edit(node, lambda e: Piece(answer), RULE, "MIG103", name)
    elif isinstance(node.func, ast.Attribute) and node.func.attr in MODULE_NOISE and ctx.kind(node.func.value).tag == "module" and not _own(ctx, node.func):
        receiver = node.func.value
        if any(ctx.kind(d).tag == "dtype" for d in _dtypes(node)):
            ctx.refuse("MIG306", node, "the parameters of a module keep their dtype here; make them with the one that they should have")
            return
        _warn_module(ctx, node)
        if isinstance(ctx.source.parent(node), ast.Expr):
            remove_statement(ctx, ctx.source.parent(node), RULE)
        else:
            ctx.edit(node, lambda e: e.piece(receiver), RULE, "MIG103", node.func.attr)
        ctx.removed.update(n for a in [*node.args, *node.keywords] for n in ast.walk(a))


def _dtypes(node: ast.Call) -> list[ast.expr]:
    """The arguments of `module.to(...)` that may be dtypes."""
    return [*node.args, *(k.value for k in node.keywords if k.arg == "dtype")] if isinstance(node.func, ast.Attribute) and node.func.attr == "to" else []


def _warn_module(ctx: Context, node: ast.Call) -> None:
    """`module.requires_grad_(False)`, `module.to(dtype=dtype)`: it matters that they are left out."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        if any(not isinstance(a, ast.Constant) or a.value is not True for a in [*node.args, *(k.value for k in node.keywords)]):
            ctx.report("MIG201", node, "what is trained is told to the optimizer in JAX; nothing is frozen here")
    elif any(isinstance(d, (ast.Name, ast.Attribute)) and ast.unparse(d).endswith("dtype") and ctx.kind(d).is_unknown for d in _dtypes(node)):
        ctx.report("MIG202", node, "a dtype that is given here would be lost: the parameters of a module keep theirs")


def _own(ctx: Context, func: ast.Attribute) -> bool:
    ref = ctx.kind(func.value).ref
    return not isinstance(ref, (Row, type(None), frozenset)) and ref.method(func.attr) is not None


EXAMPLES = (
    Example("def f(g, *args, **options):\n    return torch.compile(g, *args, **options), torch.compile(g, mode='default')\n", jax="    return g, g\n", why="whatever the compiler is told"),
    Example(
        "@torch.jit.script\ndef f(x):\n    with torch.inference_mode():\n        # inside\n        y = x\n        text = '''\n    kept\n        '''\n    return y, text\n",
        jax="def f(x):\n    # inside\n    y = x\n    text = '''\n    kept\n        '''\n    return y, text\n", why="the block moves left, text in strings stays",
    ),
    Example("def f(x):\n    with torch.autocast('cuda'), open(x) as g:\n        return g\n", jax="    with open(x) as g:\n        return g\n"),
    Example("def f(x):\n    with torch.no_grad(): return 3\n", jax="def f(x):\n    return 3\n"),
    Example("torch.manual_seed(0)\ntorch.backends.cudnn.benchmark = True\na = 1\n", jax="\na = 1\n"),
    Example("def f():\n    torch.manual_seed(0)\n", jax="def f():\n    pass\n", why="a body is not left empty"),
    Example("def f(net: nn.Module):\n    net.to('cuda')\n    return torch.compile(net.cpu())\n", jax="    return net\n"),
    Example("def f(net: nn.Module):\n    net.requires_grad_(False)\n    return net\n", "def f(net: nnx.Module):\n    return net\n", "def f(net: Module):\n    return net\n", reported="MIG201"),
    Example("def f(net: nn.Module):\n    for p in net.parameters():\n        p.requires_grad_(False)\n", jax="    for p in parameters(net):\n        pass\n", reported="MIG201"),
    Example("def f(net: nn.Module):\n    return net.to(torch.float16)\n", refused="MIG306"),
    Example("class Net(nn.Module):\n    @torch.jit.export\n    def other(self, x):\n        return x\n", jax="    def other(self, x):\n        return x\n"),
    Example("class Net(nn.Module):\n    def training_step(self, batch):\n        loss = batch.mean()\n        self.log('loss', loss)\n        return loss\n", jax="        loss = jnp.mean(batch)\n        return loss\n"),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = 1\n        self._register_load_state_dict_pre_hook(print)\n", jax="        self.a = 1\n", why="what state dicts call",
    ),
    Example("class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(3, 3)\n        self.a.weight.requires_grad = False\n        for p in self.parameters():\n            p.requires_grad = False\n", jax="        for p in parameters(self):\n            pass\n"),
    Example(
        "from abc import ABC, abstractmethod\n\n\nclass Net(nn.Module):\n    @abstractmethod\n    def a(self):\n        pass\n\n\nclass Base(nn.Module, ABC):\n    @abstractmethod\n    def b(self):\n        pass\n",
        "        pass\n\n    def a(self):\n        pass\n\n\nclass Base(nnx.Module, ABC):\n", "    @abstractmethod\n    def a(self):\n", why="abstract in PyTorch only where a class is an ABC",
    ),
    Example(
        "from torch.utils.data import Dataset\n\n\nclass Pictures(Dataset):\n    def __init__(self, paths):\n        super().__init__()\n        self.paths = paths\n\n    def __getitem__(self, i):\n        return torch.zeros(i)\n",
        jax="class Pictures:\n    def __init__(self, paths):\n        super().__init__()\n", why="a data set needs no base",
    ),
    Example("def f(path):\n    with open(path) as g:\n        return g.read()\n"),
    Example("def cache(f):\n    return f\n\n\n@cache\ndef g():\n    return 1\n"),
)
