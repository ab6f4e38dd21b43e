"""Keep parameters and buffers in variables: made once, read as arrays, written as variables.

Converted: `self.w = nn.Parameter(torch.zeros(3))`, `self.register_buffer("mask", m)`, reading `self.w`, `self.running = self.running * 0.9`.
Unchanged: `self.w is None`, an attribute that holds a plain tensor, `self.mask[:, :n]` where the variable can be indexed itself.
Refused: a buffer whose name is not known and whose module is not `self`.
"""
import ast

from migrate.context import Context
from migrate.edits import OR, TERNARY, Emitter, Piece, piece, required
from migrate.infer.engine import registered_late
from migrate.infer.kinds import Kind, refs
from migrate.rules.constraining import kept_gradient
from migrate.rules.example import Example
from migrate.rules.layers import qualified
from migrate.rules.notes import is_note
from migrate.source.modules import ClassInfo, FunctionInfo
from migrate.tables import Row, state_axes

RULE = "state"
PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.UninitializedParameter", "torch.nn.parameter.UninitializedParameter", "torch.nn.Buffer", "torch.nn.parameter.Buffer")
MIXED = (-1,)  # layers whose layouts differ: only the variable itself can be named
AMBIGUOUS = ("", MIXED)  # layers that call the variable differently
ABOUT = ("builtins.isinstance", "builtins.id", "builtins.hasattr", "builtins.getattr", "builtins.setattr")
METADATA = frozenset({"shape", "ndim", "dtype"})


def fill(ctx: Context, text: str, **holes: Piece) -> Piece:
    """Fills a target's small template, such as "v[...] = x"."""
    node = ast.parse(text).body[0]
    parents = {c: p for p in ast.walk(node) for c in ast.iter_child_nodes(p)}
    out, at = [], 0
    for n in sorted((n for n in ast.walk(node) if isinstance(n, ast.Name)), key=lambda n: n.col_offset):
        out.append(text[at : n.col_offset])
        out.append(holes[n.id].at(required(parents.get(n), n)) if n.id in holes else qualified(ctx, n.id))
        at = n.end_col_offset or 0
    made = "".join(out) + text[at:]
    return piece(made) if isinstance(node, ast.Expr) else Piece(made)


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`nn.Parameter(...)`, `register_buffer`, `register_parameter`."""
    if ctx.owned(node):
        return
    if ctx.dotted(node.func) in PARAMETERS:
        _parameter(ctx, node)
    elif isinstance(node.func, ast.Attribute) and node.func.attr in ("register_buffer", "register_parameter") and ctx.kind(node.func.value).tag == "module":
        _register(ctx, node, node.func)


def _parameter(ctx: Context, node: ast.Call) -> None:
    value = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "data"), None)
    if value is None:
        ctx.refuse("MIG302", node, "a parameter without a value")
        return
    trained = _argument(node, 1, "requires_grad")
    if ctx.dotted(node.func).endswith("Buffer"):
        trained = ast.Constant(False)
    if trained is not None and not isinstance(trained, ast.Constant):
        ctx.edit(node, lambda e: fill(ctx, ctx.target.chosen, x=_array(ctx, e, value), trained=e.piece(trained)), RULE, why="torch.nn.Parameter")
        return
    text = ctx.target.parameter if trained is None or trained.value else ctx.target.buffer
    persistent = next((k.value for k in node.keywords if k.arg == "persistent"), None)
    ctx.edit(node, lambda e: fill(ctx, _plain(text, persistent), x=_array(ctx, e, value)), RULE, why="torch.nn.Parameter")


def _array(ctx: Context, e: Emitter, value: ast.expr) -> Piece:
    return e.piece(value)


def _plain(text: str, persistent: ast.expr | None) -> str:
    """The buffer template without `persistent` where it is the default."""
    if persistent is None or isinstance(persistent, ast.Constant) and persistent.value is True:
        return text.replace(", persistent=persistent", "")
    return text.replace("persistent=persistent", f"persistent={ast.unparse(persistent)}")


def _argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    if len(node.args) > position:
        return node.args[position]
    return next((k.value for k in node.keywords if k.arg == name), None)


def _register(ctx: Context, node: ast.Call, func: ast.Attribute) -> None:
    is_buffer = func.attr == "register_buffer"
    name, value = _argument(node, 0, "name"), _argument(node, 1, "tensor" if is_buffer else "param")
    statement = ctx.source.parent(node)
    if name is None or value is None or any(isinstance(a, ast.Starred) for a in node.args):
        ctx.refuse("MIG301", node, "this form is not known")
        return
    template = _plain(ctx.target.buffer, _argument(node, 2, "persistent")) if is_buffer else "x"

    def build(e: Emitter) -> Piece:
        held = e.piece(value)
        nothing = isinstance(value, ast.Constant) and value.value is None
        optional = ctx.kind(value).optional or nothing
        if nothing:
            made = held if not ctx.target.wraps_static else fill(ctx, ctx.target.wraps_static, x=held)
        elif optional and is_buffer and isinstance(value, ast.Name):
            made = Piece(f"{fill(ctx, template, x=held).text} if {held.text} is not None else None", 3)
        elif is_buffer and isinstance(value, ast.IfExp) and any(isinstance(v, ast.Constant) and v.value is None for v in (value.body, value.orelse)):
            parts = [e.piece(v).text if isinstance(v, ast.Constant) and v.value is None else fill(ctx, template, x=e.piece(v)).text for v in (value.body, value.orelse)]
            made = Piece(f"{parts[0]} if {e.piece(value.test).at(OR)} else {parts[1]}", TERNARY)
        elif optional and is_buffer:
            local = ctx.new_name("held")
            made = Piece(f"{fill(ctx, template, x=Piece(local)).text} if ({local} := {held.text}) is not None else None", TERNARY)
        else:
            made = fill(ctx, template, x=held)
        owner = e.piece(func.value).at(17)
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier() and isinstance(statement, ast.Expr):
            return Piece(f"{owner}.{renamed(ctx, func.value, name.value)} = {made.text}")
        return Piece(f"setattr({owner}, {e.piece(name).text}, {made.text})")

    ctx.edit(statement if isinstance(statement, ast.Expr) else node, build, RULE, why=func.attr)


def renamed(ctx: Context, owner: ast.expr, name: str) -> str:
    """The name of an attribute in the output."""
    kind = ctx.kind(owner)
    if isinstance(kind.ref, ClassInfo) and kind.ref.is_module and name in ctx.target.reserved:
        return name + "_"
    return name


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """Reads a variable."""
    kind = ctx.kind(node)
    if node.attr == "data" and ctx.kind(node.value).variable and _is_initialised(ctx, node) and not ctx.owned(node):
        ctx.edit(node, lambda e: e.piece(node.value), RULE, why="variable")
        return
    if ctx.owned(node) or not isinstance(node.ctx, ast.Load):
        return
    if node.attr == "data" and of_unknown_layer(ctx, node.value):
        ctx.edit(node, lambda e: e.piece(node.value), RULE, why="variable")
        return
    if kind.is_unknown and node.attr in ("weight", "bias") and ctx.kind(node.value).is_unknown and ctx.resolve(node) is None and "weight_of" in ctx.support:
        _unknown_layer(ctx, node, _stays_variable(ctx, node, kind, True))
        return
    if not kind.variable or ctx.kind(node.value).tag != "module":
        return
    native = _native_state(ctx, node)
    if native is None and not refs(ctx.kind(node.value)) and node.attr in ("weight", "bias") and f"{node.attr}_of" in ctx.support:
        native = AMBIGUOUS
    turned = native is not None and native[1] is not None and node.attr != "bias"
    if turned and _is_kept(ctx, node, kind):
        ctx.refuse("MIG304", node, "two modules share this weight, and the layer keeps it in another layout than the module that it is given to")
        return
    if turned and kind.variable == "param" and _is_collected(ctx, node):
        ctx.refuse("MIG304", node, "kept twice: the layer has this weight in another layout than the list or mapping would hold it")
        return
    bare = _stays_variable(ctx, node, kind, turned)
    if native is None and bare:
        return
    if native is not None and native[1] == MIXED and not bare or native == AMBIGUOUS:
        _unknown_layer(ctx, node, bare)
        return

    parent = ctx.source.parent(node)
    named = kind.optional and (isinstance(parent, ast.Assign) and parent.value is node or _handed_out(ctx, node, kind))

    def build(e: Emitter) -> Piece:
        if not bare:
            made = array(ctx, e, node)
            return Piece(f"{made.text} if {e.piece(node.value).at(17)}.{node.attr} is not None else None", TERNARY) if named and native is None else made
        name = native[0] if native is not None else renamed(ctx, node.value, node.attr)
        return Piece(f"{e.piece(node.value).at(17)}.{name}")

    ctx.edit(node, build, RULE, why="variable")


def visit_element(ctx: Context, node: ast.Name | ast.Subscript) -> None:
    """An element of a ParameterList that is given to a library which takes arrays only."""
    kind, call = ctx.kind(node), ctx.source.parent(node)
    if not kind.variable or kind.optional or ctx.owned(node) or not isinstance(node.ctx, ast.Load) or not isinstance(call, ast.Call) or node not in call.args:
        return
    if ctx.dotted(call.func).partition(".")[0] in ("einops", "numpy"):
        ctx.edit(node, lambda e: fill(ctx, ctx.target.read, v=e.original(node)), RULE, why="variable")


def of_unknown_layer(ctx: Context, node: ast.expr) -> bool:
    """`m.weight` of what may be any layer; the target's layers keep theirs in variables."""
    known = isinstance(node, ast.Attribute) and node.attr in ("weight", "bias") and "set_torch_weight" in ctx.support
    return known and isinstance(node, ast.Attribute) and ctx.kind(node).is_unknown and ctx.kind(node.value).is_unknown and ctx.resolve(node) is None and not ctx.is_self(node.value)


def _of_any_layer(ctx: Context, node: ast.Attribute) -> bool:
    """`m.weight` of a module that nothing more is known of: the target's layers keep theirs under names of their own."""
    kind = ctx.kind(node.value)
    return node.attr in ("weight", "bias") and f"{node.attr}_of" in ctx.support and kind.tag == "module" and not refs(kind)


def is_turned(ctx: Context, node: ast.Attribute) -> bool:
    """`self.lin.weight` of a layer that keeps it in another layout than PyTorch's."""
    if not ctx.kind(node).variable or ctx.kind(node.value).tag != "module":
        return False
    native = _native_state(ctx, node)
    return native is not None and native[1] is not None and "set_torch_weight" in ctx.support


def _unknown_layer(ctx: Context, node: ast.Attribute, bare: bool) -> None:
    """`m.weight` of a layer that is known at run time only: layers keep their weights under different names, in different layouts."""
    name = f"{node.attr}_of" if bare or node.attr == "bias" else "torch_weight"
    if name not in ctx.support:
        ctx.refuse("MIG304", node, "which layer this is could not be told, and layers keep their weights in different layouts")
        return
    ctx.edit(node, lambda e: Piece(f"{ctx.name(name)}({e.piece(node.value).text})"), RULE, why="variable")


def array(ctx: Context, e: Emitter, node: ast.Attribute) -> Piece:
    """The array that a variable holds, in PyTorch's layout."""
    name, axes = _native_state(ctx, node) or (renamed(ctx, node.value, node.attr), None)
    if axes == MIXED or _of_any_layer(ctx, node):
        return Piece(f"{ctx.name('torch_weight' if node.attr == 'weight' else 'bias_of')}({e.piece(node.value).text})")
    return transposed(fill(ctx, ctx.target.read, v=Piece(f"{e.piece(node.value).at(17)}.{name}")), axes)


def transposed(made: Piece, axes: tuple[int, ...] | None) -> Piece:
    """PyTorch's layout of a native layer's variable; `axes` transposes PyTorch's to the native one."""
    if axes is None or axes == tuple(range(len(axes))):
        return made
    if axes == tuple(reversed(range(len(axes)))):
        return Piece(f"{made.at(17)}.T")
    back = tuple(axes.index(i) for i in range(len(axes)))
    return Piece(f"{made.at(17)}.transpose{back}")


def _native_state(ctx: Context, node: ast.Attribute) -> tuple[str, tuple[int, ...] | None] | None:
    """The native attribute of `layer.weight`, with the axes."""
    found = set()
    for ref in refs(ctx.kind(node.value)):
        if isinstance(ref, ClassInfo):
            ref = ref.layer if not ref.assigned(node.attr) else None
        text = state_of(ctx, ref).get(node.attr) if isinstance(ref, Row) else None
        found.add(state_axes(text) if text else (node.attr, None))
    if len({name for name, _ in found}) > 1:
        return AMBIGUOUS
    if len(found) > 1:
        return found.pop()[0], MIXED
    return found.pop() if found and found != {(node.attr, None)} else None


def state_of(ctx: Context, row: Row) -> dict[str, str]:
    """The native state of a layer: PyTorch's name -> "attribute: axes -> axes"."""
    return {k: v for k, v in row.state.items() if isinstance(v, str)} if ctx.target.threads_rngs else {}


def _stays_variable(ctx: Context, node: ast.Attribute, kind: Kind, turned: bool) -> bool:
    """Whether the variable itself may stand here. `turned`: its axes are in another order than PyTorch's."""
    parent = ctx.source.parent(node)
    match parent:
        case ast.Attribute():
            if parent.attr == "data" and _is_initialised(ctx, parent):
                return True
            return is_note(parent) or parent.attr in METADATA and not (turned and parent.attr == "shape") or parent.attr in ("requires_grad", "grad", "device")
        case ast.Compare():
            return any(isinstance(o, (ast.Is, ast.IsNot)) for o in parent.ops)
        case ast.Subscript(ctx=ast.Load()) if parent.value is node:
            return ctx.target.read == "v[...]" and not turned and not _mask_index(ctx, parent)
        case ast.Assign():
            return any(isinstance(t, ast.Attribute) and t.attr in ("weight", "bias") for t in parent.targets) or all(
                isinstance(t, ast.Attribute) and ctx.kind(t.value).tag == "module" for t in parent.targets
            )
        case ast.keyword() if not turned and _is_kept(ctx, node, kind):
            return True
        case ast.Call() if node in parent.args:
            name = ctx.dotted(parent.func)
            if not turned and _is_kept(ctx, node, kind):
                return True
            if _comes_back(ctx, parent, node) or name.partition(".")[0] in ("einops", "numpy"):
                return False  # these take arrays only
            if name.startswith("torch.nn.init.") or name in PARAMETERS or name in ABOUT:
                return True
            if not turned and isinstance(ctx.source.parent(parent), ast.Expr) and isinstance(parent.func, ast.Name) and ctx.kind(parent.func).tag != "class":
                return True  # called for what it does to the variable
        case ast.List() | ast.Tuple() | ast.Dict() if _is_started(ctx, parent):
            return True
        case ast.List() | ast.Tuple() | ast.Dict() | ast.Call() if not turned and kind.variable == "param" and _is_collected(ctx, node):
            return True
        case ast.List() | ast.Dict():
            return False
        case _ if _handed_out(ctx, node, kind):
            return False
        case ast.Return():
            return kind.optional and not turned
        case ast.BinOp() if ctx.target.read == "v[...]" and not kind.optional and not turned:
            return isinstance(parent.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult)) and not ctx.kind(parent.left if parent.right is node else parent.right).variable
    return kind.optional and not turned


def _handed_out(ctx: Context, node: ast.AST, kind: Kind) -> bool:
    """Whether a buffer's value leaves the module: the variable would change with it, where PyTorch binds the attribute anew and leaves what it has handed out."""
    up = ctx.source.parent(node)
    while isinstance(up, (ast.IfExp, ast.Tuple, ast.List, ast.Dict)) and not (isinstance(up, ast.IfExp) and up.test is node):
        node, up = up, ctx.source.parent(up)
    grows = isinstance(up, ast.Call) and node in up.args and isinstance(up.func, ast.Attribute) and up.func.attr in ("append", "insert", "extend")
    return kind.variable == "buffer" and (grows or isinstance(up, (ast.Return, ast.Yield)))


def _is_kept(ctx: Context, node: ast.AST, kind: Kind) -> bool:
    """Whether a parameter of the model is handed to the constructor of a module that makes it a parameter of its own: both go on sharing it."""
    up = ctx.source.parent(node)
    call = ctx.source.parent(up) if isinstance(up, ast.keyword) else up
    if kind.variable != "param" or not isinstance(call, ast.Call):
        return False
    arg = ctx.inf.argument(ctx.file, call, node)
    return arg is not None and ctx.inf.keeps(arg)


def _is_collected(ctx: Context, node: ast.AST) -> bool:
    """Whether a module keeps a parameter in a list, a tuple or a dict of its own as well: PyTorch keeps the parameter itself there, which goes on changing."""
    up, inside = ctx.source.parent(node), False
    while isinstance(up, (ast.List, ast.Tuple, ast.Dict)):
        node, up, inside = up, ctx.source.parent(up), True
    held: ast.AST | None = None
    if isinstance(up, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and inside:
        held = up.targets[0] if isinstance(up, ast.Assign) else up.target
        held = held.value if isinstance(held, ast.Subscript) else held
    elif isinstance(up, ast.Call) and node in up.args and isinstance(up.func, ast.Attribute) and up.func.attr in ("append", "insert", "extend"):
        held = up.func.value
    return isinstance(held, ast.Attribute) and ctx.is_self(held.value) and ctx.kind(held).tag in ("list", "tuple", "dict")


def _comes_back(ctx: Context, call: ast.Call, node: ast.AST) -> bool:
    """Whether what the callee makes of an argument is written back: it gets the array."""
    from migrate.rules import aliases

    return any(e.given is node and (e.product or e.returned) for e in aliases.events(ctx, call))


def _is_started(ctx: Context, held: ast.List | ast.Tuple | ast.Dict) -> bool:
    """Whether a loop of the function that makes a list, a tuple or a dict gives variables their first values; what an operator of PyTorch gets is no such list."""
    up, function = ctx.source.parent(held), ctx.function_of(held)
    if function is None or isinstance(up, ast.Call) and isinstance(ctx.resolve(up.func), Row) or isinstance(up, ast.Return):
        return False
    return starts(ctx, function)


def starts(ctx: Context, function: FunctionInfo) -> bool:
    """Whether a loop of a function gives variables their first values: what it loops over holds the variables themselves."""
    known: dict[ast.AST, bool] = ctx.shared.setdefault("starting_loops", {})
    if function.node not in known:
        loops = [n for n in ast.walk(function.node) if isinstance(n, (ast.For, ast.comprehension))]
        names = {n.id for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        uses = [n for name in names for n in ctx.inf.uses(function.node).get(name, ()) if ctx.kind(n).variable]
        known[function.node] = any(_is_initialised(ctx, n) or isinstance(ctx.source.parent(n), ast.Subscript) and _is_initialised(ctx, ctx.source.parent(n)) or isinstance(at := ctx.source.parent(n), ast.Attribute) and (at.attr == "data" or at.attr.endswith("_")) for n in uses)
    return known[function.node]


def _is_initialised(ctx: Context, node: ast.AST | None) -> bool:
    """Whether the node is the first argument of a function of torch.nn.init."""
    call = ctx.source.parent(node) if node is not None else None
    return isinstance(call, ast.Call) and node in call.args[:1] and ctx.dotted(call.func).startswith("torch.nn.init.")


def _mask_index(ctx: Context, node: ast.Subscript) -> bool:
    return ctx.kind(node.slice).dtype == "bool" or isinstance(node.slice, ast.List)


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`self.buffer = value`, `self.weight.data = value`: written into the variable."""
    if len(node.targets) != 1 or ctx.owned(node) or ctx.owned(node.targets[0]):
        return
    target = node.targets[0]
    if isinstance(target, (ast.Tuple, ast.List)):
        _several(ctx, node, target)
        return
    if _initialises_itself(ctx, target, node.value):
        ctx.edit(node, lambda e: e.piece(node.value), RULE, why="variable")
        return
    through_data = isinstance(target, ast.Attribute) and target.attr == "data" and ctx.kind(target.value).is_tensor
    variable = target.value if through_data and isinstance(target, ast.Attribute) else target
    if through_data and isinstance(variable, ast.Name) and ctx.kind(variable).variable:
        ctx.edit(node, lambda e: fill(ctx, ctx.target.write, v=e.piece(variable), x=kept_gradient(ctx, target, e.piece(variable), e.piece(node.value))), RULE, why="variable")
        return
    if not isinstance(variable, ast.Attribute) or ctx.kind(variable.value).tag != "module":
        return
    if not through_data and _own_again(ctx, variable, node.value):
        ctx.edit(node, lambda e: write(ctx, e, variable, e.piece(node.value), ctx.target.rebind), RULE, why="variable")
        return
    value = ctx.kind(node.value)
    ref = ctx.kind(variable.value).ref
    if not through_data and value.is_tensor and not value.variable and isinstance(ref, ClassInfo) and registered_late(ref.assigned(variable.attr)):
        ctx.edit(node, lambda e: _made(ctx, e, node, variable, True), RULE, why="variable")
        return
    held = _held(ctx, variable)
    if not held.variable or not through_data and (value.variable or value.tag == "none" or _makes_parameter(ctx, node.value)):
        return
    owner = ctx.class_of(node)
    if owner is not None and not through_data and not _registered(ctx, owner, variable):
        return
    if not through_data and _is_alternative(ctx, node, variable):
        ctx.edit(node, lambda e: _made(ctx, e, node, variable), RULE, why="variable")
        return
    template = ctx.target.write if through_data or _keeps_shape(ctx, variable, node.value) else ctx.target.rebind
    ctx.edit(node, lambda e: write(ctx, e, variable, e.piece(node.value), template), RULE, why="variable")


def visit_data(ctx: Context, node: ast.Assign) -> None:
    """`f(x).data = value` that no rule has taken: an array has no data to replace. The weight of any layer gets the value."""
    target = node.targets[0]
    if not isinstance(target, ast.Attribute) or target.attr != "data" or ctx.owned(node):
        return
    held = target.value
    found = isinstance(held, ast.Call) and ctx.dotted(held.func) == "builtins.getattr" and ctx.kind(held.args[0]).tag == "module"
    if len(node.targets) == 1 and of_unknown_layer(ctx, held) and isinstance(held, ast.Attribute) and "set_torch_weight" in ctx.support:
        ctx.edit(node, lambda e: _set_of_any(ctx, e, held, e.piece(node.value)), RULE, why="data")
    elif found or ctx.kind(held).is_tensor or of_unknown_layer(ctx, held):
        ctx.refuse("MIG303", node, "the data of this tensor can't be replaced: nothing here holds it by a name")


def _set_of_any(ctx: Context, e: Emitter, held: ast.Attribute, value: Piece) -> Piece:
    layer = e.piece(held.value).text
    if held.attr == "weight":
        return Piece(f"{ctx.name('set_torch_weight')}({layer}, {value.text})")
    return fill(ctx, ctx.target.write, v=Piece(f"{ctx.name('bias_of')}({layer})"), x=value)


def _several(ctx: Context, node: ast.Assign, target: ast.Tuple | ast.List) -> None:
    """`self.a, self.b = f(x)` of variables: names take the values, which are written then."""
    owner = ctx.class_of(node)

    def is_held(n: ast.AST) -> bool:
        at_module = isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and ctx.kind(n.value).tag == "module"
        return at_module and isinstance(n, ast.Attribute) and bool(_held(ctx, n).variable) and (owner is None or _registered(ctx, owner, n))

    held = [n for n in target.elts if isinstance(n, ast.Attribute) and is_held(n)]
    if any(is_held(n) and n not in held for n in ast.walk(target)):
        ctx.refuse("MIG303", node, "a variable that is one of several targets within targets")
    elif held:
        names = {n: ctx.new_name(n.attr) for n in held}
        for n in held:
            ctx.edit(n, lambda e, n=n: Piece(names[n]), RULE, why="variable")  # type: ignore[misc]

        def build(e: Emitter) -> Piece:
            after = [write(ctx, e, n, Piece(names[n]), ctx.target.rebind).text for n in held]
            return Piece(f"\n{e.source.indent(node)}".join([e.original(node).text, *after]))

        ctx.edit(node, build, RULE, why="variable")


def _own_again(ctx: Context, variable: ast.Attribute, value: ast.expr) -> bool:
    """`self.weight = filled(self.weight)` of a layer's own parameter: PyTorch takes nothing but a parameter there, so the function changes it and hands it back."""
    ref = ctx.kind(variable.value).ref
    if not isinstance(ref, ClassInfo) or not isinstance(ref.layer, Row) or not isinstance(value, ast.Call) or _makes_parameter(ctx, value) or not ctx.kind(value).is_tensor:
        return False
    state, itself = ref.layer.state.get(variable.attr, ""), ast.unparse(variable)
    text = state if isinstance(state, str) else ""
    only = all(isinstance(a.value, ast.Call) and not _makes_parameter(ctx, a.value) and itself in map(ast.unparse, a.value.args) for a in ref.assigned(variable.attr))
    return bool(text) and (not ctx.target.threads_rngs or state_axes(text)[1] is None) and only


def _keeps_shape(ctx: Context, variable: ast.Attribute, value: ast.expr) -> bool:
    """Whether a value certainly has the variable's shape and kind: a number's sum or product with the variable itself."""
    match value:
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            parts = value.left, value.right
            return any(_keeps_shape(ctx, variable, p) for p in parts) and all(_keeps_shape(ctx, variable, p) or ctx.kind(p).tag in ("int", "float", "number") for p in parts)
        case ast.Attribute():
            return ast.unparse(value) == ast.unparse(variable) and ctx.kind(value).dtype in ("", "float")
    return False


def _held(ctx: Context, node: ast.Attribute) -> Kind:
    base = ctx.kind(node.value)
    if isinstance(base.ref, ClassInfo):
        kinds = [ctx.inf.kinds.get(a.target, Kind("unknown")) for a in base.ref.assigned(node.attr)]
        for k in kinds:
            if k.variable:
                return k
        if kinds:
            return Kind("unknown")
    return ctx.kind(node)  # also that of a layer that the class derives from


def _registered(ctx: Context, owner: ClassInfo, node: ast.Attribute) -> bool:
    base = ctx.kind(node.value).ref
    return isinstance(base, ClassInfo) and any(isinstance(a.target, ast.Call) or _makes_parameter(ctx, a.value) for a in base.assigned(node.attr))


def _initialises_itself(ctx: Context, target: ast.expr, value: ast.expr) -> bool:
    """`m.weight = nn.init.normal_(m.weight)`: the variable, which may have another name here, is written to by the function itself."""
    if not isinstance(target, ast.Attribute) or not isinstance(value, ast.Call) or not value.args or not ctx.dotted(value.func).startswith("torch.nn.init."):
        return False
    return ast.unparse(target) == ast.unparse(value.args[0]) and (ctx.kind(value.args[0]).variable != "" or target.attr in ("weight", "bias"))


def _is_alternative(ctx: Context, node: ast.Assign, variable: ast.Attribute) -> bool:
    """Whether each place that makes the variable is in the other branch of an `if` around the assignment."""
    base = ctx.kind(variable.value).ref
    made = [a for a in base.assigned(variable.attr) if isinstance(a.target, ast.Call) or _makes_parameter(ctx, a.value)] if isinstance(base, ClassInfo) else []
    here = _branches(ctx, node)
    return bool(made) and all(any(here.get(at, taken) != taken for at, taken in _branches(ctx, a.target).items()) for a in made)


def _branches(ctx: Context, node: ast.AST) -> dict[ast.If, bool]:
    """The `if` statements around a node, with the branch that it is in."""
    found: dict[ast.If, bool] = {}
    child, parent = node, ctx.source.parent(node)
    while parent is not None and not isinstance(parent, (ast.FunctionDef, ast.ClassDef)):
        if isinstance(parent, ast.If):
            found[parent] = child in parent.body
        child, parent = parent, ctx.source.parent(parent)
    return found


def _made(ctx: Context, e: Emitter, node: ast.Assign, variable: ast.Attribute, persists: bool = False) -> Piece:
    """A value in a variable: of a buffer that had none, or what PyTorch keeps as a plain tensor, so that both branches are read alike."""
    persistent = ast.Constant(persists)
    made = fill(ctx, _plain(ctx.target.buffer, persistent), x=e.piece(node.value))
    return Piece(f"{e.piece(variable.value).at(17)}.{renamed(ctx, variable.value, variable.attr)} = {made.text}")


def _makes_parameter(ctx: Context, node: ast.expr | None) -> bool:
    if isinstance(node, ast.IfExp):
        return _makes_parameter(ctx, node.body) or _makes_parameter(ctx, node.orelse)
    return isinstance(node, ast.Call) and ctx.dotted(node.func) in PARAMETERS


def write(ctx: Context, e: Emitter, variable: ast.Attribute, value: Piece, template: str = "") -> Piece:
    """The statement that gives a variable a new value; by the target's template for values of the same shape, unless another is given."""
    native = _native_state(ctx, variable)
    if _of_any_layer(ctx, variable) and "set_torch_weight" in ctx.support:
        layer = e.piece(variable.value).text
        value = kept_gradient(ctx, variable, array(ctx, e, variable), value)
        if variable.attr == "weight":
            return Piece(f"{ctx.name('set_torch_weight')}({layer}, {value.text})")
        return fill(ctx, template or ctx.target.write, v=Piece(f"{ctx.name('bias_of')}({layer})"), x=value)
    name, axes = native if native is not None else (renamed(ctx, variable.value, variable.attr), None)
    held = Piece(f"{e.piece(variable.value).at(17)}.{name}")
    if axes == MIXED and variable.attr == "weight" and "set_torch_weight" in ctx.support:
        return Piece(f"{ctx.name('set_torch_weight')}({e.piece(variable.value).text}, {value.text})")
    if axes == MIXED:
        ctx.report("MIG304", variable, f"{ctx.source.segment(variable)}: which layer this is could not be told, and layers keep their weights in different layouts")
        return fill(ctx, ctx.target.write, v=Piece(f"{ctx.name(variable.attr + '_of')}({e.piece(variable.value).text})"), x=value)
    if axes is not None and axes != tuple(range(len(axes))):
        value = Piece(f"{value.at(17)}.T") if axes == tuple(reversed(range(len(axes)))) else Piece(f"{value.at(17)}.transpose{axes}")
    return fill(ctx, template or ctx.target.write, v=held, x=kept_gradient(ctx, variable, held, value))


HEAD = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = nn.Parameter(torch.zeros(3))\n        self.register_buffer('b', torch.ones(3))\n        self.a = nn.Linear(3, 4)\n\n    def forward(self, x):\n"
SHARING = (
    "class Head(nn.Module):\n    def __init__(self, n, weight):\n        super().__init__()\n        self.weight = weight\n        self.n = n\n\n    def forward(self, x):\n"
    "        return F.linear(x, self.weight)\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.table = nn.Embedding(5, 3)\n        self.w = nn.Parameter(torch.zeros(5, 3))\n"
)
EXAMPLES = (
    Example(
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.a = nn.Parameter(torch.empty(n, 3, 3))\n        self.b = nn.Parameter(torch.empty(n, 3, 3))\n        both = [self.a, self.b]\n"
        "        for p in both:\n            for i in range(n):\n                nn.init.xavier_normal_(p[i])\n",
        "        both = [self.a, self.b]\n        for p in both:\n            for i in range(n):\n                p[...] = p[...].at[i].set(xavier_normal_(p[i], rngs=rngs))\n", "        both = [self.a, self.b]\n", why="their elements get first values",
    ),
    Example(f"{SHARING}        self.head = Head(5, weight=self.table.weight)\n", "        self.head = Head(5, weight=self.table.embedding, rngs=rngs)\n", "        self.head = Head(5, weight=self.table.weight)\n", why="two modules go on sharing a parameter"),
    Example(f"{SHARING}        self.head = Head(5, self.w)\n", "        return x @ self.weight[...].T\n", "        return x @ self.weight.value.T\n", why="it is a parameter of the module that it is given to"),
    Example(f"{SHARING}        self.head = Head(5, self.w.exp())\n", "        self.head = Head(5, jnp.exp(self.w[...]), rngs=rngs)\n", "        self.head = Head(5, jnp.exp(self.w.value))\n", why="what is made of one is none"),
    Example(
        "class Net(nn.Module):\n    def __init__(self, norm_layer=nn.BatchNorm2d):\n        super().__init__()\n        self.norm = norm_layer(3)\n        for m in self.modules():\n            if isinstance(m, norm_layer):\n                m.weight.data.fill_(1)\n                m.bias.data.zero_()\n",
        "                set_torch_weight(m, jnp.full_like(torch_weight(m), 1))\n                bias_of(m)[...] = jnp.zeros_like(bias_of(m))\n", "                m.weight.assign(jnp.full_like(m.weight.value, 1))\n", why="of a class that is given",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('a', torch.zeros(3))\n        self.register_buffer('b', torch.zeros(3))\n        self.n = 0\n\n    def step(self, x):\n        return self.b + x, 2 * self.a, 3\n\n    def forward(self, x):\n        self.a, self.b, self.n = self.step(x)\n        return self.a\n",
        "        a, b, self.n = self.step(x)\n        self.a.set_value(a)\n        self.b.set_value(b)\n", "        a, b, self.n = self.step(x)\n        self.a.assign(a)\n        self.b.assign(b)\n", why="several at once",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, some):\n        super().__init__()\n        self.a = nn.Parameter(torch.empty(3, 3))\n        self.b = nn.Parameter(torch.empty(3, 3)) if some else None\n        for p in [self.a, self.b]:\n            if p is not None:\n                nn.init.xavier_normal_(p)\n        both = (self.a, self.b)\n        for p in both:\n            nn.init.zeros_(p)\n",
        "        for p in [self.a, self.b]:\n            if p is not None:\n                xavier_normal_(p, rngs=rngs)\n        both = (self.a, self.b)\n", "        for p in [self.a, self.b]:\n", why="a loop gives them their first values",
    ),
    Example(
        "import einops\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.memory = nn.Parameter(torch.randn(n, 3)) if n > 0 else None\n\n    def forward(self, x):\n        if self.memory is not None:\n            x = x + einops.repeat(self.memory, 'n d -> b n d', b=2)\n        return x\n",
        "            x = x + einops.repeat(self.memory[...], 'n d -> b n d', b=2)\n", "            x = x + einops.repeat(self.memory.value, 'n d -> b n d', b=2)\n", why="one that may be None is there where a library gets it",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.register_buffer('order', None)\n        self.register_buffer('mask', None, persistent=False)\n        if n > 1:\n            self.order = torch.arange(n)\n            self.mask = torch.ones(n)\n\n    def forward(self, x):\n        return x[self.order] * self.mask\n",
        "            self.order = Buffer(jnp.arange(n))\n            self.mask = jnp.ones(n)\n\n    def __call__(self, x):\n        return x[self.order", "            self.order = Buffer(jnp.arange(n))\n", why="a buffer that gets its value later",
    ),
    Example("class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Buffer(torch.zeros(3), persistent=False)\n", jax="        self.a = Buffer(jnp.zeros((3,)), persistent=False)\n"),
    Example("def largest(m):\n    return m.weight.data.abs().max() + other(m.bias.data)\n", "    return jnp.max(absolute(torch_weight(m))) + other(bias_of(m))\n", keras="def largest(m):\n", why="data of any layer"),
    Example(
        "class Net(nn.Module):\n    def __init__(self, n=0):\n        super().__init__()\n        self.register_buffer('mask', None)\n        if n:\n            self.register_buffer('mask', torch.zeros(n))\n\n"
        "    def forward(self, x):\n        mask = self.mask\n        return x if mask is None else x + mask\n",
        "        mask = self.mask[...] if self.mask is not None else None\n", "        mask = self.mask.value if self.mask is not None else None\n", why="a buffer that may be None",
    ),
    Example(f"{HEAD}        return torch.exp(self.w) + x * self.w\n", "        return jnp.exp(self.w[...]) + x * self.w\n", "        return jnp.exp(self.w.value) + x * self.w.value\n"),
    Example(f"{HEAD}        self.b = self.b * 0.9\n        return self.b[:2]\n", "        self.b[...] = self.b * 0.9\n        return self.b[:2]\n", "        self.b.assign(self.b.value * 0.9)\n        return self.b.value[:2]\n"),
    Example(f"{HEAD}        old = self.b\n        self.b = x.mean(0)\n        return old\n", "        old = self.b[...]\n        self.b.set_value(jnp.mean(x, axis=0))\n        return old\n", "        old = self.b.value\n", why="bound anew"),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('mem', torch.zeros(3), persistent=False)\n        self.on = False\n\n    def keep(self, mem=None):\n"
        "        if not mem == None:\n            self.mem = mem\n        return 1, self.mem\n\n    def forward(self, x, mem=None):\n        if self.on and mem != None:\n            self.mem = torch.zeros_like(x)\n        return x, self.mem\n",
        "        if self.on and mem != None:\n            self.mem.set_value(jnp.zeros_like(x))\n        return x, self.mem[...]\n", "        if self.on and mem != None:\n", why="compared with None: no array, and none where it is equal",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.register_buffer('mem', torch.zeros(3), persistent=False)\n\n    def forward(self, x, mem: Optional[torch.Tensor] = None):\n"
        "        self.mem = mem\n        return x, self.mem\n",
        "        return x, self.mem[...] if self.mem is not None else None\n", "        return x, self.mem.value if self.mem is not None else None\n", why="what is handed out keeps its value at the next call",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Parameter(torch.zeros(3))\n        self.lin = nn.Linear(3, 3)\n        self.all = [self.a, self.lin.bias]\n"
        "        self.few = {'a': self.a}\n        self.some = []\n        self.some.append((self.a, 2))\n        self.more = []\n        self.more += [self.a]\n        self.few['b'] = (self.a.exp(),)\n\n    def forward(self, x):\n        return x + self.all[0] + sum(a * n for a, n in self.some)\n",
        "        self.all = nnx.data([self.a, self.lin.bias])\n        self.few = nnx.data({'a': self.a})\n        self.some = nnx.data([])\n        self.some.append((self.a, 2))\n        self.more = nnx.data([])\n        self.more += [self.a]\n        self.few['b'] = (jnp.exp(self.a[...]),)\n",
        "        self.some.append((self.a, 2))\n", why="a list holds the parameter itself, which goes on changing",
    ),
    Example(f"{HEAD}        return F.linear(x, self.a.weight), self.a.weight.t()\n", "        return x @ self.a.kernel[...], self.a.kernel[...]\n", "        return x @ self.a.weight.value.T, self.a.weight.value.T\n"),
    Example(f"{HEAD}        return self.w is None, self.w.shape\n", jax="        return self.w is None, self.w.shape\n", why="the variable itself will do"),
    Example(
        "class Net(nn.Module):\n    def __init__(self, names):\n        super().__init__()\n        for n in names:\n            self.register_buffer(n, torch.zeros(3), persistent=False)\n        self.register_parameter('none', None)\n",
        "            setattr(self, n, Buffer(jnp.zeros((3,)), persistent=False))\n        self.none = nnx.data(None)\n", "            setattr(self, n, Buffer(jnp.zeros((3,)), persistent=False))\n        self.none = None\n",
    ),
    Example(
        "import einops\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.all = nn.ParameterList([nn.Parameter(torch.zeros(3))])\n\n    def forward(self, x):\n        for p in self.all:\n            x = x + einops.repeat(p, 'd -> b d', b=2) + p\n        return x\n",
        "            x = x + einops.repeat(p[...], 'd -> b d', b=2) + p\n", "            x = x + einops.repeat(p.value, 'd -> b d', b=2) + p\n", why="an element, given to a library",
    ),
    Example(
        "def init(m):\n    if isinstance(m, (nn.Conv1d, nn.ConvTranspose1d)):\n        m.weight.data.normal_(0.0, 0.01)\n",
        "        set_torch_weight(m, 0.01 * jax.random.normal(rngs(), torch_weight(m).shape, torch_weight(m).dtype))\n", "        m.weight.assign(", why="layers that keep their weights in different layouts",
    ),
    Example("def f(m: nn.Module):\n    return m.weight.shape[0], m.bias.shape\n", "    return torch_weight(m).shape[0], bias_of(m).shape\n", "    return m.weight.shape[0], m.bias.shape\n", why="which layer it is shows at run time only"),
    Example(
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        if n:\n            self.register_buffer('mask', torch.ones(n))\n        else:\n            self.mask = torch.zeros(1)\n",
        jax="            self.mask = Buffer(jnp.ones(n))\n        else:\n            self.mask = Buffer(jnp.zeros((1,)), persistent=False)\n", why="a plain tensor in the other branch is read as the buffer is",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.register_buffer('mask', torch.ones(n) if n > 1 else None)\n",
        "        self.mask = Buffer(jnp.ones(n)) if n > 1 else None\n", "        self.mask = Buffer(jnp.ones(n)) if n > 1 else None\n", why="a buffer that may be None",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.table = nn.Linear(n, n)\n\n    @property\n    def weight(self):\n        return self.table.weight\n\n\n"
        "class Outer(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.net = Net(n)\n\n    def forward(self, i: torch.Tensor):\n        return self.net.weight[i]\n",
        jax="        return self.net.weight[i]\n", why="the property has read the variable",
    ),
    Example(
        "class Table(nn.Embedding):\n    def __init__(self, n):\n        super().__init__(n, 4)\n        self.weight = filled(self.weight)\n\n\ndef filled(weight: torch.Tensor):\n    weight[:, 0] = 1.0\n    weight.detach_()\n    return weight\n",
        "        self.weight.set_value(filled(self.weight))\n", keras="        self.weight", why="a layer's own parameter, changed and handed back",
    ),
    Example("def init(m):\n    if isinstance(m, (nn.Conv1d, nn.ConvTranspose1d)):\n        m.weight = nn.init.ones_(m.weight)\n", "        ones_(weight_of(m)", "        ones_(m.weight", why="assigned to itself"),
    Example("class Plain:\n    def __init__(self):\n        self.w = 3\n        self.b = [1]\n\n    def go(self):\n        self.b = self.b * 2\n        return self.w\n"),
    Example("def f(layer, name):\n    layer.register_buffer(name, None)\n"),
    Example(
        "class Net(nn.Module):\n    def __init__(self, frozen):\n        super().__init__()\n        self.w = nn.Parameter(torch.zeros(3), requires_grad=not frozen)\n",
        "        self.w = (nnx.Param if not frozen else Buffer)(jnp.zeros((3,)))\n", "        self.w = Parameter(jnp.zeros((3,)), requires_grad=not frozen)\n",
    ),
    Example("class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = nn.Parameter()\n", refused="MIG302"),
    Example("def f(x: torch.Tensor):\n    x.exp().data = x\n    return x\n", refused="MIG303"),
    Example("def f(m: nn.Module, name):\n    getattr(m, name).data = torch.ones(3)\n", refused="MIG303", why="which layout it has is not known"),
    Example("def f(m: nn.Module):\n    m.layers[0].weight.data = torch.ones(3)\n", "    set_torch_weight(m.layers[0], jnp.ones((3,)))\n", "def f(m: Module):\n", why="any layer"),
)
