"""Kinds from annotations."""
import ast
from collections.abc import Callable

from migrate.infer.kinds import (
    BOOL,
    DEVICE,
    DTYPE,
    FACTORY,
    FLOAT,
    INT,
    MODULE,
    NONE,
    NUMPY,
    SHAPE,
    STR,
    TENSOR,
    UNKNOWN,
    Kind,
    join,
    join_all,
)
from migrate.source.modules import ClassInfo, FunctionInfo
from migrate.tables import Row

PLAIN = {
    "builtins.int": INT, "builtins.float": FLOAT, "builtins.bool": BOOL, "builtins.str": STR, "torch.Tensor": TENSOR, "torch.FloatTensor": TENSOR.but(dtype="float"),
    "torch.LongTensor": TENSOR.but(dtype="int"), "torch.BoolTensor": TENSOR.but(dtype="bool"), "torch.IntTensor": TENSOR.but(dtype="int"), "torch.dtype": DTYPE,
    "torch.device": DEVICE, "torch.Size": SHAPE, "numpy.ndarray": NUMPY, "torch.nn.Module": MODULE, "torch.nn.Parameter": TENSOR, "torch.nn.parameter.Parameter": TENSOR,
    "builtins.list": Kind("list"), "builtins.tuple": Kind("tuple"), "builtins.dict": Kind("dict"), "typing.List": Kind("list"), "typing.Tuple": Kind("tuple"),
    "typing.Dict": Kind("dict"), "jaxtyping.Float": TENSOR.but(dtype="float"), "jaxtyping.Int": TENSOR.but(dtype="int"), "jaxtyping.Bool": TENSOR.but(dtype="bool"),
    "torch.nn.ModuleList": MODULE, "torch.nn.Sequential": MODULE, "torch.autograd.Variable": TENSOR, "torch.jit.Final": UNKNOWN,
}
TRANSPARENT = ("typing.Final", "typing.ClassVar", "typing.Annotated", "torch.jit.Final", "typing_extensions.Annotated", "torch.jit.Attribute")
SEQUENCES = {"builtins.list": "list", "typing.List": "list", "typing.Sequence": "list", "typing.Iterable": "list", "collections.abc.Sequence": "list",
             "collections.abc.Iterable": "list", "builtins.set": "set", "typing.Set": "set"}
MAPPINGS = ("builtins.dict", "typing.Dict", "typing.Mapping", "collections.OrderedDict", "typing.OrderedDict", "collections.abc.Mapping")

Resolve = Callable[[ast.expr], "ClassInfo | FunctionInfo | Row | str | None"]


def kind_of(node: ast.expr, resolve: Resolve) -> Kind:
    """The kind that an annotation states. `resolve` gives what a name means."""
    match node:
        case ast.Constant(value=None):
            return NONE
        case ast.Constant(value=str() as text):
            return _string(text, resolve)
        case ast.BinOp(op=ast.BitOr()):
            return join(kind_of(node.left, resolve), kind_of(node.right, resolve))
        case ast.Subscript():
            return _subscript(node, resolve)
        case ast.Name() | ast.Attribute():
            return _named(resolve(node))
    return UNKNOWN


def _string(text: str, resolve: Resolve) -> Kind:
    """String annotations are read only for their last name; scopes do not know their nodes."""
    return {"Tensor": TENSOR, "torch.Tensor": TENSOR, "int": INT, "float": FLOAT, "str": STR, "bool": BOOL}.get(text.strip(), UNKNOWN)


def _named(found: "ClassInfo | FunctionInfo | Row | str | None") -> Kind:
    if isinstance(found, ClassInfo):
        return Kind("module" if found.is_module else "object", ref=found)
    if isinstance(found, Row):
        return Kind("module", ref=found) if found.kind == "layer" else PLAIN.get(found.torch, UNKNOWN)
    if isinstance(found, str):
        return PLAIN.get(found, UNKNOWN)
    return UNKNOWN


def _name(found: "ClassInfo | FunctionInfo | Row | str | None") -> str:
    return found if isinstance(found, str) else found.torch if isinstance(found, Row) else ""


def _union(node: ast.expr, resolve: Resolve) -> list[ast.expr]:
    """The members of a union."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_union(node.left, resolve), *_union(node.right, resolve)]
    if isinstance(node, ast.Subscript) and _name(resolve(node.value)) in ("typing.Union", "typing.Optional"):
        return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [node]


def _subscript(node: ast.Subscript, resolve: Resolve) -> Kind:
    name = _name(resolve(node.value))
    args = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name in ("typing.Optional",):
        return join(kind_of(args[0], resolve), NONE)
    if name in ("typing.Union",):
        return join_all([kind_of(a, resolve) for a in args])
    if name in TRANSPARENT:
        return kind_of(args[0], resolve)
    if name in SEQUENCES:
        return Kind(SEQUENCES[name], item=kind_of(args[0], resolve))
    if name in MAPPINGS:
        return Kind("dict", item=kind_of(args[-1], resolve))
    if name in ("builtins.tuple", "typing.Tuple"):
        if len(args) == 2 and isinstance(args[1], ast.Constant) and args[1].value is Ellipsis:
            return Kind("tuple", item=kind_of(args[0], resolve))
        return Kind("tuple", items=tuple(kind_of(a, resolve) for a in args))
    if name in ("typing.Type", "builtins.type"):
        parts = [kind_of(a, resolve) for a in _union(args[0], resolve)]
        if parts and all(p.tag == "module" for p in parts):
            known = all(p.ref is not None for p in parts)
            return Kind("class", ref=frozenset(p.ref for p in parts)) if known else FACTORY
        return UNKNOWN
    if name in ("typing.Callable", "collections.abc.Callable"):
        inner = kind_of(args[-1], resolve)
        return FACTORY if inner.tag == "module" else Kind("function", item=inner)
    return PLAIN.get(name, UNKNOWN) if name.startswith("jaxtyping") else UNKNOWN
