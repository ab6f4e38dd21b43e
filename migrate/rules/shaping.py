"""Fills a template in the shape of the original call, so that line breaks and comments between its arguments stay."""
import ast

from migrate.calls import Bound, Filler
from migrate.context import Context
from migrate.edits import LAMBDA, Emitter, Piece
from migrate.rules import calling
from migrate.rules.example import Example
from migrate.tables import Variant, template


def named(ctx: Context, node: ast.Call, bound: Bound, text: str) -> str:
    """The template with arguments by name where the user gave them by name and a function of the support code calls them the same."""
    root = template(text)
    if not isinstance(root, ast.Call) or not isinstance(root.func, ast.Name) or (found := ctx.support.definitions.get(root.func.id)) is None or not isinstance(found.node, ast.FunctionDef):
        return text
    by_name = {id(k.value) for k in node.keywords if k.arg is not None}
    own = [a.arg for a in found.node.args.args]
    for i, a in enumerate(root.args):
        if isinstance(a, ast.Name) and id(bound.arguments.get(a.id)) in by_name:
            rest = root.args[i:]
            if not all(isinstance(r, ast.Name) and r.id in bound.arguments and not isinstance(bound.arguments[r.id], list) and own[i + j : i + j + 1] == [r.id] for j, r in enumerate(rest)):
                return text
            for r in reversed(rest):
                text = f"{text[: r.col_offset]}{r.id}={text[r.col_offset :]}"  # type: ignore[attr-defined]
            return text
    return text


def in_shape(ctx: Context, node: ast.Call, bound: Bound, variant: Variant, stream: str, e: Emitter, text: str = "") -> Piece | None:
    """The filled template where it is a call that keeps the original's arguments in their order; None otherwise, and for calls on one line."""
    if "\n" not in ctx.source.segment(node):
        return None
    root = ast.parse(text or variant.to, mode="eval").body
    if not isinstance(root, ast.Call) or any(isinstance(a, ast.Starred) for a in root.args):
        return None
    filler = Filler(text or variant.to, variant, bound, ctx.name, ctx.kind, stream)
    own = {id(k.value): k for k in node.keywords} | {id(a): a for a in node.args}
    texts: dict[ast.AST, str] = {}
    order: list[ast.AST] = []
    first: list[str] = []
    added: list[str] = []
    for a in [*root.args, *root.keywords]:
        value = a.value if isinstance(a, ast.keyword) else a
        name = a.arg if isinstance(a, ast.keyword) else None
        hole = value.id if isinstance(value, ast.Name) and value.id in {p.name for p in bound.row.parameters} else None
        given = bound.arguments.get(hole) if hole else None
        if isinstance(given, list):
            return None
        if hole and given is None and isinstance(a, ast.keyword) and hole not in variant.pin:
            continue
        body = Filler(ast.unparse(value), variant, bound, ctx.name, ctx.kind, stream).fill(e).at(LAMBDA)
        source = own.get(id(given)) if given is not None else None
        if source is None and given is not None and given is bound.receiver and not order:
            first.append(body)
        elif source is None:
            added.append(f"{name}={body}" if name else body)
        elif added and not name:
            return None
        else:
            order.append(source)
            texts[source] = f"{name}={body}" if name else body
    positions = [ctx.source.start(o) for o in order]
    if positions != sorted(positions) or any("=" not in a for a in added):
        return None
    func = Filler(ast.unparse(root.func), variant, bound, ctx.name, ctx.kind, stream).fill(e).at(17)
    drop = [a for a in [*node.args, *node.keywords] if a not in texts]
    if not order:
        return None
    made = calling.inplace(ctx, e, node, func=func, keywords=added, drop=drop, texts=texts)
    if first:
        at = made.text.index("(", len(func)) + 1
        rest = made.text[at:]
        space = rest[: len(rest) - len(rest.lstrip())]
        return Piece(made.text[:at] + space + first[0] + ", " + rest.lstrip())
    return made if filler else None


EXAMPLES = (
    Example(
        "def f():\n    return nn.Linear(\n        in_features=3,  # in\n        out_features=4,\n        bias=False,  # none\n    )\n",
        "    return nnx.Linear(\n        3,  # in\n        4,\n        use_bias=False,  # none\n        rngs=rngs,\n    )\n",
        "    return Linear(\n        in_features=3,  # in\n        out_features=4,\n        bias=False,  # none\n    )\n",
    ),
    Example("def f():\n    return nn.Linear(\n        3,\n        4)\n", "    return nnx.Linear(\n        3,\n        4, rngs=rngs)\n", "    return Linear(\n        3,\n        4)\n"),
    Example(
        "def f(x: torch.Tensor):\n    return torch.sum(\n        # all of it\n        x,\n        dim=1,  # rows\n    ).transpose(\n        0,\n        1,\n    )\n",
        jax="    return jnp.sum(\n        # all of it\n        x,\n        axis=1,  # rows\n    ).swapaxes(\n        0,\n        1,\n    )\n",
    ),
    Example("def f(x):\n    return g(\n        x,  # one\n        2,\n    )\n\n\ndef g(a, b): return a\n"),
    Example("x = max(\n    1,\n    2,  # two\n)\n"),
)
