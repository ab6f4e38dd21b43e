"""Keep gradients out where PyTorch keeps them out: what `torch.no_grad` computes is constant to the gradient.

Converted: `with torch.no_grad(): y = f(x)` with `y` used afterwards, a result of a function under `@torch.no_grad()`.
Unchanged: integers, what nothing uses afterwards, constructors and initialisation, where no gradient flows.
"""
import ast
from collections.abc import Iterator

from migrate.context import Context
from migrate.edits import LAMBDA, Emitter, Piece
from migrate.infer.kinds import Kind
from migrate.source.modules import FunctionInfo

RULE = "gradients"
OFF = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad", "torch.autograd.inference_mode"})


def _is_off(ctx: Context, node: ast.expr) -> bool:
    call = node if isinstance(node, ast.Call) else None
    name = ctx.dotted(call.func if call else node)
    if name == "torch.set_grad_enabled" and call is not None:
        return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value is False
    return name in OFF and not (call is not None and call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False)


def visit_with(ctx: Context, node: ast.With | ast.AsyncWith) -> None:
    """`with torch.no_grad():`."""
    if not any(_is_off(ctx, i.context_expr) for i in node.items):
        return
    function = ctx.function_of(node)
    if function is None or _no_gradient(function):
        return
    _returns(ctx, node.body)
    names = [n for n in _bound(ctx, node.body) if _used_after(function, node, n)]
    if names:
        src = ctx.source
        text = "".join(f"{src.indent(node)}{n} = {ctx.name('jax')}.lax.stop_gradient({n})\n" for n in names)
        ctx.plan.insert(src.line_end(src.end(node.body[-1])), text, RULE)


def visit_function(ctx: Context, f: FunctionInfo) -> None:
    """`@torch.no_grad()`."""
    if any(_is_off(ctx, d) for d in f.node.decorator_list) and not _no_gradient(f):
        _returns(ctx, f.node.body)


def _no_gradient(f: FunctionInfo) -> bool:
    """Constructors and initialisation: their results are no function of an input."""
    return f.makes or f.name == "__init__" or f.name.lstrip("_").startswith(("init", "reset"))


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements without those of functions defined in them."""
    stack: list[ast.AST] = list(body)
    while stack:
        n = stack.pop()
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        yield n
        stack.extend(ast.iter_child_nodes(n))


def _differentiable(kind: Kind) -> bool:
    if kind.tag in ("tuple", "list") and (kind.items or kind.item):
        return all(_differentiable(k) for k in kind.items) if kind.items else _differentiable(kind.element)
    return kind.is_tensor and kind.dtype not in ("int", "bool")


def _returns(ctx: Context, body: list[ast.stmt]) -> None:
    for n in _own(body):
        if isinstance(n, ast.Return) and n.value is not None and _differentiable(ctx.kind(n.value)) and not ctx.owned(n):
            ctx.edit(n, lambda e, n=n: _stopped(ctx, e, n), RULE, why="no_grad")  # type: ignore[misc]


def _stopped(ctx: Context, e: Emitter, n: ast.Return) -> Piece:
    assert n.value is not None
    return Piece(f"return {ctx.name('jax')}.lax.stop_gradient({e.piece(n.value).at(LAMBDA)})")


def _bound(ctx: Context, body: list[ast.stmt]) -> list[str]:
    found: dict[str, None] = {}
    for n in _own(body):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and _differentiable(ctx.kind(n)) and not ctx.kind(n).variable:
            found[n.id] = None
    return sorted(found)


def _used_after(f: FunctionInfo, node: ast.With | ast.AsyncWith, name: str) -> bool:
    end = (node.end_lineno or 0, node.end_col_offset or 0)
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and (n.lineno, n.col_offset) > end for n in ast.walk(f.node))
