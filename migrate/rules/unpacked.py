"""Operators that are called with `**` arguments: which of them are given shows at run time only.

Converted: `torch.stft(x, **self.stft_kwargs, return_complex=True)`, `F.interpolate(x, **options)`, `torch.cat(parts, **options)`.
Unchanged: a call of a local function with `**` arguments; mappings that only say where tensors live go (see operators).
Refused: a function that has no one form for whatever may be given.
"""
import ast

from migrate.calls import Bound, Filler, Refusal, bind, choose, template_names
from migrate.context import Context
from migrate.edits import LAMBDA, Emitter, Piece
from migrate.rules import calling
from migrate.rules.example import Example
from migrate.rules.operators import note, only_placement
from migrate.tables import Condition, Row, Variant, holes

RULE = "unpacked"


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`f(x, **options)` of an operator."""
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
    if isinstance(root, ast.Call) and isinstance(root.func, ast.Name) and all(isinstance(a, ast.Name) and a.id == n for a, n in zip(root.args, names, strict=False)):
        if all(isinstance(k.value, ast.Name) and k.value.id == k.arg for k in root.keywords):
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
    Example("def f(x, options):\n    return print(x, **options)\n"),
    Example("def g(x, n=1):\n    return x\n\n\nprint(g(3, **{'n': 2}))\n"),
    Example("def f(x, options):\n    return torch.stft(x, **options)\n", refused="MIG305"),
)
