"""What the rules need to know of all the code that is converted together, beyond the file in hand.

A project that is converted in parts gives each part the facts of the others, so that they agree.
"""
import ast
from collections.abc import Iterable
from dataclasses import dataclass

from migrate.infer.engine import Inference
from migrate.infer.kinds import refs
from migrate.infer.lookups import MODULES as LOOKED_UP
from migrate.source.modules import FileInfo, Unit
from migrate.tables import Row

SEQUENTIAL = "torch.nn.Sequential"
HOOKS = frozenset({"register_forward_hook", "register_forward_pre_hook"})


@dataclass(frozen=True)
class Facts:
    """Layers that are tested with isinstance, attributes that are used otherwise than by a call, what files import of each other; whether a Sequential
    is opened anywhere, a hook registered, a layer swapped by its name. `texts`: those that could be names of PyTorch, for look-ups by name."""

    tested_layers: frozenset[str] = frozenset()
    opened_attributes: frozenset[str] = frozenset()
    imported_names: frozenset[str] = frozenset()
    opened_sequentials: bool = False
    hooked_layers: bool = False
    swapped_layers: bool = False
    texts: frozenset[str] = frozenset()

    def __or__(self, other: "Facts") -> "Facts":
        return Facts(
            self.tested_layers | other.tested_layers, self.opened_attributes | other.opened_attributes, self.imported_names | other.imported_names,
            self.opened_sequentials or other.opened_sequentials, self.hooked_layers or other.hooked_layers, self.swapped_layers or other.swapped_layers,
            self.texts | other.texts,
        )


@dataclass(eq=False)
class Exchange:
    """What a unit is told of code elsewhere, and what can be told of it. `asked`: whether it mattered that no Sequential is opened or swapped."""

    given: Facts = Facts()
    found: Facts = Facts()
    asked: bool = False


def written(unit: Unit) -> Facts:
    """The facts that the text alone tells."""
    tested: set[str] = set()
    opened: set[str] = set()
    imported: set[str] = set()
    texts: set[str] = set()
    hooked = False
    for file in unit.files.values():
        for node in file.source.nodes:
            if isinstance(node, ast.ImportFrom):
                base = file.names.absolute(node.module, node.level)
                imported.update(f"{base}.{a.name}" for a in node.names)
            elif isinstance(node, ast.Attribute):
                hooked = hooked or node.attr in HOOKS
                if node.attr not in opened and _opens(node, file.source.parents.get(node)):
                    opened.add(node.attr)
            elif isinstance(node, ast.Constant):
                if isinstance(node.value, str) and node.value.isidentifier() and any(unit.table.get(f"{m}.{node.value}") for m in LOOKED_UP):
                    texts.add(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2:
                tested.update(_layers(unit, file, node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]))
    return Facts(frozenset(tested), frozenset(opened), frozenset(imported), hooked_layers=hooked, texts=frozenset(texts))


def known(unit: Unit, inf: Inference) -> Facts:
    """All facts of a unit."""
    swapped = any(isinstance(n, ast.Call) and _swaps(inf, n) for f in unit.files.values() for n in f.source.nodes)
    return written(unit) | Facts(opened_sequentials=_opened(unit, inf), swapped_layers=swapped)


def _layers(unit: Unit, file: FileInfo, options: Iterable[ast.expr]) -> set[str]:
    return {r.torch for o in options if isinstance(r := unit.resolve(file, o), Row)}


def _opens(node: ast.Attribute, parent: ast.AST | None) -> bool:
    """Whether an attribute is indexed, looped over, measured or passed on here, and not only called or compared with None."""
    if isinstance(node.ctx, ast.Store) or isinstance(parent, ast.Call) and parent.func is node:
        return False
    return not (isinstance(parent, ast.Compare) and all(isinstance(o, (ast.Is, ast.IsNot)) for o in parent.ops))


def _opened(unit: Unit, inf: Inference) -> bool:
    """Whether a Sequential is indexed, looped over or measured anywhere: only the support class can be."""
    for file in unit.files.values():
        for node in file.source.nodes:
            if isinstance(node, (ast.Name, ast.Attribute, ast.Call)) and any(isinstance(r, Row) and r.torch == SEQUENTIAL for r in refs(inf.of(node))) and inf.of(node).tag == "module":
                parent = file.source.parents.get(node)
                if isinstance(parent, (ast.Subscript, ast.For, ast.comprehension, ast.Starred, ast.Compare, ast.Delete)):
                    return True
                if isinstance(parent, ast.Attribute) and parent.attr not in ("to", "eval", "train", "cuda", "cpu"):
                    return True
                if isinstance(parent, ast.Call) and node in parent.args and inf.of(parent.func).tag == "import":
                    return True
    return False


def _swaps(inf: Inference, node: ast.Call) -> bool:
    """`setattr(parent, name, layer)`: the parent may be a Sequential, whose layers have numbers for names."""
    if not isinstance(node.func, ast.Name) or node.func.id not in ("setattr", "getattr", "delattr") or len(node.args) < 2 or isinstance(node.args[1], ast.Constant):
        return False
    owner = inf.of(node.args[0])
    return node.func.id == "setattr" and len(node.args) > 2 and inf.of(node.args[2]).tag == "module" or owner.tag == "module" and owner.ref is None
