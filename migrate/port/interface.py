"""What other files see of a converted file: the names of its definitions, with their signatures and what their attributes are made by.

Two parts of a project may each convert the same definition; these are compared, so that a caller and its callee can't disagree in silence.
"""

import ast
from collections import Counter

from migrate.fitting.extract import used_by
from migrate.pipeline import Conversion
from migrate.rules.imports import tops
from migrate.source.text import walk

Interface = dict[str, str]


def interface(tree: ast.Module) -> Interface:
    """Name -> what callers depend on, of the top-level classes and functions."""
    found: Interface = {}
    for s in tree.body:
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[s.name] = _signature(s)
        elif isinstance(s, ast.ClassDef):
            found[s.name] = "; ".join([", ".join(ast.unparse(b) for b in s.bases), *sorted(_members(s))])
    return found


def _signature(f: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    a = f.args
    names = [p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]]
    return f"({', '.join(names)}{', *' if a.vararg else ''}{', **' if a.kwarg else ''})"


def _members(c: ast.ClassDef) -> set[str]:
    found: set[str] = set()
    for s in c.body:
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(s.name + _signature(s))
            for n in walk(s):
                if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and isinstance(n.value.func, (ast.Name, ast.Attribute)):
                    made = ast.unparse(n.value.func)
                    if made.rpartition(".")[2][:1].isupper():
                        found.update(f"{t.attr} = {made}" for t in n.targets if isinstance(t, ast.Attribute))
    return found


def uses(c: Conversion) -> tuple[frozenset[str], tuple[str, ...]]:
    """The attribute names that converted code uses, and the top-level modules that it imports."""
    if c.used is not None:
        return c.used, c.imported
    try:
        tree = ast.parse(c.code)
    except (SyntaxError, ValueError, RecursionError):
        tree = ast.Module([], [])
    nodes = walk(tree)
    return frozenset(used_by(tree, nodes)), tops(nodes)


def rewrites(c: Conversion) -> dict[str, int]:
    """How often each rule rewrote something."""
    if c.plan is None:
        return {}
    return dict(sorted(Counter(e.rule for e in c.plan.nodes.values()).items()))
