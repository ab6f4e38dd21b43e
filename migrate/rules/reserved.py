"""Rename attributes and methods of modules that the target owns; the class says PyTorch's name, so that weights still load.

Converted (Keras): `self.layers = nn.ModuleList(...)` becomes `self.layers_`, with `torch_names = {"layers": "layers_"}` in the class.
Unchanged: the same names on objects that are no modules, and names that the class does not define itself.
"""
import ast

from migrate.context import Context
from migrate.infer.kinds import refs
from migrate.rules.example import Example
from migrate.source.modules import ClassInfo, FunctionInfo

RULE = "reserved"


def clashes(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """Whether a class defines a name that the target owns."""
    if name not in ctx.target.reserved or not owner.is_module:
        return False
    defined = bool(owner.assigned(name)) or any(name in c.body or name in c.methods for c in owner.mro())
    return defined and name not in ("training", "forward")


def visit_attribute(ctx: Context, node: ast.Attribute) -> None:
    """`self.layers`."""
    if node.attr not in ctx.target.reserved or ctx.owned(node):
        return
    kind = ctx.kind(node.value)
    owners = [r for r in refs(kind) if isinstance(r, ClassInfo)]
    if not _inherited(ctx, node) and (kind.tag != "module" or not any(clashes(ctx, o, node.attr) for o in owners)):
        return
    end = ctx.source.end(node)
    ctx.plan.replace(end - len(node.attr), end, node.attr + "_", RULE)


def _inherited(ctx: Context, node: ast.Attribute) -> bool:
    """`super().build()`, where a base of the code defines it."""
    owner = ctx.class_of(node)
    if owner is None or not isinstance(node.value, ast.Call) or ctx.dotted(node.value.func) != "builtins.super":
        return False
    return owner.is_module and node.attr not in ("training", "forward") and any(node.attr in c.methods for c in owner.mro() if c is not owner)


def visit_function(ctx: Context, f: FunctionInfo) -> None:
    """`def build(self)` of a module."""
    if f.owner is not None and f.owner.is_module and f.name in ctx.target.reserved and f.name != ctx.target.forward:
        at = ctx.source.offset(f.node.lineno, f.node.col_offset)
        start = ctx.source.text.index(f.name, ctx.source.text.index("def", at) + 3)
        ctx.plan.replace(start, start + len(f.name), f.name + "_", RULE)


def names_of(ctx: Context, c: ClassInfo) -> dict[str, str]:
    """PyTorch's names of the modules and variables that are renamed in a class."""
    held = {n: [ctx.inf.kinds.get(a.target) for a in found] for n, found in c.attributes.items() if clashes(ctx, c, n)}
    return {n: n + "_" for n, kinds in held.items() if any(k is None or k.tag in ("module", "tensor", "unknown") for k in kinds)}


EXAMPLES = (
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layers = nn.ModuleList([nn.Linear(3, 3)])\n\n    def build(self):\n        return self.layers[0]\n",
        "        self.layers = nnx.List(", '    torch_names = {"layers": "layers_"}\n\n    def __init__(self):\n        super().__init__()\n        self.layers_ = ModuleList([Linear(3, 3)])\n\n'
        "    def build_(self):\n        return self.layers_[0]\n",
    ),
    Example(
        "class Base(nn.Module):\n    def build(self):\n        self.a = nn.Linear(3, 3)\n\n\nclass Net(Base):\n    def build(self):\n        super().build()\n        self.b = nn.Linear(3, 3)\n",
        "        super().build(rngs=rngs)\n", "        super().build_()\n", why="a base's method of that name",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.deterministic = True\n        self.register_buffer('input', torch.zeros(3))\n",
        "        self.deterministic_ = True\n        self.input = Buffer(", "        self.deterministic = True\n        self.input_ = Buffer(",
    ),
    Example(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.path = nn.Linear(3, 3)\n\n\ndef g(net: Net, other):\n    return net.path, other.path\n",
        "    return net.path, other.path\n", "    return net.path_, other.path\n", why="from outside",
    ),
    Example("class Config:\n    def __init__(self):\n        self.layers = 3\n        self.name = 'a'\n\n    def build(self):\n        return self.layers\n"),
    Example("def f(config):\n    return config.layers, config.build(), config.name\n"),
)
