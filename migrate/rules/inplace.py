"""Make in-place updates functional: arrays are immutable, so the name gets the new value.

Converted: `x[:, 0] = y`, `x[mask] = 0`, `x[i] += 1`, `x.add_(y)`, `out.mul_(w)` through a view of a variable, `self.relu(x)` with `inplace=True` where x is used again.
Unchanged: `d[key] = value` of a dict or list, `x += y` where nothing else is the same tensor.
Refused: a write through a view whose base is used afterwards and cannot be updated.
"""
import ast
import re

from migrate.calls import Bound, Filler, Refusal, bind, choose, template_names
from migrate.context import Context
from migrate.edits import ADD, ATOM, LAMBDA, MULTIPLY, NAMED, UNARY, Emitter, Piece
from migrate.infer.engine import usage
from migrate.infer.kinds import Kind
from migrate.infer.writes import NO_WRITES, Event
from migrate.rules import aliases, rngs, selecting, state, views, widths
from migrate.rules.constraining import kept_gradient
from migrate.rules.example import Example
from migrate.source.modules import FunctionInfo
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
    """`x[index] = value`, `x.data = value`."""
    if not ctx.owned(node) and len(node.targets) == 1 and isinstance(held := node.targets[0], ast.Attribute) and held.attr == "data":
        _data(ctx, node, held.value)
        return
    if ctx.owned(node) or not any(isinstance(t, ast.Subscript) and _is_tensor(ctx, t.value, t.slice) for top in node.targets for t in _targets(top)):
        return
    target = node.targets[0]
    if len(node.targets) == 1 and isinstance(target, (ast.Tuple, ast.List)) and _several(ctx, node, target):
        return
    if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
        ctx.refuse("MIG303", node, "several targets of which one is an element of a tensor")
        return
    base = _root(ctx, target.value)
    if base is None:
        ctx.refuse("MIG303", node, "the tensor that is written to has no name")
        return
    if selecting.is_refused(ctx, target) or aliases.is_lost(ctx, node):
        return  # refused there
    after = aliases.check(ctx, node, base)
    ctx.edit(node, lambda e: _with_after(e, node, _assigned(ctx, e, target, e.piece(node.value), "set"), after), RULE, why="x[i] = y")


def _data(ctx: Context, node: ast.Assign, target: ast.expr) -> None:
    """`x.data = y` of a tensor that is in no variable: the name gets the value. What shares the memory keeps the old one in PyTorch too."""
    if not ctx.kind(target).is_tensor or ctx.kind(target).variable or not isinstance(target, (ast.Name, ast.Attribute)):
        return
    if any(s.how != "same" or s.constant for e in aliases.events(ctx, node) for s in aliases.others(ctx, node, e)):
        ctx.refuse("MIG303", node, "the data of a tensor is replaced that others share")
        return
    after = aliases.check(ctx, node, target)
    ctx.edit(node, lambda e: _with_after(e, node, _assigned(ctx, e, target, e.piece(node.value), "set"), after), RULE, why="x.data = y")


def _targets(target: ast.expr) -> list[ast.expr]:
    return [t for e in target.elts for t in _targets(e)] if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _several(ctx: Context, node: ast.Assign, target: ast.Tuple | ast.List) -> bool:
    """`a[mask], b[mask] = f(x)`: names take the values, which are written then, where nothing else shares what is written to."""
    elements = [t for t in target.elts if isinstance(t, ast.Subscript) and _is_tensor(ctx, t.value, t.slice)]
    plain = {t.id for t in target.elts if isinstance(t, ast.Name)}
    roots = [_root(ctx, t.value) for t in elements]
    if len(elements) + len(plain) < len(target.elts) or not all(isinstance(r, ast.Name) for r in roots) or any(isinstance(n, ast.Name) and n.id in plain for t in elements for n in ast.walk(t)):
        return False
    shared = any(not (isinstance(e.target, ast.Name) and e.sure) or aliases.others(ctx, node, e) for e in aliases.events(ctx, node))
    if shared or any(selecting.is_refused(ctx, t) for t in elements) or aliases.is_lost(ctx, node):
        return False
    names = {t: ctx.new_name(r.id) for t, r in zip(elements, roots, strict=True) if isinstance(r, ast.Name)}
    for t in elements:
        ctx.edit(t, lambda e, t=t: Piece(names[t]), RULE, why="x[i] = y")  # type: ignore[misc]

    def build(e: Emitter) -> Piece:
        after = [_assigned(ctx, e, t, Piece(names[t]), "set") for t in elements]
        return Piece(f"\n{e.source.indent(node)}".join([e.original(node).text, *after]))

    ctx.edit(node, build, RULE, why="x[i] = y")
    return True


def _root(ctx: Context, node: ast.expr) -> ast.expr | None:
    """What holds the tensor that is written to: a name, an attribute or an element of a list. None where a view on the way can't be turned round."""
    while (held := views.base(node)) is not None:
        if isinstance(node, ast.Subscript) and not _is_tensor(ctx, held, node.slice):
            break  # an element of a list
        if not isinstance(node, ast.Subscript) and not (ctx.kind(held).is_tensor or ctx.kind(held).is_unknown) or views.inverse(ctx, node) is None:
            return None
        node = held
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or isinstance(node, ast.Name) and not _own(ctx, node):
        return None
    return None if isinstance(node, ast.Subscript) and ctx.kind(node.value).tag == "tuple" else node


def _own(ctx: Context, name: ast.Name) -> bool:
    """Whether a name may be bound where it stands: it is the function's own, or of the module at module level."""
    found = ctx.file.names.scope(name).lookup(name.id)
    at = ctx.source.enclosing(name, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef) or ctx.source.tree
    return found is None or found[0].node is at or not isinstance(at, ast.Lambda) and _declared(at, name.id)


def _declared(function: ast.AST, name: str) -> bool:
    return any(isinstance(n, (ast.Global, ast.Nonlocal)) and name in n.names for n in ast.walk(function))


def _with_after(e: Emitter, node: ast.stmt, made: str, after: list[aliases.After]) -> Piece:
    indent = e.source.indent(node)
    return Piece("\n".join([made, *(indent + a(e) for a in after)]))


def _assigned(ctx: Context, e: Emitter, target: ast.expr, value: Piece, how: str) -> str:
    """The statement that gives `target` a value; for an element of a tensor, the tensor gets a new value."""
    held = views.base(target)
    if held is not None and not isinstance(target, ast.Subscript) and (turn := views.inverse(ctx, target)) is not None and (ctx.kind(held).is_tensor or ctx.kind(held).is_unknown):
        return _assigned(ctx, e, held, turn(e, read(ctx, e, held), value), "set")
    if isinstance(target, ast.Subscript) and _is_tensor(ctx, target.value, target.slice):
        new = updated(ctx, e, target, value, how)
        return _assigned(ctx, e, target.value, new, "set")
    kind = ctx.kind(target)
    if isinstance(target, ast.Attribute) and kind.variable:
        from migrate.rules.state import write

        return write(ctx, e, target, value).text
    if isinstance(target, ast.Name) and kind.variable:
        return state.fill(ctx, ctx.target.write, v=Piece(target.id), x=kept_gradient(ctx, target, Piece(target.id), value)).text
    if state.of_unknown_layer(ctx, target) and isinstance(target, ast.Attribute):
        owner = e.piece(target.value).text
        return f"{ctx.name('set_torch_weight')}({owner}, {value.text})" if target.attr == "weight" else f"{ctx.name('bias_of')}({owner})[...] = {value.text}"
    return f"{plain(ctx, e, target)} = {value.text}"


def plain(ctx: Context, e: Emitter, node: ast.expr) -> str:
    """A target as text, its reads of variables not applied at the top."""
    return e.original(node).text


def read(ctx: Context, e: Emitter, node: ast.expr) -> Piece:
    """The array that a target holds."""
    if isinstance(node, ast.Attribute) and node.attr == "data" and (ctx.kind(node.value).is_tensor or state.of_unknown_layer(ctx, node.value)):
        return read(ctx, e, node.value)
    if isinstance(node, ast.Attribute) and ctx.kind(node).variable:
        return state.array(ctx, e, node)
    if isinstance(node, ast.Name) and ctx.kind(node).variable:
        return state.fill(ctx, ctx.target.read, v=Piece(node.id))
    return e.piece(node)


def updated(ctx: Context, e: Emitter, target: ast.Subscript, value: Piece, how: str) -> Piece:
    """The whole tensor with an element changed."""
    base, index = read(ctx, e, target.value), ctx.kind(target.slice)
    if ctx.kind(target.value).narrow and (given := _given_to(ctx, target)) is not None and ctx.kind(given).is_tensor and widths.may_widen(ctx, target.value, [given]):
        value = widths.kept(value, base.at(ATOM))  # JAX warns where it would have to cast
    if index.dtype == "bool" and index.is_tensor and how == "set":
        mask = e.piece(target.slice)
        if _covers(ctx, target):
            return Piece(f"{ctx.name('jnp')}.where({mask.at(LAMBDA)}, {value.at(LAMBDA)}, {base.at(LAMBDA)})")
        return Piece(f"{ctx.name('where_set')}({base.at(LAMBDA)}, {mask.at(LAMBDA)}, {value.at(LAMBDA)})")
    if how == "set" and _may_be_list(ctx, target):
        return Piece(f"{ctx.name('set_item')}({base.at(LAMBDA)}, {e.piece(target.slice).at(LAMBDA)}, {value.at(LAMBDA)})")
    if selecting.moves_axes(ctx, target):
        first, rest = selecting.halves(ctx, e, target)
        return Piece(f"{base.at(17)}.at[{first}].set({base.at(17)}[{first}].at[{rest}].{how}({value.at(LAMBDA)}))")
    return Piece(f"{base.at(17)}.at[{views.index(e, target)}].{how}({value.at(LAMBDA)})")


def _given_to(ctx: Context, target: ast.Subscript) -> ast.expr | None:
    """What a statement writes to an element."""
    up = ctx.source.parent(target)
    return up.value if isinstance(up, ast.AugAssign) or isinstance(up, ast.Assign) and len(up.targets) == 1 and up.targets[0] is target else None


def _may_be_list(ctx: Context, target: ast.Subscript) -> bool:
    """Whether what is written to was only taken for a tensor, as nothing in the function tells what the parameter is."""
    held, function = target.value, ctx.function_of(target)
    if not isinstance(held, ast.Name) or function is None or ctx.kind(held).sure or isinstance(target.slice, (ast.Tuple, ast.Slice)) or ctx.kind(target.slice).is_tensor:
        return False
    return any(p.arg == held.id for p in function.parameters) and usage(ctx.inf, ctx.file, function.node, held.id).is_unknown


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
        base = _root(ctx, target)
        if base is None:
            ctx.refuse("MIG303", node, "the tensor that is written to has no name")
            return
        if selecting.is_refused(ctx, target) or aliases.is_lost(ctx, node):
            return  # refused there
        after = aliases.check(ctx, node, base)
        ctx.edit(node, lambda e: _with_after(e, node, _augmented_item(ctx, e, node, target), after), RULE, why="x[i] += y")
    elif ctx.kind(target).is_tensor:
        _augmented_name(ctx, node)
    elif ctx.kind(target).is_unknown:
        aliases.check(ctx, node, None)


def _augmented_item(ctx: Context, e: Emitter, node: ast.AugAssign, target: ast.Subscript) -> str:
    value, how = e.piece(node.value), AT.get(type(node.op))
    if isinstance(node.op, ast.Sub) and _simple_index(ctx, target.slice):
        how, value = "add", Piece(f"-{value.at(UNARY)}", UNARY)
    if how is None or not _simple_index(ctx, target.slice):
        index = "][".join(selecting.halves(ctx, e, target)) if selecting.moves_axes(ctx, target) else views.index(e, target)
        now = Piece(f"{read(ctx, e, target.value).at(17)}[{index}]")
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
    if widths.may_widen(ctx, target, [node.value]):
        ctx.edit(node, lambda e: _with_after(e, node, f"{plain(ctx, e, target)} = {_operated(ctx, e, node, e.original(target)).text}", after), RULE, why="PyTorch keeps the dtype")
    elif after:
        ctx.edit(node, lambda e: _with_after(e, node, e.original(node).text, after), RULE, why="the same tensor under two names")


def _operated(ctx: Context, e: Emitter, node: ast.AugAssign, now: Piece) -> Piece:
    made = Piece(f"{now.at(MULTIPLY)} {SIGNS[type(node.op)]} {e.piece(node.value).at(MULTIPLY + 1)}", ADD)
    return widths.kept(made, now.at(ATOM)) if widths.may_widen(ctx, node.target, [node.value]) else made


def functional(ctx: Context, node: ast.Call) -> Row | None:
    """The row of an in-place method call: its own, or that of the name without the underscore."""
    if not isinstance(node.func, ast.Attribute) or not node.func.attr.endswith("_") or node.func.attr.startswith("_"):
        return None
    receiver = ctx.kind(node.func.value)
    name = node.func.attr
    row = ctx.unit.table.by_method.get(name) or ctx.unit.table.by_method.get(name.removesuffix("_"))
    if row is None or name in NO_WRITES or not (receiver.is_tensor or receiver.is_unknown) or ctx.resolve(node.func) is not None or row.kind != "function":
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
    else:
        _argument(ctx, node)


def _argument(ctx: Context, node: ast.Call) -> None:
    """A call whose callee writes to what it is given: `act(x)` of a layer that works in place, `normalise_(x)` of a local function."""
    found = aliases.events(ctx, node)
    if _products(ctx, node, [e for e in found if e.product]):
        found = [e for e in found if not e.product]
    if not found:
        _unknown_callee(ctx, node)
        _recursion(ctx, node)
    for event in found:
        if not event.argument:
            continue
        given = event.given or event.target
        root = _root(ctx, given)
        if event.returned and isinstance(given, ast.Name) and root is not None:
            _rebinding(ctx, node, given)
        elif event.returned and root is not None and isinstance(ctx.source.parent(node), ast.Expr) and not _unreachable(ctx, root):
            _written_back(ctx, node, given)
        else:
            shared = aliases.others(ctx, node, event, itself=not event.key)
            aliases.report_untold(ctx, node, event, shared)
            for s in shared:
                aliases.report(ctx, node, event, s)


def _products(ctx: Context, node: ast.Call, found: list[Event]) -> bool:
    """`w = fill_(w)` for a function that has no result but what it writes to `w`."""
    if len(found) == 1 and found[0].given is not None and ctx.kind(found[0].given).tag in ("module", "none", "class"):
        return True  # the function asks what it is given, and that is no tensor
    roots = [_root(ctx, e.given) if e.given is not None else None for e in found]
    if not found or None in roots or any(_unreachable(ctx, r) for r in roots) or len(found) > 1 and not all(isinstance(e.given, ast.Name) for e in found):
        return False
    if len(found) == 1:
        given = found[0].given
        assert given is not None
        if isinstance(given, ast.Name):
            _rebinding(ctx, node, given)
        else:
            _written_back(ctx, node, given)
        return True
    statement = ctx.source.statement(node)
    names = [r for r in roots if isinstance(r, ast.Name)]
    after = [a for n in names for a in aliases.check(ctx, node, n)]
    ctx.edit(statement, lambda e: _with_after(e, statement, f"{', '.join(n.id for n in names)} = {e.piece(node).text}", after), RULE, why="written to by the callee")
    return True


def _unknown_callee(ctx: Context, node: ast.Call) -> None:
    """`init(m.weight)` of an initialiser that is known at run time only: what it makes of the array that it gets goes back to the layer."""
    func = node.func
    called = isinstance(func, (ast.Name, ast.Subscript, ast.Call)) or isinstance(func, ast.Attribute) and ctx.is_self(func.value)
    if not called or not isinstance(ctx.source.parent(node), ast.Expr) or ctx.resolve(func) is not None or isinstance(ctx.kind(func).ref, FunctionInfo) or not node.args:
        return
    given, held = node.args[0], node.args[0]
    if isinstance(held, ast.Attribute) and held.attr == "data":
        held = held.value
    if isinstance(held, ast.Attribute) and held.attr == "weight" and (state.of_unknown_layer(ctx, held) or state.is_turned(ctx, held)):
        _written_back(ctx, node, given)


def _recursion(ctx: Context, node: ast.Call) -> None:
    """`fill_(part)` in `fill_` itself, which gives back what it writes: nothing takes it here."""
    f = ctx.kind(node.func).ref
    itself = isinstance(f, FunctionInfo) and node.args and isinstance(ctx.source.parent(node), ast.Expr) and f.file is ctx.file and any(n is node for n in ast.walk(f.node))
    if itself and (found := aliases.products(ctx, f.node)):
        ctx.report("MIG303", node, f"{f.name} returns `{', '.join(found)}` here, which nothing takes")


def _unreachable(ctx: Context, root: ast.expr | None) -> bool:
    """`m.weight` of what may be any layer, where nothing tells how the target's layers keep theirs."""
    return isinstance(root, ast.Attribute) and root.attr in ("weight", "bias") and ctx.kind(root.value).is_unknown and not state.of_unknown_layer(ctx, root)


def _initialiser(ctx: Context, node: ast.Call, row: Row) -> None:
    """`nn.init.normal_(w)` of a plain tensor: the name gets the new value. A variable is written to by the function itself."""
    base = node.args[0] if node.args else None
    if isinstance(base, ast.Attribute) and base.attr == "data":
        base = base.value
    if base is not None and _filled_in_place(ctx, node, row, base):
        return
    if isinstance(base, (ast.Name, ast.Subscript)) and not ctx.kind(base).variable and isinstance(ctx.source.parent(node), ast.Expr):
        _method(ctx, node, row, None)


FILLS = {"torch.nn.init.zeros_": "0", "torch.nn.init.ones_": "1", "torch.nn.init.constant_": ""}
PLACE = re.compile(r"[\w.]+|(weight|bias)_of\([\w.]+\)")


def _filled_in_place(ctx: Context, node: ast.Call, row: Row, base: ast.expr) -> bool:
    """`m.bias[...] = 0` for `nn.init.zeros_(m.bias)`: whatever the order of its axes, all of a variable gets one value."""
    statement = ctx.source.parent(node)
    held = isinstance(base, ast.Attribute) or isinstance(base, ast.Name) and bool(ctx.kind(base).variable)
    if row.torch not in FILLS or not held or not isinstance(statement, ast.Expr) or not ctx.target.write.startswith("v[...]"):
        return False
    given = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "val")]
    if len(node.args) + len(node.keywords) != 1 + len(given) or len(given) != (not FILLS[row.torch]) or any(isinstance(a, ast.Starred) for a in node.args):
        return False

    def build(e: Emitter) -> Piece:
        place = e.piece(base).text.removesuffix("[...]")
        value = e.piece(given[0]).text if given else FILLS[row.torch]
        return Piece(f"{place}[...] = {value}" if PLACE.fullmatch(place) else f"{ctx.name('constant_')}({place}, {value})")

    ctx.edit(statement, build, RULE, why=row.torch)
    return True


def _says_inplace(ctx: Context, node: ast.Call) -> bool:
    if any(k.arg == "inplace" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords):
        return True
    name = ast.unparse(node.func)
    return name.endswith("_") and ".init." not in name and "torch.nn.init" not in ctx.dotted(node.func)


def _is_there(ctx: Context, statement: ast.stmt, target: ast.expr) -> bool:
    """Whether a parameter that may be None is there: the code around asks for it, or it is the weight of a layer."""
    if isinstance(target, ast.Attribute) and not ctx.is_self(target.value) and target.attr != "bias":
        return True
    asked, at = f"{ast.unparse(target)} is not None", ctx.source.parent(statement)
    while at is not None and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(at, ast.If) and any(isinstance(n, ast.Compare) and ast.unparse(n) == asked for n in ast.walk(at.test)):
            return True
        at = ctx.source.parent(at)
    return False


def _written_back(ctx: Context, node: ast.Call, target: ast.expr) -> None:
    """`self.w[...] = init_(self.w[...])` for `init_(self.w)` of a local function that fills a tensor and returns it."""
    statement = ctx.source.statement(node)
    after = aliases.check(ctx, node, target)
    may_be_none = ctx.kind(target).optional and bool(ctx.kind(target).variable) and not _is_there(ctx, statement, target)

    def build(e: Emitter) -> Piece:
        made = _assigned(ctx, e, target, e.piece(node), "set")
        guard = f"if {plain(ctx, e, target)} is not None:\n{e.source.indent(statement)}    " if may_be_none else ""
        return _with_after(e, statement, guard + made, after)

    ctx.edit(statement, build, RULE, why="written to by the callee")


def _rebinding(ctx: Context, node: ast.Call, name: ast.Name) -> None:
    """`x = act(x)` for `act(x)`; `(x := act(x))` where the result is used."""
    statement = ctx.source.statement(node)
    if isinstance(ctx.source.parent(node), ast.Expr):
        after = aliases.check(ctx, node, name)
        ctx.edit(statement, lambda e: _with_after(e, statement, f"{name.id} = {e.piece(node).text}", after), RULE, why="inplace=True")
        return
    used = aliases.used_later(ctx, node, name) and not _assigns_back(ctx, ctx.source.parent(node), name)
    after = aliases.check(ctx, node, name)
    if not used and not after:
        return
    _afterwards(ctx, node, after)
    inner = ctx.plan.nodes.pop(node, None)

    def build(e: Emitter) -> Piece:
        made = inner.build(e) if inner is not None else e.original(node)
        return Piece(f"({name.id} := {made.text if isinstance(made, Piece) else made})")

    ctx.edit(node, build, RULE, why="inplace=True")


def _afterwards(ctx: Context, node: ast.Call, after: list[aliases.After]) -> None:
    """Puts statements behind the one that a call is in."""
    if not after:
        return
    statement = ctx.source.statement(node)
    if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)) or ctx.source.enclosing(node, ast.Lambda, ast.ListComp, ast.GeneratorExp) is not None:
        ctx.refuse("MIG303", node, "other holders of the tensor can't be brought up to date here")
        return
    inner = ctx.plan.nodes.pop(statement, None)

    def build(e: Emitter) -> Piece:
        made = inner.build(e) if inner is not None else e.original(statement)
        return _with_after(e, statement, made.text if isinstance(made, Piece) else made, after)

    ctx.edit(statement, build, RULE, why="the same tensor under two names")


def _method(ctx: Context, node: ast.Call, row: Row, receiver: ast.expr | None) -> None:
    base = receiver if receiver is not None else node.args[0]
    if aliases.is_lost(ctx, node):
        return
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
        made = filler.fill(e)
        return widths.kept(made, read(ctx, e, base).at(ATOM)) if widened else made

    widened = isinstance(base, (ast.Name, ast.Attribute)) and "astype" not in variant.to and widths.may_widen(ctx, base, [a for n, a in bound.arguments.items() if a is not base])
    if variant.deviates:
        ctx.report("MIG201", node, f"{row.torch}: {variant.deviates}")
    target, statement = _target(ctx, base), ctx.source.parent(node)
    if _chained(ctx, node):
        ctx.edit(node, value, RULE, why=row.torch)
        return
    if target is None and _is_outer(ctx, base):
        ctx.refuse("MIG303", node, "a name of the code around can't be given the new value here")
        return
    after = aliases.check(ctx, node, None if target is None else _root(ctx, target), itself=target is None)
    if target is None:
        ctx.edit(node, value, RULE, why=row.torch)
    elif isinstance(statement, ast.Expr):
        ctx.edit(statement, lambda e: _with_after(e, statement, _assigned(ctx, e, target, value(e), "set"), after), RULE, why=row.torch)
    elif isinstance(target, ast.Name) and aliases.still_held(ctx, node, target.id):
        ctx.refuse("MIG303", node, f"`{target.id}` is read earlier in the expression, and PyTorch changes what was read")
    elif isinstance(target, ast.Name):
        _afterwards(ctx, node, after)
        if aliases.used_later(ctx, node, target) and not _assigns_back(ctx, statement, target):
            ctx.edit(node, lambda e: Piece(f"{target.id} := {value(e).text}", NAMED), RULE, why=row.torch)
        else:
            ctx.edit(node, value, RULE, why=row.torch)
    elif (whole := _leads(ctx, node)) is not None:

        def build(e: Emitter) -> Piece:
            first = _with_after(e, whole, _assigned(ctx, e, target, value(e), "set"), after).text
            return Piece(f"{first}\n{e.source.indent(whole)}{e.original(whole).text}")

        ctx.edit(node, lambda e: read(ctx, e, target), RULE, why=row.torch)
        ctx.edit(whole, build, RULE, why=row.torch)
    else:
        ctx.refuse("MIG303", node, "the result of a write into an attribute or element is used")


def _is_outer(ctx: Context, base: ast.expr) -> bool:
    """Whether what is written to belongs to the function around this one, or to that around a lambda."""
    at = base
    while (held := views.base(at)) is not None or isinstance(at, ast.Call) and functional(ctx, at) is not None:
        at = held if held is not None else at.func.value  # type: ignore[attr-defined]
    return isinstance(at, ast.Name) and not _own(ctx, at)


def _chained(ctx: Context, node: ast.Call) -> bool:
    """Whether another write in place follows: `x.mul_(2).add_(1)`."""
    func = ctx.source.parent(node)
    call = ctx.source.parent(func) if isinstance(func, ast.Attribute) else None
    return isinstance(call, ast.Call) and call.func is func and functional(ctx, call) is not None


def _leads(ctx: Context, node: ast.Call) -> ast.stmt | None:
    """The statement whose value starts with a call, so that what the call does can be done before it."""
    at: ast.AST = node
    while isinstance(up := ctx.source.parent(at), (ast.Attribute, ast.Call)) and (isinstance(up, ast.Attribute) or up.func is at):
        at = up
    if not isinstance(up, (ast.Assign, ast.AnnAssign, ast.Return)) or up.value is not at or ctx.owned(up):
        return None
    return up if not isinstance(up, ast.Assign) or all(isinstance(t, ast.Name) for t in up.targets) else None


def _assigns_back(ctx: Context, statement: ast.AST | None, target: ast.Name) -> bool:
    return isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == target.id for t in statement.targets)


def _target(ctx: Context, base: ast.expr) -> ast.expr | None:
    """What an in-place method writes to; None where it is a temporary value."""
    if isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute) and functional(ctx, base) is not None:
        return _target(ctx, base.func.value)
    return base if _root(ctx, base) is not None else None


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
    """A list inside an index: JAX takes arrays only. Integers of 8 bits, which PyTorch takes for a mask."""
    if not ctx.kind(node.value).is_tensor:
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for p in parts:
        kind: Kind = ctx.kind(p)
        if p is node.slice and isinstance(p, ast.Name) and _of_slices(ctx, p):
            ctx.edit(p, lambda e, p=p: Piece(f"tuple({e.original(p).text})"), RULE, why="x[index]")  # type: ignore[misc]
        elif kind.is_tensor and kind.narrow and kind.dtype == "int" and not ctx.owned(p):
            ctx.edit(p, lambda e, p=p: Piece(f"{e.original(p).at(ATOM)}.astype(bool)"), RULE, why="x[mask]")  # type: ignore[misc]
        elif isinstance(p, ast.List) and not p.elts and not ctx.owned(p):
            ctx.edit(p, lambda e: Piece(f"{ctx.name('jnp')}.asarray([], dtype=int)"), RULE, why="x[[]]")
        elif (isinstance(p, ast.List) or kind.tag == "list") and not ctx.owned(p):
            ctx.edit(p, lambda e, p=p: Piece(f"{ctx.name('jnp')}.asarray({e.original(p).text})"), RULE, why="x[[0, 1]]")  # type: ignore[misc]


def _of_slices(ctx: Context, node: ast.Name) -> bool:
    """Whether a name holds a list with a slice for each axis: `[slice(None)] * x.ndim`."""
    made = [b.value for b in ctx.file.names.lookup(node) if b.kind == "assign" and b.value is not None]
    lists = [v for m in made for v in ast.walk(m) if isinstance(v, (ast.List, ast.ListComp))]
    parts = [p for v in lists for p in (v.elts if isinstance(v, ast.List) else [v.elt])]
    return any(isinstance(p, ast.Call) and ctx.dotted(p.func) == "builtins.slice" for p in parts)


EXAMPLES = (
    Example("def f(x: torch.Tensor):\n    return x[[]]\n", jax="    return x[jnp.asarray([], dtype=int)]\n", why="an empty list is one of numbers"),
    Example(
        "def f(x: torch.Tensor, g):\n    out, logs = torch.zeros_like(x), torch.zeros_like(x)\n    inside = x > 0\n    out[inside], logs[inside] = g(x[inside])\n    n, out[0] = g(x)\n    return out, logs, n\n",
        jax="    out_, logs_ = g(x[inside])\n    out = where_set(out, inside, out_)\n    logs = where_set(logs, inside, logs_)\n    n, out__ = g(x)\n    out = out.at[0].set(out__)\n", why="elements of several",
    ),
    Example("def f(x: torch.Tensor, i, g):\n    out = torch.zeros_like(x)\n    out[i], i = g(x)\n    return out, i\n", refused="MIG303", why="the index is bound anew"),
    Example("def f(x: torch.Tensor):\n    u = (x > 0).byte()\n    return x[u]\n", jax="    return x[u.astype(bool)]\n", why="a mask of the old kind"),
    Example("def f(x):\n    h = x.half()\n    h[0] = 0\n    h += x\n    return h\n", jax="    h = h.at[0].set(0)\n    h = (h + x).astype(h.dtype)\n", why="what is cast and written to is a tensor"),
    Example("def f(x, i):\n    out = x.clone()\n    out[i] = 0\n    return out\n", jax="    out = out.at[i].set(0)\n", why="only tensors are cloned"),
    Example(
        "def fill_(t):\n    return t.add_(1.0)\n\n\nclass Net(nn.Module):\n    def __init__(self, n, on=True):\n        super().__init__()\n        self.mark = nn.Parameter(torch.zeros(n)) if on else None\n"
        "        if self.mark is not None:\n            fill_(self.mark)\n",
        "        if self.mark is not None:\n            self.mark[...] = fill_(self.mark[...])\n", why="the code asks already whether it is there",
    ),
    Example("def f(x: torch.Tensor, dim: int):\n    at = [slice(None)] * x.dim()\n    at[dim] = slice(0, 2)\n    return x[at]\n", jax="    return x[tuple(at)]\n", why="PyTorch takes a list of slices as a tuple"),
    Example(
        "def init(m, std):\n    m.weight.data.normal_(0.0, std)\n    m.bias.data.zero_()\n",
        "    set_torch_weight(m, std * jax.random.normal(rngs(), torch_weight(m).shape, torch_weight(m).dtype))\n    bias_of(m)[...] = ", "def init(m, std):\n", why="any layer",
    ),
    Example("def start(m, init, gain):\n    init(m.weight, gain=gain)\n", "    set_torch_weight(m, init(torch_weight(m), gain=gain))\n", "def start(m, init, gain):\n", why="an initialiser that is given"),
    Example(
        "def f(x: torch.Tensor):\n    y = x + 1\n    part_(y[0])\n    return y\n\n\ndef part_(x):\n    x.fill_(2)\n    return x\n", jax="    y = y.at[0].set(part_(y[0]))\n", why="a part of a tensor",
    ),
    Example(
        "class Net(nn.Module):\n    def forward(self, x):\n        for i in range(2):\n            x[i] = torch.relu(x[i])\n        return x\n",
        jax="            x = set_item(x, i, jax.nn.relu(x[i]))\n", why="a list or a tensor",
    ),
    Example("def f(x: torch.Tensor, i: torch.Tensor):\n    x = x.clone()\n    x[:, i] -= 1\n    return x\n", jax="x.at[:, i].set(x[:, i] - 1)", why="an index may name an element twice"),
    Example("def f(x: torch.Tensor):\n    y = x + 1\n    y[:, 0] -= x[0]\n    return y\n", jax="y = y.at[:, 0].add(-x[0])"),
    Example(
        "class Net(nn.Module):\n    def __init__(self, value: float):\n        super().__init__()\n        self.a = nn.Linear(3, 3)\n        nn.init.zeros_(self.a.weight)  # at first\n        nn.init.constant_(self.a.bias.data, val=value)\n",
        "        self.a.kernel[...] = 0  # at first\n        self.a.bias[...] = value\n", "        zeros_(self.a.weight)", why="all of a variable gets one value",
    ),
    Example("def init(m: nn.Module):\n    nn.init.ones_(m.weight)\n    for p in m.parameters():\n        nn.init.constant_(p, 0.5)\n", "    weight_of(m)[...] = 1\n    for p in parameters(m):\n        p[...] = 0.5\n", "    ones_(m.weight)"),
    Example("def f(m: nn.Module, t: torch.Tensor):\n    nn.init.ones_(t)\n    return nn.init.zeros_(m.weight), t\n", "    t = ones_(t)\n    return zeros_(weight_of(m)), t\n", "    t = ones_(t)\n", why="arrays, and results that are used"),
    Example("def f(config):\n    config['lr'] = 0.1\n    config['steps'] += 1\n    return config\n"),
    Example("def f(names: list):\n    names[0] = 'a'\n    names += ['b']\n    return names\n"),
)
