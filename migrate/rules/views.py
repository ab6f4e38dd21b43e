"""Turn views round: what the base becomes when a view of it gets a new value.

Converted: `x[0].add_(1)`, `x.view(-1)[3] = 7`, `x.t()[0] = 1`, `x.select(1, 0).zero_()`.
Unchanged: a view that is only read.
Refused: `x.expand(2, 3)`, `x.unfold(0, 2, 1)` and other views that name an element twice or leave gaps.
"""
import ast
from collections.abc import Callable

from migrate.context import Context
from migrate.edits import LAMBDA, Emitter, Piece
from migrate.rules.example import Example

Turn = Callable[[Emitter, Piece, Piece], Piece]  # (base, new value of the view) -> new value of the base
RESHAPES = frozenset(["view", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "unflatten", "view_as", "reshape_as"])
SAME = frozenset(["detach", "contiguous", "data", "requires_grad_"])
SWAPS = frozenset(["transpose", "swapaxes", "swapdims"])


def base(node: ast.expr) -> ast.expr | None:
    """What a view is taken of; None of what is no view."""
    match node:
        case ast.Subscript():
            return node.value
        case ast.Attribute() if node.attr in ("T", "mT", "data"):
            return node.value
        case ast.Call(func=ast.Attribute() as f) if f.attr in RESHAPES | SAME | SWAPS | {"t", "permute", "select", "narrow"}:
            return f.value
    return None


def inverse(ctx: Context, node: ast.expr) -> Turn | None:
    """How the base of a view gets the view's new value; None where that is not known."""
    match node:
        case ast.Subscript():
            return lambda e, old, new: Piece(f"{old.at(17)}.at[{index(e, node)}].set({new.at(LAMBDA)})")
        case ast.Attribute(attr="T" | "mT"):
            return lambda e, old, new: Piece(f"{new.at(17)}.{node.attr}")
        case ast.Attribute(attr="data"):
            return lambda e, old, new: new
        case ast.Call(func=ast.Attribute() as f) if ctx.resolve(f) is None and not node.keywords:
            return _method(ctx, node, f.attr)
    return None


def _method(ctx: Context, node: ast.Call, name: str) -> Turn | None:
    args = node.args
    if name in SAME:
        return lambda e, old, new: new
    if name in RESHAPES:
        if any(ctx.kind(a).tag == "dtype" for a in args):
            return None
        return lambda e, old, new: Piece(f"{new.at(17)}.reshape({old.at(17)}.shape)")
    if name == "t" and not args:
        return lambda e, old, new: Piece(f"{new.at(17)}.T")
    if name in SWAPS and len(args) == 2:
        return lambda e, old, new: Piece(f"{new.at(17)}.swapaxes({e.piece(args[0]).at(LAMBDA)}, {e.piece(args[1]).at(LAMBDA)})")
    if name == "permute":
        return _permuted(args)
    if name in ("select", "narrow") and len(args) == 2 + (name == "narrow") and isinstance(args[0], ast.Constant) and isinstance(args[0].value, int) and args[0].value >= 0:
        lead = ":, " * args[0].value
        if name == "select":
            return lambda e, old, new: Piece(f"{old.at(17)}.at[{lead}{e.piece(args[1]).at(LAMBDA)}].set({new.at(LAMBDA)})")
        if all(isinstance(a, ast.Constant) and isinstance(a.value, int) and a.value >= 0 for a in args[1:]):
            start, length = (a.value for a in args[1:])  # type: ignore[attr-defined]
            return lambda e, old, new: Piece(f"{old.at(17)}.at[{lead}{start}:{start + length}].set({new.at(LAMBDA)})")
    return None


def _permuted(args: list[ast.expr]) -> Turn | None:
    parts = args[0].elts if len(args) == 1 and isinstance(args[0], (ast.Tuple, ast.List)) else args
    order = [a.value for a in parts if isinstance(a, ast.Constant) and isinstance(a.value, int)]
    if sorted(order) != list(range(len(parts))):
        return None
    back = ", ".join(str(order.index(i)) for i in range(len(order)))
    return lambda e, old, new: Piece(f"{new.at(17)}.transpose({back})")


def index(e: Emitter, node: ast.Subscript) -> str:
    """The text of an index."""
    s = node.slice
    return e.piece(s).text if s in e.plan.nodes else e.between(*e.source.span(s), s)


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    y.view(-1)[3] = 7\n    return y\n", jax="y = y.reshape(-1).at[3].set(7).reshape(y.shape)"),
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    y.t()[0] = 1\n    return y\n", jax="y = y.T.at[0].set(1).T"),
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    y[0][1] = 2\n    return y\n", jax="y = y.at[0].set(y[0].at[1].set(2))"),
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    y.permute(1, 2, 0)[0] += 1\n    return y\n", "y = y.transpose(1, 2, 0).at[0].add(1).transpose(2, 0, 1)"),
    Example("def f(x):\n    return x[0] + x[1:] * x.shape[0]\n"),
    Example("def f(rows: list):\n    rows[0][1] = 2\n    return rows\n"),
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    y.diagonal().fill_(0)\n    return y\n", refused="MIG303"),
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    (lambda: y.add_(1))()\n    return y\n", refused="MIG303", why="a lambda can't bind the name"),
)
