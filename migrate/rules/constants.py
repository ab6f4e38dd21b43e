"""Keep as plain values what no input changes, so that they are known while JAX traces the code.

Converted: `torch.arange(1, x.dim()).tolist()`; a mask of sizes alone, `~torch.eye(n).bool()`, that selects elements; `torch.tensor(True)` for a parameter that only conditions ask.
Unchanged: a mask that is computed from the input, a mask that is used for anything else.
"""
import ast
from collections.abc import Iterator

from migrate.context import Context
from migrate.edits import LAMBDA, Piece
from migrate.rules.example import Example
from migrate.rules.tracing import traced
from migrate.source.modules import ClassInfo, FunctionInfo

RULE = "constants"


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`torch.arange(n).tolist()`, `f(x, torch.tensor(True))`."""
    if not ctx.owned(node):
        _range(ctx, node)
        _flag(ctx, node)


def _range(ctx: Context, node: ast.Call) -> None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as made, attr="tolist"), args=[], keywords=[]) if ctx.dotted(made.func) == "torch.arange":
            pass
        case _:
            return
    plain = all(ctx.kind(a).tag == "int" for a in made.args) and 0 < len(made.args) < 4
    placed = all(k.arg == "device" or k.arg == "dtype" and ctx.kind(k.value).dtype == "int" for k in made.keywords)
    if not plain or not placed or any(n in s.bindings for n in ("list", "range") for s in ctx.file.names.scopes.values()):
        return
    ctx.removed.update(n for part in (made.func, *made.keywords) for n in ast.walk(part))
    ctx.removed.add(made)
    ctx.edit(node, lambda e: Piece(f"list(range({', '.join(e.piece(a).at(LAMBDA) for a in made.args)}))"), RULE, why="torch.arange")


def _flag(ctx: Context, node: ast.Call) -> None:
    """A truth value in a tensor, given to a function that only asks whether it is true."""
    call = ctx.source.parent(node)
    match node:
        case ast.Call(args=[ast.Constant(value=bool())]) if ctx.dotted(node.func) == "torch.tensor" and isinstance(call, ast.Call) and node in call.args:
            pass
        case _:
            return
    callees = list(_callees(ctx, call))
    at = call.args.index(node)
    if callees and not any(isinstance(a, ast.Starred) for a in call.args[:at]) and all(at < len(f.parameters) and _only_asked(f, f.parameters[at].arg) for f in callees):
        ctx.removed.update(n for n in ast.walk(node) if n not in (node, node.args[0]))
        ctx.edit(node, lambda e: e.piece(node.args[0]), RULE, why="torch.tensor")


def _callees(ctx: Context, call: ast.Call) -> Iterator[FunctionInfo]:
    """The functions that a call may reach; none where that is not known."""
    kind, found = ctx.kind(call.func), ctx.resolve(call.func)
    if isinstance(found, FunctionInfo) and found.owner is None:
        yield found
    elif kind.tag == "module" and isinstance(kind.ref, ClassInfo):
        below = [kind.ref]
        while below:
            c = below.pop()
            below += ctx.unit.subclasses.get(c, ())
            if (forward := c.method("forward")) is not None:
                yield forward


def _only_asked(f: FunctionInfo, name: str) -> bool:
    """Whether a function does nothing with a parameter but asking whether it is true."""
    tests = [n.test for n in ast.walk(f.node) if isinstance(n, (ast.If, ast.IfExp, ast.While))]
    asked: set[ast.AST] = set()
    while tests:
        test = tests.pop()
        asked.add(test)
        tests += [test.operand] if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test.values if isinstance(test, ast.BoolOp) else []
    return all(n in asked for n in ast.walk(f.node) if isinstance(n, ast.Name) and n.id == name) and not any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("locals", "vars") for n in ast.walk(f.node)
    )


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`mask = ~torch.eye(n).bool()`, where it selects elements."""
    if "fixed" in ctx.support and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and fixed(ctx, node.targets[0]):
        ctx.plan.insert(ctx.source.start(node.value), f"{ctx.name('fixed')}(lambda: ", RULE)
        ctx.plan.insert(ctx.source.end(node.value), ")", RULE)


def fixed(ctx: Context, name: ast.Name) -> bool:
    """Whether a name holds a mask made of sizes alone that is only used to select elements."""
    held = ctx.shared.setdefault("fixed masks", {})
    bound = ctx.file.names.lookup(name)
    if len(bound) != 1 or bound[0].value is None or not isinstance(bound[0].node, ast.Name):
        return False
    if bound[0] not in held:
        held[bound[0]] = _fixed(ctx, bound[0].node, bound[0].value)
    return bool(held[bound[0]])


def _fixed(ctx: Context, name: ast.Name, value: ast.expr) -> bool:
    f, kind = ctx.function_of(name), ctx.kind(value)
    if f is None or not kind.is_tensor or kind.dtype not in ("bool", "") or isinstance(value, (ast.Name, ast.NamedExpr)) or traced(ctx, value, doubt=True):
        return False
    bound = ctx.file.names.lookup(name)
    uses = [n for n in ast.walk(f.node) if isinstance(n, ast.Name) and n.id == name.id and isinstance(n.ctx, ast.Load) and ctx.file.names.lookup(n) == bound]
    return bool(uses) and all(_selects(ctx, n) for n in uses) and (kind.dtype == "bool" or any(_asks_mask(ctx, n) for n in uses))


def _selects(ctx: Context, node: ast.expr) -> bool:
    """Whether a mask is only used as one."""
    parent = ctx.source.parent(node)
    around = ctx.source.parent(parent) if isinstance(parent, ast.Tuple) else None
    if isinstance(around, ast.Subscript) and around.slice is parent:
        node, parent = parent, around
    match parent:
        case ast.Subscript(value=value, ctx=ast.Load()) if value is not node:
            return ctx.kind(value).is_tensor
        case ast.Subscript(slice=index, ctx=ast.Load()):
            return all(isinstance(n, (ast.Tuple, ast.Constant, ast.Slice, ast.Load)) for n in ast.walk(index)) and _selects(ctx, parent)
        case ast.UnaryOp(op=ast.Invert()):
            return _selects(ctx, parent)
        case ast.Call(func=ast.Attribute(attr="masked_select"), args=args):
            return bool(args) and args[-1] is node
    return False


def _asks_mask(ctx: Context, node: ast.expr) -> bool:
    """Whether only a mask can stand where a value does."""
    parent = ctx.source.parent(node)
    return isinstance(parent, (ast.Call, ast.UnaryOp))


def is_fixed(ctx: Context, mask: ast.expr) -> bool:
    """Whether a mask is known while tracing."""
    while isinstance(mask, (ast.Subscript, ast.UnaryOp)):
        mask = mask.value if isinstance(mask, ast.Subscript) else mask.operand
    return isinstance(mask, ast.Name) and "fixed" in ctx.support and fixed(ctx, mask)


HEAD = "class Norm(nn.Module):\n    def forward(self, x: torch.Tensor, mode: torch.Tensor):\n        if not mode:\n            return x\n        return x * 2\n\n\n"
EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    return x.mean(torch.arange(1, len(x.shape)).tolist())\n", jax="list(range(1, len(x.shape)))"),
    Example("def f(x: torch.Tensor):\n    return torch.arange(x.size(0), device=x.device, dtype=torch.long).tolist()\n", jax="    return list(range(x.shape[0]))\n"),
    Example(
        "def f(x: torch.Tensor):\n    n = x.shape[-1]\n    keep = ~torch.eye(n, dtype=torch.bool)\n    return x[keep[None]], x.masked_select(keep)\n",
        jax="    keep = fixed(lambda: ~jnp.eye(n, dtype=jnp.bool_))\n    return x[keep[None]], masked_select(x, keep)\n", why="a mask of sizes alone",
    ),
    Example("def f(x: torch.Tensor):\n    keep = x > 0\n    return x[keep]\n", jax="    keep = x > 0\n    return x[keep]\n", reported="MIG105"),
    Example("def f(x: torch.Tensor):\n    keep = torch.eye(3) > 0\n    return x[keep] * keep.sum()\n", jax="    keep = jnp.eye(3) > 0\n", reported="MIG105", why="it is counted as well"),
    Example(
        f"{HEAD}class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.norm = Norm()\n\n    def forward(self, x):\n        return self.norm(x, torch.tensor(True, dtype=torch.bool))\n",
        jax="        return self.norm(x, True)\n", why="only conditions ask for it",
    ),
    Example("def g(x, y): return x + y\n\n\ndef f(x):\n    return g(x, torch.tensor(True))\n", jax="    return g(x, jnp.array(True))\n", why="its value is used"),
    Example("def f(x):\n    return list(range(3)), x.tolist()\n"),
    Example("def f(x, n):\n    return sorted(n), x[n]\n"),
)
