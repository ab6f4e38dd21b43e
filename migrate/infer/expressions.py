"""Expressions: the kind of each, recorded on the way."""
import ast
from collections.abc import Callable
from functools import cache
from typing import Any

from migrate.infer.engine import Frame, Inference, constant, usage
from migrate.infer.kinds import BOOL, BOOL_TENSOR, FACTORY, FLOAT, INT, MODULE, NAMED, NUMBER, NUMPY, STR, TENSOR, UNKNOWN, Kind, join, join_all, refs
from migrate.infer.lookups import lookup
from migrate.infer.results import returned
from migrate.source.modules import ClassInfo, FunctionInfo
from migrate.source.text import children
from migrate.tables import Row


def evaluate(inf: Inference, frame: Frame, node: ast.expr) -> Kind:
    """The kind of an expression; its parts are evaluated and recorded too."""
    handler = _HANDLERS.get(type(node))
    kind = handler(inf, frame, node) if handler else _children(inf, frame, node)
    inf.kinds[node] = kind
    return kind


def iterate(kind: Kind) -> Kind:
    """What a loop over it yields."""
    if kind.tag == "module":
        return kind.item or Kind("module")
    return kind.key or kind.element


def _children(inf: Inference, frame: Frame, node: ast.expr) -> Kind:
    for child in children(node):
        if isinstance(child, ast.expr):
            evaluate(inf, frame, child)
    return UNKNOWN


def _constant(inf: Inference, frame: Frame, node: ast.Constant) -> Kind:
    return constant(node.value)


def _name(inf: Inference, frame: Frame, node: ast.Name) -> Kind:
    local = frame.lookup(node.id)
    if local is not None:
        if local.is_unknown and local == UNKNOWN and frame.function is not None and usage(inf, frame.file, frame.function.node, node.id) == INT:
            return INT
        return local
    if frame.function is not None or frame.owner is not None:
        for table in (inf.globals, inf.learned):
            held = table.get(frame.file, {}).get(node.id)
            if held is not None:
                return inf.holding(frame.file, node.id, held)
    return _resolved(inf, inf.resolve(frame.file, node))


def _resolved(inf: Inference, found: "ClassInfo | FunctionInfo | Row | str | None") -> Kind:
    match found:
        case ClassInfo():
            return Kind("class", ref=found)
        case FunctionInfo():
            return Kind("function", ref=found)
        case Row(kind="layer"):
            return Kind("class", ref=found)
        case Row(kind="constant"):
            return NAMED.get(found.returns, UNKNOWN)
        case Row():
            return Kind("function", ref=found)
        case str():
            module, _, name = found.rpartition(".")
            if module in inf.unit.files:
                return inf.holding(inf.unit.files[module], name, inf.learned.get(inf.unit.files[module], {}).get(name, UNKNOWN))
            if found == "torch.nn.Module":
                return FACTORY
            return _import_kind(found)
    return UNKNOWN


@cache
def _import_kind(dotted: str) -> Kind:
    """What a foreign name is: it is asked for so often that one object does for all."""
    return Kind("import", ref=dotted)


def _attribute(inf: Inference, frame: Frame, node: ast.Attribute) -> Kind:
    base = evaluate(inf, frame, node.value)
    if base.tag in ("class", "factory") and makes(base, node.attr):
        return base
    if base.tag in ("import", "class", "unknown"):
        found = inf.resolve(frame.file, node)
        if found is not None and not (base.tag == "class" and isinstance(base.ref, ClassInfo) and isinstance(found, str)):
            return _resolved(inf, found)
    return attribute_of(inf, base, node.attr)


def makes(kind: Kind, name: str) -> bool:
    """Whether a method of a class makes modules just as the class does."""
    layers = [r.layer if isinstance(r, ClassInfo) else r for r in refs(kind) if isinstance(r, (ClassInfo, Row))]
    return bool(layers) and all(isinstance(r, Row) and name in r.makers for r in layers)


def attribute_of(inf: Inference, base: Kind, name: str) -> Kind:
    """The kind of an attribute of something."""
    if base.tag == "module" and (held := base.member(name)) is not None:
        return held
    if base.tag == "module" and name == "_modules":
        return Kind("dict", item=base.item or MODULE)
    match base.tag:
        case "tensor":
            row = inf.unit.table.by_attribute.get(name)
            if name == "dtype":
                return Kind("dtype", dtype=base.dtype, narrow=base.narrow, sure=base.sure)
            if row is not None:
                return returned(row, [base])
            return Kind("function", ref=inf.unit.table.by_method.get(name)) if name in inf.unit.table.by_method else UNKNOWN
        case "module" | "object" if isinstance(base.ref, ClassInfo):
            return _member(inf, base.ref, name)
        case "module" if isinstance(base.ref, Row):
            if name in ("weight", "bias") or name in base.ref.state:
                return TENSOR.but(variable="param", optional=name == "bias")
            if name in ("running_mean", "running_var"):
                return TENSOR.but(variable="buffer")
            return UNKNOWN
        case "module" if name in ("weight", "bias") and not isinstance(base.ref, ClassInfo):
            return TENSOR.but(variable="param", optional=True, sure=False)
        case "module" | "object" if isinstance(base.ref, frozenset):  # those that have it count
            found = [k for ref in base.ref if not (k := attribute_of(inf, base.but(ref=ref), name)).is_unknown]
            return join_all(found) if found else UNKNOWN
        case "class" if isinstance(base.ref, ClassInfo):
            method = base.ref.method("forward" if name == "apply" and base.ref.is_gradient else name)
            if method is not None:
                return Kind("function", ref=method)
            return _member(inf, base.ref, name)
        case "tuple" if (held := base.member(name)) is not None:
            return held
        case "dict" | "tuple" | "list" | "str":
            return UNKNOWN
        case "unknown" if name in ("shape", "device", "dtype"):
            return NAMED[name]
        case "unknown" if name == "training":
            return BOOL
    return UNKNOWN


def _member(inf: Inference, owner: ClassInfo, name: str) -> Kind:
    if name == "training" and owner.is_module and not owner.assigned("training"):
        return BOOL
    if owner.is_gradient and name in ("saved_tensors", "needs_input_grad"):
        return Kind("tuple", item=TENSOR.but(sure=False) if name == "saved_tensors" else BOOL)
    held = inf.attribute(owner, name)
    if held is not None:
        return held
    method = owner.method(name)
    if method is not None:
        return inf.returns.get(method, UNKNOWN) if method.is_property else Kind("function", ref=method)
    layer = owner.layer
    if layer is not None and name in ("weight", "bias"):
        return TENSOR.but(variable="param", optional=name == "bias")
    return UNKNOWN


def _subscript(inf: Inference, frame: Frame, node: ast.Subscript) -> Kind:
    base = evaluate(inf, frame, node.value)
    index = evaluate(inf, frame, node.slice)
    return subscript_of(base, node.slice, index)


def subscript_of(base: Kind, index: ast.expr, kind: Kind) -> Kind:
    """The kind of `base[index]`."""
    if base.is_tensor:
        return base.but(variable="", optional=False)
    if isinstance(index, ast.Slice):
        return base.but(items=None, item=base.element) if base.items is not None else base
    if base.items is not None:
        i = _integer(index)
        if i is not None and -len(base.items) <= i < len(base.items):
            return base.items[i]
    if isinstance(index, ast.Constant) and isinstance(index.value, str) and (held := base.member(index.value)) is not None:
        return held
    if base.tag == "module":
        return base.item or Kind("module")
    return base.element


def _integer(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    return None


def _tuple(inf: Inference, frame: Frame, node: ast.Tuple | ast.List) -> Kind:
    kinds = [evaluate(inf, frame, e) for e in node.elts]
    tag = "tuple" if isinstance(node, ast.Tuple) else "list"
    if any(isinstance(e, ast.Starred) for e in node.elts):
        return Kind(tag, item=join_all([k.element if isinstance(e, ast.Starred) else k for e, k in zip(node.elts, kinds, strict=True)]))
    return Kind(tag, items=tuple(kinds))


def _starred(inf: Inference, frame: Frame, node: ast.Starred) -> Kind:
    return evaluate(inf, frame, node.value)


def _dict(inf: Inference, frame: Frame, node: ast.Dict) -> Kind:
    keys = [evaluate(inf, frame, k) if k is not None else UNKNOWN for k in node.keys]
    kinds = [evaluate(inf, frame, v) for v in node.values]
    fields = tuple((k.value, v) for k, v in zip(node.keys, kinds, strict=True) if isinstance(k, ast.Constant) and isinstance(k.value, str))
    return Kind("dict", item=join_all(kinds) if kinds else None, items=() if not kinds else None, fields=fields, key=modules(keys))


def modules(keys: list[Kind]) -> Kind | None:
    """The kind of the keys of a mapping, where some are modules and nothing is known of the others."""
    known = [k for k in keys if not k.is_unknown]
    if not known or any(k.tag != "module" for k in known):
        return None
    return join_all(keys) if len(known) == len(keys) else Kind("module", sure=False)


def _binary(inf: Inference, frame: Frame, node: ast.BinOp) -> Kind:
    a, b = evaluate(inf, frame, node.left), evaluate(inf, frame, node.right)
    return binary_of(a, b, node.op)


def binary_of(a: Kind, b: Kind, op: ast.operator) -> Kind:
    """The kind of an arithmetic expression."""
    if a.is_tensor or b.is_tensor:
        dtypes = [k.dtype or ("float" if k.tag == "float" else "int" if k.tag == "int" else "") for k in (a, b)]
        if "complex" in dtypes:
            dtype = "complex"
        elif isinstance(op, ast.Div) or "float" in dtypes:
            dtype = "float"
        else:
            dtype = "bool" if dtypes == ["bool", "bool"] else "int" if dtypes[0] and dtypes[1] else ""
        return TENSOR.but(dtype=dtype, sure=a.sure and b.sure, narrow=_stays_narrow(a, b, dtype))
    if a.tag in ("list", "tuple", "shape") or b.tag in ("list", "tuple", "shape"):
        if isinstance(op, ast.Mult):
            seq = a if a.tag in ("list", "tuple", "shape") else b
            return seq.but(items=None, item=seq.element if seq.items != () else None)
        if isinstance(op, ast.Add):
            if a.items is not None and b.items is not None:
                return a.but(items=a.items + b.items)
            return a.but(items=None, item=join(a.element, b.element) if a.items != () else b.element) if a.tag == b.tag else Kind("tuple",
                item=join(a.element, b.element))
    if a.tag == "str":
        return STR
    if a.is_number and b.is_number:
        if a.tag == b.tag == "int" and not isinstance(op, (ast.Div, ast.Pow)):
            return INT
        return FLOAT if isinstance(op, ast.Div) or "float" in (a.tag, b.tag) else NUMBER
    if a.tag == "numpy" or b.tag == "numpy":
        return Kind("numpy")
    if a.is_unknown and b.is_number and a.sure or b.is_unknown and a.is_number:
        return UNKNOWN
    return UNKNOWN


def _stays_narrow(a: Kind, b: Kind, dtype: str) -> bool:
    """Whether all that decides the dtype of a result has 8 or 16 bits: tensors of that dtype."""
    deciding = [k for k in (a, b) if k.is_tensor and k.dtype in (dtype, "")]
    return dtype in ("int", "float") and bool(deciding) and all(k.narrow for k in deciding)


def _unary(inf: Inference, frame: Frame, node: ast.UnaryOp) -> Kind:
    kind = evaluate(inf, frame, node.operand)
    return BOOL if isinstance(node.op, ast.Not) else kind.but(variable="") if kind.is_tensor else kind


def _boolean(inf: Inference, frame: Frame, node: ast.BoolOp) -> Kind:
    from migrate.infer.statements import narrow

    before = dict(frame.env)
    kinds = []
    for v in node.values:
        kinds.append(evaluate(inf, frame, v))
        narrow(inf, frame, v, isinstance(node.op, ast.And))
    frame.env = before if frame.function is not None else frame.env
    if isinstance(node.op, ast.Or):
        return join_all([k.but(optional=False) for k in kinds[:-1]] + [kinds[-1]])
    return kinds[-1] if all(k.tag in ("bool", "tensor") for k in kinds) else join_all(kinds)


def _compare(inf: Inference, frame: Frame, node: ast.Compare) -> Kind:
    kinds = [evaluate(inf, frame, e) for e in (node.left, *node.comparators)]
    if any(isinstance(o, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for o in node.ops) or any(k.tag == "none" for k in kinds):
        return BOOL  # a tensor is compared with None as any object is
    if any(k.tag == "numpy" for k in kinds) and not any(k.is_tensor for k in kinds):
        return NUMPY
    return BOOL_TENSOR if any(k.is_tensor for k in kinds) else BOOL if all(k.is_number or k.tag in ("str", "shape", "none") for k in kinds) else UNKNOWN


def _conditional(inf: Inference, frame: Frame, node: ast.IfExp) -> Kind:
    from migrate.infer.statements import narrow

    evaluate(inf, frame, node.test)
    before = frame.env
    frame.env = dict(before)
    narrow(inf, frame, node.test, True)
    a = evaluate(inf, frame, node.body)
    frame.env = dict(before)
    narrow(inf, frame, node.test, False)
    b = evaluate(inf, frame, node.orelse)
    frame.env = before
    found = lookup(inf.unit, frame.file, node.test, "hasattr")
    if found is not None and found.literal:
        return a if found.rows else b
    return join(a, b)


def _named(inf: Inference, frame: Frame, node: ast.NamedExpr) -> Kind:
    kind = evaluate(inf, frame, node.value)
    frame.env[node.target.id] = inf.kinds[node.target] = kind
    return kind


def _comprehension(inf: Inference, frame: Frame, node: Any) -> Kind:
    from migrate.infer.statements import assign, narrow

    inner = Frame(frame.file, frame.function, frame.owner, {}, frame)
    for g in node.generators:
        assign(inf, inner, g.target, iterate(evaluate(inf, inner, g.iter)))
        for c in g.ifs:
            evaluate(inf, inner, c)
            narrow(inf, inner, c, True)
    if isinstance(node, ast.DictComp):
        evaluate(inf, inner, node.key)
        return Kind("dict", item=evaluate(inf, inner, node.value))
    tag = "set" if isinstance(node, ast.SetComp) else "list"
    return Kind(tag, item=evaluate(inf, inner, node.elt))


def _lambda(inf: Inference, frame: Frame, node: ast.Lambda) -> Kind:
    inner = Frame(frame.file, frame.function, frame.owner, {}, frame)
    for d in [*node.args.defaults, *node.args.kw_defaults]:
        if d is not None:
            evaluate(inf, frame, d)
    for p in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        inner.env[p.arg] = inf.kinds[p] = usage(inf, frame.file, node, p.arg)
    for v in (node.args.vararg, node.args.kwarg):
        if v is not None:
            inner.env[v.arg] = UNKNOWN
    body = evaluate(inf, inner, node.body)
    return Kind("factory", ref=frozenset([node])) if body.tag == "module" else Kind("function", ref=node, item=body)


def _joined(inf: Inference, frame: Frame, node: ast.JoinedStr) -> Kind:
    for v in node.values:
        if isinstance(v, ast.FormattedValue):
            evaluate(inf, frame, v.value)
    return STR


def _call(inf: Inference, frame: Frame, node: ast.Call) -> Kind:
    from migrate.infer.calls import call

    return call(inf, frame, node)


_HANDLERS: dict[type[ast.expr], Callable[[Inference, Frame, Any], Kind]] = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.Subscript: _subscript, ast.Tuple: _tuple, ast.List: _tuple, ast.Starred: _starred,
    ast.Dict: _dict, ast.BinOp: _binary, ast.UnaryOp: _unary, ast.BoolOp: _boolean, ast.Compare: _compare, ast.IfExp: _conditional, ast.NamedExpr: _named,
    ast.ListComp: _comprehension, ast.SetComp: _comprehension, ast.GeneratorExp: _comprehension, ast.DictComp: _comprehension, ast.Lambda: _lambda,
    ast.JoinedStr: _joined, ast.Call: _call,
}
__all__ = ["NUMBER", "evaluate", "iterate"]
