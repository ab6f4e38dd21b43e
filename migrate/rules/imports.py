"""Replace the imports: PyTorch's go where nothing uses them any more, the target's come, in the place of the first.

Converted: `import torch.nn.functional as F`, `from torch import nn, Tensor`, imports inside functions.
Unchanged: imports of other libraries, local imports.
Left: an import that a construct that was left still needs; inside the function that needs it, where possible.
"""
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from migrate.context import Context
from migrate.removal import remove_statement
from migrate.rules import lookups, relocation, rngs
from migrate.rules.example import Example
from migrate.source.installed import folder_of
from migrate.source.text import children, import_text, walk
from migrate.tables import Row

RULE = "imports"
STANDARD = ("import math", "import functools", "from functools import partial")


@dataclass(eq=False)
class Usage:
    """The names that a text looks up, and where: functions by their path, "" for what runs at import."""

    by_place: dict[str, set[str]] = field(default_factory=dict)

    def uses(self, name: str) -> set[str]:
        """The places that use a name."""
        return {place for place, names in self.by_place.items() if name in names}


def usage(tree: ast.Module) -> Usage:
    """Which names the outermost functions and methods of a module look up."""
    found = Usage()
    for place, node, own in _places(tree, ""):
        names = found.by_place.setdefault(place, set())
        names.update(n.id for n in node if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in own)
        for n in node:
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.isidentifier():
                names.add(n.value)  # `__all__`, string annotations
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("exec", "eval"):
                names.update(word for m in ast.walk(n) if isinstance(m, ast.Constant) and isinstance(m.value, str) for word in re.findall(r"[A-Za-z_]\w*", m.value))
    return found


def _places(node: ast.AST, path: str) -> Iterator[tuple[str, list[ast.AST], set[str]]]:
    """(path, nodes, the parameters that hide outer names): bodies of functions under their path, all else under ""."""
    at_import: list[ast.AST] = []
    stack = children(node)
    while stack:
        n = stack.pop()
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own = f"{path}{n.name}"
            a = n.args
            yield own, walk(*n.body), {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p is not None}
            stack += [*n.decorator_list, n.args, *([n.returns] if n.returns else [])]
        elif isinstance(n, ast.ClassDef):
            yield from _places_in_class(n, path)
        else:
            at_import.append(n)
            stack += children(n)
    yield "", at_import, set()


def _places_in_class(n: ast.ClassDef, path: str) -> Iterator[tuple[str, list[ast.AST], set[str]]]:
    yield from _places(n, f"{path}{n.name}.")


def tops(nodes: Iterable[ast.AST]) -> tuple[str, ...]:
    """The top-level modules that some code imports."""
    found: set[str] = set()
    for n in nodes:
        if isinstance(n, ast.Import):
            found.update(a.name.partition(".")[0] for a in n.names)
        elif isinstance(n, ast.ImportFrom) and n.module and not n.level:
            found.add(n.module.partition(".")[0])
    return tuple(sorted(found))


def is_torch(dotted: str) -> bool:
    """A name of PyTorch itself."""
    return dotted == "torch" or dotted.startswith("torch.")


def is_foreign(ctx: Context, dotted: str) -> bool:
    """A name of PyTorch itself, or one that a library keeps to itself."""
    return is_torch(dotted) or ctx.unit.boundary.outside(dotted)


def plan(ctx: Context, used: Usage) -> None:
    """Plans the edits of all import statements; `used` is what the output looks up, imports aside."""
    src = ctx.source
    _from_folded(ctx, used)
    first: ast.stmt | None = None
    for node in src.nodes:
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or node in ctx.removed:
            continue
        _left_behind(ctx, node)
        gone = [a for a in node.names if _goes(ctx, node, a, used)]
        kept = [a for a in node.names if a not in gone]
        if moved := relocation.statements(ctx, node, kept):
            start, end = ctx.source.span(node)
            ctx.plan.replace(start, end, f"\n{ctx.source.indent(node)}".join(moved), RULE)
            continue
        if not gone:
            continue
        top = node in src.tree.body
        standard = isinstance(node, ast.Import) and all(a.name.partition(".")[0] in sys.stdlib_module_names for a in node.names)
        if top and not standard and (first is None or node.lineno < first.lineno):
            first = node
        _shorten(ctx, node, gone)
    _add(ctx, first, _carried(ctx, used))
    if tables := rngs.block(ctx) + lookups.block(ctx):
        at = _after_imports(ctx)
        ctx.plan.insert(at, ("\n" if at else "") + tables, RULE, order=5)


def _from_folded(ctx: Context, used: Usage) -> None:
    """Imports of a branch that was folded away, of names that what was left still uses: it imports them where it runs."""
    nodes = [n for n in ctx.source.nodes if isinstance(n, (ast.Import, ast.ImportFrom)) and n in ctx.removed]
    for node in nodes:
        if ctx.source.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef) is not None:
            continue
        for a in node.names:
            name = a.asname or a.name
            places = used.uses(name)
            if places and "" not in places and is_torch(_dotted(ctx, node, a)) and not _bound_elsewhere(ctx, name):
                _move_inside(ctx, node, a, places)


def _bound_elsewhere(ctx: Context, name: str) -> bool:
    """Whether something that stays binds a name, somewhere."""
    return any(
        (isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store))
        or (isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and n.name == name)
        or (isinstance(n, ast.alias) and (n.asname or n.name.partition(".")[0]) == name)
        for n in ctx.source.nodes
        if n not in ctx.removed
    )


def _carried(ctx: Context, used: Usage) -> str:
    """Imports of PyTorch that the output still needs and that a star import of a local module handed on: that module may have dropped them."""
    if not ctx.file.names.top.stars:
        return ""
    left = {n.id for n in ctx.source.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and used.uses(n.id) and not ctx.file.names.lookup(n)}
    lines = []
    for name in sorted(left - ctx.added_names()):
        dotted = ctx.unit.carried(ctx.file, name)
        if dotted and is_torch(dotted):
            base, _, last = dotted.rpartition(".")
            lines.append(f"import {dotted}" if not base else f"from {base} import {last}" if last == name else f"from {base} import {last} as {name}")
    return "".join(line + "\n" for line in lines)


def _left_behind(ctx: Context, node: ast.Import | ast.ImportFrom) -> None:
    """Says that a library which builds on PyTorch is not converted along."""
    for top in sorted({_dotted(ctx, node, a).partition(".")[0] for a in node.names}):
        known = top in ctx.unit.boundary.libraries or top in {m.partition(".")[0] for m in ctx.unit.files} or any(r.torch.startswith(f"{top}.") for r in ctx.unit.table.rows)
        if not known and folder_of(top) is not None:
            ctx.report("MIG502", node, f"{top} builds on PyTorch and is not converted along: give its folder with --root")


def _dotted(ctx: Context, node: ast.Import | ast.ImportFrom, a: ast.alias) -> str:
    if isinstance(node, ast.Import):
        return a.name
    base = ctx.file.names.absolute(node.module, node.level)
    dotted = f"{base}.{a.name}" if base else a.name
    return ctx.unit.homes.get(dotted, dotted)


def _goes(ctx: Context, node: ast.Import | ast.ImportFrom, a: ast.alias, used: Usage) -> bool:
    dotted = _dotted(ctx, node, a)
    name = a.asname or (a.name.partition(".")[0] if isinstance(node, ast.Import) else a.name)
    if a.name == "*":
        return is_torch(dotted.removesuffix(".*")) and not any(_by_star(ctx, n) for left in ctx.left for n in ast.walk(left))
    places = used.uses(name)
    if name in ctx.added_names() and (is_foreign(ctx, dotted) or isinstance(ctx.unit.named(dotted), Row)):
        return True  # the output's own import of that name takes its place
    known = ctx.unit.named(dotted)
    if not places and (isinstance(known, Row) or known == "torch.nn.Module"):
        return True
    if f"{ctx.file.module}.{name}" in ctx.facts.imported_names and not isinstance(known, Row):
        return False  # another file imports it from here
    if is_foreign(ctx, dotted):
        inner = bool(places) and "" not in places and node in ctx.source.tree.body and not any(isinstance(n, ast.Name) and n.id == name for n in ctx.kept)
        if inner:
            _move_inside(ctx, node, a, places)
        return not places or inner
    if places or dotted in ctx.unit.files or any(dotted.startswith(m + ".") for m in ctx.unit.files if m):
        return False
    top = dotted.partition(".")[0]
    return (top in ("torchvision", "einops") or isinstance(node, ast.Import) and top in sys.stdlib_module_names) and any(isinstance(n, ast.Name) and n.id == name for n in ctx.source.nodes)


def _by_star(ctx: Context, node: ast.AST) -> bool:
    """A name of PyTorch that only a star import binds."""
    return isinstance(node, ast.Name) and not ctx.file.names.lookup(node) and is_torch(ctx.dotted(node))


def _move_inside(ctx: Context, node: ast.Import | ast.ImportFrom, a: ast.alias, places: set[str]) -> None:
    from migrate.rules.modules import _body_start, _one_liner

    alias = f"{a.name} as {a.asname}" if a.asname else a.name
    text = f"import {alias}" if isinstance(node, ast.Import) else f"from {ctx.file.names.absolute(node.module, node.level)} import {alias}"
    if not is_torch(_dotted(ctx, node, a)):
        _move_to_uses(ctx, text, a.asname or a.name)
        return
    for f in ctx.file.functions:
        path = _path(ctx, f.node)
        if path in places or path.rpartition(".")[0] + "." + "forward" == path and f"{path.rpartition('.')[0]}.{ctx.target.forward}" in places:
            if _one_liner(ctx, f.node):
                ctx.plan.insert(ctx.source.start(f.node.body[0]), f"{text}; ", RULE)
                continue
            at, indent, _ = _body_start(ctx, f.node)
            ctx.plan.insert(at, f"{indent}{text}\n", RULE)


def _move_to_uses(ctx: Context, text: str, name: str) -> None:
    """Imports what a library keeps to itself only where it is used: the rest of the function works without that library."""
    done: set[ast.AST] = set()
    for n in ctx.source.nodes:
        if not (isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)) or n in ctx.removed or _rewritten(ctx, n):
            continue
        at: ast.AST | None = n
        while at is not None and not (isinstance(at, ast.stmt) and _opens_line(ctx, at)):
            at = ctx.source.parent(at)
        if at is not None and at not in done and at not in ctx.source.tree.body:
            done.add(at)
            ctx.plan.insert(ctx.source.line_start(ctx.source.start(at)), f"{ctx.source.indent(at)}{text}\n", RULE)


def _rewritten(ctx: Context, name: ast.Name) -> bool:
    """Whether a name is what a rewritten call or attribute starts with."""
    at: ast.AST = name
    while isinstance(up := ctx.source.parent(at), ast.Attribute) and not ctx.owned(at):
        at = up
    return ctx.owned(at) or isinstance(up, ast.Call) and up.func is at and ctx.owned(up)


def _opens_line(ctx: Context, s: ast.stmt) -> bool:
    """Whether another statement can stand above this one: it is no `elif`, and nothing is before it in its line."""
    start = ctx.source.start(s)
    parent = ctx.source.parent(s)
    alone = not ctx.source.text[ctx.source.line_start(start) : start].strip()
    return alone and not (isinstance(parent, ast.If) and parent.orelse == [s] and ctx.source.text.startswith("elif", start))


def _path(ctx: Context, node: ast.AST) -> str:
    names = [node.name]  # type: ignore[attr-defined]
    up = ctx.source.parent(node)
    while up is not None:
        if isinstance(up, ast.ClassDef):
            names.append(up.name)
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return "<nested>"
        up = ctx.source.parent(up)
    return ".".join(reversed(names))


def _shorten(ctx: Context, node: ast.Import | ast.ImportFrom, gone: list[ast.alias]) -> None:
    kept = [a for a in node.names if a not in gone]
    if not kept:
        body = ctx.source.tree.body
        after = body[body.index(node) + 1 :] if node in body else []
        replaced = bool(ctx.needs and after) and not isinstance(after[0], (ast.Import, ast.ImportFrom)) and getattr(after[0], "test", after[0]) not in ctx.removed
        remove_statement(ctx, node, RULE, replaced=replaced)
        return
    start, end = ctx.source.span(node)
    ctx.plan.replace(start, end, import_text(node, kept, ctx.source.indent(node)), RULE)


def block(ctx: Context) -> str:
    """The imports that the output adds, as lines."""
    lines, support = [], []
    for wanted in sorted(ctx.needs):
        name = ctx.name(wanted)
        if statement := ctx.statement(wanted):
            if ctx._imported_as(statement) == name:
                continue
            plain = statement.split()[-1]
            lines.append(statement if plain == name else (statement.removesuffix(f" as {plain}") + f" as {name}"))
        else:
            support.append(wanted if name == wanted else f"{wanted} as {name}")
    order = {"import": 0, "from": 1}
    standard = sorted(line for line in lines if line in STANDARD or line.startswith(("import math", "import functools")))
    rest = sorted((line for line in lines if line not in standard), key=lambda s: (order[s.split()[0]], s.split()[1]))
    if support:
        rest.append(_wrapped(ctx.support_module, sorted(support)))
    return "".join(line + "\n" for line in [*standard, *([""] if standard and rest else []), *rest])


def _wrapped(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 120:
        return line
    lines, current = [], "    "
    for n in names:
        if len(current) + len(n) + 1 > 110:
            lines.append(current.rstrip())
            current = "    "
        current += f"{n}, "
    return f"from {module} import (\n" + "\n".join([*lines, current.rstrip()]) + "\n)"


def _add(ctx: Context, first: ast.stmt | None, carried: str = "") -> None:
    text = block(ctx) + carried
    if not text:
        return
    src = ctx.source
    if first is not None:
        place = _after_standard(ctx, first)
        at = src.line_start(src.start(first)) if place is None else src.line_end(src.end(place))
        ctx.plan.insert(at, text if place is None or text.startswith(STANDARD) else "\n" + text, RULE, order=-1)
        return
    at = 0
    for s in src.tree.body:
        doc = isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
        if doc or isinstance(s, ast.ImportFrom) and s.module == "__future__" or isinstance(s, (ast.Import, ast.ImportFrom)):
            at = src.line_end(src.end(s))
        else:
            break
    ctx.plan.insert(at, text, RULE, order=-1)


def _after_imports(ctx: Context) -> int:
    """The end of the imports that open a file."""
    at = 0
    for s in ctx.source.tree.body:
        doc = isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
        if doc or isinstance(s, (ast.Import, ast.ImportFrom)) or isinstance(s, ast.Try) and any(isinstance(b, (ast.Import, ast.ImportFrom)) for b in s.body):
            at = ctx.source.line_end(ctx.source.end(s))
        else:
            break
    return at


def _after_standard(ctx: Context, first: ast.stmt) -> ast.stmt | None:
    """The last standard-library import in the run of imports after PyTorch's first, so that the new ones come after it."""
    body = ctx.source.tree.body
    found = None
    for s in body[body.index(first) :]:
        if not isinstance(s, (ast.Import, ast.ImportFrom)):
            break
        roots = [a.name for a in s.names] if isinstance(s, ast.Import) else [s.module or ""]
        if not (isinstance(s, ast.ImportFrom) and s.level) and all(r.partition(".")[0] in sys.stdlib_module_names for r in roots):
            found = s
    return found


EXAMPLES = (
    Example(
        "import copy\n\n\ndef clones(layer, n):\n    return nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])\n",
        "from torch_support import copy_module\n\n\ndef clones(", "import copy\n", why="nothing uses it any more",
    ),
    Example("import copy\n\n\ndef same(options, n):\n    return [copy.deepcopy(options)] * n\n", why="it is still used"),
    Example(
        "from torch import tensor\n\n\ndef largest(tensor):\n    return torch.finfo(tensor.dtype).max\n\n\ndef make(x):\n    return tensor(x, never=3)\n",
        jax="def largest(tensor):\n    return jnp.finfo(tensor.dtype).max\n\n\ndef make(x):\n    from torch import tensor\n", refused="MIG302", why="a parameter hides the imported name",
    ),
    Example(
        "import torch.nn.functional as FF, os\nfrom torch import (  # names\n    Tensor,\n    cat,\n)\n\n\ndef f(x: Tensor):\n    return FF.relu(cat([x, x])), os.sep\n",
        jax="import os\n\n\ndef f(x: jax.Array):\n    return jax.nn.relu(jnp.concatenate([x, x])), os.sep\n",
    ),
    Example("def f(x):\n    import torch.nn.functional as FF\n    from torch import sin\n    return FF.relu(sin(x))\n", jax="def f(x):\n    return jax.nn.relu(jnp.sin(x))\n"),
    Example(
        "from torch.nn import *\n\n\nclass Net(Module):\n    def __init__(self):\n        super().__init__()\n        self.a = Linear(3, 3)\n",
        "class Net(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.a = nnx.Linear(3, 3, rngs=rngs)\n",
        "class Net(Module):\n    def __init__(self):\n        super().__init__()\n        self.a = Linear(3, 3)\n", why="a star import",
    ),
    Example(
        "try:\n    from torch.nn import Identity\nexcept ImportError:\n    Identity = None\n\n\ndef f():\n    return Identity()\n",
        jax="try:\n    pass\nexcept ImportError:\n    Identity = None\n", why="an import that may fail",
    ),
    Example("if True:\n    import torch.nn.functional as FF\n\n\ndef f(x):\n    return FF.relu(x)\n", jax="def f(x):\n    return jax.nn.relu(x)\n"),
    Example("jnp = 5\nnnx = 'a'\n\n\ndef f(x):\n    return torch.sin(x) * jnp\n", jax="    return jnp_.sin(x) * jnp\n", why="names that clash"),
    Example(
        "if torch.distributed.is_available():\n    import torch.distributed._functional_collectives as funcol\n\n\ndef f(x):\n    return funcol.wait_tensor(x)\n",
        jax="def f(x):\n    import torch.distributed._functional_collectives as funcol\n", refused="MIG306", why="a branch that never runs here made the import",
    ),
    Example("def f(x):\n    return torch.frobnicate(x)\n", jax="def f(x):\n    import torch\n", refused="MIG301", why="what was left imports PyTorch where it runs"),
    Example("x = torch.frobnicate(None)\n", refused="MIG301", why="at import"),
    Example("import os\nfrom json import dumps as d\n\npath = os.path.join('a', d({}))\n"),
    Example("import numpy as np\nfrom . import other\nfrom .other import thing\n\nprint(np.zeros(3), other, thing)\n"),
)
