"""Statements: what names and attributes hold after them."""
import ast
from collections.abc import Callable

from migrate.infer.engine import Frame, Inference
from migrate.infer.expressions import evaluate, iterate, modules
from migrate.infer.kinds import NONE, TENSOR, UNKNOWN, Kind, join, join_all, refs
from migrate.source.modules import ClassInfo, FunctionInfo
from migrate.source.text import children


def run_body(inf: Inference, frame: Frame, body: list[ast.stmt]) -> None:
    """Runs statements in order."""
    for s in body:
        run(inf, frame, s)


def run(inf: Inference, frame: Frame, s: ast.stmt) -> None:
    """Runs one statement."""
    match s:
        case ast.Assign():
            kind = evaluate(inf, frame, s.value)
            for t in s.targets if s not in inf.unit.shared.get("imported", ()) else ():
                assign(inf, frame, t, kind.but(variable="") if isinstance(t, ast.Name) and isinstance(s.value, ast.Attribute) else kind)
        case ast.AnnAssign():
            stated = inf.annotation(frame.file, s.annotation)
            kind = evaluate(inf, frame, s.value) if s.value is not None else stated
            if kind.is_unknown or (kind.tag in ("list", "dict", "none") and not stated.is_unknown):
                kind = stated
            assign(inf, frame, s.target, kind)
        case ast.AugAssign():
            _augmented(inf, frame, s)
        case ast.If():
            _branches(inf, frame, s)
        case ast.For() | ast.AsyncFor():
            held = iterate(evaluate(inf, frame, s.iter))
            assign(inf, frame, s.target, held)
            _loop(inf, frame, s.body, lambda: assign(inf, frame, s.target, held))
            run_body(inf, frame, s.orelse)
        case ast.While():
            evaluate(inf, frame, s.test)
            _loop(inf, frame, s.body)
            run_body(inf, frame, s.orelse)
        case ast.With() | ast.AsyncWith():
            for item in s.items:
                kind = evaluate(inf, frame, item.context_expr)
                if item.optional_vars is not None:
                    assign(inf, frame, item.optional_vars, UNKNOWN if kind.tag == "tensor" else kind)
            run_body(inf, frame, s.body)
        case ast.Try() if s in inf.unit.shared.get("replacing", ()):
            pass
        case ast.Try():
            run_body(inf, frame, s.body)
            for h in s.handlers:
                run_body(inf, frame, h.body)
            run_body(inf, frame, s.orelse + s.finalbody)
        case ast.Assert(test=ast.Call()):
            evaluate(inf, frame, s.test)
            narrow(inf, frame, s.test, True)
        case ast.Return():
            _return(inf, frame, s)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            _function(inf, frame, s)
        case ast.ClassDef():
            _class(inf, frame, s)
        case _:
            for child in children(s):
                if isinstance(child, ast.expr):
                    evaluate(inf, frame, child)
                elif isinstance(child, ast.match_case):
                    run_body(inf, frame, child.body)


def assign(inf: Inference, frame: Frame, target: ast.expr, kind: Kind) -> None:
    """Binds a target."""
    inf.kinds[target] = kind
    match target:
        case ast.Name():
            frame.env[target.id] = kind
        case ast.Tuple() | ast.List():
            items = kind.items
            starred = any(isinstance(t, ast.Starred) for t in target.elts)
            for i, t in enumerate(target.elts):
                if isinstance(t, ast.Starred):
                    assign(inf, frame, t.value, Kind("list", item=kind.element))
                elif items is not None and not starred and len(items) == len(target.elts):
                    assign(inf, frame, t, items[i])
                else:
                    assign(inf, frame, t, iterate(kind))
        case ast.Attribute():
            evaluate(inf, frame, target.value)
        case ast.Subscript():
            held = evaluate(inf, frame, target.value)
            index = evaluate(inf, frame, target.slice)
            if frame.function is not None and (isinstance(target.value, ast.Attribute) or isinstance(target.value, ast.Name) and frame.lookup(target.value.id) is None):
                _store(inf, frame, target.value, kind)
            elif isinstance(target.value, ast.Name) and held.tag in ("dict", "list"):
                item = kind if held.item is None else join(held.item, kind)
                named = isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str)
                fields = tuple((dict(held.fields) | {target.slice.value: kind}).items()) if named and isinstance(target.slice, ast.Constant) else held.fields
                key = modules([index] if held.items == () else [held.key or UNKNOWN, index])
                frame.env[target.value.id] = held.but(item=item, items=None, fields=fields, key=key)


def _store(inf: Inference, frame: Frame, container: ast.Name | ast.Attribute, kind: Kind) -> None:
    """A function puts a class or function into a container of its module or of a class."""
    if kind.tag not in ("class", "factory", "function"):
        return
    if isinstance(container, ast.Name):
        if inf.resolve(frame.file, container) is None and container.id in frame.file.names.top.bindings:
            inf.store(frame.file, container.id, kind)
        return
    held = inf.of(container.value)
    for ref in refs(held) if held.tag in ("class", "object") else ():
        owner = next((c for c in ref.mro() if container.attr in c.body or container.attr in c.attributes), None) if isinstance(ref, ClassInfo) else None
        if owner is not None:
            inf.store(owner, container.attr, kind)


def _augmented(inf: Inference, frame: Frame, s: ast.AugAssign) -> None:
    old = evaluate(inf, frame, s.target)
    new = evaluate(inf, frame, s.value)
    if old.is_tensor or new.is_tensor:
        kind = old if old.is_tensor else TENSOR
        if isinstance(s.op, ast.Div) and kind.dtype != "complex":
            kind = kind.but(dtype="float")
    elif old.tag == "list" and new.tag in ("list", "tuple"):
        kind = old.but(item=new.element if old.items == () or old.item is None else join(old.element, new.element), items=None)
    else:
        kind = join(old, new)
    inf.kinds[s.target] = old
    if isinstance(s.target, ast.Name):
        frame.env[s.target.id] = kind


def _loop(inf: Inference, frame: Frame, body: list[ast.stmt], again: Callable[[], None] = lambda: None) -> None:
    """Runs a body twice: the second round starts from what the first left. `again` binds the loop's own names anew."""
    before = dict(frame.env)
    run_body(inf, frame, body)
    for name, kind in before.items():
        if frame.env.get(name) != kind:
            frame.env[name] = join(kind, frame.env.get(name, UNKNOWN))
    again()
    run_body(inf, frame, body)


def _branches(inf: Inference, frame: Frame, s: ast.If) -> None:
    evaluate(inf, frame, s.test)
    before = dict(frame.env)
    narrow(inf, frame, s.test, True)
    run_body(inf, frame, s.body)
    after, left = frame.env, _leaves(s.body)
    frame.env = dict(before)
    narrow(inf, frame, s.test, False)
    run_body(inf, frame, s.orelse)
    other = frame.env
    if left:
        merged = other
    elif s.orelse and _leaves(s.orelse):
        merged = after
    else:
        merged = {n: join(after[n], other[n]) if n in after and n in other else after.get(n, other.get(n, UNKNOWN)) for n in after.keys() | other.keys()}
    if frame.function is None and frame.outer is None:
        inf.globals[frame.file] = merged
    frame.env = merged


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether control never runs past the statements."""
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def narrow(inf: Inference, frame: Frame, test: ast.expr, holds: bool) -> None:
    """What a condition tells of names, where it holds or does not."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            narrow(inf, frame, test.operand, not holds)
        case ast.BoolOp(op=ast.And()) if holds:
            for v in test.values:
                narrow(inf, frame, v, True)
        case ast.BoolOp(op=ast.Or()) if not holds:
            for v in test.values:
                narrow(inf, frame, v, False)
        case ast.BoolOp(op=ast.Or()):
            _one_of(inf, frame, test)
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() | ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=None)]):
            kind = frame.lookup(name)
            if kind is not None:
                is_none = isinstance(op, (ast.Is, ast.Eq)) == holds
                frame.env[name] = NONE if is_none and kind.optional else kind.but(optional=False) if not is_none else kind
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kinds]) if holds:
            options = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
            stated = [inf.annotation(frame.file, k) for k in options]
            if stated and all(not k.is_unknown for k in stated):
                kind = stated[0]
                for k in stated[1:]:
                    if kind.tag == k.tag == "module":
                        kind = Kind("module", ref=frozenset([*refs(kind), *refs(k)])) if refs(kind) and refs(k) else Kind("module")
                    else:
                        kind = join(kind, k)
                old = frame.lookup(name)
                frame.env[name] = kind if old is None or not (old.is_tensor and kind == TENSOR) else old.but(optional=False, sure=True)
        case ast.Call(args=[ast.Name(id=name)], func=func) if holds and inf.resolve(frame.file, func) == "torch.is_tensor":
            frame.env[name] = TENSOR


def _one_of(inf: Inference, frame: Frame, test: ast.BoolOp) -> None:
    """`isinstance(m, A) or isinstance(m, B)`: a name that each part tells something of is one of what they say."""
    before, found = frame.env, []
    for v in test.values:
        frame.env = dict(before)
        narrow(inf, frame, v, True)
        found.append(frame.env)
    frame.env = before
    for name in dict.fromkeys(n for env in found for n in env):
        kinds = [env[name] for env in found if name in env and env[name] != before.get(name)]
        if len(kinds) == len(found) and all(k.tag == kinds[0].tag for k in kinds):
            frame.env[name] = join_all(kinds)


def _return(inf: Inference, frame: Frame, s: ast.Return) -> None:
    kind = evaluate(inf, frame, s.value) if s.value is not None else NONE
    if frame.function is None:
        return
    sites = inf.return_sites.setdefault(frame.function, {})
    read = kind.variable and isinstance(s.value, ast.Attribute) and (not kind.optional or kind.variable == "buffer")  # its array is returned
    sites[s] = kind.but(variable="") if read else kind
    inf.returns[frame.function] = join_all(tuple(sites.values()))


def _function(inf: Inference, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    info = frame.file.by_node.get(node)
    assert isinstance(info, FunctionInfo)
    for d in node.decorator_list:
        evaluate(inf, frame, d)
    for default in [*node.args.defaults, *node.args.kw_defaults]:
        if default is not None:
            evaluate(inf, frame, default)
    made = inf.unit.decorated.get(info)
    frame.env[node.name] = Kind("function", ref=info) if made is None else Kind("class", ref=made)
    inner = Frame(frame.file, info, info.owner if info.owner is not None else frame.owner, {}, frame if frame.function is not None else None)
    bind_parameters(inf, inner, info)
    run_body(inf, inner, node.body)
    if node.returns is not None:
        stated = inf.annotation(frame.file, node.returns)
        found = inf.returns.get(info, UNKNOWN)
        if found.is_unknown and not stated.is_unknown:
            inf.returns[info] = stated
    inf.returns.setdefault(info, NONE if not inf.yields(node) else UNKNOWN)


def bind_parameters(inf: Inference, frame: Frame, info: FunctionInfo) -> None:
    """Gives the parameters of a function their kinds."""
    a = info.node.args
    if info.self_name is not None and info.owner is not None:
        frame.env[info.self_name] = Kind("module" if info.owner.is_module else "object", ref=info.owner)
    elif info.is_classmethod and a.args:
        below = frozenset(inf.descendants(info.owner)) if info.name == "__init_subclass__" and info.owner is not None else frozenset()
        frame.env[a.args[0].arg] = Kind("class", ref=below or info.owner)
    for p in [*info.parameters, *a.kwonlyargs]:
        frame.env[p.arg] = inf.kinds[p] = inf.parameter(frame, info, p)
    if a.vararg:
        stated = inf.annotation(frame.file, a.vararg.annotation) if a.vararg.annotation else UNKNOWN
        if stated.is_unknown:
            stated = inf.arguments.get(a.vararg, UNKNOWN)
        frame.env[a.vararg.arg] = Kind("tuple", item=stated)
    if a.kwarg:
        frame.env[a.kwarg.arg] = Kind("dict", item=UNKNOWN)


def _class(inf: Inference, frame: Frame, node: ast.ClassDef) -> None:
    info = frame.file.by_node.get(node)
    assert isinstance(info, ClassInfo)
    frame.env[node.name] = Kind("class", ref=info)
    for d in node.decorator_list:
        inf.decorated(evaluate(inf, frame, d), frame.env[node.name])
    body = Frame(frame.file, None, info, {}, frame)
    for s in node.body:
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        run(inf, body, s)
    methods = [s for s in node.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for m in sorted(methods, key=lambda m: m.name != "__init__"):  # attributes first
        _function(inf, Frame(frame.file, frame.function, info, {}, frame if frame.function is not None else None), m)
