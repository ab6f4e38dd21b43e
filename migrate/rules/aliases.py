"""Which other names hold the same tensor, or a view of it, when it is written to.

A write in place shows in every name, attribute and container that shares the tensor. What is used afterwards gets its new value too, or the write is diagnosed.
"""
import ast
from collections.abc import Callable, Hashable

from migrate.context import Context
from migrate.edits import Emitter, Piece
from migrate.infer.liveness import Liveness
from migrate.infer.products import is_procedure, lost
from migrate.infer.quiet import Quiet
from migrate.infer.sharing import Shared
from migrate.infer.writes import Event
from migrate.rules import views
from migrate.rules.elements import place_of, written_back
from migrate.rules.example import Example
from migrate.source.names import FunctionNode

After = Callable[[Emitter], str]


def _root(ctx: Context, node: ast.AST) -> FunctionNode | ast.Module:
    """The function that a node is in, or the module."""
    found = ctx.source.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef)
    return found if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) else ctx.source.tree


def liveness(ctx: Context, node: ast.AST) -> Liveness:
    """The live names of the function around a node."""
    cache: dict[ast.AST, Liveness] = ctx.shared.setdefault("liveness", {})
    root = _root(ctx, node)
    if root not in cache:
        cache[root] = Liveness(root)
    return cache[root]


def events(ctx: Context, node: ast.AST) -> list[Event]:
    """The writes in place that a statement or call makes."""
    root = _root(ctx, node)
    quiet: Quiet = ctx.shared["quiet"]
    return [] if quiet.holds(ctx.file, root) else quiet.writes.walker(ctx.file, root).events.get(node, [])


def all_events(ctx: Context, node: ast.AST) -> dict[ast.AST, list[Event]]:
    """The writes in place of the function around a node, by the statement or call that makes them."""
    quiet: Quiet = ctx.shared["quiet"]
    return quiet.writes.walker(ctx.file, _root(ctx, node)).events


def products(ctx: Context, node: FunctionNode) -> tuple[str, ...]:
    """The parameters that a function is to return, as it has no result but what it writes to them."""
    if not is_procedure(ctx.file, node):
        return ()
    events(ctx, node.body[0])
    return ctx.shared["writes"].walker(ctx.file, node).summary.products  # type: ignore[no-any-return]


def is_lost(ctx: Context, node: ast.AST) -> bool:
    """Whether a write would leave nothing behind, as its function has no result and its caller keeps the old tensor; diagnosed."""
    root = _root(ctx, node)
    if isinstance(root, ast.Module) or not events(ctx, node) or not (name := lost(ctx.shared["writes"].walker(ctx.file, root), node)):
        return False
    ctx.refuse("MIG303", node, f"the function has no result but what it writes to `{name}` through another name")
    return True


def used_later(ctx: Context, node: ast.AST, name: ast.Name) -> bool:
    """Whether a name's value is read after a node before it is bound anew."""
    return _is_live(ctx, node, name.id)


def _is_live(ctx: Context, node: ast.AST, name: str) -> bool:
    statement = ctx.source.statement(node)
    bound = _bound_by(statement) if statement is not node else set()
    return name in _read_after(ctx, node, statement) or name in liveness(ctx, node).after(statement) and name not in bound


def _read_after(ctx: Context, node: ast.AST, statement: ast.stmt) -> set[str]:
    """The names that the rest of a statement reads."""
    if node is statement:
        return set()
    at = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
    head = ast.walk(statement) if not hasattr(statement, "body") else (n for part in _heads(statement) for n in ast.walk(part))
    return {n.id for n in head if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and (n.lineno, n.col_offset) >= at}


def _heads(statement: ast.stmt) -> list[ast.AST]:
    return [c for c in ast.iter_child_nodes(statement) if not isinstance(c, (ast.stmt, ast.ExceptHandler, ast.match_case))]


def _bound_by(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def still_held(ctx: Context, node: ast.Call, name: str) -> bool:
    """Whether an expression around a write has read the tensor already and goes on using it: `y + y.add_(1)`."""
    at = node.lineno, node.col_offset
    around = set()
    up = ctx.source.parent(node)
    while isinstance(up, (ast.expr, ast.keyword)):
        around.add(up)
        up = ctx.source.parent(up)
    inside = set(ast.walk(node))
    for n in ast.walk(ctx.source.statement(node)):
        if isinstance(n, ast.Name) and n.id == name and n not in inside and (n.lineno, n.col_offset) < at:
            top: ast.AST = n
            while isinstance(up := ctx.source.parent(top), (ast.Attribute, ast.Call)) and up not in around and (isinstance(up, ast.Call) and up.func is top and events(ctx, up) or isinstance(up, ast.Attribute) and up.attr.endswith("_")):
                top = up
            if ctx.source.parent(top) in around:
                return True
    return False


def others(ctx: Context, node: ast.AST, event: Event, itself: bool = False) -> list[Shared]:
    """The other places that share what an event writes to, and that are used afterwards; the place itself too, where asked for."""
    own = ast.unparse(event.target) if isinstance(event.target, (ast.Name, ast.Attribute, ast.Subscript)) and not itself else ""
    found: dict[str, Shared] = {}
    statement = ctx.source.statement(node)
    bound = {ast.unparse(t) for t in statement.targets if isinstance(t, ast.Attribute)} if isinstance(statement, ast.Assign) and statement is not node else set()
    itself_held = _is_held(ctx, event.target)
    for s in event.shared:
        if itself_held and s.how == "same":
            continue  # the variable that all of them hold is written to
        surer = s.path in found and found[s.path].copied and not s.copied
        if s.path == own or s.at in event.places and not itself or s.path in found and s.how != "same" and not surer or s.path in bound or not _lasts(ctx, node, s):
            continue
        found[s.path] = s
    return list(found.values())


def _is_held(ctx: Context, target: ast.expr) -> bool:
    """Whether a name of a loop is a variable of the target, not its value."""
    from migrate.rules.state import starts

    function = ctx.function_of(target)
    return isinstance(target, ast.Name) and ctx.kind(target).variable == "param" and function is not None and starts(ctx, function)


def _lasts(ctx: Context, node: ast.AST, s: Shared) -> bool:
    """Whether a place is read later, here or by the caller."""
    if s.place != "name" and _is_outer(ctx, node, s.root):
        return True
    return _is_live(ctx, node, s.root)


def _is_outer(ctx: Context, node: ast.AST, name: str) -> bool:
    """Whether a name is a parameter that is bound only once, or none of the function's own."""
    root = _root(ctx, node)
    if isinstance(root, ast.Module):
        return False
    stored = any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(root))
    return not stored


def check(ctx: Context, node: ast.AST, target: ast.expr | None, itself: bool = False) -> list[After]:
    """Statements that give the other holders of a tensor its new value, after a write to `target`; diagnoses what can't be done.

    `itself`: the target can't be assigned to, so that it keeps its old value as well.
    """
    after: list[After] = []
    elements: dict[str, After] = {}
    for event in events(ctx, node):
        if not event.sure and not _has_tensors(ctx, node):
            continue
        found = others(ctx, node, event, itself)
        report_untold(ctx, node, event, found)
        for s in found:
            made = _repair(ctx, node, event, s, target)
            if made is not None:
                after.append(made)
            elif (text := _element(ctx, node, event, s, target)) is not None:
                elements[text] = _said(text)
            else:
                report(ctx, node, event, s)
        _callers(ctx, node, event)
    return [*after, *elements.values()]


def _said(text: str) -> After:
    return lambda e: text


def _element(ctx: Context, node: ast.AST, event: Event, s: Shared, target: ast.expr | None) -> str | None:
    """The statement that puts an element that a loop has changed back into its list or mapping."""
    if event.argument or s.how != "same" or not isinstance(target, ast.Name) or not isinstance(event.target, ast.Name) or target.id != event.target.id:
        return None
    place = place_of(ctx, node, target.id)
    container = ast.unparse(place.container) if place is not None else ""
    if place is None or s.path[: s.path.rfind("[")] != container:
        return None
    if len(event.value) < len({o.path for o in event.shared if o.path[: o.path.rfind("[")] == container}):
        return None  # one tensor is several of its elements
    return written_back(ctx, node, place, target.id)


def _has_tensors(ctx: Context, node: ast.AST) -> bool:
    """Whether the function around a node has to do with tensors at all."""
    return any(ctx.kind(n).is_tensor for n in ast.walk(_root(ctx, node)) if isinstance(n, ast.expr))


def report(ctx: Context, node: ast.AST, event: Event, s: Shared) -> None:
    """Says that another place keeps its old value."""
    target, other = " ".join(ctx.source.segment(event.target).split()), s.path.partition("[*]")[0]
    if target == other:
        said = f"PyTorch changes `{other}` here"
    elif event.key:
        said = f"`{target}` changes `{other}` in PyTorch"
    else:
        said = f"`{target}` and `{other}` share their memory in PyTorch"
    if s.copied:
        said = f"{said}, where nothing had to be copied"
    elif not event.sure:
        said = f"if `{target}` is a tensor, PyTorch changes `{other}` as well"
    ctx.report("MIG202" if s.copied or not event.sure else "MIG303", node, f"{said}; here `{other}` keeps its old value")


def report_untold(ctx: Context, node: ast.AST, event: Event, found: list[Shared]) -> None:
    """Says that what a loop goes over keeps its old values, where nothing tells what its elements are: they may belong to something that lasts."""
    name = event.given if event.argument and event.given is not None else event.target
    while isinstance(name, ast.Subscript) or isinstance(name, ast.Attribute) and name.attr == "data":
        name = name.value
    if found or any(_is_made(ctx, r.made) for r in event.value) or not isinstance(name, ast.Name) or ctx.kind(name).variable or ctx.kind(name).tag not in ("tensor", "unknown"):
        return
    loop = ctx.source.enclosing(node, ast.For, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    while isinstance(loop, ast.For) and not any(isinstance(n, ast.Name) and n.id == name.id for n in ast.walk(loop.target)):
        loop = ctx.source.enclosing(loop, ast.For, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    if isinstance(loop, ast.For) and not isinstance(loop.iter, (ast.List, ast.Tuple)):
        said = " ".join(ctx.source.segment(loop.iter).split())
        ctx.report("MIG202", node, f"PyTorch changes `{name.id}` where it comes from, too: what `{said}` goes over keeps its old values here")


def _is_made(ctx: Context, made: Hashable) -> bool:
    """Whether a tensor is known to be made in the function."""
    made = made[0] if isinstance(made, tuple) else made
    return isinstance(made, ast.AST) and (not isinstance(made, ast.Call) or ctx.kind(made).is_tensor)


def _callers(ctx: Context, node: ast.AST, event: Event) -> None:
    """Says that the caller's tensor is not changed."""
    name = next((r.made[1] for r in event.value if isinstance(r.made, tuple) and r.made[0] == "param" and isinstance(r.made[1], str)), None)
    root = _root(ctx, node)
    if name is not None and event.sure and not event.argument and not (isinstance(root, ast.FunctionDef) and name in products(ctx, root)):
        ctx.report("MIG106", node, f"`{name}` is the caller's tensor, which PyTorch changes as well")


def _repair(ctx: Context, node: ast.AST, event: Event, s: Shared, target: ast.expr | None) -> After | None:
    """What brings another place up to date; None where that is not possible for sure."""
    if not (s.sure and event.sure) or event.argument or target is None or s.place == "deep" or ast.dump(target).replace("Store", "Load") != ast.dump(event.target).replace("Store", "Load"):
        return None
    match s.how:
        case "same":
            return _same(ctx, node, s, target)
        case "base" if s.place == "name" and len(s.steps) == 1 and isinstance(target, ast.Name):
            step, piece = s.steps[0]
            turned = views.inverse(ctx, step) if piece is None and isinstance(step, ast.expr) and _stands(ctx, step, node) else None
            return None if turned is None else lambda e: f"{s.path} = {turned(e, Piece(s.path), Piece(target.id)).text}"
        case "view" if s.place == "name" and len(s.steps) == 1 and isinstance(target, ast.Name):
            step = s.steps[0][0]
            assigned = ctx.source.parent(step)
            if not isinstance(step, ast.expr):
                return None
            held = views.base(step)
            stands = held is not None and ast.unparse(held) == target.id and _stands(ctx, step, node)
            if stands and isinstance(assigned, ast.Assign) and [ast.unparse(t) for t in assigned.targets] == [s.path]:
                return lambda e: f"{s.path} = {e.piece(step).text}"
    return None


def _stands(ctx: Context, step: ast.expr, node: ast.AST) -> bool:
    """Whether what a view is taken by has the same value at a node: it is made of constants and of names that are not bound in between."""
    held = views.base(step)
    inside = set(ast.walk(held)) if held is not None else set()
    own = {step, step.func} if isinstance(step, ast.Call) else {step}
    taken_by = [n for n in ast.walk(step) if n not in inside and n not in own]
    if any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Attribute)) for n in taken_by):
        return False
    names = {n.id for n in taken_by if isinstance(n, ast.Name)}
    stores = [n for n in ast.walk(_root(ctx, step)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in names]
    first, last = ctx.source.statement(step), ctx.source.statement(node)
    if ctx.source.parent(first) is ctx.source.parent(last):
        return not any((first.lineno, first.col_offset) <= (n.lineno, n.col_offset) <= (last.end_lineno, last.end_col_offset) for n in stores)
    return not any((first.lineno, first.col_offset) <= (n.lineno, n.col_offset) for n in stores) and ctx.source.enclosing(step, ast.For, ast.While) is None


def _same(ctx: Context, node: ast.AST, s: Shared, target: ast.expr) -> After | None:
    from migrate.rules.inplace import read

    if s.place in ("name", "element"):
        if s.place == "name" and _is_free(ctx, node, s.root):
            return None
        return lambda e: f"{s.path} = {read(ctx, e, target).text}"
    owner, _dot, name = s.path.partition(".")
    held = ctx.class_of(node)
    if owner != ctx.self_of(node) or "." in name or "[" in name or held is None or name in ctx.target.reserved:
        return None
    kind = ctx.inf.attribute(held, name)
    if kind is None or not (kind.variable and isinstance(target, ast.Name)) and kind.variable:
        return None
    if kind.variable:
        from migrate.rules.state import fill

        return lambda e: fill(ctx, ctx.target.write, v=Piece(s.path), x=read(ctx, e, target)).text
    return lambda e: f"{s.path} = {read(ctx, e, target).text}"


def _is_free(ctx: Context, node: ast.AST, name: str) -> bool:
    """Whether a name belongs to a scope around the function."""
    root = _root(ctx, node)
    return not isinstance(root, ast.Module) and name not in ctx.file.names.scopes[root].bindings


EXAMPLES = (
    Example(
        "class Slow(nn.Module):\n    def __init__(self, net: nn.Module):\n        super().__init__()\n        self.net = net\n\n    def scale(self, w):\n"
        "        for t in [p.data for p in self.net.parameters()]:\n            t.mul_(w)\n",
        jax="            t = t * w\n", reported="MIG202", why="the elements belong to the parameters",
    ),
    Example(
        "def fill_(t: torch.Tensor, s: torch.Tensor):\n    t.copy_(s)\n\n\ndef all_(pairs):\n    for a, b in pairs:\n        fill_(a.data, b.data)\n",
        jax="fill_(a.data, b.data)\n", reported="MIG202", why="what is written to is not known",
    ),
    Example("def f(x: torch.Tensor):\n    total = 0\n    for t in (x + 1, x + 2):\n        t.mul_(2)\n        total = total + t\n    return total\n", jax="        t = t * 2\n        total = total + t\n", why="nothing else holds them"),
    Example(
        "def f(x: torch.Tensor):\n    x = x.clone()\n    y = x[0]\n    y += 1\n    return x * y\n",
        jax="    y += 1\n    x = x.at[0].set(y)\n", why="y is a view of x",
    ),
    Example(
        "def f(x: torch.Tensor):\n    x = x.clone()\n    flat = x.view(-1)\n    x[0] = 5\n    return flat\n",
        jax="    x = x.at[0].set(5)\n    flat = x.reshape(-1)\n", why="the view is taken again",
    ),
    Example(
        "def f(x: torch.Tensor):\n    a = b = x + 1\n    a.mul_(2)\n    return a + b\n", jax="    a = a * 2\n    b = a\n", why="one tensor under two names",
    ),
    Example(
        "def f(x: torch.Tensor):\n    y = x + 1\n    held = [y]\n    y[0] = 3\n    return held\n", jax="    y = y.at[0].set(3)\n    held[0] = y\n",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('n', torch.zeros(3))\n\n"
        "    def forward(self, x):\n        n = self.n\n        n += 1\n        return x + self.n\n",
        "        n += 1\n        self.n[...] = n\n", "        n += 1\n        self.n.assign(n)\n", why="a name of a buffer",
    ),
    Example("def f(x):\n    y = x + x.shape[0]\n    y += 1\n    return x + y\n", why="nothing else is the same tensor"),
    Example("def f(a: int, b: int):\n    c = a\n    c += b\n    return a, c\n", why="numbers"),
    Example("def f(names):\n    other = names\n    other += ['x']\n    return names\n", why="a list is one in Python as well"),
    Example("def f(x: torch.Tensor):\n    a, b = x.chunk(2)\n    a.add_(1)\n    return x\n", refused="MIG303", why="two views of x"),
    Example("def f(x: torch.Tensor, c: bool):\n    y = x if c else x.clone()\n    y[0] = 1\n    return x, y\n", refused="MIG303", why="on one branch only"),
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    kept = []\n    kept.append(y)\n    y += 1\n    return kept\n", refused="MIG303"),
    Example("def f(x: torch.Tensor):\n    y = x.float()\n    y += 1\n    return x, y\n", refused="MIG202", why="x itself, where it is float already"),
)
