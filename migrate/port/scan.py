"""The quick look at a file before the conversion: its lines, what it imports, and the facts that other files must know of it."""

import ast
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from migrate.infer.facts import Facts, written
from migrate.port import notebooks
from migrate.source.modules import Unit
from migrate.source.text import SourceError, read
from migrate.tables import Table


@dataclass(frozen=True)
class Scan:
    """What a quick look tells. `imports`: dotted names, those of `from a import b` as `a` and `a.b`."""

    lines: int
    imports: tuple[str, ...] = ()
    facts: Facts = field(default_factory=Facts)
    attributes: tuple[str, ...] = ()  # that the file assigns
    looks_up: bool = False  # whether it uses getattr
    swaps: bool = False  # whether it reaches for attributes by computed names
    error: str = ""


def scan(path: Path, module: str, table: Table) -> Scan:
    """Looks at a file."""
    data = path.read_bytes()
    lines = notebooks.read(data).lines if path.suffix == ".ipynb" else data.count(b"\n") + bool(data and not data.endswith(b"\n"))
    try:
        source = read(data, path.name)
    except SourceError as e:
        return Scan(lines, error=str(e))
    unit = Unit(table)
    file = unit.add(source, module, path.name == "__init__.py", classes=False)
    imports: set[str] = set()
    stored: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.Import):
            imports.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = file.names.absolute(node.module, node.level)
            imports.update([base, *(f"{base}.{a.name}" for a in node.names)])
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            stored.add(node.attr)
    looks_up = any(isinstance(n, ast.Name) and n.id in ("getattr", "hasattr") for n in source.nodes)
    return Scan(lines, tuple(sorted(imports - {""})), written(unit), tuple(sorted(stored)), looks_up, any(map(_swaps, source.nodes)))


def _swaps(node: ast.AST) -> bool:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "getattr", "delattr") and len(node.args) > 1
    return named and not isinstance(node.args[1], ast.Constant)  # type: ignore[attr-defined]


def pack(s: Scan) -> dict[str, Any]:
    """A scan as JSON."""
    return {**asdict(s), "facts": pack_facts(s.facts)}


def unpack(data: Mapping[str, Any]) -> Scan:
    """A scan from JSON."""
    changed = {"imports": tuple(data["imports"]), "facts": unpack_facts(data["facts"]), "attributes": tuple(data["attributes"])}
    return Scan(**{**data, **changed})


def pack_facts(facts: Facts) -> dict[str, Any]:
    """Facts as JSON, always the same text for the same facts."""
    return {k: sorted(v) if isinstance(v, frozenset) else v for k, v in sorted(asdict(facts).items())}


def unpack_facts(data: Mapping[str, Any]) -> Facts:
    """Facts from JSON."""
    values: dict[str, Any] = {k: frozenset(v) if isinstance(v, list) else v for k, v in data.items()}
    return Facts(**values)
