"""The examples of the rules: text, diagnostics, and what holds of every conversion."""
import ast
import builtins
import importlib
import pkgutil
import symtable

import pytest

import migrate
import migrate.rules
from migrate.pipeline import deep
from migrate.rules.example import HEADER, Example

MACHINERY = {"driver", "example"}
RULES = sorted(m.name for m in pkgutil.iter_modules(migrate.rules.__path__) if m.name not in MACHINERY)
EXAMPLES = [(rule, i, e) for rule in RULES for i, e in enumerate(getattr(importlib.import_module(f"migrate.rules.{rule}"), "EXAMPLES", ()))]
ALL = [pytest.param(e, id=f"{rule}-{i}") for rule, i, e in EXAMPLES]
TARGETS = ("flax", "keras")


def convert(example: Example, target: str) -> migrate.Conversion:
    return migrate.convert_source(example.text, target=target, filename="example.py")


@pytest.mark.parametrize("rule", sorted({r for r, _, _ in EXAMPLES}))
def test_every_rule_has_examples(rule: str) -> None:
    own = [e for r, _, e in EXAMPLES if r == rule]
    assert sum(bool(e.flax or e.keras or e.jax) for e in own) >= 2, "two converted"
    assert sum(e.unchanged for e in own) >= 2, "two left alone"


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("target", TARGETS)
def test_text(example: Example, target: str) -> None:
    found = convert(example, target)
    assert example.expected(target) in found.code, found.code[:5000]


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("target", TARGETS)
def test_diagnostics(example: Example, target: str) -> None:
    found = convert(example, target)
    assert not [str(d) for d in found.diagnostics if d.code.startswith("MIG9")]
    lines = range(HEADER.count("\n") + 1, HEADER.count("\n") + example.source.count("\n") + 2)
    errors = [d for d in found.diagnostics if d.severity == "error"]
    for code in filter(None, (example.refused, example.reported)):
        assert code in {d.code for d in found.diagnostics if d.line in lines}, found.diagnostics
    if example.refused:
        return
    if example.expected(target):
        assert not errors, [str(d) for d in errors]


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("target", TARGETS)
def test_sound(example: Example, target: str) -> None:
    """The output parses, has no names that nothing binds, and is the same every time."""
    found = convert(example, target)
    deep(lambda: ast.parse(found.code))
    assert deep(lambda: unbound(found.code)) <= deep(lambda: unbound(example.text))
    again = convert(example, target)
    assert (found.code, dict(found.support), found.diagnostics) == (again.code, dict(again.support), again.diagnostics)


def unbound(code: str) -> set[str]:
    """The names that some scope looks up in the module and nothing binds there."""
    top = symtable.symtable(code, "code.py", "exec")
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    tables, used = [top], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        bound |= {s.get_name() for s in table.get_symbols() if s.is_declared_global() and s.is_assigned()}
        used |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (s.is_global() or table is top)}
    return used - bound - set(dir(builtins)) - {"__file__", "__name__", "__doc__", "__path__"}


def test_unbound() -> None:
    assert unbound("import a\ndef f(b):\n    return a, b, c, [d for d in b], len(b)\n") == {"c"}
