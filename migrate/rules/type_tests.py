"""Tests of a layer's exact class name both classes that it may have here: the target's own, and the support class of the same name.

Converted: `type(m) == nn.Linear`, `type(m) in {nn.Linear, nn.Conv2d}`, `isinstance(m, KINDS)` and `type(m) in KINDS` of a tuple that nothing else reads.
Unchanged: `type(x) is dict`, a tuple of classes that layers are made of.
"""
import ast

from migrate.context import Context
from migrate.edits import AND, ATOM, NOT, OR, Emitter, Piece
from migrate.infer.facts import of_type
from migrate.rules.example import Example
from migrate.rules.layers import native_class, qualified
from migrate.tables import Row

RULE = "type tests"
SAME = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)
TENSORS = ("torch.Tensor", "torch.tensor.Tensor")


def visit_compare(ctx: Context, node: ast.Compare) -> None:
    """`type(m) == nn.Linear`."""
    if len(node.ops) != 1 or not of_type(node.left) or ctx.owned(node):
        return
    right = node.comparators[0]
    if _tensor(ctx, node, right):
        return
    if isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        for e in right.elts:
            if len(names := _names(ctx, e)) == 2:
                ctx.edit(e, lambda _, names=names: Piece(", ".join(qualified(ctx, n) for n in names), ATOM), RULE)  # type: ignore[misc]
        return
    names = _names(ctx, right)
    if len(names) == 2 and isinstance(node.ops[0], SAME):
        sign = "in" if isinstance(node.ops[0], (ast.Eq, ast.Is)) else "not in"
        ctx.removed.update(ast.walk(right))
        ctx.edit(node, lambda e: Piece(f"{e.piece(node.left).text} {sign} ({', '.join(qualified(ctx, n) for n in names)})", 5), RULE)


def _tensor(ctx: Context, node: ast.Compare, right: ast.expr) -> bool:
    """`type(x) == torch.Tensor`, `type(x) in (list, torch.Tensor)`: arrays and tracers are of classes of JAX's own."""
    several = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) and isinstance(node.ops[0], (ast.In, ast.NotIn)) else None
    found = [n for n in several or [right] if ctx.dotted(n) in TENSORS]
    if not found or several is None and not isinstance(node.ops[0], SAME):
        return False
    tested = node.left.args[0] if isinstance(node.left, ast.Call) else node.left.value if isinstance(node.left, ast.Attribute) else node.left
    others = [n for n in several or () if n not in found]
    if others and not isinstance(tested, (ast.Name, ast.Attribute)):
        ctx.refuse("MIG301", node, "arrays are of classes of JAX's own: test with `isinstance`")
        return True
    no = isinstance(node.ops[0], (ast.NotEq, ast.IsNot, ast.NotIn))
    ctx.removed.update(n for f in found for n in ast.walk(f))

    def build(e: Emitter) -> Piece:
        made = f"{'not ' if no else ''}isinstance({e.piece(tested).text}, {ctx.name('jax')}.Array)"
        if not others:
            return Piece(made, NOT if no else ATOM)
        options = ", ".join(e.piece(n).text for n in others) + ("," if len(others) == 1 else "")
        return Piece(f"{e.piece(node.left).text} {'not in' if no else 'in'} ({options}) {'and' if no else 'or'} {made}", AND if no else OR)

    ctx.edit(node, build, RULE, why="a tensor")
    return True


def visit_value(ctx: Context, node: ast.Name | ast.Attribute) -> None:
    """An element of a tuple of classes that is read by tests alone."""
    held = ctx.source.parent(node)
    if isinstance(held, ast.Dict) and node in held.keys and len(names := _names(ctx, node)) == 2:
        ctx.report("MIG202", node, f"a key: layers of this kind may be of the class {names[0]} too")
        return
    made = ctx.source.parent(held) if isinstance(held, (ast.Tuple, ast.List, ast.Set)) else None
    if not isinstance(made, ast.Assign) or len(made.targets) != 1 or not isinstance(name := made.targets[0], ast.Name) or ctx.owned(node) or len(names := _names(ctx, node)) < 2:
        return
    scope = ctx.file.names.scope(name)
    reads = [n for n in ctx.source.nodes if isinstance(n, ast.Name) and n.id == name.id and isinstance(n.ctx, ast.Load) and (at := ctx.file.names.scope(n).lookup(n.id)) is not None and at[0] is scope]
    if reads and all(_is_test(ctx, n) for n in reads):
        ctx.edit(node, lambda e: Piece(", ".join(qualified(ctx, n) for n in names), ATOM), RULE)


def _is_test(ctx: Context, name: ast.Name) -> bool:
    up = ctx.source.parent(name)
    if isinstance(up, ast.Compare):
        return of_type(up.left) and name in up.comparators
    return isinstance(up, ast.Call) and up.args[1:] == [name] and ctx.dotted(up.func) in ("builtins.isinstance", "builtins.issubclass")


def _names(ctx: Context, node: ast.expr) -> list[str]:
    """The classes that a layer may have here."""
    row = ctx.resolve(node)
    if not isinstance(row, Row) or row.kind != "layer":
        return []
    found = [native_class(ctx, row), row.support if row.support in ctx.support else None]
    return list(dict.fromkeys(n for n in found if n))


EXAMPLES = (
    Example(
        "def f(m):\n    if type(m) == nn.Linear or m.__class__ is not nn.Conv2d:\n        return 1\n    return type(m) in {nn.Linear, nn.Conv2d}\n",
        "    if type(m) in (nnx.Linear, Linear) or m.__class__ is not Conv2d:\n        return 1\n    return type(m) in {nnx.Linear, Linear, Conv2d}\n",
        "    if type(m) == Linear or m.__class__ is not Conv2d:\n        return 1\n    return type(m) in {Linear, Conv2d}\n",
    ),
    Example(
        "KINDS = (nn.Linear, nn.Conv2d)\n\n\ndef f(m):\n    return isinstance(m, KINDS)\n", "KINDS = (nnx.Linear, Linear, Conv2d)\n", "KINDS = (Linear, Conv2d)\n", why="a tuple with a name",
    ),
    Example("KINDS = (nn.Linear, nn.Conv2d)\n\n\ndef f(m, i):\n    return isinstance(m, KINDS), KINDS[i]\n", jax="KINDS = (Linear, Conv2d)\n", why="it is read for more"),
    Example("KINDS = {nn.Linear: 1}\n\n\ndef f(m):\n    return KINDS.get(type(m))\n", jax="KINDS = {Linear: 1}\n", why="reported for Flax"),
    Example(
        "def f(x):\n    return type(x) == torch.Tensor and x.dtype == torch.long, type(x) is not torch.Tensor\n", "    return isinstance(x, jax.Array) and x.dtype == jnp.int32, not isinstance(x, jax.Array)\n", "    return isinstance(x, jax.Array) and x.dtype == jnp.int32, not isinstance(x, jax.Array)\n", why="arrays are of classes of JAX's own",
    ),
    Example("def f(x):\n    return type(x) in (list, torch.Tensor), x.__class__ not in {torch.Tensor}\n", jax="    return type(x) in (list,) or isinstance(x, jax.Array), not isinstance(x, jax.Array)\n", why="one of several"),
    Example("def f(x):\n    return type(x[0]()) in (list, torch.Tensor)\n", refused="MIG301"),
    Example("def f(m):\n    return type(m) is dict or type(m) in (list, tuple)\n"),
    Example("class A:\n    pass\n\n\ndef f(m):\n    return type(m) == A\n"),
)
