"""Which names of a statement are its own: parameters and variables of the functions and comprehensions in it."""
import ast
from collections.abc import Iterator

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_names(statement: ast.AST) -> set[ast.Name]:
    """The names that a statement reads and that a function or comprehension in it binds."""
    found: set[ast.Name] = set()
    stack: list[tuple[ast.AST, frozenset[str]]] = [(statement, frozenset())]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, FUNCTIONS):
            inner = bound | _parameters(node.args) | frozenset(_assigned(node.body if isinstance(node.body, list) else [node.body]))
            body = node.body if isinstance(node.body, list) else [node.body]
            stack += [(s, inner - _declared(node)) for s in body]
            stack += [(c, bound) for c in ast.iter_child_nodes(node) if c not in body]
        elif isinstance(node, COMPREHENSIONS):
            inner = bound | {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
            first = node.generators[0].iter
            stack.append((first, bound))
            made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            stack += [(p, inner) for p in (*made, *(p for g in node.generators for p in (g.iter, *g.ifs))) if p is not first]
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id in bound:
                found.add(node)
        else:
            stack += [(c, bound) for c in ast.iter_child_nodes(node)]
    return found


def _parameters(a: ast.arguments) -> frozenset[str]:
    return frozenset(p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p is not None)


def _declared(function: ast.AST) -> frozenset[str]:
    """Names that a function takes from outside although it binds them."""
    return frozenset(name for n in ast.walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names)


def _assigned(body: list[ast.stmt] | list[ast.expr]) -> Iterator[str]:
    """What statements bind, what is inside further functions and classes aside."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
                continue
            case ast.Lambda():
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                stack += [n for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from (a.asname or a.name.partition(".")[0] for a in node.names)
        stack += ast.iter_child_nodes(node)
