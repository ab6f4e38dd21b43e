"""Bases that only store PyTorch models on a hub go, and metaclasses: they build their objects in a way that the target's modules do not know.

Converted: `class Net(nn.Module, PyTorchModelHubMixin, tags=["a"])`, `super().__new__(cls, *args, **kwargs)` of a module, a module whose `__new__` gives one of another class.
Unchanged: any other base, `__new__` of a class that is no module.
"""
import ast

from migrate.context import Context
from migrate.edits import Piece
from migrate.rules.example import Example
from migrate.source.modules import ClassInfo, FunctionInfo

RULE = "mixins"
ABSTRACT = ("abc.ABCMeta",)
NAMES = ("ModelHubMixin", "PyTorchModelHubMixin")
HUBS = frozenset(f"huggingface_hub{module}.{name}" for name in NAMES for module in ("", ".hub_mixin"))


def visit_class(ctx: Context, node: ast.ClassDef) -> None:
    """A class with such a base; its options go as well."""
    held = [b for b in node.bases if ctx.dotted(b) in HUBS]
    for b in held:
        if (at := node.bases.index(b)) > 0:
            ctx.plan.replace(ctx.source.end(node.bases[at - 1]), ctx.source.end(b), "", RULE)
            ctx.removed.update(ast.walk(b))
        else:
            ctx.edit(b, lambda e: Piece("object"), RULE, why="hub")
    info = ctx.file.by_node.get(node)
    is_module = isinstance(info, ClassInfo) and info.is_module
    if isinstance(info, ClassInfo) and is_module and "MadeByNew" in ctx.support and (new := info.methods.get("__new__")) is not None and _gives_another(new):
        last = max(ctx.source.end(a) for a in node.bases)
        ctx.plan.insert(last, f", metaclass={ctx.name('MadeByNew')}", RULE)
    if isinstance(info, ClassInfo) and is_module and ctx.target.keeps_super_init:
        _begin(ctx, info)
    for k in node.keywords:
        metaclass = k.arg == "metaclass" and is_module and ctx.dotted(k.value) not in ABSTRACT
        if metaclass:
            ctx.report("MIG201", k, f"metaclass={ctx.source.segment(k.value)}: left out, as the target's modules have one of their own")
        if metaclass or held and k.arg != "metaclass":
            last = max(ctx.source.end(a) for a in [*node.bases, *node.keywords] if ctx.source.end(a) <= ctx.source.start(k))
            ctx.plan.replace(last, ctx.source.end(k), "", RULE)
            ctx.removed.update(ast.walk(k))


def _begin(ctx: Context, c: ClassInfo) -> None:
    """`super().__init__()` in a constructor that has none, as a metaclass called that of the base."""
    init = c.methods.get("__init__")
    if init is None or not any(k.arg == "metaclass" and ctx.unit.resolve(b.file, k.value) not in ABSTRACT for b in c.mro() for k in b.node.keywords):
        return
    if any(isinstance(n, ast.Attribute) and n.attr == "__init__" for n in ast.walk(init.node)):
        return
    above = next((b.methods["__init__"] for b in c.mro() if b is not c and "__init__" in b.methods), None)
    base = "super().__init__()" if above is None or not above.parameters else f"{ctx.name('Module')}.__init__({init.self_name})"
    first, src = init.node.body[0], ctx.source
    said = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if said and len(init.node.body) > 1:
        first = init.node.body[1]
    if said and len(init.node.body) == 1:
        ctx.plan.insert(src.end(first), f"\n{src.raw_indent(first)}{base}", RULE)
    elif src.text[src.line_start(src.start(first)) : src.start(first)].strip():
        ctx.plan.insert(src.start(first), f"{base}; ", RULE)
    else:
        ctx.plan.insert(src.line_start(src.start(first)), f"{src.raw_indent(first)}{base}\n", RULE)


def visit_call(ctx: Context, node: ast.Call) -> None:
    """`super().__new__(cls, ...)`: there is none left that takes the arguments."""
    func, owner = node.func, ctx.class_of(node)
    if not (isinstance(func, ast.Attribute) and func.attr == "__new__" and node.args) or owner is None or not owner.is_module or ctx.owned(node):
        return
    above = [c for c in owner.mro() if c is not owner]
    if ctx.is_super(func.value) and not any("__new__" in c.methods for c in above) and not _foreign(owner):
        first = node.args[0]
        ctx.edit(node, lambda e: Piece(f"{e.render(func)}({e.piece(first).text})"), RULE, why="__new__")


def _gives_another(new: FunctionInfo) -> bool:
    """Whether a `__new__` may give something else than a new object of its class: Python leaves that as it is, Flax calls its constructor again."""
    given = [s.value for s in ast.walk(new.node) if isinstance(s, ast.Return)]
    made = {t.id: s.value for s in ast.walk(new.node) if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
    values = [made.get(v.id, v) if isinstance(v, ast.Name) else v for v in given]
    return not all(isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr == "__new__" for v in values)


def _foreign(owner: ClassInfo) -> bool:
    """Whether a base of another library may have a `__new__`."""
    plain = ("torch.nn.Module", "abc.ABC", "builtins.object")
    return any(isinstance(b, str) and b not in HUBS and b not in plain and not b.startswith("typing.") for b in owner.foreign())


EXAMPLES = (
    Example(
        "from huggingface_hub import PyTorchModelHubMixin\n\n\nclass Net(nn.Module, PyTorchModelHubMixin, tags=['a'], license='mit'):\n    def __new__(cls, *args, **kwargs):\n        return super().__new__(cls, *args, **kwargs)\n",
        "class Net(nnx.Module):\n", "class Net(Module):\n",
    ),
    Example("class Net(nn.Module):\n    def __new__(cls, *args, **kwargs):\n        return super().__new__(cls, *args, **kwargs)\n", jax="        return super().__new__(cls)\n"),
    Example("import huggingface_hub as hub\n\n\nclass Mixin(hub.ModelHubMixin):\n    n = 3\n", jax="class Mixin(object):\n"),
    Example(
        "class Plain(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.a = nn.Linear(n, n)\n\n\nclass Net(nn.Module):\n    def __new__(cls, n):\n        if n == 1:\n            return Plain(n)\n        return super().__new__(cls)\n\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n",
        "class Net(nnx.Module, metaclass=MadeByNew):\n    def __new__(cls, n, *, rngs: nnx.Rngs):\n        if n == 1:\n            return Plain(n, rngs=rngs)\n        return super().__new__(cls)\n",
        "class Net(Module):\n    def __new__(cls, n):\n        if n == 1:\n            return Plain(n)\n        return super().__new__(cls)\n", why="a module of another class",
    ),
    Example("class Plain:\n    def __new__(cls, *args, **kwargs):\n        return super().__new__(cls, *args, **kwargs)\n"),
    Example("class Meta(type):\n    pass\n\n\nclass Net(nn.Module, metaclass=Meta):\n    n = 3\n", "class Net(nnx.Module):\n", "class Net(Module):\n", why="reported"),
    Example(
        "class Meta(type):\n    pass\n\n\nclass Net(nn.Module, metaclass=Meta):\n    def __init__(self): pass\n\n\nclass Part(Net):\n    def __init__(self, n):\n        # size\n        self.n = n\n",
        "    def __init__(self, *, rngs: nnx.Rngs): pass\n\n\nclass Part(Net):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        # size\n        self.n = n\n",
        "    def __init__(self): super().__init__(); pass\n\n\nclass Part(Net):\n    def __init__(self, n):\n        # size\n        super().__init__()\n        self.n = n\n", why="the metaclass called the base's constructor",
    ),
    Example("class Meta(type):\n    pass\n\n\nclass Plain(metaclass=Meta):\n    n = 3\n"),
    Example("class Mixin:\n    n = 3\n\n\nclass Other(Mixin):\n    m = 4\n"),
)
