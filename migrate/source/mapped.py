"""Keyword arguments that a call takes from a one-line function (`torch.zeros(n, **to(x))`) are written out: which there are is known then."""
import ast

PLACEMENT = frozenset({"device", "dtype"})


def written_out(text: str, tree: ast.Module) -> str:
    """The file with each `**to(x)` on its line replaced by `dtype = x.dtype, device = x.device`; calls of functions that are bound twice or do anything else stay."""
    makers = {n.name: found for n in tree.body if isinstance(n, ast.FunctionDef) and (found := _mapping(n)) is not None}
    if not makers:
        return text
    nodes = list(ast.walk(tree))
    bound = [b for n in nodes for b in _binds(n)]
    lines, made = text.split("\n"), []
    for call in (n for n in nodes if isinstance(n, ast.Call)):
        for k in call.keywords:
            match k.value:
                case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=given)], keywords=[]) if k.arg is None and name in makers and bound.count(name) == 1:
                    keys = makers[name]
                    if keys.keys().isdisjoint(o.arg for o in call.keywords) and k.lineno == k.end_lineno:
                        made.append((k, ", ".join(f"{key} = {given}{value}" for key, value in keys.items())))
    for k, said in sorted(made, key=lambda m: -m[0].col_offset):
        line = lines[k.lineno - 1].encode()
        lines[k.lineno - 1] = (line[: k.col_offset] + said.encode() + line[k.end_col_offset :]).decode()
    return "\n".join(lines)


def _binds(n: ast.AST) -> list[str]:
    """The names that a node binds."""
    match n:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.alias():
            return [n.asname or n.name]
    return []


def _mapping(f: ast.FunctionDef) -> dict[str, str] | None:
    """What a function of one tensor returns, where that is a mapping of the tensor's own attributes: the key, and the attribute with its dot."""
    a = f.args
    match f.body:
        case [ast.Return(value=ast.Dict(keys=keys, values=values))]:
            pairs = [(k.value if isinstance(k, ast.Constant) else None, v) for k, v in zip(keys, values, strict=True)]
        case [ast.Return(value=ast.Call(func=ast.Name(id="dict"), args=[], keywords=given))]:
            pairs = [(k.arg, k.value) for k in given]
        case _:
            return None
    if f.decorator_list or len(a.args) != 1 or a.defaults or a.vararg or a.kwonlyargs or a.kwarg or not pairs:
        return None
    found: dict[str, str] = {}
    for key, value in pairs:
        key = str(key)
        match value:
            case ast.Attribute(value=ast.Name(id=of), attr=attr) if key in PLACEMENT and key not in found and of == a.args[0].arg:
                found[key] = f".{attr}"
            case _:
                return None
    return found
