"""Select by numbers before index tensors: PyTorch takes `x[0, :, i]` for `x[0][:, i]`, JAX counts the number as an index tensor and moves its axes to the front.

Converted: `x[0, :, i]`, `x[:, 0, :, i]`, `x[-1, ..., mask]`, writing to such an element (by inplace); also where nothing is known of i, as it is the same for a number or a slice.
Unchanged: numbers beside an index tensor, `x[i, :, 0]`, slices and numbers alone.
Reported: `x[t, :, i]` with an index tensor, where t or x is something that is not known: PyTorch takes a tensor without axes for a number as well.
Refused: a mask of several axes before the number.
"""
import ast
from collections.abc import Sequence
from itertools import combinations

from migrate.context import Context
from migrate.edits import ATOM, Emitter, Piece
from migrate.infer.kinds import Kind
from migrate.rules import widths
from migrate.rules.example import Example
from migrate.tables import Row

RULE = "selecting"


def visit_subscript(ctx: Context, node: ast.Subscript) -> None:
    """`x[0, :, i]` of a tensor."""
    if ctx.owned(node):
        return
    if not moves_axes(ctx, node):
        if _may_move(ctx, node):
            ctx.report("MIG202", node, "PyTorch selects by numbers, and by tensors without axes, before it does by other index tensors; which of these they are could not be told: write `x[t][:, i]` if so")
        return
    if is_refused(ctx, node):
        ctx.refuse("MIG302", node, "a number and a mask with a slice between them: JAX moves the axes; select by the number first, `x[0][:, i]`")
    elif isinstance(node.ctx, ast.Load):
        ctx.edit(node, lambda e: Piece("{}[{}][{}]".format(e.piece(node.value).at(ATOM), *halves(ctx, e, node))), RULE, why="x[0, :, i]")


def is_refused(ctx: Context, node: ast.Subscript) -> bool:
    """Whether a mask, which may stand for several axes, comes before a number."""
    if not moves_axes(ctx, node):
        return False
    assert isinstance(node.slice, ast.Tuple)
    return any(ctx.kind(p).dtype == "bool" for p in node.slice.elts[: _last_number(ctx, node.slice.elts)])


def halves(ctx: Context, e: Emitter, node: ast.Subscript) -> tuple[str, str]:
    """The index that selects by the numbers, and the one of the rest."""
    assert isinstance(node.slice, ast.Tuple)
    parts = node.slice.elts
    return ", ".join(_first(ctx, e, parts)), ", ".join(e.render(p) for p in parts if not _is_number(ctx, p))


def moves_axes(ctx: Context, node: ast.Subscript) -> bool:
    """Whether an index gives other axes in JAX: its tensors are together for PyTorch, after a slice, and apart where numbers count as tensors."""
    held = ctx.kind(node.value)
    if not isinstance(node.slice, ast.Tuple) or not (held.is_tensor or held.is_unknown and isinstance(node.ctx, ast.Store)):
        return False
    parts = node.slice.elts
    numbers = [i for i, p in enumerate(parts) if _is_number(ctx, p)]
    plain = [i for i, p in enumerate(parts) if _is_plain(ctx, p)]
    tensors = [i for i in range(len(parts)) if i not in numbers and i not in plain]
    return any(_may_be_tensor(ctx.kind(parts[i])) for i in tensors) and _differs(numbers, tensors, plain)


def _differs(numbers: Sequence[int], tensors: Sequence[int], plain: Sequence[int]) -> bool:
    """Whether the axes are others, by the places of each."""
    if not numbers or not tensors:
        return False
    together = not any(tensors[0] < i < tensors[-1] for i in plain)
    every = sorted([*numbers, *tensors])
    return together and any(i < tensors[0] for i in plain) and any(every[0] < i < every[-1] for i in plain)


def _may_move(ctx: Context, node: ast.Subscript) -> bool:
    """Whether an index with a tensor in it would give other axes in JAX, if more of it were numbers, or what is indexed a tensor."""
    held = ctx.kind(node.value)
    if not isinstance(node.slice, ast.Tuple) or not (held.is_tensor or held.is_unknown):
        return False
    parts = node.slice.elts
    plain = [i for i, p in enumerate(parts) if _is_plain(ctx, p)]
    numbers = [i for i, p in enumerate(parts) if _is_number(ctx, p)]
    tensors = [i for i in range(len(parts)) if i not in numbers and i not in plain]
    if not all(_may_be_tensor(ctx.kind(parts[i])) for i in tensors) or not any(ctx.kind(parts[i]).is_tensor or ctx.kind(parts[i]).tag == "list" for i in tensors):
        return False
    unsure = [i for i in tensors if ctx.kind(parts[i]).dtype in ("int", "") and not _has_axes(ctx, parts[i])]
    return any(_differs([*numbers, *more], [i for i in tensors if i not in more], plain) for n in range(len(unsure) + 1) for more in combinations(unsure, n))


WITH_AXES = frozenset(f"torch.{n}" for n in ("arange", "range", "linspace", "nonzero", "randperm", "tril_indices", "triu_indices", "combinations"))


def _has_axes(ctx: Context, part: ast.AST | None) -> bool:
    """Whether an index certainly is no tensor without axes."""
    match part:
        case ast.Name():
            bound = ctx.file.names.lookup(part)
            return len(bound) == 1 and bound[0].kind == "assign" and _has_axes(ctx, bound[0].value)
        case ast.Call():
            row = ctx.resolve(part.func)
            return isinstance(row, Row) and (row.torch in WITH_AXES or row.torch in widths.MAKERS and isinstance(part.args[0] if part.args else None, (ast.List, ast.Tuple)))
        case ast.Subscript():
            return isinstance(part.slice, ast.Slice) or isinstance(part.slice, ast.Tuple) and any(isinstance(p, ast.Slice) for p in part.slice.elts)
    return part is not None and ctx.kind(part).tag == "list"


def _may_be_tensor(kind: Kind) -> bool:
    return kind.is_tensor or kind.tag == "list" or kind.is_unknown


def _is_number(ctx: Context, part: ast.expr) -> bool:
    return ctx.kind(part).tag == "int" or ctx.kind(part).is_tensor and ctx.kind(part).dtype == "int" and widths.is_scalar(ctx, part)


def _is_plain(ctx: Context, part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) or isinstance(part, ast.Constant) and part.value in (None, Ellipsis)


def _last_number(ctx: Context, parts: list[ast.expr]) -> int:
    return max(i for i, p in enumerate(parts) if _is_number(ctx, p))


def _first(ctx: Context, e: Emitter, parts: list[ast.expr]) -> list[str]:
    """The index that selects by the numbers alone."""
    last = _last_number(ctx, parts)
    dots = any(isinstance(p, ast.Constant) and p.value is Ellipsis for p in parts[:last])
    made = []
    for p in parts if dots else parts[: last + 1]:
        if isinstance(p, ast.Constant) and p.value is None:
            continue
        made.append(e.render(p) if _is_number(ctx, p) else "..." if isinstance(p, ast.Constant) and p.value is Ellipsis else ":")
    return made


HEAD = "def f(x: torch.Tensor, i: torch.LongTensor):\n"
EXAMPLES = (
    Example(f"{HEAD}    return x[0, :, i]\n", jax="    return x[0][:, i]\n"),
    Example(f"{HEAD}    return x[:, 0, 1:, i] + x[-1, ..., i] + x[:, 2, None, [0, 1]]\n", jax="    return x[:, 0][:, 1:, i] + x[-1][..., i] + x[:, 2][:, None, jnp.asarray([0, 1])]\n"),
    Example(f"{HEAD}    return x[..., i, :, 0]\n", jax="    return x[..., :, :, 0][..., i, :]\n", why="the number comes last"),
    Example(f"{HEAD}    y = x + 1\n    y[0, :, i] = 2\n    return y\n", jax="    y = y.at[0].set(y[0].at[:, i].set(2))\n"),
    Example(f"{HEAD}    y = x + 1\n    y[0, :, i] *= 2\n    return y\n", jax="    y = y.at[0].set(y[0].at[:, i].set(y[0][:, i] * 2))\n"),
    Example("def f(x: torch.Tensor, m: torch.BoolTensor):\n    return x[:, m, :, 0]\n", refused="MIG302"),
    Example("def f(x, i):\n    return x[0, :, i] + x[i, 0]\n", why="what these are is not known"),
    Example("def f(x: torch.Tensor, i):\n    return x[0, :, i]\n", jax="    return x[0][:, i]\n"),
    Example("def f(x: torch.Tensor, i: torch.LongTensor):\n    best = x.sum((1, 2)).argmax()\n    return x[best, :, i]\n", jax="    return x[best][:, i]\n", why="a tensor without axes counts as a number"),
    Example("def f(x, n: int):\n    return x[0, :, n], x[:, n, 1:]\n"),
    Example(f"{HEAD}    return x[i, :, i]\n", jax="    return x[i, :, i]\n", reported="MIG202", why="i may have no axes"),
    Example(f"{HEAD}    n = torch.arange(3)\n    return x[n, :, i] + x[n, :, n[1:]] + x[i, i]\n", jax="    return x[n, :, i] + x[n, :, n[1:]] + x[i, i]\n", why="with axes first, both take them to the front"),
    Example("def f(x, i: torch.LongTensor):\n    return x[0, :, i]\n", jax="    return x[0, :, i]\n", reported="MIG202", why="what x is is not known"),
)
