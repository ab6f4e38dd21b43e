"""Runs the rules over a file, in a fixed order at each node: the first that claims a node owns it."""
import ast
from collections.abc import Callable
from typing import Any

from migrate.context import Context
from migrate.rules import (
    asking,
    branching,
    cancelling,
    checking,
    constants,
    containers,
    copying,
    custom_gradients,
    fields,
    folding,
    gradients,
    hyperparameters,
    indexing,
    inplace,
    late_options,
    layers,
    leftovers,
    lookups,
    members,
    mixins,
    modes,
    modules,
    noise,
    notes,
    operators,
    optimizers,
    optional,
    options,
    partials,
    picking,
    placement,
    positional,
    products,
    relocation,
    reserved,
    rngs,
    seeding,
    selecting,
    state,
    static,
    training,
    traversal,
    tying,
    type_tests,
    unpacked,
    unrecorded,
    widths,
    wrappers,
)
from migrate.source.modules import ClassInfo, FunctionInfo

Visit = Callable[[Context, Any], None]
RULES: dict[type[ast.AST], tuple[Visit, ...]] = {
    ast.If: (folding.visit_if, branching.visit,),
    ast.While: (branching.visit,),
    ast.Assert: (branching.visit_assert,),
    ast.IfExp: (folding.visit_choice, branching.visit,),
    ast.With: (noise.visit_with,),
    ast.Try: (optional.visit_try,),
    ast.AsyncWith: (noise.visit_with,),
    ast.BinOp: (operators.visit_power, widths.visit, cancelling.visit),
    ast.Dict: (placement.visit_dict,),
    ast.Compare: (lookups.visit_compare, type_tests.visit_compare),
    ast.Expr: (seeding.visit_expr, noise.visit_expr, hyperparameters.visit_expr),
    ast.Assign: (late_options.visit_assign, constants.visit_assign, modules.visit_assign, optimizers.visit_assign, optional.visit_assign, noise.visit_assign, traversal.visit_assign, inplace.visit_assign, containers.visit_assign, tying.visit_assign, state.visit_assign, state.visit_data, notes.visit_assign, static.visit_assign, wrappers.visit_assign),
    ast.AnnAssign: (late_options.visit_assign, static.visit_annassign, fields.visit_annassign),
    ast.AugAssign: (late_options.visit_assign, inplace.visit_augmented,),
    ast.Call: (
        late_options.visit_call, members.visit_call, constants.visit_call, checking.visit_call, placement.visit_call, noise.visit_call, lookups.visit_call, asking.visit_call, partials.visit_call, unpacked.visit_call, mixins.visit_call, modes.visit_call, state.visit_call, notes.visit_call, modules.visit_call, copying.visit_call, traversal.visit_call, containers.visit_call, layers.visit_call, inplace.visit_call, operators.visit_call, rngs.visit_call,
        positional.visit_call, leftovers.visit_call, branching.visit_value, indexing.visit_call, widths.visit_call,
    ),
    ast.Attribute: (members.visit_attribute, options.visit_attribute, relocation.visit_attribute, picking.visit_attribute, traversal.visit_attribute, training.visit_attribute, state.visit_attribute, type_tests.visit_value, layers.visit_value, operators.visit_attribute, reserved.visit_attribute, leftovers.visit_value),
    ast.Name: (state.visit_element, type_tests.visit_value, layers.visit_value, operators.visit_name, leftovers.visit_value),
    ast.Subscript: (picking.visit_subscript, state.visit_element, selecting.visit_subscript, inplace.visit_index, indexing.visit_subscript),
    ast.Lambda: (rngs.visit_lambda,),
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), ()),  # below
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), (branching.visit_comprehension,)),
}


def plan_file(ctx: Context) -> None:
    """Plans all edits of a file but those of its classes."""
    for node in ctx.source.nodes:  # statements before what they hold: a removed one takes its parts with it
        visits = RULES.get(node.__class__)
        if visits is None or node in ctx.removed or node in ctx.kept:
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            info = ctx.file.by_node.get(node)
            if isinstance(info, FunctionInfo):
                modules.visit_function(ctx, info)
                modes.visit_function(ctx, info)
                products.visit_function(ctx, info)
                reserved.visit_function(ctx, info)
                training.visit_function(ctx, info)
            elif isinstance(info, ClassInfo):
                mixins.visit_class(ctx, info.node)
                custom_gradients.visit_class(ctx, info)
                noise.visit_bases(ctx, info.node)
            noise.visit_decorators(ctx, node)
            continue
        for visit in visits:
            visit(ctx, node)
    gradients.finish(ctx)
    unrecorded.finish(ctx)
    static.finish(ctx)
    placement.finish(ctx)


def plan_classes(ctx: Context) -> None:
    """Plans constructors and class attributes, once all files have said what they need."""
    for c in ctx.file.classes:
        if c.node not in ctx.kept:
            modules.visit_class(ctx, c)
