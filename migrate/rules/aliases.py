"""Which other names hold the same tensor, or a view of it, when it is written to.

A write in place shows in every name that shares the tensor. Where such a name is used afterwards, it gets the new value too, or the write is diagnosed.
"""
import ast

from migrate.context import Context
from migrate.source.names import FunctionNode

VIEWS = frozenset({
    "view", "reshape", "transpose", "permute", "t", "squeeze", "unsqueeze", "flatten", "expand", "narrow", "select", "chunk", "split", "unbind", "T", "mT", "swapaxes", "movedim", "diagonal",
    "view_as", "detach", "data", "unflatten", "unfold", "real", "imag", "expand_as",
})
SAME = frozenset({"detach", "contiguous", "data", "to", "float", "requires_grad_"})


def _function(ctx: Context, node: ast.AST) -> FunctionNode | None:
    found = ctx.source.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef)
    return found if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _names(ctx: Context, function: FunctionNode) -> dict[str, list[ast.Name]]:
    cache: dict[ast.AST, dict[str, list[ast.Name]]] = ctx.shared.setdefault("names_of", {})
    if function not in cache:
        found: dict[str, list[ast.Name]] = {}
        for n in ast.walk(function):
            if isinstance(n, ast.Name):
                found.setdefault(n.id, []).append(n)
        for uses in found.values():
            uses.sort(key=lambda n: (n.lineno, n.col_offset))
        cache[function] = found
    return cache[function]


def _after(ctx: Context, node: ast.AST, statement: ast.stmt) -> tuple[int, int]:
    return statement.end_lineno or 0, statement.end_col_offset or 0


def used_later(ctx: Context, node: ast.AST, name: ast.Name) -> bool:
    """Whether a name's value is read after the statement of `node` before it is bound anew."""
    function = _function(ctx, node)
    if function is None:
        return True
    return _live(ctx, function, name.id, ctx.source.statement(node), node)


def _live(ctx: Context, function: FunctionNode, name: str, statement: ast.stmt, node: ast.AST | None = None) -> bool:
    end = _after(ctx, statement, statement)
    start = (statement.lineno, statement.col_offset)
    if node is not None:
        after = (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        for n in _names(ctx, function).get(name, ()):
            if after <= (n.lineno, n.col_offset) < end and isinstance(n.ctx, ast.Load):
                return True
    if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in statement.targets):
        return False
    exclusive = _other_branches(ctx, statement)
    loop = ctx.source.enclosing(statement, ast.For, ast.While)
    for n in _names(ctx, function).get(name, ()):
        at = (n.lineno, n.col_offset)
        if at < end or any(n in branch for branch in exclusive):
            if loop is not None and at < start and isinstance(n.ctx, ast.Load) and _inside(ctx, n, loop) and not _bound_first(ctx, function, name, loop, n):
                return True
            continue
        if isinstance(n.ctx, ast.Load):
            return True
        if isinstance(n.ctx, ast.Store) and _certain(ctx, n, statement):
            user = ctx.source.statement(n)
            if any(isinstance(m, ast.Name) and m.id == name and isinstance(m.ctx, ast.Load) for m in ast.walk(user)):
                return True
            return False
    return False


def _bound_first(ctx: Context, function: FunctionNode, name: str, loop: ast.AST, use: ast.Name) -> bool:
    """Whether the loop's body binds the name before the use."""
    for n in _names(ctx, function).get(name, ()):
        if isinstance(n.ctx, ast.Store) and _inside(ctx, n, loop) and (n.lineno, n.col_offset) < (use.lineno, use.col_offset):
            return True
    for n in _names(ctx, function).get(name, ()):  # `x = f(x)`: the store stands before the load on the line
        if isinstance(n.ctx, ast.Store) and _inside(ctx, n, loop) and ctx.source.statement(n) is not ctx.source.statement(use) and n.lineno < use.lineno:
            return True
    return False


def _inside(ctx: Context, node: ast.AST, outer: ast.AST) -> bool:
    at: ast.AST | None = node
    while at is not None:
        if at is outer:
            return True
        at = ctx.source.parent(at)
    return False


def _certain(ctx: Context, store: ast.Name, statement: ast.stmt) -> bool:
    """Whether control that passes `statement` surely reaches the store first: it is in the same body or one around."""
    body_of = ctx.source.parent(ctx.source.statement(store))
    at: ast.AST | None = statement
    while at is not None:
        at = ctx.source.parent(at)
        if at is body_of:
            return True
    return False


def _other_branches(ctx: Context, statement: ast.stmt) -> list[set[ast.AST]]:
    """Nodes of the branches that exclude the one that the statement is in."""
    found = []
    at: ast.AST = statement
    while (up := ctx.source.parent(at)) is not None and not isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(up, ast.If):
            other = up.orelse if at in up.body else up.body
            found.append({n for s in other for n in ast.walk(s)})
        at = up
    return found


def _links(ctx: Context, function: FunctionNode, name: str) -> list[tuple[str, ast.Name, str]]:
    """(other name, where it is bound, "same" or "view") for names bound to `name` or to a view of it, and the other way round."""
    found = []
    for uses in _names(ctx, function).values():
        for n in uses:
            if not isinstance(n.ctx, ast.Store):
                continue
            parent = ctx.source.parent(n)
            at: ast.AST = n
            while isinstance(parent, (ast.Tuple, ast.List, ast.Starred)):
                at, parent = parent, ctx.source.parent(parent)
            if isinstance(parent, ast.Assign) and at in parent.targets:
                root, how = root_of(ctx, parent.value)
                if len(parent.targets) > 1 and how is None and n.id == name:
                    found += [(t.id, n, "same") for t in parent.targets if isinstance(t, ast.Name) and t.id != name]
                if root is not None and how is not None:
                    how = "view" if at is not n else how
                    if root == name and n.id != name:
                        found.append((n.id, n, how))
                    elif n.id == name and root != name:
                        found.append((root, n, "base" if how == "view" else "same"))
            elif isinstance(parent, ast.For) and at is parent.target and n.id == name:
                root, how = root_of(ctx, parent.iter)
                if root is not None and ctx.kind(n).is_tensor:
                    found.append((root, n, "element"))
    return found


def root_of(ctx: Context, node: ast.expr) -> tuple[str | None, str | None]:
    """The name that an expression is the same tensor as, or a view of."""
    match node:
        case ast.Name():
            return node.id, "same"
        case ast.Subscript():
            root, how = root_of(ctx, node.value)
            if how is None or ctx.kind(node.value).tag not in ("tensor", "unknown") or _copies(ctx, node.slice):
                return (root, "same") if how and ctx.kind(node.value).tag in ("list", "tuple") and False else (None, None)
            return root, "view"
        case ast.Attribute() if node.attr in VIEWS:
            root, how = root_of(ctx, node.value)
            return (root, how if node.attr in SAME else "view") if how else (None, None)
        case ast.Call(func=ast.Attribute() as func) if func.attr in VIEWS or func.attr in SAME:
            if ctx.resolve(func) is not None:
                return root_of(ctx, node.args[0]) if node.args and func.attr in VIEWS and False else (None, None)
            root, how = root_of(ctx, func.value)
            if how is None or not (ctx.kind(func.value).is_tensor or ctx.kind(func.value).is_unknown):
                return None, None
            if func.attr in ("to", "float", "contiguous"):
                return None, None  # mostly a copy; the same tensor only where nothing was to do
            return root, how if func.attr in SAME else "view"
    return None, None


def _copies(ctx: Context, index: ast.expr) -> bool:
    """Indexing by tensors or lists copies."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(ctx.kind(p).is_tensor or isinstance(p, ast.List) or ctx.kind(p).tag == "list" for p in parts)


def same_tensor_later(ctx: Context, node: ast.AST, name: ast.Name) -> list[str]:
    """Other names of the same tensor that are used after a node."""
    function = _function(ctx, node)
    if function is None:
        return []
    statement = ctx.source.statement(node)
    return [other for other, _, how in _current(ctx, function, name.id, statement) if _live(ctx, function, other, statement)]


def _current(ctx: Context, function: FunctionNode, name: str, statement: ast.stmt) -> list[tuple[str, ast.Name, str]]:
    """Links that hold at a statement: bound before it, and neither name bound anew since."""
    found = []
    here = (statement.lineno, statement.col_offset)
    for other, where, how in _links(ctx, function, name):
        bound = (where.lineno, where.col_offset)
        loop = ctx.source.enclosing(statement, ast.For, ast.While)
        if bound >= here and not (loop is not None and _inside(ctx, where, loop)) or any(where in b for b in _other_branches(ctx, statement)):
            continue
        made_by = ctx.source.statement(where)
        again = False
        for n in [*_names(ctx, function).get(name, ()), *_names(ctx, function).get(other, ())]:
            if not isinstance(n.ctx, ast.Store) or n is where or ctx.source.statement(n) is made_by:
                continue
            s = ctx.source.statement(n)
            if isinstance(s, ast.AugAssign) or s is statement:
                continue
            if bound < (n.lineno, n.col_offset) < here and _certain(ctx, n, statement):
                again = True
        if not again:
            found.append((other, where, how))
    return found


def check(ctx: Context, statement: ast.stmt, target: ast.expr, ignore_self: bool = False) -> list[str]:
    """Statements that give the other names of a tensor its new value, after a write to `target`; diagnoses what can't be done."""
    function = _function(ctx, statement)
    if function is None or not isinstance(target, ast.Name):
        return []
    after = []
    for other, where, how in _current(ctx, function, target.id, statement):
        if not _live(ctx, function, other, statement):
            continue
        if how == "same":
            after.append(f"{other} = {target.id}")
        elif how == "base" and isinstance(parent := ctx.source.parent(where), ast.Assign) and isinstance(parent.value, ast.Subscript) and isinstance(parent.value.value, ast.Name):
            after.append(f"{other} = {other}.at[{ctx.source.segment(parent.value.slice)}].set({target.id})")
        else:
            ctx.report("MIG303", statement, f"`{target.id}` and `{other}` share their memory in PyTorch (line {where.lineno}); here `{other}` keeps its old value")
    parameter = next((a for a in function.args.args + function.args.kwonlyargs if a.arg == target.id), None)
    if parameter is not None and not any(
        isinstance(n.ctx, ast.Store) and (n.lineno, n.col_offset) < (statement.lineno, statement.col_offset) and _certain(ctx, n, statement) for n in _names(ctx, function).get(target.id, ())
    ):
        ctx.report("MIG106", statement, f"`{target.id}` is the caller's tensor, which PyTorch changes as well")
    return after


def variable_behind(ctx: Context, name: ast.Name) -> ast.Attribute | None:
    """The variable that a local name is, after `x = self.buffer`."""
    function = _function(ctx, name)
    if function is None:
        return None
    stores = [n for n in _names(ctx, function).get(name.id, ()) if isinstance(n.ctx, ast.Store) and (n.lineno, n.col_offset) < (name.lineno, name.col_offset)]
    stores = [n for n in stores if not isinstance(ctx.source.parent(n), ast.AugAssign)]
    if not stores:
        return None
    parent = ctx.source.parent(stores[-1])
    if isinstance(parent, ast.Assign) and isinstance(parent.value, ast.Attribute):
        value = parent.value
        if value.attr == "data" and isinstance(value.value, ast.Attribute):
            value = value.value
        if ctx.kind(value).variable and ctx.kind(value.value).tag == "module":
            return value
    return None
