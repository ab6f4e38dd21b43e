"""Keep 8 and 16 bits where PyTorch keeps them: in what is written in place, and beside a tensor without axes. JAX takes the wider dtype of both.

Converted: `h += x`, `h.mul_(x)` for `h = x.half()`; `h * self.scale` for a parameter `scale` of one number without axes.
Unchanged: Python numbers and tensors of the same bits, which widen in neither; what the code does not tell the bits of.
Reported: an expression of 16 bits that has no name, beside a tensor without axes; a function of both, `torch.mul(h, scale)`.
"""
import ast
from collections.abc import Sequence

from migrate.context import Context
from migrate.edits import ADD, ATOM, MULTIPLY, POWER, Emitter, Piece
from migrate.infer.kinds import Kind
from migrate.rules.example import Example
from migrate.source.modules import ClassInfo
from migrate.tables import Row

RULE = "widths"
ALL_AXES = frozenset(
    f"torch.{n}" for n in ("sum", "mean", "prod", "max", "min", "amax", "amin", "std", "var", "norm", "median", "argmax", "argmin", "linalg.norm", "linalg.vector_norm")
)  # one number, where no axis is named
ONE_BY_ONE = frozenset(
    ["abs", "exp", "log", "sqrt", "rsqrt", "sigmoid", "tanh", "square", "reciprocal", "neg", "float", "double", "long", "int", "detach", "clone", "to", "type", "type_as", "clamp", "relu"]
)
MAKERS = frozenset(["torch.tensor", "torch.scalar_tensor", "torch.as_tensor", "torch.Tensor.new_tensor"])
OF_BOTH = frozenset(
    f"torch.{n}" for n in ("mul", "add", "sub", "rsub", "div", "pow", "where", "maximum", "minimum", "clamp", "fmod", "remainder", "floor_divide", "atan2", "hypot", "lerp", "addcmul", "addcdiv")
)
WIDENS = "a tensor without axes does not widen one of 8 or 16 bits in PyTorch, and does here: give it that dtype"
OPERATORS = {ast.Add: ("+", ADD), ast.Sub: ("-", ADD), ast.Mult: ("*", MULTIPLY), ast.Div: ("/", MULTIPLY), ast.Pow: ("**", POWER)}


def may_widen(ctx: Context, target: ast.expr, given: Sequence[object]) -> bool:
    """Whether an operation on a tensor of 8 or 16 bits may have more of them, by what it is given."""
    own = ctx.kind(target)
    return own.is_tensor and own.narrow and not all(_fits(own, ctx.kind(g)) for g in given if isinstance(g, ast.expr))


def _fits(own: Kind, other: Kind) -> bool:
    if not other.is_tensor:
        return not other.is_unknown
    return other.dtype == "bool" or own.dtype == "float" and (other.dtype == "int" or other.dtype == "float" and other.narrow)


def kept(value: Piece, target: str) -> Piece:
    """A value with the dtype of the tensor that it is written to."""
    return Piece(f"{value.at(ATOM)}.astype({target}.dtype)", ATOM)


def visit(ctx: Context, node: ast.BinOp) -> None:
    """`h * scale` of a tensor with few bits and one without axes."""
    for own, other, turned in ((node.left, node.right, False), (node.right, node.left, True)):
        kind, number = ctx.kind(own), ctx.kind(other)
        if type(node.op) not in OPERATORS or not (kind.is_tensor and kind.narrow) or _fits(kind, number) or kind.dtype == "int" and number.dtype != "int":
            continue
        if ctx.owned(node) or is_scalar(ctx, own) or not is_scalar(ctx, other) or _is_weak(ctx, other):
            continue
        if isinstance(own, (ast.Name, ast.Attribute)):
            ctx.edit(node, lambda e, own=own, other=other, turned=turned: _computed(e, node, own, other, turned), RULE, why="a tensor without axes")  # type: ignore[misc]
        else:
            ctx.report("MIG201", node, WIDENS)
        return


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`torch.mul(h, scale)`, `h.clamp(min=scale)`."""
    if not any(f.narrow for f in map(ctx.kind, _given(node))):
        return
    found = ctx.resolve(node.func)
    row = found if isinstance(found, Row) else ctx.unit.table.by_method.get(node.func.attr) if isinstance(node.func, ast.Attribute) and ctx.kind(node.func.value).is_tensor else None
    if row is None or row.torch not in OF_BOTH:
        return
    own = [a for a in _given(node) if ctx.kind(a).is_tensor and ctx.kind(a).narrow and not is_scalar(ctx, a)]
    others = [a for a in _given(node) if not ctx.kind(a).narrow and is_scalar(ctx, a) and not _is_weak(ctx, a)]
    if own and any(not any(_fits(ctx.kind(o), ctx.kind(a)) for o in own) and not (ctx.kind(own[0]).dtype == "int" and ctx.kind(a).dtype != "int") for a in others):
        ctx.report("MIG201", node, WIDENS)


def _given(node: ast.Call) -> list[ast.expr]:
    receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [*receiver, *node.args, *(k.value for k in node.keywords)]


def _computed(e: Emitter, node: ast.BinOp, own: ast.expr, other: ast.expr, turned: bool) -> Piece:
    sign, level = OPERATORS[type(node.op)]
    first, second = (other, own) if turned else (own, other)
    pieces = e.piece(first).at(level + (level == POWER)), e.piece(second).at(level + (level != POWER))
    return kept(Piece(f"{pieces[0]} {sign} {pieces[1]}", level), e.piece(own).at(ATOM))


def _is_weak(ctx: Context, node: ast.AST | None) -> bool:
    """Whether an expression is made of Python's numbers alone, `torch.tensor(2.5)`: JAX does not widen by these either."""
    match node:
        case ast.Call():
            row = ctx.resolve(node.func)
            return isinstance(row, Row) and row.torch in MAKERS and not any(k.arg == "dtype" for k in node.keywords)
        case ast.Name():
            bound = ctx.file.names.lookup(node)
            return len(bound) == 1 and bound[0].kind == "assign" and _is_weak(ctx, bound[0].value)
        case ast.BinOp():
            return all(ctx.kind(side).is_number or _is_weak(ctx, side) for side in (node.left, node.right))
    return isinstance(node, ast.UnaryOp) and _is_weak(ctx, node.operand)


def is_scalar(ctx: Context, node: ast.AST | None) -> bool:
    """Whether an expression certainly is a tensor without axes."""
    match node:
        case ast.Call():
            return _call(ctx, node)
        case ast.UnaryOp():
            return is_scalar(ctx, node.operand)
        case ast.BinOp():
            return all(is_scalar(ctx, side) or ctx.kind(side).is_number for side in (node.left, node.right)) and ctx.kind(node).is_tensor
        case ast.Name():
            bound = ctx.file.names.lookup(node)
            return len(bound) == 1 and bound[0].kind == "assign" and bound[0].node is not node and is_scalar(ctx, bound[0].value)
        case ast.Attribute() if ctx.is_self(node.value):
            owner = ctx.class_of(node)
            return owner is not None and owner.file is ctx.file and _attribute(ctx, owner, node.attr)
    return False


def _attribute(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """Whether all that is assigned to an attribute are parameters or buffers without axes."""
    found = owner.assigned(name)
    held = [a.target.args[1] if isinstance(a.target, ast.Call) and len(a.target.args) > 1 else a.value for a in found]
    held = [h.args[0] if isinstance(h, ast.Call) and ctx.dotted(h.func).endswith("Parameter") and h.args else h for h in held]
    return bool(held) and all(is_scalar(ctx, h) for h in held)


def _call(ctx: Context, node: ast.Call) -> bool:
    found = ctx.resolve(node.func)
    row = found if isinstance(found, Row) else None
    given: list[ast.expr] = list(node.args)
    if row is None and isinstance(node.func, ast.Attribute) and (ctx.kind(node.func.value).is_tensor or ctx.kind(node.func.value).is_unknown):
        if node.func.attr in ONE_BY_ONE:
            return is_scalar(ctx, node.func.value)
        row, given = ctx.unit.table.by_method.get(node.func.attr), [node.func.value, *node.args]
    if row is None or row.kind != "function":
        return False
    if row.torch in MAKERS:
        return bool(node.args) and ctx.kind(node.args[-1]).is_number
    if row.torch in ALL_AXES:
        return len(given) == 1 and all(k.arg == "dtype" for k in node.keywords)
    return row.torch.rpartition(".")[2] in ONE_BY_ONE and len(node.args) == 1 and is_scalar(ctx, node.args[0])


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    h = x.half()\n    h += x\n    h.mul_(x)\n    h *= 2\n    return h\n", jax="    h = (h + x).astype(h.dtype)\n    h = (h * x).astype(h.dtype)\n    h *= 2\n"),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.scale = nn.Parameter(torch.tensor(2.0))\n\n"
        "    def forward(self, x):\n        h = x.to(torch.bfloat16)\n        return h * self.scale, 1 - h / x.max(), h * x\n",
        flax="        return (h * self.scale).astype(h.dtype), 1 - (h / jnp.max(x)).astype(h.dtype), h * x\n",
    ),
    Example("def f(x: torch.Tensor):\n    return x.half() * x.sum()\n", jax="    return x.astype(jnp.float16) * jnp.sum(x)\n", reported="MIG201"),
    Example("def f(x: torch.Tensor):\n    h, a = x.half(), torch.tensor(2.5)\n    return h * -a, h / (a + 1)\n", jax="    return h * -a, h / (a + 1)\n", why="Python's numbers"),
    Example("def f(i: torch.Tensor):\n    n = torch.zeros(3, dtype=torch.int16)\n    n += i.long()\n    return n + i.sum().long()\n", jax="    n = (n + i.astype(jnp.int32)).astype(n.dtype)\n    return (n + jnp.sum(i).astype(jnp.int32)).astype(n.dtype)\n"),
    Example("def f(x: torch.Tensor):\n    h = x.half()\n    y = h + h.float().mean()\n    return h * 2.5 + h.abs() * h, y\n", jax="    y = (h + jnp.mean(h.astype(jnp.float32))).astype(h.dtype)\n    return h * 2.5 + absolute(h) * h, y\n"),
    Example("def f(x: torch.Tensor):\n    h = x.half()\n    return torch.mul(h, x.sum())\n", jax="    return h * jnp.sum(x)\n", reported="MIG201"),
    Example("def f(x: torch.Tensor):\n    h = x.half()\n    return h.clamp(min=x.sum())\n", jax="    return clamp(h, min=jnp.sum(x))\n", reported="MIG201"),
    Example("def f(x, y: torch.Tensor):\n    h = y.half()\n    return h * x.mean(), torch.mul(h, y), torch.mul(h, 2.5)\n", jax="    return (h * jnp.mean(x)).astype(h.dtype), h * y, h * 2.5\n"),
    Example("def f(h, x):\n    h += x\n    return h\n", why="how many bits h has is not known"),
    Example("def f(h, scale: float):\n    h *= scale\n    return h * scale\n", why="numbers do not widen"),
)
