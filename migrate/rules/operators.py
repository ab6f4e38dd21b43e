"""Translate operators: calls of functions and Tensor methods, attributes of tensors and constants, by their rows.

Converted: `torch.cat([x, y], dim=1)`, `x.view(2, -1)`, `x.is_floating_point()`, `torch.float32`.
Unchanged: `names.split(",")`, `text.view`, a local function called `cat`.
Refused: an operator without a row, an argument that no variant knows, `torch.add(x, y, out=z)`.
"""
import ast
from collections.abc import Callable
from typing import TypeGuard

from migrate.calls import Bound, Filler, Refusal, bind, choose, template_names
from migrate.context import Context
from migrate.edits import ATOM, LAMBDA, Emitter, Piece
from migrate.infer.calls import PYTHON_METHODS
from migrate.infer.engine import ONLY_TENSOR
from migrate.infer.kinds import Kind, refs
from migrate.removal import remove_statement
from migrate.rules import rngs
from migrate.rules.example import Example
from migrate.rules.shaping import in_shape, named
from migrate.source.modules import FileInfo
from migrate.source.names import Scope
from migrate.tables import Row, Variant, holes, template

RULE = "operators"
TENSORS = frozenset(["input", "other", "tensor", "tensors", "self", "operands", "condition", "mat", "vec"])
PYTHON_TAGS = frozenset(["str", "list", "dict", "set", "int", "float", "number", "bool", "shape", "tuple", "none", "import", "class", "numpy", "object", "dtype", "device", "function"])


def visit_call(ctx: Context, node: ast.Call) -> None:
    """A call of an operator."""
    if ctx.owned(node) or node in ctx.left:
        return
    found = ctx.resolve(node.func)
    if isinstance(found, Row) and found.kind == "function":
        plan_operator(ctx, node, found, None)
    elif ctx.dotted(node.func) == "builtins.abs" and len(node.args) == 1 and ctx.kind(node.args[0]).is_tensor:
        plan_operator(ctx, node, ctx.unit.table.by_name["torch.abs"], None)  # Python's calls JAX's, whose gradient at 0 is another
    elif isinstance(node.func, ast.Attribute):
        _method(ctx, node, node.func)


def visit_power(ctx: Context, node: ast.BinOp) -> None:
    """`x ** y` of two tensors: JAX's gradient at 0 ** 0 is no number."""
    kinds = ctx.kind(node.left), ctx.kind(node.right)
    zero = kinds[0].is_tensor and isinstance(node.right, ast.Constant) and isinstance(node.right.value, float) and node.right.value == 0
    if isinstance(node.op, ast.Pow) and not ctx.owned(node) and (zero or all(k.is_tensor and k.sure and k.dtype not in ("int", "bool") for k in kinds)):
        ctx.edit(node, lambda e: Piece(f"{ctx.name('power')}({e.piece(node.left).at(LAMBDA)}, {e.piece(node.right).at(LAMBDA)})"), RULE, why="torch.pow")


def _method(ctx: Context, node: ast.Call, func: ast.Attribute) -> None:
    receiver = ctx.kind(func.value)
    name = func.attr
    if receiver.tag == "shape" and name == "numel" and not node.args:
        ctx.edit(node, lambda e: Piece(f"{ctx.name('math')}.prod({e.piece(func.value).at(LAMBDA)})"), RULE, why="torch.Size.numel")
        return
    row = ctx.unit.table.by_method.get(name)
    if row is None or row.kind != "function" or not is_tensor_method(ctx, func, receiver, node):
        return
    plan_operator(ctx, node, row, func.value)


def is_tensor_method(ctx: Context, func: ast.Attribute, receiver: Kind, call: ast.Call | None = None) -> bool:
    """Whether `receiver.name` is a method of a tensor: known, or a name that nothing else has."""
    if receiver.is_tensor:
        return True
    if receiver.tag in PYTHON_TAGS or receiver.tag in ("module", "factory"):
        return False
    if ctx.resolve(func) is not None or ctx.kind(func).tag == "function":
        return False
    name = func.attr
    if name in ONLY_TENSOR:
        return True
    if name in PYTHON_METHODS:
        return call is not None and not _may_be_python(ctx, name, call)
    return receiver.tag != "module"


def _may_be_python(ctx: Context, name: str, call: ast.Call) -> bool:
    """Whether a call of a method that Python's own types have too may be theirs."""
    keywords = {k.arg for k in call.keywords}
    used = not isinstance(ctx.source.parent(call), ast.Expr)
    match name:
        case "add" | "sort" | "remove" | "reverse" | "insert" | "extend":
            return not used and not keywords - {"key", "reverse"}
        case "split" | "rsplit":
            first = call.args[0] if call.args else None
            return not keywords & {"dim", "split_size"} and (first is None or ctx.kind(first).tag not in ("int", "list", "tuple", "number") or len(call.args) > 2)
        case "index" | "count" | "copy" | "pop" | "format" | "join" | "replace" | "find" | "strip" | "title" | "clear" | "update" | "get" | "items" | "keys" | "values":
            return not keywords & {"dim"}
    return not keywords & {"dim", "keepdim", "dtype"}


def plan_operator(ctx: Context, node: ast.Call, row: Row, receiver: ast.expr | None) -> bool:
    """Plans a call of a row; leaves it with a diagnostic where that is not possible."""
    if receiver is not None and ctx.kind(receiver).tag == "numpy":
        return False
    planned = prepare(ctx, node, row, receiver)
    if isinstance(planned, Refusal):
        if receiver is not None and planned.code == "MIG302" and not (ctx.kind(receiver).is_tensor and ctx.kind(receiver).sure) and isinstance(bind(row, node, receiver, ctx.kind), Refusal):
            return False  # the arguments are not those of the tensor's method: something else has one of that name
        ctx.refuse(planned.code, node, planned.reason)
        return False
    bound, variant = planned
    if "rngs" in template_names(variant.to):
        rngs.stream(ctx, node)  # notes now that the module needs a stream
    statement = ctx.source.parent(node)
    array = _array(ctx, bound, variant)
    if array is None and _gives_back(bound, variant, statement) and not ctx.owned(statement):
        remove_statement(ctx, statement, RULE)
        return True
    made = ctx.edit(node, lambda e: fill(ctx, node, bound, variant, e), RULE, why=row.torch)
    if made and isinstance(statement, ast.Tuple) and isinstance(held := bound.arguments.get(variant.to), ast.Name):
        _all_given_back(ctx, statement, node, held)
    return made


def _all_given_back(ctx: Context, values: ast.Tuple, node: ast.Call, held: ast.Name) -> None:
    """`x, y = x.cpu(), y.cpu()`: goes when the last of the names is given what it holds."""
    given: dict[ast.AST, str] = ctx.shared.setdefault("given back", {})
    given[node] = held.id
    statement = ctx.source.parent(values)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(target := statement.targets[0], ast.Tuple):
        names = [t.id if isinstance(t, ast.Name) else "" for t in target.elts]
        if names == [given.get(v) for v in values.elts] and not ctx.owned(statement):
            for v in values.elts:
                ctx.plan.nodes.pop(v, None)
            remove_statement(ctx, statement, RULE)


def _gives_back(bound: Bound, variant: Variant, statement: ast.AST | None) -> TypeGuard[ast.Assign]:
    """`x = x.contiguous()`: the name would be given what it holds."""
    held = bound.arguments.get(variant.to)
    if not isinstance(held, ast.Name) or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    return isinstance(target := statement.targets[0], ast.Name) and target.id == held.id


def prepare(ctx: Context, node: ast.Call, row: Row, receiver: ast.expr | None) -> tuple[Bound, Variant] | Refusal:
    """The bound arguments and the variant for a call."""
    placement = frozenset(k for k in node.keywords if k.arg is None and only_placement(ctx, k.value))
    bound = bind(row, node, receiver, ctx.kind, placement)
    if isinstance(bound, Refusal):
        return bound
    variant = choose(row, bound, ctx.target.name, ctx.kind)
    if isinstance(variant, Refusal):
        return variant
    note(ctx, node, row, variant)
    forget(ctx, node, bound, variant)
    _written(ctx, bound)
    return bound, variant


def _written(ctx: Context, bound: Bound) -> None:
    """An initialiser of `w.data` writes to w."""
    held = bound.arguments.get("tensor")
    if bound.row.torch.startswith("torch.nn.init.") and isinstance(held, ast.Attribute) and held.attr == "data":
        bound.arguments["tensor"] = held.value
        ctx.removed.add(held)


def only_placement(ctx: Context, node: ast.expr, keys: tuple[str, ...] = ("device", "dtype"), seen: frozenset[ast.expr] = frozenset()) -> bool:
    """A mapping that only says where tensors live: `factory_kwargs = {"device": device, "dtype": dtype}`."""
    if isinstance(node, ast.Name):
        values = [b.value if b.kind == "assign" else None for b in ctx.file.names.lookup(node)]
        return node not in seen and bool(values) and not _grows(ctx, node) and all(v is not None and only_placement(ctx, v, keys, seen | {node}) for v in values)
    if isinstance(node, ast.Call) and ctx.dotted(node.func) == "builtins.dict" and not node.args:
        return bool(node.keywords) and all(k.arg in keys for k in node.keywords)
    return isinstance(node, ast.Dict) and bool(node.keys) and all(isinstance(k, ast.Constant) and k.value in keys for k in node.keys)


def _grows(ctx: Context, name: ast.Name) -> bool:
    """Whether a mapping gets other keys later: `options["bias"] = False`, `options.update(bias=False)`."""
    known: dict[FileInfo, set[tuple[Scope, str]]] = ctx.shared.setdefault("grown mappings", {})
    if (found := known.get(ctx.file)) is None:
        found = known[ctx.file] = set()
        for n in ctx.source.nodes:
            stored = isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load) or isinstance(n, ast.Attribute) and n.attr in ("update", "setdefault", "pop", "popitem", "clear")
            held = n.value if stored else n.target if isinstance(n, ast.AugAssign) else None
            if isinstance(held, ast.Name) and (at := ctx.file.names.scope(held).lookup(held.id)) is not None:
                found.add((at[0], held.id))
    at = ctx.file.names.scope(name).lookup(name.id)
    return at is not None and (at[0], name.id) in found


def forget(ctx: Context, node: ast.Call, bound: Bound, variant: Variant) -> None:
    """Marks the arguments that do not reach the output, so that no rule reports what is in them."""
    used = holes(variant.to, bound.arguments)
    kept = {id(n) for name in used for n in _nodes(bound.arguments[name])}
    for a in [*node.args, *(k.value for k in node.keywords)]:
        if id(a) not in kept:
            ctx.removed.update(ast.walk(a))


def _nodes(given: ast.expr | list[ast.expr]) -> list[ast.expr]:
    return given if isinstance(given, list) else [given]


def note(ctx: Context, node: ast.AST, row: Row, variant: Variant) -> None:
    """Says what a variant does differently."""
    if variant.deviates:
        ctx.report("MIG201", node, f"{row.torch}: {variant.deviates}")


def fill(ctx: Context, node: ast.Call, bound: Bound, variant: Variant, emitter: Emitter, text: str = "") -> Piece:
    """The new call."""
    if not text and (held := _array(ctx, bound, variant)) is not None:
        return held(emitter)
    text = named(ctx, node, bound, text or _unpacked(ctx, node, variant) or variant.to)
    stream = rngs.stream(ctx, node) if "rngs" in template_names(text) else ""
    if "axes" in template_names(text):
        return Filler(text, variant, bound, ctx.name, ctx.kind, stream, _axes(ctx, node, emitter)).fill(emitter)
    return in_shape(ctx, node, bound, variant, stream, emitter, text) or Filler(text, variant, bound, ctx.name, ctx.kind, stream).fill(emitter)


def _array(ctx: Context, bound: Bound, variant: Variant) -> Callable[[Emitter], Piece] | None:
    """`p.clone()`, `p.detach()` of a parameter under a name: its array now, where the name has the variable, which changes later."""
    from migrate.rules import state

    root = template(variant.to)
    stops = isinstance(root, ast.Call) and ast.unparse(root.func) == "jax.lax.stop_gradient"
    hole = root.args[0] if isinstance(root, ast.Call) and stops else root
    given = bound.arguments.get(hole.id) if isinstance(hole, ast.Name) else None
    if not isinstance(given, (ast.Name, ast.Subscript)) or not ctx.kind(given).variable or ctx.kind(given).optional:
        return None

    def build(e: Emitter) -> Piece:
        now = state.fill(ctx, ctx.target.read, v=e.piece(given))
        return Piece(f"{ctx.name('jax')}.lax.stop_gradient({now.text})") if stops else now

    return build


def _unpacked(ctx: Context, node: ast.Call, variant: Variant) -> str:
    """The template for a result of which so many parts are given names."""
    parent = ctx.source.parent(node) if variant.unpacked else None
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(target := parent.targets[0], (ast.Tuple, ast.List)):
        return ""
    return "" if any(isinstance(t, ast.Starred) for t in target.elts) else variant.unpacked.get(str(len(target.elts)), "")


def _axes(ctx: Context, node: ast.Call, e: Emitter) -> str:
    """The order of axes of the variable that is initialised, where a native layer holds it."""
    from migrate.rules.state import AMBIGUOUS, MIXED, _native_state

    target = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg in ("tensor", "input")), None)
    if isinstance(target, ast.Attribute) and target.attr == "data":
        target = target.value
    if not isinstance(target, ast.Attribute) or not ctx.kind(target).variable:
        return ""
    native = _native_state(ctx, target)
    unknown = native is None and not refs(ctx.kind(target.value)) and target.attr == "weight"
    if native is not None and (native == AMBIGUOUS or native[1] == MIXED) or unknown:
        return f"{ctx.name('axes_of')}({e.piece(target.value).text})" if "axes_of" in ctx.support and target.attr == "weight" else ""
    return str(native[1]) if native is not None and native[1] is not None else ""


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """An attribute of a tensor, or a constant or function of PyTorch used as a value."""
    if ctx.owned(node) or not isinstance(node.ctx, ast.Load):
        return
    parent = ctx.source.parent(node)
    found = ctx.resolve(node)
    if isinstance(found, Row):
        _value(ctx, node, found, parent)
        return
    receiver = ctx.kind(node.value)
    if receiver.tag == "device" and found is None and node.attr == "type":
        ctx.edit(node, lambda e: Piece(f"{ctx.name('jax')}.default_backend()", ATOM), RULE, why="torch.device.type")
        ctx.removed.update(ast.walk(node.value))
        return
    row = ctx.unit.table.by_attribute.get(node.attr)
    if row is None or found is not None or isinstance(parent, ast.Call) and parent.func is node:
        return
    of_dtype = row.torch.startswith("torch.dtype.")
    if of_dtype and (receiver.tag == "dtype" or receiver.is_unknown) or not of_dtype and (receiver.is_tensor or receiver.is_unknown and node.attr in ONLY_TENSOR):
        bound = Bound(row, {row.parameters[0].name: node.value}, node.value)
        variant = choose(row, bound, ctx.target.name, ctx.kind)
        if isinstance(variant, Refusal):
            ctx.refuse(variant.code, node, variant.reason)
            return
        note(ctx, node, row, variant)
        build = _array(ctx, bound, variant) or Filler(variant.to, variant, bound, ctx.name, ctx.kind).fill
        ctx.edit(node, build, RULE, why=row.torch)


def visit_name(ctx: Context, node: ast.Name) -> None:
    """A name imported from PyTorch, used as a value."""
    if ctx.owned(node) or not isinstance(node.ctx, ast.Load):
        return
    found = ctx.resolve(node)
    if isinstance(found, Row):
        _value(ctx, node, found, ctx.source.parent(node))


def _value(ctx: Context, node: ast.Name | ast.Attribute, row: Row, parent: ast.AST | None) -> None:
    if row.kind in ("constant", "stand_in"):
        variants = row.for_target(ctx.target.name)
        if not variants:
            ctx.refuse("MIG301", node, f"{row.torch} has no equivalent for this target yet")
            return
        ctx.edit(node, lambda e: constant(ctx, variants[0]), RULE, why=row.torch)
    elif row.kind == "function" and not (isinstance(parent, ast.Call) and parent.func is node):
        _function_value(ctx, node, row)


def constant(ctx: Context, variant: Variant) -> Piece:
    """A constant's text."""
    empty = Bound(Row("", (), (), "constant", "()", "", "", {}))
    return Filler(variant.to, variant, empty, ctx.name, ctx.kind).fill(Emitter(ctx.plan))


def _function_value(ctx: Context, node: ast.Name | ast.Attribute, row: Row) -> None:
    """`activation=F.relu`: the target's function where the first variant passes its arguments on unchanged, else a lambda."""
    typed = row.torch.endswith("Tensor") and row.value.startswith("jnp.") and is_annotation(ctx, node)
    text = "jax.Array" if typed else row.value or as_function(ctx, row)
    if text is None and (drawn := _drawing(ctx, row)):
        stream = rngs.stream(ctx, node)
        ctx.edit(node, lambda e: Piece(f"{ctx.name('partial')}({ctx.name(drawn)}, rngs={stream})"), RULE, why=row.torch)
        return
    if text is None:
        ctx.refuse("MIG301", node, f"{row.torch} as a value is not supported")
        return
    if (name := ast.unparse(node)).endswith("_") and not row.torch.startswith("torch.nn.init."):
        ctx.report("MIG201", node, f"`{name}` as a value writes to what it is given; here the result alone is new")
    ctx.edit(node, lambda e: function_text(ctx, text), RULE, why=row.torch)


def _drawing(ctx: Context, row: Row) -> str:
    """The support function of an operator that draws numbers, where it takes PyTorch's arguments and the stream."""
    for v in row.for_target(ctx.target.name):
        call = v.template if not v.reason and not v.when else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ctx.support:
            names = [p.name for p in row.parameters if p.name not in v.reject and p.name != "generator"]
            taken = [a.id if isinstance(a, ast.Name) else "" for a in call.args] + [k.arg for k in call.keywords if isinstance(k.value, ast.Name) and k.value.id == k.arg]
            if [n for n in taken if n not in ("axes", "rngs")] == names and "rngs" in taken:
                return call.func.id
    return ""


def is_annotation(ctx: Context, node: ast.AST) -> bool:
    """Whether a name stands in an annotation: `mask: torch.BoolTensor`."""
    at, up = node, ctx.source.parent(node)
    while isinstance(up, ast.expr) and not isinstance(up, ast.Call):
        at, up = up, ctx.source.parent(up)
    return isinstance(up, ast.arg) or isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and up.returns is at or isinstance(up, ast.AnnAssign) and up.annotation is at


def as_function(ctx: Context, row: Row) -> str | None:
    """The template of a row as a function value."""
    params = [p for p in row.parameters if p.kind == "positional"]
    for v in row.for_target(ctx.target.name):
        if v.reason or not _holds_by_default(row, v) or "rngs" in template_names(v.to) or v.deviates:
            continue
        body = v.template
        required = [p.name for p in params if p.default is None]
        if isinstance(body, ast.Call) and [a.id if isinstance(a, ast.Name) else "" for a in body.args] == required and not [
            k for k in body.keywords if not (isinstance(k.value, ast.Name) and k.value.id not in v.pin and k.value.id == k.arg)
        ]:
            return ast.unparse(body.func)
        if any(p.kind == "variadic" for p in row.parameters):
            continue
        device = ["device=None"] if row.torch.count(".") == 1 and not {p.name for p in row.parameters} & TENSORS else []  # what makes tensors takes one
        return f"lambda {', '.join([*required, *device])}: {_with_defaults(row, v, required)}"
    return None


def _holds_by_default(row: Row, v: Variant) -> bool:
    for c in v.when:
        p = next(p for p in row.parameters if p.name == c.parameter)
        if c.literals and (p.default or "") not in c.literals:
            return False
        if c.predicate and (c.predicate == "omitted") == c.negated:
            return False
        if c.predicate not in ("", "omitted") and p.default is None:
            return False
    return True


class _Defaults(ast.NodeTransformer):
    def __init__(self, row: Row, v: Variant, kept: list[str]) -> None:
        self.row, self.v, self.kept = row, v, kept

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [k for k in node.keywords if not (isinstance(k.value, ast.Name) and self._default(k.value.id) and k.value.id not in self.v.pin)]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        default = self._default(node.id)
        return ast.parse(default, mode="eval").body if default else node

    def _default(self, name: str) -> str | None:
        return next((p.default for p in self.row.parameters if p.name == name and name not in self.kept), None)


def _with_defaults(row: Row, v: Variant, kept: list[str]) -> str:
    return ast.unparse(_Defaults(row, v, kept).visit(ast.parse(v.to, mode="eval").body))


def function_text(ctx: Context, text: str) -> Piece:
    """A template without holes, its names imported."""
    body = ast.parse(text, mode="eval").body
    bound = {a.arg for a in body.args.args} if isinstance(body, ast.Lambda) else set()
    out, at = "", 0
    for n in sorted((n for n in ast.walk(body) if isinstance(n, ast.Name) and n.id not in bound), key=lambda n: n.col_offset):
        out += text[at : n.col_offset] + ctx.name(n.id)
        at = n.end_col_offset or 0
    from migrate.edits import precedence

    return Piece(out + text[at:], precedence(body))


INIT = "class Net(nn.Module):\n    def __init__(self, init=None):\n        super().__init__()\n        self.w = nn.Parameter(torch.zeros(3, 3))\n"
DEEP = " + ".join(["x"] * 3000)
EXAMPLES = (
    Example(
        "class Net(nn.Module):\n    def forward(self, x):\n        w = torch.sin(x)\n        w = Net.masked(w, 3)\n        return w.size()\n\n    def masked(w, n):\n        return w\n",
        jax="        w = Net.masked(w, 3)\n        return w.shape\n\n    def masked(w, n):\n", why="a function of a class that has no self",
    ),
    Example("def f(x: torch.Tensor):\n    return x ** 0.0\n", jax="    return power(x, 0.0)\n", why="the gradient at 0 is 0"),
    Example("def f(x: torch.Tensor, act=torch.sigmoid_):\n    torch.exp_(x)\n    return act(x)\n", jax="def f(x: jax.Array, act=jax.nn.sigmoid):\n    x = jnp.exp(x)\n", reported="MIG201", why="what writes in place, as a value"),
    Example("def f(x: torch.Tensor, y: torch.Tensor):\n    x, y = x.cpu(), y.cuda()\n    return x + y\n", jax="def f(x: jax.Array, y: jax.Array):\n    return x + y\n", why="the names keep what they hold"),
    Example("def f(x: torch.Tensor, y: torch.Tensor):\n    x, y = y.cpu(), x.cuda()\n    return x + y\n", jax="    x, y = y, x\n"),
    Example("def f(ids: torch.LongTensor, mask: Optional[torch.BoolTensor] = None) -> torch.FloatTensor:\n    return ids.type(torch.FloatTensor)\n", jax="def f(ids: jax.Array, mask: Optional[jax.Array] = None) -> jax.Array:\n    return ids.astype(jnp.float32)\n"),
    Example("def f(x: torch.Tensor):\n    return x.shape[1:].numel() + x.size().numel()\n", jax="    return math.prod(x.shape[1:]) + math.prod(x.shape)\n"),
    Example("def f(x: torch.Tensor, y: torch.Tensor):\n    return x ** y + x ** 2 + 2 ** y\n", jax="    return power(x, y) + x ** 2 + 2 ** y\n"),
    Example("def f(x: torch.Tensor, y):\n    x = x.contiguous()\n    y = x.contiguous()\n    return x + y\n", jax="def f(x: jax.Array, y):\n    y = x\n    return x + y\n", why="the name would be given what it holds"),
    Example(
        "def f(x: torch.Tensor | dict[str, torch.Tensor]):\n    if isinstance(x, dict):\n        return {k: f(v) for k, v in x.items()}\n    assert isinstance(x, torch.Tensor), type(x)\n    return x.float()\n",
        jax="    return x.astype(jnp.float32)\n", why="an assertion tells what it is",
    ),
    Example("def f(x: torch.Tensor, y):\n    return torch.cat([x, y], dim=1), x.view(2, -1), x.size(0), x.dtype == torch.float32\n",
            jax="    return jnp.concatenate([x, y], axis=1), x.reshape(2, -1), x.shape[0], x.dtype == jnp.float32\n"),
    Example("def f(x: torch.Tensor):\n    return torch.cat(\n        [x, x],  # both\n        dim=1,\n    )\n", jax="    return jnp.concatenate(\n        [x, x],  # both\n        axis=1,\n    )\n"),
    Example('def f(x: torch.Tensor):\n    return f"{x.mean():.3f} {x.size(0)!r:>{x.dim()}}"\n', jax='    return f"{jnp.mean(x):.3f} {x.shape[0]!r:>{x.ndim}}"\n', why="inside an f-string"),
    Example('def f(x: torch.Tensor):\n    é = "ünïcödé"; y = x.view(-1); return é, y.unsqueeze(0)\n', jax='    é = "ünïcödé"; y = x.reshape(-1); return é, jnp.expand_dims(y, 0)\n', why="text that is not ASCII before a call"),
    Example("def f(window=torch.hann_window):\n    return window(3, device=None)\n", jax="def f(window=lambda window_length, device=None: "),
    Example(f"{INIT}        init = nn.init.xavier_normal_\n        init(self.w)\n", "        init = partial(xavier_normal_, rngs=rngs)\n        init(self.w)\n", why="an initialiser as a value"),
    Example("def f(x: torch.Tensor):\n    return -x.mean() ** 2, (x + 1).t() @ x, not x.any()\n", jax="    return -jnp.mean(x) ** 2, (x + 1).T @ x, not jnp.any(x)\n", why="parentheses where they are needed"),
    Example("def f(x: torch.Tensor):\n    if (n := x.numel()) > 3 and (y := x.sum()) is not None:\n        return y + n\n", jax="    if (n := x.size) > 3 and (y := jnp.sum(x)) is not None:\n", why="walrus"),
    Example(f"def f(x: torch.Tensor):\n    return torch.sin({DEEP})\n", jax=f"    return jnp.sin({DEEP})\n", why="3000 terms"),
    Example("def f(x: 'torch.Tensor'):\n    return x.unsqueeze(0)\n", jax="    return jnp.expand_dims(x, 0)\n"),
    Example("def f(x: torch.Tensor):\n    return [x.sum(i) for i in range(2)], (lambda t: t.unsqueeze(0))(x)\n", jax="    return [jnp.sum(x, axis=i) for i in range(2)], (lambda t: jnp.expand_dims(t, 0))(x)\n"),
    Example("def f(x: torch.Tensor, n: int):\n    return abs(x.mean()), abs(n - 1)\n", jax="    return absolute(jnp.mean(x)), abs(n - 1)\n", why="Python's abs of a tensor: the gradient at 0 is 0"),
    Example("act = F.relu\n", jax="act = jax.nn.relu\n", why="a function as a value"),
    Example("def f(text: str, names):\n    return text.split(','), text.upper().index('a'), names.copy()\n"),
    Example("def cat(a, b):\n    return a + b\n\n\ny = cat([1], [2])\n"),
    Example("def f(split, view):\n    return split(3), view(2, -1)\n"),
    Example("def f(x: torch.Tensor):\n    return torch.add(x, 1, out=x)\n", refused="MIG302"),
    Example("def f(x: torch.Tensor, size):\n    return torch.sum(x, *size)\n", refused="MIG305"),
)
