"""How a value is made constant to the gradient, and which values are so anyway."""
import ast

from migrate.context import Context
from migrate.edits import LAMBDA, Emitter, NodeEdit, Piece
from migrate.infer.kinds import Kind
from migrate.source.modules import ClassInfo
from migrate.tables import Row

RULE = "gradients"
NO_ARRAYS = frozenset({
    "int", "float", "number", "bool", "str", "none", "shape", "module", "object", "class", "function", "factory", "import", "dtype", "device", "numpy", "set",
})
# What has no gradient when it is made.
FRESH = frozenset(f"torch.{n}" for n in (
    "zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "arange", "tensor", "eye", "linspace", "logspace", "rand", "randn", "rand_like", "randn_like", "from_numpy",
    "detach", "Tensor.new_zeros", "Tensor.new_ones", "Tensor.new_empty", "Tensor.new_full", "Tensor.new_tensor",
))


def form_of(kind: Kind) -> str:
    """How a value is held constant: an "array" or a nest of arrays as it is, "any" by what it turns out to be, "" not at all."""
    if kind.is_tensor:
        return "" if kind.dtype in ("int", "bool") or kind.variable else "array"
    if kind.tag in NO_ARRAYS:
        return ""
    if kind.tag in ("tuple", "list") and (kind.items or kind.item):
        forms = {form_of(k) for k in kind.items} if kind.items else {form_of(kind.element)}
        return "any" if len(forms) > 1 else forms.pop()
    return "any"


def constant(ctx: Context, form: str) -> str:
    """The function that holds a value of a form constant."""
    return f"{ctx.name('jax')}.lax.stop_gradient" if form == "array" else str(ctx.name("without_gradient"))


def hold(ctx: Context, node: ast.expr | None, copied: bool = False) -> None:
    """Wraps a value, however it is rewritten. `copied`: it is its numbers that are taken, also those of a variable."""
    if isinstance(node, ast.Starred):
        node = node.value
    if node is None or has_none(ctx, node) or node in ctx.removed or node in ctx.left:
        return
    kind = ctx.kind(node)
    form = "array" if copied and kind.variable == "param" else "any" if is_record(ctx, node) else form_of(kind)
    edit = ctx.plan.nodes.get(node)
    if not form or edit is not None and edit.rule == RULE:
        return
    inner = edit.build if edit is not None else lambda e: e.original(node)

    def build(e: Emitter) -> Piece:
        return Piece(f"{constant(ctx, form)}({Piece.of(inner(e)).at(LAMBDA)})")

    ctx.plan.nodes[node] = NodeEdit(node, build, why="no_grad", rule=RULE)


def has_none(ctx: Context, value: ast.expr) -> bool:
    """Whether a value surely has no gradient: it is new, empty or a number."""
    match value:
        case ast.Constant() | ast.Dict(keys=[]) | ast.List(elts=[]) | ast.Tuple(elts=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="item" | "tolist" | "numpy")):
            return True
        case ast.Call():
            return is_fresh(ctx, value)
    return False


def is_number(ctx: Context, value: ast.expr) -> bool:
    """Whether no gradient can come with a value."""
    return has_none(ctx, value) or ctx.kind(value).dtype in ("int", "bool") or ctx.kind(value).tag in NO_ARRAYS


def is_fresh(ctx: Context, call: ast.Call) -> bool:
    """Whether a call makes a tensor that has no gradient."""
    row = ctx.resolve(call.func)
    if row is None and isinstance(call.func, ast.Attribute) and ctx.kind(call.func.value).is_tensor:
        row = ctx.unit.table.by_method.get(call.func.attr)
    return isinstance(row, Row) and row.torch in FRESH


def holds_tensors(ctx: Context, call: ast.expr) -> bool:
    """Whether a call makes an object of a local class that may keep tensors that it is given, or what it makes of them."""
    if not isinstance(call, ast.Call) or not isinstance(ctx.kind(call.func).ref, ClassInfo) or ctx.kind(call).tag != "object":
        return False
    return any(form_of(ctx.kind(a)) for a in [*call.args, *(k.value for k in call.keywords)])


def is_record(ctx: Context, call: ast.expr) -> bool:
    """Whether a call makes a record of what it is given, whose fields can be held constant: its class has no constructor of its own."""
    made = ctx.kind(call.func).ref if isinstance(call, ast.Call) and ctx.kind(call).tag == "object" else None
    return isinstance(made, ClassInfo) and made.method("__init__") is None
