"""The stages: read, infer, plan, emit, check the result."""
import ast
import builtins
import gc
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from migrate.context import Context
from migrate.diagnostics import Diagnostic
from migrate.edits import Emitter, Plan
from migrate.fitting.extract import Support, used_by
from migrate.fitting.extract import load as load_support
from migrate.infer import facts
from migrate.infer.engine import Inference
from migrate.infer.facts import Exchange
from migrate.infer.quiet import Quiet
from migrate.infer.writes import Writes
from migrate.rules import comments, driver, imports, keeping
from migrate.rules.builders import Builders
from migrate.source import optional
from migrate.source.keep import kept_nodes
from migrate.source.modules import FileInfo, Unit
from migrate.source.text import Source, SourceError, read, walk
from migrate.tables import Table, standard
from migrate.targets import TARGETS
from migrate.targets.base import Target

SUPPORT = "torch_support"
STACK = 512 * 1024 * 1024
T = TypeVar("T")


@dataclass(frozen=True)
class Conversion:
    """What a file became. `support`: relative path -> text of the extra modules that the code imports."""

    code: str
    support: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...]
    filename: str = ""
    names: frozenset[str] = field(default_factory=frozenset)  # the support definitions that the code imports
    plan: Plan | None = None
    newline: str = "\n"
    encoding: str = "utf-8"
    used: frozenset[str] | None = None  # the attribute names that the code uses
    imported: tuple[str, ...] = ()  # the top-level modules that it imports


@dataclass(frozen=True)
class Extra(Mapping[str, str]):
    """The support module of one file, made when it is asked for: files that are converted together share one that is none of theirs."""

    module: str
    target: str
    names: frozenset[str]
    used: frozenset[str]

    @cached_property
    def text(self) -> str:
        """The module's text."""
        return load_support(self.target).module(self.names, self.used)

    def __getitem__(self, path: str) -> str:
        if path != f"{self.module}.py":
            raise KeyError(path)
        return self.text

    def __iter__(self) -> Iterator[str]:
        return iter((f"{self.module}.py",))

    def __len__(self) -> int:
        return 1


def deep(work: Callable[[], T]) -> T:
    """Runs something in a thread whose stack is large enough for expressions thousands of levels deep. Raises what it raises.

    Trees of whole projects live until the end: looking for garbage among them again and again would take a quarter of the time.
    """
    box: list[Any] = []
    collects = gc.isenabled()

    def run() -> None:
        try:
            box.append((True, work()))
        except BaseException as e:
            box.append((False, e))

    limit = sys.getrecursionlimit()
    size = threading.stack_size(STACK)
    try:
        sys.setrecursionlimit(max(limit, 60_000))
        gc.disable()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
        if collects:
            gc.enable()
    ok, value = box[0]
    if not ok:
        raise value
    return value  # type: ignore[no-any-return]


def target_named(name: str) -> Target:
    """A target by its name. Raises ValueError for an unknown one."""
    if name not in TARGETS:
        raise ValueError(f"unknown target {name!r}; known: {', '.join(sorted(TARGETS))}")
    return TARGETS[name]


def convert_source(text: str | bytes, target: str = "flax", filename: str = "<string>", table: Table | None = None) -> Conversion:
    """Converts the text of one file. Never raises for what the file contains: a file that can't be read is returned as it is, with a 5xx."""
    chosen = target_named(target)
    return deep(lambda: _convert_one(text, chosen, filename, table or standard()))


def _convert_one(text: str | bytes, target: Target, filename: str, table: Table) -> Conversion:
    try:
        source = read(text, filename)
    except SourceError as e:
        code = text if isinstance(text, str) else text.decode("utf-8", "replace")
        code_name = "MIG503" if "deep" in str(e) or "recursion" in str(e) or "nested" in str(e) else "MIG501"
        return Conversion(code, {}, (Diagnostic(e.line or 1, e.column or 1, code_name, str(e), filename),), filename)
    unit = Unit(table)
    unit.add(source, "")
    return convert_unit(unit, target)[""]


def convert_unit(unit: Unit, target: Target, support_name: str = SUPPORT, exchange: Exchange | None = None) -> dict[str, Conversion]:
    """Converts all files of a unit; by module name. `exchange`: facts of code elsewhere, and those of the unit itself."""
    exchange = exchange or Exchange()
    unit.told = exchange.given.texts
    optional.bind(unit)
    unit.link()
    support = load_support(target.name)
    inf = Inference(unit)
    inf.run()
    builders = Builders(unit, inf, target, support)
    builders.run()
    writes = Writes(unit, inf)
    shared: dict[str, Any] = {"builders": builders, "building_lambdas": builders.lambdas, "writes": writes, "quiet": Quiet(writes)}
    exchange.found = facts.known(unit, inf)
    contexts = {m: _context(unit, f, inf, target, support, support_name, exchange, dict(shared)) for m, f in unit.files.items()}
    for ctx in contexts.values():
        _planned(ctx)
    for ctx in contexts.values():
        driver.plan_classes(ctx)
    return {m: _guarded(ctx) for m, ctx in contexts.items()}


def _planned(ctx: Context) -> None:
    """Plans a file; what a bug of ours stops half-way is left, and said."""
    try:
        driver.plan_file(ctx)
    except RecursionError:
        _given_up(ctx, "MIG503", "the code is nested too deeply")
    except BUGS as e:
        _given_up(ctx, "MIG901", f"planning failed: {type(e).__name__}: {e}")


def _given_up(ctx: Context, code: str, why: str) -> None:
    ctx.report(code, ctx.source.tree, why)
    ctx.plan.nodes.clear()
    ctx.plan.texts.clear()


BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def _guarded(ctx: Context) -> Conversion:
    """A file's new text; one that a bug of ours stops is returned as it is, and the others go on."""
    try:
        return emit(ctx)
    except RecursionError:
        ctx.report("MIG503", ctx.source.tree, "the code is nested too deeply")
    except BUGS as e:
        ctx.report("MIG901", ctx.source.tree, f"emitting failed: {type(e).__name__}: {e}")
    return Conversion(ctx.source.text, {}, tuple(sorted(ctx.diagnostics)), ctx.source.filename)


def _context(unit: Unit, file: FileInfo, inf: Inference, target: Target, support: Support, name: str, exchange: Exchange, shared: dict[str, Any]) -> Context:
    shared["after"] = {}
    kept = kept_nodes(file.source)
    return Context(unit, file, inf, target, support, Plan(file.source), name, exchange.found | exchange.given, exchange, kept=kept, shared=shared)


def emit(ctx: Context) -> Conversion:
    """The new text of a file: once to see what it still uses, then with its imports."""
    keeping.finish(ctx)
    comments.plan(ctx)
    try:
        draft = ast.parse(Emitter(ctx.plan).text())
    except (SyntaxError, MemoryError) as e:
        return _unparsable(ctx, e)
    imports.plan(ctx, imports.usage(_without_imports(draft)))
    code = Emitter(ctx.plan).text()
    try:
        tree = ast.parse(code)
    except (SyntaxError, MemoryError) as e:
        return _unparsable(ctx, e)
    nodes = walk(tree)
    if twice := [n for n in nodes if isinstance(n, ast.Call) and len(given := [k.arg for k in n.keywords if k.arg]) > len(set(given))]:
        return _broken(ctx, f"the result would not be valid Python: an argument is given twice (line {twice[0].lineno})")
    if lost := sorted(free_names(nodes) - free_names(ctx.source.nodes)):
        ctx.report("MIG901", ctx.source.tree, f"the result looks up names that nothing binds: {', '.join(lost)}")
    if ctx.exchange.look is not None:
        ctx.exchange.looked[ctx.file.module] = ctx.exchange.look(tree)
    names = frozenset(n for n in ctx.needs if n in ctx.support)
    used = used_by(tree, nodes)
    extra = Extra(ctx.support_module, ctx.target.name, names, frozenset(used)) if names else {}
    source: Source = ctx.source
    if source.newline != "\n":
        code = code.replace("\n", source.newline)
    return Conversion(code, extra, tuple(sorted(ctx.diagnostics)), source.filename, names, ctx.plan, source.newline, source.encoding, frozenset(used),
        imports.tops(nodes))


def _unparsable(ctx: Context, e: SyntaxError | MemoryError) -> Conversion:
    """Calls nest deeper than chains of methods do: that is no bug."""
    if isinstance(e, MemoryError) or "nested" in e.msg:
        return _broken(ctx, "the converted code would be nested too deeply", "MIG503")
    return _broken(ctx, f"the result would not be valid Python: {e.msg} (line {e.lineno}: {(e.text or '').strip()})")


def _broken(ctx: Context, why: str, code: str = "MIG901") -> Conversion:
    ctx.report(code, ctx.source.tree, why)
    return Conversion(ctx.source.text, {}, tuple(sorted(ctx.diagnostics)), ctx.source.filename)


def _without_imports(tree: ast.Module) -> ast.Module:
    return tree


BINDING = frozenset(
    {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal}
)


def free_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that are looked up and bound nowhere among the nodes of a file."""
    used: set[str] = set()
    bound: set[str] = set(dir(builtins)) | {"__file__", "__name__", "__doc__", "__path__", "__class__", "__package__", "__spec__", "__loader__",
        "__annotations__", "__builtins__"}
    for node in nodes:
        if node.__class__ is ast.Name:
            (used if node.ctx.__class__ is ast.Load else bound).add(node.id)
            continue
        if node.__class__ not in BINDING:
            continue
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.add(node.name)
            case ast.arg():
                bound.add(node.arg)
            case ast.alias():
                bound.add((node.asname or node.name).partition(".")[0])
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                bound.add(node.name or "")
            case ast.MatchMapping():
                bound.add(node.rest or "")
            case ast.Global() | ast.Nonlocal():
                bound.update(node.names)
    return used - bound


__all__ = ["Conversion", "convert_source", "convert_unit", "deep", "emit", "target_named"]
