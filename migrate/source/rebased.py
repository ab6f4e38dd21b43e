"""Classes whose bases a decorator changes (`cls.__bases__ = (Mixin,) + ...`) name them themselves: the target's modules can't be given others later."""
import ast


def bases_named(text: str, tree: ast.Module) -> str:
    """The file with such a decorator's base in the class statement; the decorator's line is left empty. Decorators that do anything else stay."""
    added = {n.name: found for n in tree.body if isinstance(n, ast.FunctionDef) and (found := _base_of(n))}
    lines = text.split("\n")
    for c in tree.body:
        if not isinstance(c, ast.ClassDef) or not c.bases or c.keywords:
            continue
        for d in c.decorator_list:
            first = c.bases[0]
            base = added.get(d.id, "") if isinstance(d, ast.Name) else ""
            if isinstance(d, ast.Name) and base and base not in map(ast.unparse, c.bases) and lines[d.lineno - 1].strip() == f"@{d.id}":
                line = lines[first.lineno - 1].encode()
                lines[first.lineno - 1] = (line[: first.col_offset] + f"{base}, ".encode() + line[first.col_offset :]).decode()
                lines[d.lineno - 1] = ""
                break
    return "\n".join(lines)


def _base_of(f: ast.FunctionDef) -> str:
    """The class that a decorator puts before the bases of the class it is given, "" where it is none."""
    body = f.body[1:] if isinstance(f.body[0], ast.Expr) and isinstance(f.body[0].value, ast.Constant) else f.body
    match body:
        case [
            ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=given), attr="__bases__")],
                value=ast.BinOp(left=ast.Tuple(elts=[ast.Name(id=base)]), op=ast.Add(), right=rest),
            ),
            ast.Return(value=ast.Name(id=back)),
        ] if [a.arg for a in f.args.args] == [given] and back == given and not f.decorator_list:
            kept = ast.unparse(rest)
            own = (f"{given}.__bases__", *(f"tuple(({b} for {b} in {given}.__bases__ if {b} {sign} {base}))" for b in "bcx" for sign in ("!=", "is not")))
            return base if kept in own else ""
    return ""
