"""A row of the mapping tables, told to a person."""

from collections.abc import Sequence

from migrate.known import corners, difference
from migrate.tables import Condition, Row, Table, Variant

SHORT = {"F.": "torch.nn.functional.", "nn.": "torch.nn.", "Tensor.": "torch.Tensor."}


def find(table: Table, name: str) -> list[Row]:
    """The rows that a person may mean: the full name, a short form (`F.gelu`), a method, or the last part of a name."""
    for short, long in SHORT.items():
        if name.startswith(short):
            name = long + name[len(short) :]
    if row := table.get(name):
        return [row]
    last = name.rsplit(".", 1)[-1]
    if "." in name:
        if name.startswith("torch.Tensor."):
            return [row for row in [table.by_method.get(last) or table.by_attribute.get(last)] if row]
        return []
    found = [r for r in table.rows if last in {n.rsplit(".", 1)[-1] for n in (r.torch, *r.also)} | set(r.methods)]
    return found or [r for r in table.rows if last.lower() == r.torch.rsplit(".", 1)[-1].lower()]


def describe(row: Row, targets: Sequence[str]) -> str:
    """A row as a few lines."""
    lines = [row.torch + (row.signature if row.kind not in ("constant", "attribute", "stand_in") else "")]
    if row.also:
        lines.append(f"  also: {', '.join(row.also)}")
    if row.methods:
        dot = "" if row.kind == "attribute" else "()"
        lines.append(f"  methods: {', '.join(f'.{m}{dot}' for m in row.methods)}")
    if row.note:
        lines.append(f"  note: {row.note}")
    for name, call in row.known.items():
        k = difference(name, row.torch)
        lines.append(f"  raises: {k.what}, `{call}`: {k.happens}; instead, {k.instead}")
    lines += [f"  open: {corner.what}" for corner in corners().get(row.torch, ())]
    for target in targets:
        variants = row.for_target(target)
        lines += [line for v in variants for line in _variant(target, v)]
        if row.support and row.kind == "layer":
            why = "support class, where the layer is passed around as a value or nothing above fits"
            lines.append(f"  {target}: {row.support}{row.signature}  ({why})")
        if not variants and not row.support:
            lines.append(f"  {target}: not supported")
    return "\n".join(lines)


KINDS = {"function": "functions", "attribute": "attributes", "layer": "layers", "constant": "constants", "stand_in": "of libraries", "noop": "without effect"}


def status(row: Row, target: str) -> str:
    """How far a target has a row's operator: "whole", "partly" (some forms are refused, or differ in a way that is known) or "refused"."""
    variants = row.for_target(target)
    if not [v for v in variants if not v.reason] and not (row.kind == "layer" and row.support and not variants):
        return "refused"
    return "partly" if any(v.reason or v.deviates or v.reject for v in variants) else "whole"


def coverage(table: Table, targets: Sequence[str]) -> str:
    """The counts of rows by kind, and how far each target has them."""
    lines = [f"{'':16}{'rows':>6}{'names':>7}" + "".join(f"{t + ': ' + s:>18}" for t in targets for s in ("whole", "partly", "refused"))]
    for kind, title in {**KINDS, "": "all"}.items():
        rows = [r for r in table.rows if kind in ("", r.kind)]
        names = sum(1 + len(r.also) + len(r.methods) for r in rows)
        counts = [sum(status(r, t) == s for r in rows) for t in targets for s in ("whole", "partly", "refused")]
        if rows:
            lines.append(f"{title:16}{len(rows):6}{names:7}" + "".join(f"{n:18}" for n in counts))
    return "\n".join(lines)


def _variant(target: str, v: Variant) -> list[str]:
    when = " and ".join(map(_condition, v.when))
    lines = [f"  {target}: {v.to or 'refused: ' + v.reason}" + (f"  when {when}" if when else "")]
    if v.deviates:
        lines.append(f"    differs: {v.deviates}")
    if v.reject:
        lines.append(f"    refused when given: {', '.join(sorted(v.reject))}")
    return lines


def _condition(c: Condition) -> str:
    if c.predicate:
        return f"{c.parameter} {'is not' if c.negated else 'is'} {c.predicate}"
    return f"{c.parameter} is {' or '.join(c.literals)}"
