"""Functions with some arguments given: `partial(torch.cat, dim=-1)`.

Converted: `partial(torch.cat, dim=-1)`, `partial(F.pad, pad=p, value=0.0)`.
Unchanged: a partial of a local function or of a class.
Refused: a function that has no form without its arguments, one that draws random numbers, more arguments for a partial that the target's function may not take.
"""
import ast
from dataclasses import dataclass

from migrate.calls import Bound, Filler, Refusal, choose, is_literal, template_names
from migrate.context import Context
from migrate.edits import LAMBDA, Emitter, Piece
from migrate.infer.kinds import TENSOR, Kind
from migrate.rules import calling, rngs
from migrate.rules.example import Example
from migrate.rules.operators import note
from migrate.tables import Row, Variant

RULE = "partials"


@dataclass(eq=False)
class _Named(Filler):
    """Fills a template with the parameters' own names, or with the literals that are given."""

    literal: bool = False

    def _hole(self, name: str, emitter: Emitter) -> Piece:
        given = self.bound.arguments.get(name)
        if given is None or isinstance(given, list) or self.literal and is_literal(given):
            return super()._hole(name, emitter) if given not in _FREE else Piece(name)
        made, cast = Piece(name), self.variant.cast.get(name)
        return self._cast(cast, given, made) if cast and given not in _FREE else made


_FREE: set[ast.expr] = set()


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`partial(f, ...)` of an operator."""
    if ctx.owned(node) or not node.args or ctx.dotted(node.func) != "functools.partial":
        return
    whole = _with_inner(ctx, node)
    row = ctx.resolve(whole.args[0])
    if not isinstance(row, Row) or row.kind != "function" or ctx.owned(node.args[0]):
        return
    found = _bound(ctx, whole, row) if whole is node or _is_settled(ctx, whole) else None
    if found is None and whole is node and (name := _initialiser(ctx, node, row)):
        ctx.removed.update(ast.walk(node.args[0]))
        keyword = f"rngs={rngs.stream(ctx, node)}"
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, texts={node.args[0]: ctx.name(name)}, keywords=[keyword]), RULE, why=row.torch)
        return
    if found is None and whole is node and row.value in ctx.support and all(k.arg in {p.name for p in row.parameters} for k in node.keywords):
        ctx.removed.update(ast.walk(node.args[0]))
        ctx.edit(node, lambda e: calling.inplace(ctx, e, node, texts={node.args[0]: ctx.name(row.value)}), RULE, why=row.torch)
        return
    if found is None:
        ctx.refuse("MIG301", node, f"{row.torch} with these arguments given is not supported")
        return
    bound, variant, free = found
    note(ctx, node, row, variant)
    ctx.removed.update(ast.walk(node.args[0]))
    ctx.edit(node, lambda e: _text(ctx, e, whole, bound, variant, free), RULE, why=row.torch)


def _initialiser(ctx: Context, node: ast.Call, row: Row) -> str:
    """The support function of `partial(nn.init.normal_, std=0.1)`: it has PyTorch's parameters and takes the stream."""
    variants = list(row.for_target(ctx.target.name))
    call = variants[0].template if len(variants) == 1 else None
    if not row.torch.startswith("torch.nn.init.") or len(node.args) != 1 or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or "rngs" not in template_names(variants[0].to):
        return ""
    same = {k.arg for k in call.keywords if isinstance(k.value, ast.Name) and k.value.id == k.arg}
    return call.func.id if all(k.arg in same - {"axes", "rngs"} for k in node.keywords) else ""


def _with_inner(ctx: Context, node: ast.Call) -> ast.Call:
    """`partial(f, dtype=t)` where `f = partial(F.softmax, dim=d)`: one partial with the arguments of both."""
    inner = node.args[0]
    if isinstance(inner, ast.Name):
        bindings = ctx.file.names.lookup(inner)
        inner = bindings[0].value if len(bindings) == 1 and bindings[0].kind == "assign" and bindings[0].value is not None else inner
    if not isinstance(inner, ast.Call) or not inner.args or ctx.dotted(inner.func) != "functools.partial":
        return node
    inner = _with_inner(ctx, inner)
    again = {k.arg for k in node.keywords}
    return ast.Call(node.func, [*inner.args, *node.args[1:]], [*(k for k in inner.keywords if k.arg not in again), *node.keywords])


def _is_settled(ctx: Context, whole: ast.Call) -> bool:
    """Whether the arguments mean the same wherever they stand: literals, and names that are bound once."""
    given = [*whole.args[1:], *(k.value for k in whole.keywords)]
    return all(is_literal(a) or ctx.dotted(a) or isinstance(a, ast.Name) and len(ctx.file.names.lookup(a)) == 1 for a in given)


def _bound(ctx: Context, node: ast.Call, row: Row) -> tuple[Bound, Variant, list[str]] | None:
    """The arguments that are given, the variant, and the parameters that a caller must give."""
    names = [p.name for p in row.parameters if p.kind == "positional"]
    keywords = {k.arg: k.value for k in node.keywords if k.arg is not None}
    given = dict(zip(names, node.args[1:], strict=False)) | keywords
    known = {p.name for p in row.parameters if p.kind in ("positional", "keyword")}
    if len(node.args) - 1 > len(names) or len(keywords) < len(node.keywords) or set(given) - known or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    free = [p.name for p in row.parameters if p.kind in ("positional", "keyword") and p.name not in given and p.default is None]
    free += [p.name for p in row.parameters if p.kind == "variadic"]
    holes = {name: ast.Name(name, ast.Load()) for name in free}
    _FREE.update(holes.values())
    bound = Bound(row, {**holes, **given})
    variant = choose(row, bound, ctx.target.name, lambda n: _kind(ctx, n))
    if isinstance(variant, Refusal) or "rngs" in template_names(variant.to) or _variadic(row) and not _is_direct(node, variant, free):
        return None
    return bound, variant, free


def _kind(ctx: Context, node: ast.AST | None) -> Kind:
    return TENSOR.but(sure=False) if node in _FREE else ctx.kind(node)


def _text(ctx: Context, e: Emitter, node: ast.Call, bound: Bound, variant: Variant, free: list[str]) -> Piece:
    given = [n for n in bound.arguments if n not in free]
    if (direct := _direct(ctx, e, node, bound, variant, free)) is not None:
        return direct
    assert not _variadic(bound.row)
    literal = all(is_literal(a) for n in given if isinstance(a := bound.arguments[n], ast.expr))
    body = _Named(variant.to, variant, bound, ctx.name, lambda n: _kind(ctx, n), literal=literal).fill(e).at(LAMBDA)
    if literal:
        return Piece(f"lambda {', '.join(free)}: {body}", LAMBDA)
    positional = given[: len(node.args) - 1]
    parameters = ", ".join([*positional, *free, *given[len(positional) :]])
    passed = [e.piece(a).at(LAMBDA) for a in node.args[1:]] + [f"{k.arg}={e.piece(k.value).at(LAMBDA)}" for k in node.keywords]
    return Piece(f"{e.render(node.func)}({', '.join([f'lambda {parameters}: {body}', *passed])})")


def _variadic(row: Row) -> bool:
    return any(p.kind == "variadic" for p in row.parameters)


def _is_direct(node: ast.Call, variant: Variant, free: list[str]) -> bool:
    """Whether the target's function takes what is left in PyTorch's order, and what is given under a name of its own."""
    root = variant.template
    if not isinstance(root, ast.Call) or variant.pin or set(variant.cast.values()) - {"array", "tuple", "splice"}:
        return False
    taken = [a.value.id if isinstance(a, ast.Starred) and isinstance(a.value, ast.Name) else a.id if isinstance(a, ast.Name) else "" for a in root.args]
    renamed = {k.value.id for k in root.keywords if isinstance(k.value, ast.Name)}
    return taken[len(node.args) - 1 :] == free and len(renamed) == len(root.keywords) and {k.arg for k in node.keywords} <= renamed


def _direct(ctx: Context, e: Emitter, node: ast.Call, bound: Bound, variant: Variant, free: list[str]) -> Piece | None:
    """`partial(jnp.concatenate, axis=-1)`."""
    root = variant.template
    if not _is_direct(node, variant, free) or not isinstance(root, ast.Call):
        return None
    renamed = {k.value.id: k.arg for k in root.keywords if isinstance(k.value, ast.Name)}
    filler = Filler("", variant, bound, ctx.name, ctx.kind)
    head, dot, rest = ast.unparse(root.func).partition(".")
    parts = [filler.given(a.id, e) for a in root.args[: len(node.args) - 1] if isinstance(a, ast.Name)]
    parts += [f"{renamed[k.arg]}={filler.given(k.arg, e)}" for k in node.keywords if k.arg]
    return Piece(f"{e.render(node.func)}({', '.join([ctx.name(head) + dot + rest, *parts])})")


EXAMPLES = (
    Example(
        "from torch.utils.checkpoint import checkpoint\n\nsaved = partial(checkpoint, use_reentrant=False)\n\n\ndef f(g, x, on):\n    call = checkpoint if on else saved\n    return call(g, x)\n",
        jax="saved = partial(checkpoint, use_reentrant=False)\n\n\ndef f(g, x, on):\n    call = checkpoint if on else saved\n", why="a support function with PyTorch's parameters",
    ),
    Example("def f(pairs):\n    return map(partial(torch.cat, dim=-1), pairs)\n", jax="    return map(partial(jnp.concatenate, axis=-1), pairs)\n"),
    Example("def f(d):\n    g = partial(torch.sum, dim=d)\n    return g\n", jax="    g = partial(jnp.sum, axis=d)\n"),
    Example("def f(p):\n    return partial(F.one_hot, num_classes=p)\n", jax="    return partial("),
    Example("def f(rule):\n    return partial(torch.einsum, rule)\n", jax="    return partial(jnp.einsum, rule)\n"),
    Example("def f(d):\n    g = partial(F.softmax, dim=d)\n    return g, partial(g, dtype=torch.float32)\n", jax="    return g, partial(lambda input, dim, dtype: ", why="a partial of a partial"),
    Example("def f(x: torch.Tensor):\n    g = partial(torch.sum, dim=x.ndim - 1)\n    return partial(g, keepdim=True)\n", refused="MIG301"),
    Example("init = partial(nn.init.normal_, std=0.1)\n", "init = partial(normal_, std=0.1, rngs=nnx.Rngs(0))\n", "init = partial(normal_, std=0.1, rngs=Rngs())\n", why="an initialiser"),
    Example("def g(x, n):\n    return x\n\n\nmake = partial(g, n=3)\n"),
    Example("class torch:\n    def cat(x, dim):\n        return x\n\n\nmake = partial(torch.cat, dim=3)\n"),
    Example("def f():\n    return partial(torch.multinomial, num_samples=3)\n", refused="MIG301"),
)
