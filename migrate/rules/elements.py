"""Write elements back: what a loop does in place to the elements of a list or mapping goes back to where it came from.

Converted: `for s, p in zip(self.shadow, xs): s.mul_(0.9)`, loops over a list, `enumerate`, `items()`, `values()`.
Unchanged: loops over tuples and over what has no name, a name that is given something else on the way.
"""
import ast
from dataclasses import dataclass

from migrate.context import Context
from migrate.edits import Emitter, Piece
from migrate.rules.example import Example

RULE = "elements"


@dataclass(frozen=True)
class Place:
    """What a loop takes its elements of, and the name of the index or key: `index` where the loop has one, "" where it needs one."""

    loop: ast.For
    container: ast.expr
    index: str
    keyed: bool


def place_of(ctx: Context, node: ast.AST, name: str) -> Place | None:
    """Where the loop around a node takes the element from that it calls `name`; None where it can't be written to."""
    loop, function = ctx.source.enclosing(node, ast.For, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda), ctx.function_of(node)
    while isinstance(loop, ast.For) and not any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(loop.target)):
        loop = ctx.source.enclosing(loop, ast.For, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    if not isinstance(loop, ast.For) or ctx.function_of(loop) is not function or loop.orelse:
        return None
    found = _named(loop, loop.target, loop.iter, name)
    if found is None or not isinstance(found.container, (ast.Name, ast.Attribute)) or _changes(ctx, loop, name, found):
        return None
    return found if ctx.kind(found.container).tag == ("dict" if found.keyed else "list") else None


def _named(loop: ast.For, target: ast.expr, given: ast.expr, name: str, index: str = "") -> Place | None:
    """By the form of a loop."""
    whole = isinstance(target, ast.Name) and target.id == name
    match given, target:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]), ast.Tuple(elts=[ast.Name(id=i), held]) if not index:
            return _named(loop, held, inner, name, i)
        case ast.Call(func=ast.Name(id="zip"), args=parts), ast.Tuple(elts=targets) if len(parts) == len(targets) and not any(isinstance(p, ast.Starred) for p in parts):
            return next((Place(loop, p, index, False) for p, t in zip(parts, targets, strict=True) if isinstance(t, ast.Name) and t.id == name), None)
        case ast.Call(func=ast.Attribute(attr="items", value=held), args=[]), ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=value)]) if value == name and not index:
            return Place(loop, held, key, True)
        case ast.Call(func=ast.Attribute(attr="values", value=held), args=[]), _ if whole and not index:
            return Place(loop, held, "", True)
        case (ast.Name() | ast.Attribute()), _ if whole:
            return Place(loop, given, index, False)
    return None


def _changes(ctx: Context, loop: ast.For, name: str, found: Place) -> bool:
    """Whether the element's name, the index or the container gets another value in the loop."""
    container = ast.unparse(found.container)
    for n in (m for s in loop.body for m in ast.walk(s)):
        stored = isinstance(getattr(n, "ctx", None), ast.Store)
        if isinstance(n, ast.Name) and stored and n.id in (name, found.index) and not isinstance(ctx.source.parent(n), ast.AugAssign):
            return True
        if stored and isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == container:
            return True
    return False


def written_back(ctx: Context, node: ast.AST, place: Place, name: str) -> str:
    """The statement that puts the element back; plans an index for the loop where it has none."""
    indices: dict[ast.For, str] = ctx.shared.setdefault(RULE, {})
    index = place.index or indices.get(place.loop, "")
    if not index:
        index = indices[place.loop] = _free(ctx, place)
        _number(ctx, place, index)
    return f"{ctx.source.segment(place.container)}[{index}] = {name}"


def _free(ctx: Context, place: Place) -> str:
    """A name for an index or key that the function does not have."""
    around = ctx.source.enclosing(place.loop, ast.FunctionDef, ast.AsyncFunctionDef) or ctx.source.tree
    taken = {n.id for n in ast.walk(around) if isinstance(n, ast.Name)} | {n.arg for n in ast.walk(around) if isinstance(n, ast.arg)}
    taken |= {name for loop, name in ctx.shared[RULE].items() if any(n is loop for n in ast.walk(around))}
    return next((n for n in (("key", "name") if place.keyed else ("i", "j", "k")) if n not in taken), "") or ctx.new_name("place")


def _number(ctx: Context, place: Place, index: str) -> None:
    target, given, container = place.loop.target, place.loop.iter, place.container
    ctx.edit(target, lambda e: Piece(f"{index}, ({ctx.source.segment(target).strip('()')})" if isinstance(target, ast.Tuple) else f"{index}, {ctx.source.segment(target)}"), RULE, why="an element is written to")
    if place.keyed:
        ctx.plan.nodes.pop(given, None)
        ctx.edit(given, lambda e: Piece(f"{e.piece(container).text}.items()"), RULE, why="an element is written to")
        return
    inner = ctx.plan.nodes.pop(given, None)

    def build(e: Emitter) -> Piece:
        return Piece(f"enumerate({Piece.of(inner.build(e)).text if inner is not None else e.original(given).text})")

    ctx.edit(given, build, RULE, why="an element is written to")


EXAMPLES = (
    Example("def f(xs: list[torch.Tensor]):\n    for x in xs:\n        x.mul_(2)\n    return xs\n", jax="    for i, x in enumerate(xs):\n        x = x * 2\n        xs[i] = x\n    return xs\n"),
    Example(
        "class Slow:\n    def __init__(self, net: nn.Module):\n        self.held = [p.clone() for p in net.parameters()]\n\n    def update(self, net: nn.Module):\n"
        "        for s, p in zip(self.held, net.parameters()):\n            s.mul_(0.5)\n            s.add_(p)\n",
        "        for i, (s, p) in enumerate(zip(self.held, parameters(net))):\n            s = s * 0.5\n            self.held[i] = s\n            s = s + p\n            self.held[i] = s\n",
        "        for i, (s, p) in enumerate(zip(self.held, parameters(net))):\n",
    ),
    Example("def f(x: torch.Tensor):\n    parts = {'a': x + 1}\n    for name, p in parts.items():\n        p.add_(1)\n    return parts\n", jax="        p = p + 1\n        parts[name] = p\n"),
    Example("def f(x: torch.Tensor):\n    parts = {'a': x + 1}\n    for p in parts.values():\n        p.add_(1)\n    return parts\n", jax="    for key, p in parts.items():\n        p = p + 1\n        parts[key] = p\n"),
    Example("def f(x: torch.Tensor):\n    parts = [x + 1, x + 2]\n    for n, p in enumerate(parts):\n        p[0] = n\n    return parts\n", jax="        p = p.at[0].set(n)\n        parts[n] = p\n", why="the loop's own index"),
    Example("def f(x: torch.Tensor):\n    parts = (x + 1, x + 2)\n    for p in parts:\n        p.add_(1)\n    return parts\n", refused="MIG303", why="a tuple can't be written to"),
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    parts = [y, y]\n    for p in parts:\n        p.add_(1)\n    return parts\n", refused="MIG303", why="one tensor is two elements"),
    Example("def f(names: list[str]):\n    for n in names:\n        n += 'a'\n    return names\n", why="no tensors"),
    Example("def f(parts):\n    total = 0\n    for p in parts:\n        total = total + p\n    return total\n", why="nothing is written to"),
)
