"""Which names of a statement are its own: parameters and variables of the functions and comprehensions in it."""
import ast

from migrate.source.text import children, walk

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_names(statement: ast.AST) -> set[ast.Name]:
    """The names that a statement reads and that a function or comprehension in it binds."""
    found: set[ast.Name] = set()
    stack: list[tuple[ast.AST, frozenset[str]]] = [(statement, frozenset())]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, FUNCTIONS):
            body = node.body if isinstance(node.body, list) else [node.body]
            inner = (bound | _parameters(node.args) | _assigned(body)) - _declared(node)
            stack += [(s, inner) for s in body]
            stack += [(c, bound) for c in (node.args, *getattr(node, "decorator_list", ()), getattr(node, "returns", None),
                *getattr(node, "type_params", ())) if c is not None]
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
            stack += [(c, bound) for c in children(node)]
    return found


def _parameters(a: ast.arguments) -> frozenset[str]:
    return frozenset(p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p is not None)


def _declared(function: ast.AST) -> frozenset[str]:
    """Names that a function takes from outside although it binds them."""
    return frozenset(name for n in walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names)


def _assigned(body: list[ast.stmt] | list[ast.expr]) -> set[str]:
    """What statements bind, what is inside further functions and classes aside."""
    found: set[str] = set()
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, COMPREHENSIONS):
            stack += [n for n in walk(node) if isinstance(n, ast.NamedExpr)]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(a.asname or a.name.partition(".")[0] for a in node.names)
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name is not None:
                found.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest is not None:
                found.add(node.rest)
            stack += children(node)
    return found
