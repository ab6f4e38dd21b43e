"""Statements that a file holds as text: what `exec(f"self.w_{i} = x")` runs is written as code, `setattr(self, f"w_{i}", x)`, before anything else looks at the file."""
import ast

HOLE = "_hole_{}_"


def spelled_out(text: str, tree: ast.Module) -> str:
    """The file with each such call replaced, on its line; calls that bind names, or whose text is not known, stay."""
    if any(_binds(n) for n in ast.walk(tree)):
        return text
    lines = text.split("\n")
    for node in ast.walk(tree):
        said = _statement(node)
        if said is not None and isinstance(node, ast.Expr):
            line = lines[node.lineno - 1].encode()
            lines[node.lineno - 1] = (line[: node.col_offset] + said.encode() + line[node.end_col_offset :]).decode()
    return "\n".join(lines)


def _binds(n: ast.AST) -> bool:
    """Whether the name is the file's own."""
    if isinstance(n, ast.Name):
        return n.id == "exec" and isinstance(n.ctx, ast.Store)
    return isinstance(n, (ast.FunctionDef, ast.alias)) and "exec" in (n.name, getattr(n, "asname", None))


def _statement(node: ast.AST) -> str | None:
    """The statement that an `exec` of one line runs."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id="exec"), args=[said], keywords=[])) if node.lineno == node.end_lineno:
            holes: list[ast.expr] = []
            code = _template(said, holes)
        case _:
            return None
    try:
        body = ast.parse(code or "").body
    except (SyntaxError, ValueError):
        return None
    if len(body) != 1:
        return None
    made = _filled(body[0], holes)
    return None if made is None or (found := ast.unparse(ast.fix_missing_locations(made))).count("\n") or "_hole_" in found else found


def _template(node: ast.expr, holes: list[ast.expr]) -> str | None:
    """The text with a name in place of each value that is not known."""
    match node:
        case ast.Constant(value=str() as said):
            return None if "_hole_" in said else said
        case ast.JoinedStr():
            parts = [_template(v, holes) for v in node.values]
            return None if None in parts else "".join(p or "" for p in parts)
        case ast.FormattedValue(conversion=-1, format_spec=None):
            holes.append(node.value)
            return HOLE.format(len(holes) - 1)
        case ast.BinOp(op=ast.Add()):
            left, right = _template(node.left, holes), _template(node.right, holes)
            return None if left is None or right is None else left + right
    return None


def _filled(statement: ast.stmt, holes: list[ast.expr]) -> ast.stmt | None:
    """The statement with its values: only names of attributes may hold some, and no name is bound."""
    if any(isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) or isinstance(n, (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(statement)):
        return None
    fill = _Attributes(holes)
    match statement:
        case ast.Assign(targets=[ast.Attribute() as target]):
            name = fill.name(target.attr)
            owner, value = fill.visit(target.value), fill.visit(statement.value)
            if isinstance(name, ast.JoinedStr):
                return ast.Expr(ast.Call(ast.Name("setattr"), [owner, name, value], []))
            return ast.Assign([ast.Attribute(owner, target.attr, ast.Store())], value)
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Subscript()]):
            made = fill.visit(statement)
            assert isinstance(made, ast.stmt)
            return made
    return None


class _Attributes(ast.NodeTransformer):
    """`self.w__hole_0_` -> `getattr(self, f"w_{i}")`."""

    def __init__(self, holes: list[ast.expr]) -> None:
        self.holes = holes

    def name(self, said: str) -> ast.expr:
        """A name that may hold values, as an expression."""
        values: list[ast.expr] = []
        for part in said.replace("_hole_", "\0_hole_").split("\0"):
            rest = part
            if part.startswith("_hole_"):
                number, _end, rest = part.removeprefix("_hole_").partition("_")
                values.append(ast.FormattedValue(self.holes[int(number)], -1))
            if rest:
                values.append(ast.Constant(rest))
        return ast.JoinedStr(values) if any(isinstance(v, ast.FormattedValue) for v in values) else ast.Constant(said)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Attributes whose names are known stay."""
        self.generic_visit(node)
        name = self.name(node.attr)
        return ast.Call(ast.Name("getattr"), [node.value, name], []) if isinstance(name, ast.JoinedStr) else node
