"""Whether a value is a tensor that was there before: under `torch.no_grad()` that keeps its gradient, by whatever name or way it is reached."""
import ast
from collections.abc import Hashable, Iterator

from migrate.context import Context
from migrate.infer.sharing import NOTHING, Ref, Value
from migrate.infer.writes import Walker, Writes
from migrate.rules.regions import Region


class Recorder(Walker):
    """A walk that keeps what each expression may be, and what each name gets."""

    def __init__(self, writes: Writes, region: Region) -> None:
        super().__init__(writes, region.ctx.file, region.function.node)
        self.values: dict[ast.expr, Value] = {}

    def value(self, node: ast.expr) -> Value:
        """What an expression may be."""
        found = super().value(node)
        self.values[node] = self.values.get(node, NOTHING) | found
        return found

    def assign(self, s: ast.stmt, target: ast.expr, value: Value, node: ast.expr | None) -> None:
        """Binds a target."""
        if isinstance(target, ast.Name):
            self.values[target] = self.values.get(target, NOTHING) | value
        super().assign(s, target, value, node)


def values_of(ctx: Context, region: Region, node: ast.expr) -> Value:
    """What an expression, or a name that gets a value, may be."""
    known: dict[ast.AST, Recorder] = ctx.shared.setdefault("identity", {})
    root = region.function.node
    if root not in known:
        known[root] = Recorder(ctx.shared["writes"], region)
        known[root].run()
    return known[root].values.get(node, NOTHING)


def surely_other(ctx: Context, region: Region, node: ast.expr) -> bool:
    """Whether a value surely is something from outside of the region."""
    found = values_of(ctx, region, node)
    return bool(found) and all(_is_outer(region, r) and not r.copied for r in found)


def maybe_other(ctx: Context, region: Region, node: ast.expr) -> bool:
    """Whether a value may be something from outside of the region, as with `x.float()` of what is float already."""
    found = [r for r in values_of(ctx, region, node) if _is_outer(region, r)]
    cast = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return bool(found) and not (ctx.kind(cast).dtype in ("int", "bool") and all(r.copied for r in found))  # integers become floats: a copy


def _is_outer(region: Region, r: Ref) -> bool:
    """Whether a thing was made outside, and is seen by no view that is taken in the region: such a view has no gradient."""
    return not r.constant and not any(n in region.inside for n in _nodes(r.made)) and not any(step in region.inside for step, _ in r.views)


def _nodes(made: Hashable) -> Iterator[ast.AST]:
    if isinstance(made, ast.AST):
        yield made
    elif isinstance(made, tuple):
        for part in made:
            yield from _nodes(part)
