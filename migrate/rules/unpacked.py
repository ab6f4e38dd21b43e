"""Operators that are called with `*` or `**` arguments: which of them are given shows at run time only.

Converted: `x.transpose(*dims)`, `torch.stft(x, **self.stft_kwargs, return_complex=True)`, `F.interpolate(x, **options)`, `torch.cat(parts, **options)`.
Unchanged: a call of a local function with `**` arguments; mappings that only say where tensors live go (see operators).
Refused: a function that has no one form for whatever may be given.
"""
import ast
from dataclasses import dataclass

from migrate.calls import Bound, Filler, Refusal, bind, choose, template_names
from migrate.context import Context
from migrate.edits import BITOR, LAMBDA, Emitter, Piece
from migrate.rules import calling
from migrate.rules.example import Example
from migrate.rules.operators import is_tensor_method, note, only_placement
from migrate.tables import Condition, Row, Variant, holes

RULE = "unpacked"


def visit_starred(ctx: Context, node: ast.Call) -> None:
    """`x.transpose(*dims)`: the sequence gives the rest of the arguments, which the target takes in the same order."""
    if ctx.owned(node) or not node.args or node.keywords or not isinstance(star := node.args[-1], ast.Starred) or any(isinstance(a, ast.Starred) for a in node.args[:-1]):
        return
    row, receiver = ctx.resolve(node.func), None
    if not isinstance(row, Row) and isinstance(node.func, ast.Attribute) and is_tensor_method(ctx, node.func, ctx.kind(node.func.value), node):
        row, receiver = ctx.unit.table.by_method.get(node.func.attr), node.func.value
    if not isinstance(row, Row) or row.kind != "function" or any(p.kind == "variadic" for p in row.parameters):
        return
    plain = [*([receiver] if receiver is not None else []), *node.args[:-1]]
    positional = [p.name for p in row.parameters if p.kind == "positional"]
    rest = positional[len(plain) :]
    bound = Bound(row, dict(zip(positional, plain, strict=False)), receiver)
    for variant in row.for_target(ctx.target.name):
        root = variant.template if not variant.reason and not variant.when and not variant.cast else None
        if isinstance(root, ast.Call) and rest and [a.id if isinstance(a, ast.Name) else "" for a in root.args[-len(rest) :]] == rest:
            bound.arguments[rest[0]] = star.value
            text = ast.unparse(ast.Call(root.func, [*root.args[: -len(rest)], ast.Name(rest[0])], root.keywords))
            ctx.edit(node, _Star(text, variant, bound, ctx.name, ctx.kind, rest=rest[0]).fill, RULE, why=row.torch)
            return


@dataclass(eq=False)
class _Star(Filler):
    """Fills a template whose last positional hole is a sequence of arguments."""

    rest: str = ""

    def _hole(self, name: str, emitter: Emitter) -> Piece:
        made = super()._hole(name, emitter)
        return Piece(f"*{made.at(BITOR)}") if name == self.rest else made


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`f(x, **options)` of an operator."""
    visit_starred(ctx, node)
    _general(ctx, node)
    if ctx.owned(node) or any(isinstance(a, ast.Starred) for a in node.args) or not any(k.arg is None and not only_placement(ctx, k.value) for k in node.keywords):
        return
    row = ctx.resolve(node.func)
    if not isinstance(row, Row) or row.kind != "function":
        return
    found = _form(ctx, node, row)
    if found is None:
        return  # the operators' rule says so
    bound, variant, gone = found
    note(ctx, node, row, variant)
    for k in gone:
        ctx.removed.update(ast.walk(k))
    ctx.removed.update(ast.walk(node.func))
    ctx.edit(node, lambda e: _text(ctx, e, node, bound, variant, gone), RULE, why=row.torch)


def _general(ctx: Context, node: ast.Call) -> None:
    """`checkpoint(f, *args, **options)`: the support function that has PyTorch's parameters takes whatever is given."""
    row = ctx.resolve(node.func)
    unknown = [k for k in node.keywords if k.arg is None and not only_placement(ctx, k.value)]
    if ctx.owned(node) or not unknown or not isinstance(row, Row) or row.kind != "function" or row.value not in ctx.support:
        return
    ctx.removed.update(ast.walk(node.func))
    ctx.edit(node, lambda e: calling.inplace(ctx, e, node, func=ctx.name(row.value)), RULE, why=row.torch)


def _form(ctx: Context, node: ast.Call, row: Row) -> tuple[Bound, Variant, list[ast.keyword]] | None:
    """The variant that holds whatever the mapping gives, and the keywords that it settles."""
    plain = ast.Call(node.func, node.args, [k for k in node.keywords if k.arg is not None])
    bound = bind(row, plain, None, ctx.kind, complete=False)
    if isinstance(bound, Refusal) or any(p.kind == "variadic" for p in row.parameters):
        return None
    variants = row.for_target(ctx.target.name)
    if any(not _settled(c, bound) for v in variants for c in v.when):
        return None  # which form it is may be in the mapping
    for variant in variants:
        if variant.reason or variant.cast or variant.pin or "rngs" in template_names(variant.to):
            continue
        if isinstance(chosen := choose(row, bound, ctx.target.name, ctx.kind), Refusal) or chosen is not variant:
            continue
        kept = holes(variant.to, {p.name: p for p in row.parameters})
        return bound, variant, [k for k in plain.keywords if k.arg not in kept]
    return None


def _settled(c: Condition, bound: Bound) -> bool:
    return c.parameter in bound.arguments


def _text(ctx: Context, e: Emitter, node: ast.Call, bound: Bound, variant: Variant, gone: list[ast.keyword]) -> Piece:
    drop = [*gone, *(k for k in node.keywords if k.arg is None and only_placement(ctx, k.value))]
    root, names = variant.template, [p.name for p in bound.row.parameters]
    if isinstance(root, ast.Call) and isinstance(root.func, ast.Name) and all(isinstance(a, ast.Name) and a.id == n for a, n in zip(root.args, names, strict=False)) and all(
        isinstance(k.value, ast.Name) and k.value.id == k.arg for k in root.keywords
    ):
        return calling.inplace(ctx, e, node, func=ctx.name(root.func.id), drop=drop)
    kept = holes(variant.to, {p.name: p for p in bound.row.parameters})
    parameters = ", ".join(p.name if p.default is None else f"{p.name}={p.default}" for p in bound.row.parameters if p.name in kept)
    empty = Bound(bound.row, {p.name: ast.Name(p.name, ast.Load()) for p in bound.row.parameters if p.name in kept})
    body = _Names(variant.to, variant, empty, ctx.name, ctx.kind).fill(e).at(LAMBDA)
    return calling.inplace(ctx, e, node, func=f"(lambda {parameters}: {body})", drop=drop)


class _Names(Filler):
    """Fills a template with the parameters' own names."""

    def _hole(self, name: str, emitter: Emitter) -> Piece:
        return Piece(name)


EXAMPLES = (
    Example("def f(x, options, w):\n    return torch.stft(x, **options, window=w, return_complex=True)\n", jax="    return stft(x, **options, window=w)\n"),
    Example("def f(x, options):\n    return torch.sigmoid(x, **options), torch.tril(x, **options)\n", jax="    return (lambda input: jax.nn.sigmoid(input))(x, **options), "),
    Example("def f(x: torch.Tensor, dims):\n    return x.transpose(*dims), torch.transpose(x, *dims), torch.transpose(x, 0, *dims)\n", jax="    return x.swapaxes(*dims), x.swapaxes(*dims), x.swapaxes(0, *dims)\n"),
    Example("def f(x: torch.Tensor, dims):\n    return torch.sum(x, *dims)\n", refused="MIG305", why="the target's order is another"),
    Example("def f(x, options):\n    return print(x, **options)\n"),
    Example("def g(x, n=1):\n    return x\n\n\nprint(g(3, **{'n': 2}))\n"),
    Example("def f(x, options):\n    return torch.stft(x, **options)\n", refused="MIG305"),
    Example(
        "from torch.utils.checkpoint import checkpoint\n\n\ndef f(function, *args, **options):\n    options.setdefault('use_reentrant', False)\n    return checkpoint(function, *args, **options)\n",
        jax="    return checkpoint(function, *args, **options)\n", why="options of both may be in the mapping",
    ),
)
