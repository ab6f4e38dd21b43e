"""Make in-place updates functional: arrays are immutable, so the name gets the new value.

Converted: `x[:, 0] = y`, `x[mask] = 0`, `x[i] += 1`, `x.add_(y)`, `out.mul_(w)` through a view of a variable, `self.relu(x)` with `inplace=True` where x is used again.
Unchanged: `d[key] = value` of a dict or list, `x += y` where nothing else is the same tensor.
Refused: a write through a view whose base is used afterwards and cannot be updated.
"""
import ast

from migrate.calls import Bound, Filler, Refusal, bind, choose, template_names
from migrate.context import Context
from migrate.edits import ADD, LAMBDA, MULTIPLY, NAMED, UNARY, Emitter, Piece
from migrate.infer.kinds import Kind
from migrate.rules import aliases, rngs, state
from migrate.rules.example import Example
from migrate.tables import Row, Variant

RULE = "inplace"
AT = {ast.Add: "add", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power"}
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
TENSOR_TAGS = ("tensor",)


def _is_tensor(ctx: Context, base: ast.expr, index: ast.expr | None = None) -> bool:
    kind = ctx.kind(base)
    if kind.is_tensor:
        return True
    return kind.is_unknown and index is not None and _tensor_index(ctx, index)


def _tensor_index(ctx: Context, index: ast.expr) -> bool:
    """An index that only arrays take."""
    if isinstance(index, ast.Tuple):
        return any(isinstance(e, ast.Slice) or isinstance(e, ast.Constant) and e.value in (None, Ellipsis) for e in index.elts)
    return isinstance(index, ast.Constant) and index.value is Ellipsis or ctx.kind(index).is_tensor


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`x[index] = value`."""
    if ctx.owned(node) or not any(isinstance(t, ast.Subscript) and _is_tensor(ctx, t.value, t.slice) for t in node.targets):
        return
    target = node.targets[0]
    if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
        ctx.refuse("MIG303", node, "several targets of which one is an element of a tensor")
        return
    base = _base(target.value)
    if base is None:
        ctx.refuse("MIG303", node, "the tensor that is written to has no name")
        return
    after = aliases.check(ctx, node, base)
    ctx.edit(node, lambda e: _with_after(e, node, _assigned(ctx, e, target, e.piece(node.value), "set"), after), RULE, why="x[i] = y")


def _base(node: ast.expr) -> ast.expr | None:
    """What is assigned to: a name, attribute, or element of a list or of another tensor."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return node if isinstance(node, (ast.Name, ast.Attribute)) else None


def _with_after(e: Emitter, node: ast.stmt, made: str, after: list[str]) -> Piece:
    indent = e.source.indent(node)
    return Piece("\n".join([made, *(indent + a for a in after)]))


def _assigned(ctx: Context, e: Emitter, target: ast.expr, value: Piece, how: str) -> str:
    """The statement that gives `target` a value; for an element of a tensor, the tensor gets a new value."""
    if isinstance(target, ast.Attribute) and target.attr == "data" and ctx.kind(target.value).is_tensor:
        return _assigned(ctx, e, target.value, value, how)
    if isinstance(target, ast.Subscript) and _is_tensor(ctx, target.value, target.slice):
        new = updated(ctx, e, target, value, how)
        return _assigned(ctx, e, target.value, new, "set")
    kind = ctx.kind(target)
    if isinstance(target, ast.Attribute) and kind.variable:
        from migrate.rules.state import write

        return write(ctx, e, target, value).text
    if isinstance(target, ast.Name) and (source := aliases.variable_behind(ctx, target)) is not None:
        from migrate.rules.state import write

        return f"{target.id} = {value.text}\n{e.source.indent(e.source.statement(target))}{write(ctx, e, source, Piece(target.id)).text}"
    return f"{plain(ctx, e, target)} = {value.text}"


def plain(ctx: Context, e: Emitter, node: ast.expr) -> str:
    """A target as text, its reads of variables not applied at the top."""
    return e.original(node).text


def read(ctx: Context, e: Emitter, node: ast.expr) -> Piece:
    """The array that a target holds."""
    if isinstance(node, ast.Attribute) and node.attr == "data" and ctx.kind(node.value).is_tensor:
        return read(ctx, e, node.value)
    if isinstance(node, ast.Attribute) and ctx.kind(node).variable:
        return state.array(ctx, e, node)
    return e.piece(node)


def updated(ctx: Context, e: Emitter, target: ast.Subscript, value: Piece, how: str) -> Piece:
    """The whole tensor with an element changed."""
    base, index = read(ctx, e, target.value), ctx.kind(target.slice)
    if index.dtype == "bool" and index.is_tensor and how == "set":
        mask = e.piece(target.slice)
        if _covers(ctx, target):
            return Piece(f"{ctx.name('jnp')}.where({mask.at(LAMBDA)}, {value.at(LAMBDA)}, {base.at(LAMBDA)})")
        return Piece(f"{ctx.name('where_set')}({base.at(LAMBDA)}, {mask.at(LAMBDA)}, {value.at(LAMBDA)})")
    return Piece(f"{base.at(17)}.at[{_index(e, target)}].{how}({value.at(LAMBDA)})")


def _index(e: Emitter, target: ast.Subscript) -> str:
    s = target.slice
    return e.piece(s).text if s in e.plan.nodes else e.between(*e.source.span(s), s)


def _covers(ctx: Context, target: ast.Subscript) -> bool:
    """Whether the mask certainly has the tensor's shape and the value is a number: it is a comparison of the tensor itself."""
    statement = ctx.source.parent(target)
    if not isinstance(statement, ast.Assign) or not ctx.kind(statement.value).is_number:
        return False
    mask: ast.expr | None = target.slice
    if isinstance(mask, ast.Name):
        bound = ctx.file.names.lookup(mask)
        mask = bound[0].value if len(bound) == 1 else None
    return isinstance(mask, ast.Compare) and ast.dump(mask.left) == ast.dump(target.value).replace("Store", "Load") and all(ctx.kind(c).is_number for c in mask.comparators)


def visit_augmented(ctx: Context, node: ast.AugAssign) -> None:
    """`x[i] += y`, `self.count += 1`, `x += y`."""
    if ctx.owned(node):
        return
    target = node.target
    if isinstance(target, ast.Subscript) and _is_tensor(ctx, target.value, target.slice):
        base = _base(target)
        if base is None:
            ctx.refuse("MIG303", node, "the tensor that is written to has no name")
            return
        after = aliases.check(ctx, node, base)
        ctx.edit(node, lambda e: _with_after(e, node, _augmented_item(ctx, e, node, target), after), RULE, why="x[i] += y")
    elif ctx.kind(target).is_tensor:
        _augmented_name(ctx, node)


def _augmented_item(ctx: Context, e: Emitter, node: ast.AugAssign, target: ast.Subscript) -> str:
    value, how = e.piece(node.value), AT.get(type(node.op))
    if isinstance(node.op, ast.Sub) and _simple_index(ctx, target.slice):
        how, value = "add", Piece(f"-{value.at(UNARY)}", UNARY)
    if how is None or not _simple_index(ctx, target.slice):
        now = Piece(f"{read(ctx, e, target.value).at(17)}[{_index(e, target)}]")
        value, how = Piece(f"{now.text} {SIGNS[type(node.op)]} {value.at(MULTIPLY + 1)}", ADD), "set"
    return _assigned(ctx, e, target, value, how)


def _simple_index(ctx: Context, index: ast.expr) -> bool:
    """Slices and numbers: no element is named twice."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, (ast.Slice, ast.Constant)) or ctx.kind(p).tag in ("int", "none") for p in parts)


def _augmented_name(ctx: Context, node: ast.AugAssign) -> None:
    target = node.target
    kind = ctx.kind(target)
    if isinstance(target, ast.Attribute) and (kind.variable or target.attr == "data"):
        ctx.edit(node, lambda e: Piece(_assigned(ctx, e, target, _operated(ctx, e, node, read(ctx, e, target)), "set")), RULE, why="variable")
        return
    after = aliases.check(ctx, node, target)
    source = aliases.variable_behind(ctx, target) if isinstance(target, ast.Name) else None
    if source is not None:
        ctx.edit(node, lambda e: Piece(_assigned(ctx, e, target, _operated(ctx, e, node, read(ctx, e, target)), "set")), RULE, why="variable")
    elif after:
        ctx.edit(node, lambda e: _with_after(e, node, e.original(node).text, after), RULE, why="the same tensor under two names")


def _operated(ctx: Context, e: Emitter, node: ast.AugAssign, now: Piece) -> Piece:
    return Piece(f"{now.at(MULTIPLY)} {SIGNS[type(node.op)]} {e.piece(node.value).at(MULTIPLY + 1)}", ADD)


def functional(ctx: Context, node: ast.Call) -> Row | None:
    """The row of an in-place method call: its own, or that of the name without the underscore."""
    if not isinstance(node.func, ast.Attribute) or not node.func.attr.endswith("_") or node.func.attr.startswith("_"):
        return None
    receiver = ctx.kind(node.func.value)
    name = node.func.attr
    row = ctx.unit.table.by_method.get(name) or ctx.unit.table.by_method.get(name.removesuffix("_"))
    if row is None or not (receiver.is_tensor or receiver.is_unknown) or ctx.resolve(node.func) is not None or row.kind != "function":
        return None
    return row


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`x.add_(y)`, `F.relu_(x)`, `act(x)` where act works in place."""
    if ctx.owned(node):
        return
    row = functional(ctx, node)
    if row is not None and isinstance(node.func, ast.Attribute):
        _method(ctx, node, row, node.func.value)
        return
    found = ctx.resolve(node.func)
    if isinstance(found, Row) and found.torch.startswith("torch.nn.init."):
        _initialiser(ctx, node, found)
    elif isinstance(found, Row) and found.kind == "function" and node.args and _says_inplace(ctx, node):
        _method(ctx, node, found, None)
    elif node.args and isinstance(node.args[0], ast.Name) and _inplace_layer(ctx, node.func):
        _rebinding(ctx, node, node.args[0])


def _initialiser(ctx: Context, node: ast.Call, row: Row) -> None:
    """`nn.init.normal_(w)` of a plain tensor: the name gets the new value. A variable is written to by the function itself."""
    base = node.args[0] if node.args else None
    if isinstance(base, ast.Attribute) and base.attr == "data":
        base = base.value
    if isinstance(base, (ast.Name, ast.Subscript)) and not ctx.kind(base).variable and isinstance(ctx.source.parent(node), ast.Expr):
        _method(ctx, node, row, None)


def _says_inplace(ctx: Context, node: ast.Call) -> bool:
    if any(k.arg == "inplace" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords):
        return True
    name = ast.unparse(node.func)
    return name.endswith("_") and ".init." not in name and "torch.nn.init" not in ctx.dotted(node.func)


def _inplace_layer(ctx: Context, func: ast.expr) -> bool:
    """A layer made with `inplace=True`."""
    if not isinstance(func, ast.Attribute):
        return False
    owner = ctx.kind(func.value).ref
    if not hasattr(owner, "assigned"):
        return False
    return any(
        isinstance(a.value, ast.Call) and isinstance(ctx.unit.resolve(a.method.file, a.value.func), Row)
        and any(k.arg == "inplace" and isinstance(k.value, ast.Constant) and k.value.value is True for k in a.value.keywords)
        for a in owner.assigned(func.attr)
    )


def _rebinding(ctx: Context, node: ast.Call, name: ast.Name) -> None:
    statement = ctx.source.statement(node)
    if isinstance(ctx.source.parent(node), ast.Expr):
        ctx.edit(statement, lambda e: Piece(f"{name.id} = {e.piece(node).text}"), RULE, why="inplace=True")
        return
    others = aliases.same_tensor_later(ctx, node, name)
    if not aliases.used_later(ctx, node, name) and not others:
        return
    after = aliases.check(ctx, statement, name, ignore_self=True)
    ctx.shared["after"].setdefault(statement, []).extend(after)
    inner = ctx.plan.nodes.pop(node, None)

    def build(e: Emitter) -> Piece:
        made = inner.build(e) if inner is not None else e.original(node)
        return Piece(f"({name.id} := {made.text if isinstance(made, Piece) else made})")

    ctx.edit(node, build, RULE, why="inplace=True")


def _method(ctx: Context, node: ast.Call, row: Row, receiver: ast.expr | None) -> None:
    base = receiver if receiver is not None else node.args[0]
    chosen = _variant(ctx, node, row, receiver)
    if isinstance(chosen, Refusal):
        ctx.refuse(chosen.code, node, chosen.reason)
        return
    bound, variant = chosen
    if "rngs" in template_names(variant.to):
        rngs.stream(ctx, node)

    def value(e: Emitter) -> Piece:
        stream = rngs.stream(ctx, node) if "rngs" in template_names(variant.to) else ""
        filler = _Reading(variant.to, variant, bound, ctx.name, ctx.kind, stream, "")
        filler.ctx, filler.base = ctx, base
        return filler.fill(e)

    if variant.deviates:
        ctx.report("MIG201", node, f"{row.torch}: {variant.deviates}")
    target = _target(ctx, base)
    statement = ctx.source.parent(node)
    if target is None:
        ctx.edit(node, value, RULE, why=row.torch)
    elif isinstance(statement, ast.Expr):
        after = aliases.check(ctx, statement, target)
        ctx.edit(statement, lambda e: _with_after(e, statement, _assigned(ctx, e, target, value(e), "set"), after), RULE, why=row.torch)
    elif isinstance(target, ast.Name) and aliases.used_later(ctx, node, target) and not _assigns_back(ctx, statement, target):
        ctx.edit(node, lambda e: Piece(f"{target.id} := {value(e).text}", NAMED), RULE, why=row.torch)
    elif isinstance(target, ast.Name) or not ctx.kind(target).variable:
        ctx.edit(node, value, RULE, why=row.torch)
    else:
        ctx.refuse("MIG303", node, "the result of a write into a variable is used")


def _assigns_back(ctx: Context, statement: ast.AST | None, target: ast.Name) -> bool:
    return isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == target.id for t in statement.targets)


def _target(ctx: Context, base: ast.expr) -> ast.expr | None:
    """What an in-place method writes to; None where it is a temporary value."""
    if isinstance(base, ast.Call):
        if isinstance(base.func, ast.Attribute) and functional(ctx, base) is not None:
            return _target(ctx, base.func.value)
        if isinstance(base.func, ast.Attribute) and base.func.attr in ("detach", "contiguous", "view_as") and ctx.kind(base.func.value).variable:
            return base.func.value
        return None
    if isinstance(base, ast.Attribute) and base.attr == "data":
        return base.value if isinstance(base.value, (ast.Name, ast.Attribute, ast.Subscript)) else None
    return base if isinstance(base, (ast.Name, ast.Attribute, ast.Subscript)) else None


class _Reading(Filler):
    """A filler that reads the receiver through its variable."""

    ctx: Context
    base: ast.expr

    def _hole(self, name: str, emitter: Emitter) -> Piece:
        if self.bound.arguments.get(name) is self.base and isinstance(self.base, ast.Attribute):
            return read(self.ctx, emitter, self.base)
        return super()._hole(name, emitter)


def _variant(ctx: Context, node: ast.Call, row: Row, receiver: ast.expr | None) -> tuple[Bound, Variant] | Refusal:
    bound = bind(row, node, receiver, ctx.kind)
    if isinstance(bound, Refusal):
        return bound
    variant = choose(row, bound, ctx.target.name, ctx.kind)
    return variant if isinstance(variant, Refusal) else (bound, variant)


def visit_index(ctx: Context, node: ast.Subscript) -> None:
    """A list inside an index: JAX takes arrays only."""
    if not ctx.kind(node.value).is_tensor:
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for p in parts:
        kind: Kind = ctx.kind(p)
        if (isinstance(p, ast.List) or kind.tag == "list") and not ctx.owned(p):
            ctx.edit(p, lambda e, p=p: Piece(f"{ctx.name('jnp')}.asarray({e.original(p).text})"), RULE, why="x[[0, 1]]")  # type: ignore[misc]


EXAMPLES = (
    Example("def f(x: torch.Tensor, i: torch.Tensor):\n    x = x.clone()\n    x[:, i] -= 1\n    return x\n", "x.at[:, i].set(x[:, i] - 1)", "x.at[:, i].set(x[:, i] - 1)", why="an index may name an element twice"),
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    y[:, 0] -= x[0]\n    return y\n", "y = y.at[:, 0].add(-x[0])", "y = y.at[:, 0].add(-x[0])"),
    Example("def f(config):\n    config['lr'] = 0.1\n    config['steps'] += 1\n    return config\n"),
    Example("def f(names: list):\n    names[0] = 'a'\n    names += ['b']\n    return names\n"),
)
