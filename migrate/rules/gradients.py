"""Keep gradients out where PyTorch keeps them out: what `torch.no_grad` computes is constant to the gradient.

Converted: `with torch.no_grad(): y = f(x)` with `y` used afterwards, what is kept there in an attribute, a list or an element, a result of a function under `@torch.no_grad()`.
Unchanged: integers, what nothing uses afterwards, constructors and initialisation, where no gradient flows.
Reported: gradients switched on and off by a value or for the rest of a function, and a tensor from outside that is written in place, to which PyTorch's gradient is that of a tensor not written to.
"""
import ast

from migrate.context import Context
from migrate.edits import NOT, Emitter
from migrate.rules import aliases, views
from migrate.rules.constancy import RULE, constant, form_of, has_none, hold, holds_tensors, is_record
from migrate.rules.constraining import keeps_gradient, runs_forward
from migrate.rules.example import Example
from migrate.rules.identity import maybe_other, surely_other
from migrate.rules.inplace import functional
from migrate.rules.regions import FILLING, UNSURE, Region, regions
from migrate.rules.unrecorded import is_fresh, said
from migrate.source.text import walk

PARTIAL = frozenset({"functools.partial", "functools.partialmethod"})
MAYBE = "this may be a tensor from outside itself, which keeps its gradient in PyTorch; here it has none"
HOLDERS = frozenset({"list", "dict", "tuple", "set", "unknown"})


def finish(ctx: Context) -> None:
    """Holds constant what regions without gradients hand on, once all else of the file is planned."""
    found = list(regions(ctx))
    off = frozenset(n for r in found if not r.unsure for n in r.nodes)
    for region in found:
        if region.unsure:
            ctx.report("MIG201", region.at, region.unsure)
        elif region.condition is not None:
            _names(ctx, region, off)
        else:
            for n in region.nodes:
                _node(ctx, region, n)
                _writes(ctx, region, n, off)
            _names(ctx, region, off)


def _node(ctx: Context, region: Region, n: ast.AST) -> None:
    match n:
        case ast.Return(value=ast.Tuple(elts=parts)):
            for part in parts:
                _hold(ctx, region, part)
        case ast.Yield() if isinstance(region.at, (ast.With, ast.AsyncWith)):
            ctx.report("MIG201", n, "PyTorch records no gradient either of what is done with the value that is yielded here, as long as the generator waits; here it has one")
        case ast.Return() | ast.Yield():
            _hold(ctx, region, n.value)
        case ast.YieldFrom():
            ctx.report("MIG201", n, UNSURE)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            for default in [*n.args.defaults, *n.args.kw_defaults]:
                _hold(ctx, region, default)
        case ast.Assign():
            for t in n.targets:
                _assigned(ctx, region, n, t)
        case ast.AnnAssign():
            _assigned(ctx, region, n, n.target)
        case ast.AugAssign():
            _augmented(ctx, region, n)
        case ast.Call():
            _call(ctx, region, n)


def _assigned(ctx: Context, region: Region, n: ast.Assign | ast.AnnAssign, target: ast.expr) -> None:
    """`self.cache = y`, `out[0] = y`, and a name where nothing stands after the region to hold it constant."""
    copied = isinstance(target, ast.Subscript) and ctx.kind(target.value).is_tensor
    if _escapes(ctx, region, target) or isinstance(target, ast.Name) and region.is_left_early and region.used_outside(target.id):
        _hold(ctx, region, n.value, copied)


def _is_outer(ctx: Context, region: Region, name: ast.Name) -> bool:
    """Whether a tensor that the region writes to was made outside, and is used there."""
    return form_of(ctx.kind(name)) == "array" and name.id not in region.bound and region.used_outside(name.id)


def _augmented(ctx: Context, region: Region, n: ast.AugAssign) -> None:
    """`y += v`: the gradient of `y` stays what it was."""
    if not isinstance(n.target, ast.Name):
        if _escapes(ctx, region, n.target):
            _hold(ctx, region, n.value, True)
    elif ctx.kind(n.target).tag in ("list", "dict", "set"):
        if region.used_outside(n.target.id):
            _hold(ctx, region, n.value)
    elif _is_outer(ctx, region, n.target) and isinstance(n.op, (ast.Add, ast.Sub)):
        _hold(ctx, region, n.value, True)


def _call(ctx: Context, region: Region, n: ast.Call) -> None:
    """`xs.append(y)`, `x.mul_(y)`."""
    if ctx.dotted(n.func) == "builtins.setattr" and len(n.args) == 3:
        _hold(ctx, region, n.args[2])
    given = [*n.args, *(k.value for k in n.keywords)]
    if ctx.dotted(n.func) in PARTIAL:
        for a in given:
            _hold(ctx, region, a)
    if holds_tensors(ctx, n) and not is_record(ctx, n):
        ctx.report("MIG201", n, "what this object computes has no gradient in PyTorch; here it has one: jax.lax.stop_gradient holds a value constant")
    if not isinstance(n.func, ast.Attribute):
        return
    held = n.func.value
    if functional(ctx, n) is not None:
        root = _root(held)
        if isinstance(root, ast.Attribute) and region.reads_attribute(root.attr):
            for a in given:
                _hold(ctx, region, a, True)
    elif n.func.attr in FILLING and ctx.kind(held).tag in HOLDERS and _is_step(ctx, n) and _escapes(ctx, region, held):
        for a in given:
            _hold(ctx, region, a)


def _is_step(ctx: Context, n: ast.Call) -> bool:
    """Whether nothing takes a call's result."""
    return isinstance(ctx.source.parent(n), (ast.Expr, ast.ListComp))


def _root(node: ast.expr) -> ast.expr:
    """What is written to: through views, elements and calls in place."""
    while True:
        up = views.base(node)
        if up is None and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            up = node.func.value
        if up is None:
            return node
        node = up


def _escapes(ctx: Context, region: Region, target: ast.expr) -> bool:
    """Whether a target that is no name hands a value on to what stands outside."""
    match target:
        case ast.Tuple() | ast.List():
            return any(_escapes(ctx, region, t) for t in target.elts if not isinstance(t, ast.Name))
        case ast.Starred() | ast.Subscript():
            return _escapes(ctx, region, target.value)
        case ast.Attribute():
            return region.reads_attribute(target.attr)
        case ast.Name():
            return isinstance(target.ctx, ast.Load) and target.id not in region.bound and region.used_outside(target.id)
    return False


def _writes(ctx: Context, region: Region, n: ast.AST, off: frozenset[ast.AST]) -> None:
    """Says where a tensor with a gradient is written in place: PyTorch's is that of the tensor before. What has none is held constant after the region."""
    if isinstance(n, ast.AugAssign) and isinstance(n.op, (ast.Add, ast.Sub)):
        return  # what is added is held constant, and the gradient stays what it was
    for e in aliases.events(ctx, n):
        if e.constant or is_fresh(ctx, e, off):
            continue
        names = [s.root for s in e.shared if s.place != "attribute" and not s.constant and s.root not in region.bound and region.used_outside(s.root)]
        root, kind = e.target, ctx.kind(e.target)
        if isinstance(root, ast.Attribute) and (runs_forward(ctx, region.function) and not keeps_gradient(ctx, root) if kind.variable == "param" else form_of(kind) == "array" and region.reads_attribute(root.attr)):
            ctx.report("MIG201", n, said(ast.unparse(root)))
        elif names and form_of(kind) == "array":
            ctx.report("MIG201", n, said(names[0]))


def _hold(ctx: Context, region: Region, node: ast.expr | None, copied: bool = False) -> None:
    """Holds a value constant. Something from outside keeps its gradient, but where its numbers are `copied`."""
    if isinstance(node, ast.Starred):
        node = node.value
    if node is None or not copied and _is_other(ctx, region, node):
        return
    parts = [] if copied else _parts(node)
    if any(_is_other(ctx, region, p) or _parts(p) for p in parts):
        for part in parts:
            _hold(ctx, region, part)
        return
    hold(ctx, node, copied)
    if not copied and not parts and form_of(ctx.kind(node)) and maybe_other(ctx, region, node):
        ctx.report("MIG201", node, MAYBE)


def _parts(node: ast.expr) -> list[ast.expr]:
    """What a display holds, or a choice is made from."""
    match node:
        case ast.Tuple() | ast.List():
            return node.elts
        case ast.Dict() | ast.BoolOp():
            return node.values
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.Starred():
            return _parts(node.value)
    return []


def _is_other(ctx: Context, region: Region, value: ast.expr) -> bool:
    """Whether a value is what stands outside under another name: that keeps its gradient."""
    if isinstance(value, ast.Attribute) and not ctx.kind(value.value).is_tensor and isinstance(value.value, ast.Name):
        return True
    return surely_other(ctx, region, value)


def _plain_stores(ctx: Context, region: Region) -> dict[str, str]:
    """The names that a region binds, with the form of what they hold. One that may be something from outside too is held constant where it gets other values."""
    found: dict[str, str] = {}
    others = {n for n in region.binders if _is_other(ctx, region, n)}
    shared = {n.id for n in others} if region.condition is None else set()
    for n in region.binders:
        made = _value(ctx, n)
        mixed = made is not None and region.condition is None and any(_is_other(ctx, region, p) or _parts(p) for p in _parts(made))
        if mixed or n.id in shared and (n in others or made is not None):
            if n not in others:
                _hold(ctx, region, made)
            continue
        none = isinstance(made, ast.GeneratorExp) or n in others or made is not None and has_none(ctx, made)
        form = "" if none else "any" if made is not None and is_record(ctx, made) else form_of(ctx.kind(n))
        if form and region.used_outside(n.id) and (maybe_other(ctx, region, n if made is None else made) or _is_rest(ctx, region, n)):
            ctx.report("MIG201", n, MAYBE)
        found[n.id] = form if found.get(n.id, form) == form else "any"
    return found


def _is_rest(ctx: Context, region: Region, name: ast.Name) -> bool:
    """Whether a name gets the rest of several values of which some stand outside."""
    at = ctx.source.statement(name)
    return isinstance(ctx.source.parent(name), ast.Starred) and isinstance(at, ast.Assign) and any(_is_other(ctx, region, p) for p in _parts(at.value))


def _value(ctx: Context, name: ast.Name) -> ast.expr | None:
    """What an assignment gives a name, None where it is not that plain."""
    at = ctx.source.parent(name)
    if isinstance(at, ast.Assign):
        return at.value
    up = ctx.source.parent(at) if isinstance(at, ast.Tuple) else None
    if not isinstance(at, ast.Tuple) or not isinstance(up, ast.Assign) or not isinstance(up.value, ast.Tuple) or len(up.value.elts) != len(at.elts):
        return None
    value: ast.expr = up.value.elts[at.elts.index(name)]
    return value


def _filled(ctx: Context, region: Region, off: frozenset[ast.AST]) -> dict[str, str]:
    """Names of tensors without a gradient that are written in place."""
    found = [e for n in region.nodes if isinstance(n, ast.Call) for e in aliases.events(ctx, n)]
    return {e.target.id: "array" for e in found if isinstance(e.target, ast.Name) and _is_outer(ctx, region, e.target) and is_fresh(ctx, e, off)}


def _names(ctx: Context, region: Region, off: frozenset[ast.AST]) -> None:
    """Holds the names constant after the region."""
    if not isinstance(region.at, (ast.With, ast.AsyncWith)):
        return
    src, lines = ctx.source, []
    for name, form in sorted((_plain_stores(ctx, region) | _filled(ctx, region, off)).items()):
        if form and region.used_outside(name):
            lines.append(f"{name} = {constant(ctx, form)}({name})\n")
    if not lines:
        return
    indent = str(src.indent(region.at))
    if region.condition is not None:
        lines = [_asked(ctx, region.condition, region.negated), *("    " + line for line in lines)]
    ctx.plan.insert(src.line_end(src.end(region.body[-1])), "".join(indent + line for line in lines), RULE)


def _asked(ctx: Context, condition: ast.expr, negated: bool) -> str:
    """The line that asks again whether there are gradients. What it asks goes with the `with` statement where that goes."""
    text = Emitter(ctx.plan).piece(condition)
    if isinstance(ctx.source.parent(condition), (ast.Call, ast.keyword)):
        for n in walk(condition):
            ctx.plan.nodes.pop(n, None)
    return f"if not {text.at(NOT)}:\n" if negated else f"if {text.text}:\n"


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    with torch.no_grad():\n        s = x.exp()\n    return x * s\n", jax="    s = jnp.exp(x)\n    s = jax.lax.stop_gradient(s)\n    return x * s\n"),
    Example("def f(x: torch.Tensor):\n    for i in range(3):\n        with torch.no_grad():\n            print(x.shape, i)\n    return x\n", jax="        print(x.shape, i)\n    return x\n", why="nothing to hold constant"),
    Example(
        "def f(x: torch.Tensor):\n    s = torch.ones_like(x)\n    for i in range(3):\n        x = x * s\n        with torch.no_grad():\n            s = x.exp()\n    return x\n",
        jax="        s = jnp.exp(x)\n        s = jax.lax.stop_gradient(s)\n    return x\n", why="used in the next turn of the loop",
    ),
    Example("def f(x: torch.Tensor):\n    found = []\n    with torch.no_grad():\n        found.append(x.exp())\n    return x * found[0]\n", jax="    found.append(jax.lax.stop_gradient(jnp.exp(x)))\n"),
    Example("def f(x: torch.Tensor, g):\n    with torch.no_grad():\n        s = g(x)\n    return x, s\n", jax="    s = g(x)\n    s = without_gradient(s)\n", why="it may be anything"),
    Example("def f(x: torch.Tensor):\n    with torch.no_grad():\n        x += x.exp()\n    return x\n", jax="    x += jax.lax.stop_gradient(jnp.exp(x))\n", why="the gradient of x itself stays"),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('mean', torch.zeros(3))\n\n    def forward(self, x):\n        with torch.no_grad():\n"
        "            self.mean.mul_(0.9).add_(0.1 * x.mean(0))\n        return x - self.mean\n",
        "        self.mean[...] = self.mean[...] * 0.9 + jax.lax.stop_gradient(0.1 * jnp.mean(x, axis=0))\n", "jax.lax.stop_gradient(0.1 * jnp.mean(x, axis=0))",
    ),
    Example("def f(x: torch.Tensor, on: bool):\n    with torch.set_grad_enabled(on):\n        s = x.exp()\n    return x * s\n", jax="    s = jnp.exp(x)\n    if not on:\n        s = jax.lax.stop_gradient(s)\n"),
    Example("@torch.no_grad()\ndef f(x: torch.Tensor):\n    yield x.exp()\n", jax="def f(x: jax.Array):\n    yield jax.lax.stop_gradient(jnp.exp(x))\n"),
    Example("def f(x: torch.Tensor):\n    torch.set_grad_enabled(False)\n    return x.exp()\n", jax="    return jnp.exp(x)\n", reported="MIG201"),
    Example("def f(x: torch.Tensor):\n    y = x * 2\n    with torch.no_grad():\n        y.clamp_(0, 1)\n    return y\n", jax="    y = clamp(y, min=0, max=1)\n", reported="MIG201", why="PyTorch's gradient is that of y before"),
    Example("@torch.no_grad()\ndef f(x: torch.Tensor, on: bool):\n    if not on:\n        return x\n    return x + 1\n", jax="        return x\n    return jax.lax.stop_gradient(x + 1)\n", why="what is given keeps its gradient"),
    Example("def f(x: torch.Tensor):\n    with torch.enable_grad():\n        s = x.exp()\n    return x * s\n", jax="    s = jnp.exp(x)\n    return x * s\n"),
    Example("def f(no_grad, x):\n    with no_grad():\n        y = x\n    return y\n", why="another's context"),
    Example("class Switch:\n    def inference_mode(self):\n        return open('log')\n\n    def run(self, x):\n        with self.inference_mode():\n            y = x\n        return y\n"),
)
