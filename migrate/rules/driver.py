"""Runs the rules over a file, in a fixed order at each node: the first that claims a node owns it."""
import ast
from collections.abc import Callable
from typing import Any

from migrate.context import Context
from migrate.infer.engine import Inference
from migrate.infer.kinds import refs
from migrate.rules import branching, containers, gradients, indexing, inplace, layers, leftovers, lookups, modules, noise, operators, partials, picking, positional, reserved, rngs, state, static, training, traversal, tying
from migrate.source.modules import FunctionInfo, Unit
from migrate.tables import Row

Visit = Callable[[Context, Any], None]
RULES: dict[type[ast.AST], tuple[Visit, ...]] = {
    ast.If: (branching.visit,),
    ast.While: (branching.visit,),
    ast.IfExp: (branching.visit,),
    ast.With: (gradients.visit_with, noise.visit_with),
    ast.AsyncWith: (gradients.visit_with, noise.visit_with),
    ast.Expr: (noise.visit_expr,),
    ast.Assign: (noise.visit_assign, inplace.visit_assign, tying.visit_assign, state.visit_assign, static.visit_assign),
    ast.AugAssign: (inplace.visit_augmented,),
    ast.Call: (
        noise.visit_call, lookups.visit_call, partials.visit_call, state.visit_call, modules.visit_call, traversal.visit_call, containers.visit_call, layers.visit_call, inplace.visit_call, operators.visit_call, rngs.visit_call,
        positional.visit_call, leftovers.visit_call,
    ),
    ast.Attribute: (picking.visit_attribute, training.visit_attribute, state.visit_attribute, layers.visit_value, operators.visit_attribute, reserved.visit_attribute, leftovers.visit_value),
    ast.Name: (layers.visit_value, operators.visit_name, leftovers.visit_value),
    ast.Subscript: (picking.visit_subscript, inplace.visit_index, indexing.visit_subscript),
    ast.Lambda: (rngs.visit_lambda,),
}


def unit_facts(unit: Unit, inf: Inference) -> dict[str, Any]:
    """What rules need to know of the whole unit: the layers that are tested with isinstance, the uses of attributes."""
    tested: set[str] = set()
    uses: dict[str, list[tuple[ast.Attribute, ast.AST | None]]] = {}
    imported: set[str] = set()
    for file in unit.files.values():
        parents = file.source.parents
        for node in file.source.nodes:
            if isinstance(node, ast.ImportFrom):
                base = file.names.absolute(node.module, node.level)
                imported.update(f"{base}.{a.name}" for a in node.names)
            elif isinstance(node, ast.Attribute):
                uses.setdefault(node.attr, []).append((node, parents.get(node)))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2:
                options = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
                tested.update(r.torch for o in options if isinstance(r := unit.resolve(file, o), Row))
    return {"tested_layers": tested, "attribute_uses": uses, "imported_names": imported, "opened_sequentials": _opened(unit, inf),
            "hooked_layers": any(isinstance(n, ast.Attribute) and n.attr in traversal.HOOKS for f in unit.files.values() for n in f.source.nodes),
            "swapped_layers": any(isinstance(n, ast.Call) and _swaps(inf, n) for f in unit.files.values() for n in f.source.nodes)}


def _opened(unit: Unit, inf: Inference) -> bool:
    """Whether a Sequential is indexed, looped over or measured anywhere: only the support class can be."""
    for file in unit.files.values():
        for node in file.source.nodes:
            if isinstance(node, (ast.Name, ast.Attribute, ast.Call)) and any(isinstance(r, Row) and r.torch == layers.SEQUENTIAL for r in refs(inf.of(node))) and inf.of(node).tag == "module":
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


def plan_file(ctx: Context) -> None:
    """Plans all edits of a file but those of its classes."""
    for node in ctx.source.nodes:  # statements before what they hold: a removed one takes its parts with it
        if node in ctx.removed:
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            info = ctx.file.by_node.get(node)
            if isinstance(info, FunctionInfo):
                modules.visit_function(ctx, info)
                gradients.visit_function(ctx, info)
                reserved.visit_function(ctx, info)
                training.visit_function(ctx, info)
            noise.visit_decorators(ctx, node)
            continue
        for rule in RULES.get(type(node), ()):
            rule(ctx, node)


def plan_classes(ctx: Context) -> None:
    """Plans constructors and class attributes, once all files have said what they need."""
    for c in ctx.file.classes:
        modules.visit_class(ctx, c)
