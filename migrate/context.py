"""What a rule sees of a file: kinds, rows, the plan, and the names that the output needs."""
import ast
import builtins
import keyword
from dataclasses import dataclass, field
from typing import Any

from migrate.diagnostics import CODES, Diagnostic
from migrate.edits import Build, Conflict, NodeEdit, Plan, all_names
from migrate.fitting.extract import Support
from migrate.infer.engine import Inference
from migrate.infer.facts import Exchange, Facts
from migrate.infer.kinds import UNKNOWN, Kind
from migrate.source.modules import ClassInfo, FileInfo, FunctionInfo, Unit
from migrate.tables import Row
from migrate.targets.base import Target

IMPORTS = {
    "jnp": "import jax.numpy as jnp", "jax": "import jax", "nnx": "from flax import nnx", "np": "import numpy as np", "math": "import math", "keras": "import keras",
    "field": "from dataclasses import field",
    "partial": "from functools import partial", "functools": "import functools", "einops": "import einops", "optax": "import optax", "lax": "from jax import lax",
}


@dataclass(eq=False)
class Context:
    """One file on its way. Rules read `kind`, `resolve` and `row`, and write edits and diagnostics."""

    unit: Unit
    file: FileInfo
    inf: Inference
    target: Target
    support: Support
    plan: Plan
    support_module: str = "torch_support"
    facts: Facts = field(default_factory=Facts)
    exchange: Exchange = field(default_factory=Exchange)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    removed: set[ast.AST] = field(default_factory=set)  # nodes that go with the statement that holds them
    kept: set[ast.AST] = field(default_factory=set)  # nodes that the user marked to stay
    left: set[ast.AST] = field(default_factory=set)  # nodes that stay PyTorch
    shared: dict[str, Any] = field(default_factory=dict)  # facts of the whole unit that rules share
    _names: dict[str, str] = field(default_factory=dict)
    _taken: set[str] | None = None

    @property
    def source(self) -> Any:
        """The file's Source."""
        return self.file.source

    def kind(self, node: ast.AST | None) -> Kind:
        """The kind of an expression."""
        return self.inf.kinds.get(node, UNKNOWN) if node is not None else UNKNOWN

    def resolve(self, node: ast.AST) -> "ClassInfo | FunctionInfo | Row | str | None":
        """What a name or dotted expression means."""
        return self.unit.resolve(self.file, node) if isinstance(node, (ast.Name, ast.Attribute)) else None

    def dotted(self, node: ast.AST) -> str:
        """The canonical dotted name of something foreign, else ""."""
        found = self.resolve(node)
        return found.torch if isinstance(found, Row) else found if isinstance(found, str) else ""

    def edit(self, node: ast.AST, build: Build, rule: str, code: str = "MIG101", why: str = "") -> bool:
        """Claims a node for a rewrite. False, with a diagnostic, where another rule has it."""
        try:
            self.plan.claim(NodeEdit(node, build, code, why, rule))
        except Conflict as e:
            self.report("MIG901", node, str(e))
            return False
        return True

    def owned(self, node: ast.AST) -> bool:
        """Whether a rule has claimed the node."""
        return node in self.plan.nodes

    def report(self, code: str, node: ast.AST, message: str) -> None:
        """Adds a diagnostic at a node."""
        found = Diagnostic(getattr(node, "lineno", 1), self.source.column(node), code, message, self.source.filename)
        if found not in self.diagnostics:
            self.diagnostics.append(found)

    def refuse(self, code: str, node: ast.AST, message: str) -> None:
        """Leaves a node as it is, with an error."""
        assert CODES[code].severity == "error"
        self.left.add(node)
        self.report(code, node, f"{snippet(self.source.segment(node))}: {message}")

    def name(self, wanted: str) -> str:
        """The name under which the output has something that it imports; recorded as needed."""
        if not self.statement(wanted) and wanted not in self.support:
            return wanted
        self.needs.add(wanted)
        if wanted not in self._names:
            self._names[wanted] = self._allocate(wanted)
        return self._names[wanted]

    def statement(self, wanted: str) -> str:
        """The import of a name that a template uses, "" where it is none of ours."""
        own: dict[str, str] = self.shared.get("imports", {})
        return own.get(wanted) or self.unit.table.imports.get(wanted, "") or IMPORTS.get(wanted, "")

    def added_names(self) -> set[str]:
        """The names that the output's own imports bind."""
        return {self._names[n] for n in self.needs}

    def _allocate(self, wanted: str) -> str:
        existing = self._imported_as(statement) if (statement := self.statement(wanted)) else None
        return existing or self.new_name(wanted)

    def new_name(self, wanted: str) -> str:
        """A name that nothing in the file has yet, like the wanted one."""
        if self._taken is None:
            self._taken = self._bound_names()
        name = wanted
        while name in self._taken or keyword.iskeyword(name) or (hasattr(builtins, name) and wanted not in self.support):
            name += "_"
        self._taken.add(name)
        return name

    def _imported_as(self, statement: str) -> str | None:
        """The name that the file itself gives to the same import, where nothing else is bound to it."""
        node = ast.parse(statement).body[0]
        assert isinstance(node, (ast.Import, ast.ImportFrom))
        a = node.names[0]
        dotted = f"{node.module}.{a.name}" if isinstance(node, ast.ImportFrom) else a.name
        for name, bound in self.file.names.top.bindings.items():
            if all(b.kind == "import" and b.dotted == dotted for b in bound) and bound[0].node in self.source.tree.body:
                elsewhere = any(name in s.bindings for s in self.file.names.scopes.values() if s is not self.file.names.top)
                return None if elsewhere else name
        return None

    def _bound_names(self) -> set[str]:
        """Every name that the file binds or that the output may look up, imports of PyTorch excepted."""
        bound: set[str] = set()
        for scope in self.file.names.scopes.values():
            for name, bindings in scope.bindings.items():
                if not all(b.kind == "import" and ((b.dotted + ".").startswith("torch.") or isinstance(self.unit.named(b.dotted), Row)) for b in bindings):
                    bound.add(name)
        if not self.file.names.top.stars:
            return bound
        free = {n for n in all_names([self.source.tree]) if n not in self.file.names.top.bindings and not hasattr(builtins, n)}
        return bound | {n for n in free if not (self.unit.by_star(self.file, n) or "").startswith("torch.")}

    def function_of(self, node: ast.AST) -> FunctionInfo | None:
        """The function that a node is in (the innermost definition, lambdas skipped)."""
        at = self.source.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef)
        found = self.file.by_node.get(at) if at is not None else None
        return found if isinstance(found, FunctionInfo) else None

    def class_of(self, node: ast.AST) -> ClassInfo | None:
        """The class whose method a node is in, nested functions included."""
        f = self.function_of(node)
        while f is not None and f.owner is None:
            f = self.function_of(f.node)
        return f.owner if f is not None else None

    def self_of(self, node: ast.AST) -> str | None:
        """What `self` is called where a node stands."""
        f = self.function_of(node)
        while f is not None and f.owner is None:
            f = self.function_of(f.node)
        return f.self_name if f is not None else None

    def is_super(self, node: ast.AST) -> bool:
        """Whether an expression is `super()`."""
        return isinstance(node, ast.Call) and self.dotted(node.func) == "builtins.super"

    def is_self(self, node: ast.AST) -> bool:
        """Whether an expression is the `self` of the method around it."""
        return isinstance(node, ast.Name) and node.id == self.self_of(node)


def snippet(text: str, width: int = 60) -> str:
    """The user's words on one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 3] + "..."
