"""What a wrapper of constructors writes down of their arguments is written down without the random stream: PyTorch's had none, and no module can be made of it again.

Converted: `self.init_args = kwargs` in a function that stands in for a constructor and hands `**kwargs` on to it.
Unchanged: such an assignment in a method of a class, a wrapper that keeps something else.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.rules.example import Example
from migrate.source.modules import FunctionInfo

RULE = "wrappers"


def visit_assign(ctx: Context, node: ast.Assign) -> None:
    """`self.init_args = ...` of what depends on `**kwargs`."""
    target, f = node.targets[0], ctx.function_of(node)
    if not ctx.target.threads_rngs or ctx.owned(node) or len(node.targets) > 1 or not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
        return
    if f is None or f.builds or ctx.function_of(f.node) is None or f.node.args.kwarg is None or target.value.id != _first(f):
        return
    given = _depending(f, f.node.args.kwarg.arg)
    if _names(node.value) & given and _hands_on(f, target.value.id, given):
        name, value = ctx.name("without_rngs"), node.value
        ctx.edit(node, lambda e: Piece(f"{e.render(target)} = {name}({e.piece(value).text})"), RULE, why="a wrapped constructor")


def _first(f: FunctionInfo) -> str | None:
    """The first argument of a function: a parameter, or `self` of `self, *args = args`."""
    a = f.node.args
    if a.posonlyargs or a.args:
        return [*a.posonlyargs, *a.args][0].arg
    for s in f.node.body:
        match s:
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=name), *_])], value=ast.Name(id=given)) if a.vararg is not None and given == a.vararg.arg:
                return name
    return None


def _depending(f: FunctionInfo, kwargs: str) -> set[str]:
    """The names of a function whose values depend on its `**kwargs`."""
    found: set[str] = {kwargs}
    assigned = [s for s in ast.walk(f.node) if isinstance(s, ast.Assign)]
    while more := {t.id for s in assigned if _names(s.value) & found for t in s.targets if isinstance(t, ast.Name)} - found:
        found |= more
    return found


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _hands_on(f: FunctionInfo, first: str, given: set[str]) -> bool:
    """Whether a function calls something with its first argument and the keyword arguments: what it stands in for."""
    calls = (n for n in ast.walk(f.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.args and isinstance(n.args[0], ast.Name))
    return any(c.args[0].id == first and any(k.arg is None and _names(k.value) & given for k in c.keywords) for c in calls)  # type: ignore[attr-defined]


HEAD = "import functools\n\n\ndef recorded(init):\n    @functools.wraps(init)\n"
NET = "\n    return wrapper\n\n\nclass Net(nn.Module):\n    @recorded\n    def __init__(self, n):\n        super().__init__()\n        self.a = nn.Linear(n, n)\n"
EXAMPLES = (
    Example(
        f"{HEAD}    def wrapper(self, *args, **kwargs):\n        self.init_args = kwargs\n        init(self, *args, **kwargs)\n{NET}",
        "        self.init_args = without_rngs(kwargs)\n        init(self, *args, **kwargs)\n", "        self.init_args = kwargs\n        init(self, *args, **kwargs)\n",
    ),
    Example(
        f"{HEAD}    def wrapper(*args, **kwargs):\n        self, *args = args\n        given = dict(kwargs)\n        self.init_args = dict(sorted(given.items()))\n        return init(self, *args, **given)\n{NET}",
        "        self.init_args = without_rngs(dict(sorted(given.items())))\n", "        self.init_args = dict(sorted(given.items()))\n", why="by way of other names",
    ),
    Example(f"{HEAD}    def wrapper(self, *args, **kwargs):\n        self.init_args = (args, kwargs)\n        init(self, *args, **kwargs)\n{NET}", "        self.init_args = without_rngs((args, kwargs))\n", "        self.init_args = (args, kwargs)\n", why="both kinds of arguments"),
    Example(f"{HEAD}    def wrapper(self, *args, **kwargs):\n        self.init_args = args\n        init(self, *args, **kwargs)\n\n    return wrapper\n", why="without keyword arguments"),
    Example("class Settings:\n    def __init__(self, **kwargs):\n        self.given = kwargs\n"),
    Example("def keep(init):\n    def wrapper(self, **kwargs):\n        self.given = kwargs\n        init(self)\n\n    return wrapper\n", why="nothing is handed on"),
)
