"""Leave out where parameters live: `factory_kwargs = {"device": device, "dtype": dtype}` and the `**factory_kwargs` of every call and mapping.

Converted: `Block(dim, **factory_kwargs)` of a local class, a factory or a class in a variable.
Unchanged: mappings with other keys, calls of functions of other libraries, a class that cannot be made without a device.
"""
import ast

from migrate.context import Context
from migrate.rules.example import Example
from migrate.rules.modules import remove_statement
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
    """Removes the mappings that nothing reads any more, and says that parameters are made as float32 on the default device."""
    for node in ctx.source.nodes:
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and only_placement(ctx, node.value)):
            continue
        target = node.targets[0]
        reads = [n for n in ctx.source.nodes if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) and any(b.value is node.value for b in ctx.file.names.lookup(n))]
        if reads and all(n in ctx.removed for n in reads) and node not in ctx.removed and not isinstance(ctx.source.parent(node), ast.Module):
            remove_statement(ctx, node, RULE)
            ctx.report("MIG103", node, "device and dtype are not handed on: parameters are float32 on the default device")


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
    Example("def f(device):\n    where = {'device': device}\n    return print(**where)\n"),
    Example("class Far:\n    def __init__(self, n, device):\n        self.n = device\n\n\ndef f(device):\n    where = {'device': device}\n    return Far(3, **where)\n"),
    Example("def f(n):\n    options = {'n': n, 'dtype': None}\n    return g(**options)\n\n\ndef g(n=1, dtype=None):\n    return n\n"),
)
