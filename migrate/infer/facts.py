"""What the rules need to know of all the code that is converted together, beyond the file in hand.

A project that is converted in parts gives each part the facts of the others, so that they agree.
"""
import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from migrate.infer.engine import Inference
from migrate.infer.kinds import refs
from migrate.infer.lookups import MODULES as LOOKED_UP
from migrate.source.modules import FileInfo, Unit
from migrate.tables import Row

SEQUENTIAL = "torch.nn.Sequential"
CHILDREN = frozenset({"children", "named_children", "_modules"})
LOOKS = frozenset({"isinstance", "hasattr", "getattr", "setattr", "delattr", "type", "print", "len", "str", "id"})
HOOKS = frozenset({"register_forward_hook", "register_forward_pre_hook"})


@dataclass(frozen=True)
class Facts:
    """Layers that are tested with isinstance, attributes that are used otherwise than by a call, what files import of each other; whether a Sequential
    is opened anywhere, a hook registered, a layer swapped by its name. `texts`: those that could be names of PyTorch, for look-ups by name.
    `kept_children`: the children of a module are called or handed on by walking over them."""

    tested_layers: frozenset[str] = frozenset()
    opened_attributes: frozenset[str] = frozenset()
    imported_names: frozenset[str] = frozenset()
    opened_sequentials: bool = False
    hooked_layers: bool = False
    swapped_layers: bool = False
    texts: frozenset[str] = frozenset()
    kept_children: bool = False

    def __or__(self, other: "Facts") -> "Facts":
        return Facts(
            self.tested_layers | other.tested_layers, self.opened_attributes | other.opened_attributes, self.imported_names | other.imported_names,
            self.opened_sequentials or other.opened_sequentials, self.hooked_layers or other.hooked_layers, self.swapped_layers or other.swapped_layers,
            self.texts | other.texts, self.kept_children or other.kept_children,
        )


@dataclass(eq=False)
class Exchange:
    """What a unit is told of code elsewhere, and what can be told of it. `asked`: whether it mattered that no Sequential is opened or swapped."""

    given: Facts = Facts()
    found: Facts = Facts()
    asked: bool = False
    look: Callable[[ast.Module], Any] | None = None  # is shown the tree of each file that was made
    looked: dict[str, Any] = field(default_factory=dict)  # what it returned, by module


def written(unit: Unit) -> Facts:
    """The facts that the text alone tells."""
    tested: set[str] = set()
    opened: set[str] = set()
    imported: set[str] = set()
    texts: set[str] = set()
    hooked = kept = False
    for file in unit.files.values():
        for node in file.source.nodes:
            if isinstance(node, ast.ImportFrom):
                base = file.names.absolute(node.module, node.level)
                imported.update(f"{base}.{a.name}" for a in node.names)
            elif isinstance(node, ast.Attribute):
                hooked = hooked or node.attr in HOOKS
                kept = kept or node.attr in CHILDREN and _keeps(node, file.source.parents)
                if node.attr not in opened and _opens(node, file.source.parents.get(node)):
                    opened.add(node.attr)
            elif isinstance(node, ast.Constant):
                if isinstance(node.value, str) and node.value.isidentifier() and any(unit.table.get(f"{m}.{node.value}") for m in LOOKED_UP):
                    texts.add(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2:
                tested.update(_tested(unit, file, node.args[1]))
            elif isinstance(node, ast.Compare) and of_type(node.left):
                tested.update(_tested(unit, file, node.comparators[0]))
    return Facts(frozenset(tested), frozenset(opened), frozenset(imported), hooked_layers=hooked, texts=frozenset(texts), kept_children=kept)


def _keeps(walk: ast.Attribute, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether `m.children()` is more than a loop that looks at each child: it calls them, or hands them on."""
    at: ast.AST = walk
    while not isinstance(up := parents.get(at), (ast.stmt, ast.comprehension)) and up is not None:
        at = up
    if not isinstance(up, ast.For) or up.iter is not at:
        return not isinstance(up, (ast.FunctionDef, ast.ClassDef))
    target = up.target
    if walk.attr == "named_children" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]  # the first is the child's name
    names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    used = (n for s in up.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load))
    return any(_is_kept(n, parents) for n in used)


def _is_kept(child: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a child is called, stored or given to another function than the one that walks."""
    parent = parents.get(child)
    call = parents.get(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call):
        return isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Return, ast.Tuple, ast.List, ast.Dict, ast.Yield))
    called = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    at: ast.AST | None = call
    while at is not None and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
        at = parents.get(at)
    return call.func is child or called not in LOOKS and not (at is not None and called == at.name)


def known(unit: Unit, inf: Inference) -> Facts:
    """All facts of a unit."""
    swapped = any(isinstance(n, ast.Call) and _swaps(inf, n) for f in unit.files.values() for n in f.source.nodes)
    return written(unit) | Facts(opened_sequentials=_opened(unit, inf), swapped_layers=swapped)


def _layers(unit: Unit, file: FileInfo, options: Iterable[ast.expr]) -> set[str]:
    return {r.torch for o in options if isinstance(r := unit.resolve(file, o), Row)}


def of_type(node: ast.expr) -> bool:
    """`type(m)`, `m.__class__`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1
    return isinstance(node, ast.Attribute) and node.attr == "__class__"


def _tested(unit: Unit, file: FileInfo, options: ast.expr) -> set[str]:
    """The layers among the classes that something is tested for: one, several, or a name of several."""
    if isinstance(options, ast.Name):
        held = next((b.value for b in file.names.lookup(options) if isinstance(b.value, (ast.Tuple, ast.List, ast.Set))), options)
        options = held
    return _layers(unit, file, options.elts if isinstance(options, (ast.Tuple, ast.List, ast.Set)) else [options])


def _opens(node: ast.Attribute, parent: ast.AST | None) -> bool:
    """Whether an attribute is indexed, looped over, measured or passed on here, and not only called or compared with None."""
    if isinstance(node.ctx, ast.Store) or isinstance(parent, ast.Call) and parent.func is node:
        return False
    return not (isinstance(parent, ast.Compare) and all(isinstance(o, (ast.Is, ast.IsNot)) for o in parent.ops))


def _opened(unit: Unit, inf: Inference) -> bool:
    """Whether a Sequential is indexed, looped over or measured anywhere: only the support class can be."""
    for file in unit.files.values():
        for node in file.source.nodes:
            if isinstance(node, (ast.Name, ast.Attribute, ast.Call)) and any(isinstance(r,
                Row) and r.torch == SEQUENTIAL for r in refs(inf.of(node))) and inf.of(node).tag == "module":
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
