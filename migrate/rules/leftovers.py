"""Refuse what is left: a name of PyTorch, or a method that only tensors have, that no row and no rule covers.

Refused: `torch.foo(x)`, `x.foo_()`, `torch.optim.Adam(...)`.
Unchanged: everything that is not PyTorch's.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.infer.annotations import TRANSPARENT
from migrate.infer.calls import PYTHON_METHODS
from migrate.rules import calling
from migrate.rules.example import Example
from migrate.rules.imports import is_foreign
from migrate.rules.noise import CONTEXTS, DECORATORS
from migrate.rules.operators import is_annotation
from migrate.tables import Row

RULE = "leftovers"
PLAIN = frozenset(dir(object)) | frozenset(dir(dict)) | frozenset({"training", "children", "modules", "parameters", "apply", "eval", "train", "to", "forward", "type", "float", "half", "double", "cpu", "cuda"})
LOAD, PICKLED, PICKLES = "torch.load", ("pickle.load", "pickle.loads"), ("pickle.dump", "pickle.dumps")
TRAINING = ("torch.optim", "torch.utils.data", "torch.utils.tensorboard")
MACHINERY = ("torch.distributed", "torch.autograd", "torch.cuda", "torch.fx", "torch.onnx", "torch.jit", "torch._", "torch.ops", "torch.hub", "torch.library", "torch.quantization", "torch.ao")


def visit_call(ctx: Context, node: ast.Call) -> None:
    """A call of something of PyTorch."""
    if ctx.owned(node) or node.func in ctx.removed or node in ctx.left or ctx.owned(ctx.source.parent(node)) and isinstance(ctx.source.parent(node), ast.Expr):
        return
    found = ctx.resolve(node.func)
    if found in PICKLED and _keeps_results(ctx, node):
        ctx.edit(node, lambda e: Piece(f"{ctx.name('arrays')}({e.original(node).text})"), RULE, why="pickle")
        return
    if found == LOAD:
        _load(ctx, node)
    elif found in RUN_TEXT and any("torch" in text for text in texts(node)):
        ctx.refuse("MIG301", node, "code that is a text is not converted")
    elif isinstance(node.func, ast.Attribute) and isinstance(row := ctx.resolve(node.func.value), Row) and row.kind == "layer" and row.support in ctx.support:
        return  # a method of a layer's class, which is there under another name
    elif isinstance(found, str) and is_foreign(ctx, found):
        if not _covered(ctx, node.func):
            refuse(ctx, node, found)
    elif isinstance(node.func, ast.Attribute) and ctx.kind(node.func.value).is_tensor and found is None and not ctx.owned(node.func):
        _unknown_method(ctx, node, node.func)
    elif isinstance(node.func, ast.Attribute) and ctx.is_self(node.func.value) and _is_unset(ctx, node.func):
        ctx.report("MIG202", node.func, f"{ctx.source.segment(node.func)}: nothing in the code that is converted sets it")


RUN_TEXT = ("builtins.exec", "builtins.eval")


def texts(node: ast.AST) -> list[str]:
    """The texts in an expression."""
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def _is_unset(ctx: Context, func: ast.Attribute) -> bool:
    """`self.head(x)` in a module, where no class, no other code and no computed name gives it that attribute."""
    owner, name = ctx.class_of(func), func.attr
    if owner is None or not owner.is_module or not ctx.kind(func).is_unknown or any(b != "torch.nn.Module" and not (isinstance(b, Row) and b.torch == "torch.nn.Module") for b in owner.foreign()):
        return False
    if name in PLAIN or owner.method("__getattr__") or owner.method("__getattribute__") or owner.method(name) or any(name in c.body or name in c.annotations for c in owner.mro()):
        return False
    return name not in _set_names(ctx)


def _set_names(ctx: Context) -> frozenset[str]:
    """The names of all attributes that any code of the unit sets; all names, where one is computed."""
    if "set_names" not in ctx.unit.shared:
        nodes = [n for f in ctx.unit.files.values() for n in f.source.nodes]
        names = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
        names |= {m for f in ctx.unit.files.values() for c in f.classes for m in c.methods}
        for n in nodes:
            called = n.func.id if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) else n.func.attr if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) else ""
            if isinstance(n, ast.Call) and called in ("setattr", "add_module", "register_module", "register_buffer", "register_parameter", "__setattr__"):
                names |= {a.value for a in n.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
                if not any(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in n.args[:2]):
                    names.add("*")
        ctx.unit.shared["set_names"] = frozenset(names)
    held: frozenset[str] = ctx.unit.shared["set_names"]
    return held if "*" not in held else Everything()


class Everything(frozenset[str]):
    """The set that holds all names."""

    def __contains__(self, name: object) -> bool:
        return True


def _load(ctx: Context, node: ast.Call) -> None:
    """PyTorch's own files are read by PyTorch."""
    ctx.report("MIG201", node, "torch.load: PyTorch reads its own files; it must be there where this runs")
    drop = [k for k in node.keywords if k.arg == "map_location"]
    ctx.removed.update(n for k in drop for n in ast.walk(k))
    ctx.removed.update(ast.walk(node.func))
    where = 'map_location="cpu"'
    ctx.edit(node, lambda e: Piece(f"{ctx.name('arrays')}({calling.inplace(ctx, e, node, drop=drop, keywords=[where]).text})"), RULE)


def _keeps_results(ctx: Context, node: ast.Call) -> bool:
    """A function that also writes such files: a cache of results, which may be PyTorch's tensors."""
    f = ctx.function_of(node)
    calls = (n for n in ast.walk(f.node) if isinstance(n, ast.Call)) if f is not None else ()
    uses_torch = any(b.dotted.partition(".")[0] == "torch" for bound in ctx.file.names.top.bindings.values() for b in bound)
    return uses_torch and any(ctx.dotted(n.func) in PICKLES for n in calls)


def _unknown_method(ctx: Context, node: ast.Call, func: ast.Attribute) -> None:
    if (ctx.kind(func.value).sure or func.attr.endswith("_")) and func.attr not in PYTHON_METHODS:
        ctx.refuse("MIG301", node, f"Tensor.{func.attr} has no equivalent yet")


def refuse(ctx: Context, node: ast.AST, name: str) -> None:
    """The diagnostic for a name of PyTorch."""
    if name.startswith("torch.Tensor."):
        named = node.func if isinstance(node, ast.Call) else node
        ctx.removed.update(ast.walk(named))  # no other class has it
    if name.startswith(TRAINING):
        ctx.refuse("MIG307", node, f"{name} belongs to training code, which is not converted yet")
    elif name.startswith(MACHINERY):
        ctx.refuse("MIG306", node, f"{name} has no counterpart")
    else:
        ctx.refuse("MIG301", node, f"{name} has no equivalent yet")


def visit_value(ctx: Context, node: ast.Name | ast.Attribute) -> None:
    """A name of PyTorch that is not called."""
    parent = ctx.source.parent(node)
    if not isinstance(node.ctx, ast.Load) or ctx.owned(node) or node in ctx.removed or isinstance(parent, ast.Attribute) or isinstance(parent, ast.Call) and parent.func is node:
        return
    found = ctx.resolve(node)
    if not isinstance(found, str) or not is_foreign(ctx, found) or _covered(ctx, node):
        return
    if is_annotation(ctx, node):
        _annotation(ctx, node, found)
        return
    refuse(ctx, node, found)


def _annotation(ctx: Context, node: ast.Name | ast.Attribute, name: str) -> None:
    """A type that only PyTorch has."""
    parent = ctx.source.parent(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        inner = parent.slice
        if not ctx.owned(parent):
            ctx.edit(parent, lambda e: e.piece(inner) if name in TRANSPARENT else Piece("object"), RULE, why="annotation")
    else:
        ctx.edit(node, lambda e: Piece("object"), RULE, why="annotation")


def _covered(ctx: Context, node: ast.AST) -> bool:
    """Whether something around the node was rewritten or removed with it, or says already that it stays."""
    if ctx.dotted(node) in CONTEXTS | DECORATORS and isinstance(ctx.source.parent(ctx.source.parent(node) or node), ast.withitem):
        return True
    at: ast.AST | None = node
    while at is not None and not isinstance(at, ast.stmt):
        if at in ctx.left or at in ctx.removed:
            return True
        if isinstance(at, ast.Call) and ctx.owned(at) and _dropped(ctx, at, node):
            return True
        at = ctx.source.parent(at)
    return at in ctx.removed


def _dropped(ctx: Context, call: ast.Call, node: ast.AST) -> bool:
    """Whether the node is in an argument that never reaches the output."""
    placing = [k for k in call.keywords if k.arg in ("device", "layout", "memory_format", "generator")]
    return any(n is node for k in placing for n in ast.walk(k))


__all__ = ["Row", "refuse", "visit_call", "visit_value"]


EXAMPLES = (
    Example("TABLE = {'a': torch.Tensor.relu, 'b': torch.Tensor.mul_}\n", refused="MIG301", why="a method in place is of PyTorch's class alone"),
    Example("def f(x):\n    return map(torch.Tensor.exp, x), torch.Tensor.exp(x)\n", jax="    return map(jnp.exp, x), jnp.exp(x)\n"),
    Example(
        "import pickle\n\n\ndef kept(file, f):\n    if file.readable():\n        return pickle.load(file)\n    pickle.dump(f(), file)\n", jax="        return arrays(pickle.load(file))\n",
        why="results that PyTorch code may have kept",
    ),
    Example("import pickle\n\n\ndef words(file):\n    return pickle.load(file)\n"),
    Example("def f(n):\n    exec(f'x = torch.zeros({n})')\n", refused="MIG301", why="code in a text"),
    Example("def f(n):\n    return eval(f'{n} + 1')\n"),
    Example("def f(x):\n    return torch.frobnicate(x)\n", jax="    import torch\n    # MIG301 torch.frobnicate has no equivalent yet\n    return torch.frobnicate(x)\n", refused="MIG301"),
    Example("def f(x: torch.cuda.Stream):\n    return x\n", jax="def f(x: object):\n    return x\n", why="an annotation names nothing that runs"),
    Example("def f(x: torch.Tensor):\n    return x.frobnicate(3)\n", jax="    # MIG301 Tensor.frobnicate has no equivalent yet\n", refused="MIG301"),
    Example(
        "class Conv(nn.Conv2d):\n    def __init__(self, n):\n        nn.Conv2d.__init__(self, n, n, 3)\n",
        "        Conv2d.__init__(self, n, n, 3, rngs=rngs)\n", "        Conv2d.__init__(self, n, n, 3)\n", why="a method of a layer's class",
    ),
    Example("def f(path, device):\n    return torch.load(path, map_location=device)\n", jax='    import torch\n    return arrays(torch.load(path, map_location="cpu"))\n'),
    Example("class Net(nn.Module):\n    def forward(self, x):\n        return self.head(x)\n", jax="        return self.head(x)\n", why="reported: nothing sets it"),
    Example("def f(net):\n    return torch.optim.Adam(net)\n", refused="MIG307"),
    Example("class Work(torch.autograd.function.NestedIOFunction):\n    pass\n", refused="MIG306"),
    Example("def f(x):\n    return torch.distributed.all_reduce(x)\n", refused="MIG306"),
    Example("def f(names):\n    return names.foo_(), names.cuda\n"),
    Example("class optim:\n    Adam = 3\n\n\nprint(optim.Adam)\n"),
)
