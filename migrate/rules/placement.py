"""Leave out where parameters live: `factory_kwargs = {"device": device, "dtype": dtype}` and the `**factory_kwargs` of every call and mapping.

Converted: `Block(dim, **factory_kwargs)` of a local class, a factory or a class in a variable.
Unchanged: mappings with other keys, calls of functions of other libraries, a class that cannot be made without a device.
"""
import ast

from migrate.context import Context
from migrate.removal import remove_statement
from migrate.rules.example import Example
from migrate.rules.operators import only_placement
from migrate.source.modules import ClassInfo, FunctionInfo

RULE = "placement"


def visit_call(ctx: Context, node: ast.Call) -> None:
    """Marks the `**` arguments that say only where tensors live; what writes the call leaves them out."""
    placed = [k for k in node.keywords if k.arg is None and only_placement(ctx, k.value)]
    if not placed or ctx.owned(node) or not _may_go(ctx, node):
        return
    ctx.shared.setdefault("placed", set()).update(placed)
    args = sorted([*node.args, *node.keywords], key=ctx.source.start)
    for k in placed:
        at = args.index(k)
        start = ctx.source.end(args[at - 1]) if at else ctx.source.start(k)
        end = ctx.source.end(k) if at or len(args) == 1 else ctx.source.start(args[1])
        ctx.plan.replace(start, end, "", RULE)
        ctx.removed.update(ast.walk(k))


def visit_dict(ctx: Context, node: ast.Dict) -> None:
    """`{**factory_kwargs, "bias": False}`."""
    values = node.values
    for i, (key, value) in enumerate(zip(node.keys, values, strict=True)):
        if key is not None or not isinstance(value, ast.Name) or not only_placement(ctx, value) or ctx.owned(node):
            continue
        first = ctx.source.text.rindex("**", 0, ctx.source.start(value))
        after = next((n for n in (*node.keys[i + 1 : i + 2], *values[i + 1 : i + 2]) if n is not None), None)
        end = ctx.source.end(value)
        if after is not None:
            end = ctx.source.start(after) if node.keys[i + 1] is not None else ctx.source.text.index("**", end)
        elif i:
            first = ctx.source.end(values[i - 1])
        ctx.plan.replace(first, end, "", RULE)
        ctx.removed.update(ast.walk(value))


def _may_go(ctx: Context, node: ast.Call) -> bool:
    found = ctx.resolve(node.func)
    if isinstance(found, ClassInfo):
        found = found.method("__init__")
    if isinstance(found, FunctionInfo):
        a = found.node.args
        optional = {p.arg for p in [*a.posonlyargs, *a.args][len(a.posonlyargs) + len(a.args) - len(a.defaults) :]}
        optional |= {p.arg for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
        return all(p.arg not in ("device", "dtype") or p.arg in optional for p in [*a.posonlyargs, *a.args, *a.kwonlyargs])
    return found is None or found == "builtins.dict"


def finish(ctx: Context) -> None:
    """Removes what nothing reads any more: mappings that say where parameters live, and names of devices."""
    found = [n for n in ctx.source.nodes if isinstance(n, ast.Assign) and len(n.targets) == 1 and n not in ctx.removed and not isinstance(ctx.source.parent(n), ast.Module)]
    mappings = [n for n in found if isinstance(n.targets[0], ast.Name) and only_placement(ctx, n.value)]
    devices = [(n, pair) for n in found if (pair := _device(ctx, n)) is not None]
    reads = _reads(ctx, {*(n.targets[0].id for n in mappings if isinstance(n.targets[0], ast.Name)), *(name.id for _, (name, _) in devices)})
    for node in mappings:
        if _unread(ctx, node.targets[0], reads):
            remove_statement(ctx, node, RULE)
            ctx.report("MIG103", node, "device and dtype are not handed on: parameters are float32 on the default device")
    for node, (name, value) in devices:
        if _unread(ctx, name, reads):
            _remove_device(ctx, node, name, value)


def _reads(ctx: Context, names: set[str]) -> dict[str, list[ast.Name]]:
    """Where each of some names is read."""
    found: dict[str, list[ast.Name]] = {name: [] for name in names}
    for n in ctx.source.nodes if names else ():
        if isinstance(n, ast.Name) and n.id in found and isinstance(n.ctx, ast.Load):
            found[n.id].append(n)
    return found


def _unread(ctx: Context, name: ast.expr, reads: dict[str, list[ast.Name]]) -> bool:
    """Whether a name is read nowhere in the output."""
    assert isinstance(name, ast.Name)
    scope = ctx.file.names.scope(name)
    own = [n for n in reads[name.id] if (held := ctx.file.names.scope(n).lookup(name.id)) is not None and held[0] is scope]
    return all(n in ctx.removed for n in own)


def _device(ctx: Context, node: ast.Assign) -> tuple[ast.Name, ast.expr] | None:
    """The name and the value of `device = x.device` and of `n, device = len(x), x.device`."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        return (target, value) if ctx.kind(value).tag == "device" else None
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return None
    starred = [i for i, e in enumerate(target.elts[::-1]) if isinstance(e, ast.Starred)] + [i for i, e in enumerate(value.elts[::-1]) if isinstance(e, ast.Starred)]
    pairs = list(zip(target.elts[::-1], value.elts[::-1], strict=False))[: min(starred, default=None)]
    bare = not any(ctx.source.segment(t).startswith("(") for t in (target, value))
    left = len(target.elts) > 2 or not starred and bare  # a sequence is not unpacked into one name without a comma
    return next(((t, v) for t, v in pairs if left and isinstance(t, ast.Name) and ctx.kind(v).tag == "device"), None)


def _remove_device(ctx: Context, node: ast.Assign, name: ast.Name, value: ast.expr) -> None:
    for n in ast.walk(value):
        ctx.plan.nodes.pop(n, None)
    if value is node.value:
        remove_statement(ctx, node, RULE)
        return
    for part, whole in ((name, node.targets[0]), (value, node.value)):
        assert isinstance(whole, ast.Tuple)
        at = whole.elts.index(part)
        start = ctx.source.end(whole.elts[at - 1]) if at else ctx.source.start(part)
        ctx.plan.replace(start, ctx.source.end(part) if at else ctx.source.start(whole.elts[1]), "", RULE)
        ctx.removed.update(ast.walk(part))
        other = whole.elts[0]
        if whole is node.value and len(whole.elts) == 2 and part is not other and isinstance(other, ast.Starred):
            ctx.plan.replace(ctx.source.start(other), ctx.source.start(other.value), "", RULE)


HEAD = "class Block(nn.Module):\n    def __init__(self, n, norm=nn.LayerNorm, device=None, dtype=None):\n        super().__init__()\n        dd = {'device': device, 'dtype': dtype}\n"
EXAMPLES = (
    Example(
        f"{HEAD}        self.fc = nn.Linear(n, n, **dd)\n        self.norm = norm(n, **dd)\n",
        "rngs: nnx.Rngs):\n        self.fc = nnx.Linear(n, n, rngs=rngs)\n        self.norm = norm(n, rngs=rngs)\n",
        "        super().__init__()\n        self.fc = Linear(n, n)\n        self.norm = norm(n)\n",
    ),
    Example(
        f"{HEAD}        self.sub = Block(\n            n,\n            **dd,\n        ) if n > 3 else None\n", "        self.sub = Block(\n            n,\n            rngs=rngs,\n        ) if n > 3 else None\n",
        "        self.sub = Block(\n            n,\n        ) if n > 3 else None\n", why="on several lines",
    ),
    Example(f"{HEAD}        options = dict(**dd, norm=norm)\n        self.a = Block(n, **options)\n", "        options = dict(norm=norm)\n        self.a = Block(n, **options, rngs=rngs)\n", "        options = dict(norm=norm)\n"),
    Example(f"{HEAD}        options = {{**dd, **(norm or {{}})}}\n        self.a = Block(n, **options), {{'n': n, **dd}}\n", jax="        options = {**(norm or {})}\n"),
    Example(
        "class Head(nn.Linear):\n    def __init__(self, n, device=None, dtype=None):\n        super().__init__(n, 10, bias=False, device=device, dtype=dtype)\n",
        "        super().__init__(n, 10, bias=False, rngs=rngs)\n", "        super().__init__(n, 10, bias=False)\n", why="a layer's own constructor",
    ),
    Example(
        "def f(x: torch.Tensor):\n    device = x.device\n    n, d, dev = *x.shape, x.device\n    return torch.arange(n, device=device) + torch.zeros(d, device=dev)\n",
        jax="def f(x: jax.Array):\n    n, d = x.shape\n    return jnp.arange(n) + jnp.zeros(d)\n", why="devices that nothing names any more",
    ),
    Example("def f(x: torch.Tensor):\n    dev, n = x.device, len(x)\n    return torch.arange(n, device=dev)\n", jax="    n = len(x)\n    return jnp.arange(n)\n"),
    Example("def f(x: torch.Tensor):\n    device = x.device\n    print(device)\n    return torch.zeros(3, device=device)\n", jax="    print(device)\n", why="it is read"),
    Example("def f(device):\n    where = {'device': device}\n    return print(**where)\n"),
    Example("def f(padding=0):\n    padding = padding\n    for _ in range(3):\n        old = padding\n        padding = old\n    return padding\n", why="names that hold themselves"),
    Example(f"{HEAD}        dd['bias'] = False\n        self.fc = Far(n, **dd)\n\n\nclass Far(nn.Module):\n    def __init__(self, n, bias=True, device=None, dtype=None):\n        super().__init__()\n", "        self.fc = Far(n, **dd, rngs=rngs)\n", "        self.fc = Far(n, **dd)\n", why="other keys are added"),
    Example("class Table:\n    kinds = {}\n\n    def f(self):\n        unused = {}\n        return 3\n", why="an empty one may be filled by others"),
    Example("def f(n, dd=None):\n    if dd is None:\n        dd = {'device': None}\n    return print(**dd)\n", why="what a caller gives"),
    Example("class Far:\n    def __init__(self, n, device):\n        self.n = device\n\n\ndef f(device):\n    where = {'device': device}\n    return Far(3, **where)\n"),
    Example("def f(n):\n    options = {'n': n, 'dtype': None}\n    return g(**options)\n\n\ndef g(n=1, dtype=None):\n    return n\n"),
)
