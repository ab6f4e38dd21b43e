"""Puts the results of the parts together: the files, the support modules that they share, and where parts do not agree."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.fitting.extract import load as load_support
from migrate.pipeline import SUPPORT
from migrate.port.deliver import Delivery
from migrate.port.parts import Part
from migrate.port.requirements import rewrite
from migrate.port.run import Plan, results
from migrate.port.store import Store


@dataclass
class Outcome:
    """What became of a project: an entry for each file, in the order of paths."""

    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)
    supports: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def merge(plan: Plan, store: Store, force: bool) -> Outcome:
    """Writes all files of the output but the reports."""
    delivery, outcome = Delivery(store, force), Outcome()
    apart = disagreements(plan, store)
    needs: dict[str, Any] = store.load("needs", "all") or {}
    chosen = {e.path for e in plan.entries}
    needs = {p: n for p, n in needs.items() if p in chosen and (store.out / p).exists()}
    for part, result in results(plan, store):
        written = {}
        for path, f in result["files"].items():
            original = (plan.project / path).read_bytes()
            data = original if f["code"] is None else _encoded(f["code"], f["encoding"])
            written[path] = data, (plan.project / path).stat().st_mode & 0o777
            diagnostics = sorted([*f["diagnostics"], *apart.get(path, ())])
            outcome.files[path] = _entry(f, diagnostics, data != original, original)
            outcome.imported.update(f["imports"])
            needs.pop(path, None)
            if f["names"]:
                needs[path] = [*plan.support(part), f["names"], f["used"]]
        delivery.write(written)
    store.keep("needs", "all", needs)
    _write_supports(plan, needs, delivery, outcome)
    _others(plan, delivery, outcome)
    if not plan.options.choice.only:
        outcome.removed = delivery.remove_others()
    outcome.files = dict(sorted(outcome.files.items()))
    outcome.edited, outcome.changed = sorted(delivery.edited), delivery.changed
    return outcome


def _entry(f: dict[str, Any], diagnostics: list[Any], changed: bool, original: bytes) -> dict[str, Any]:
    errors = [d for d in diagnostics if d[2][3] in "3459"]
    status = (
        "left"
        if any(d[2] in ("MIG501", "MIG901") for d in errors) and not changed
        else "partly"
        if errors
        else "converted"
        if changed
        else "unchanged"
    )
    lines = f.get("lines", original.count(b"\n") + bool(original and not original.endswith(b"\n")))
    return {"status": status, "lines": lines, "rewrites": f["rewrites"], "diagnostics": diagnostics}


def _encoded(code: str, encoding: str) -> bytes:
    try:
        return code.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return code.encode()


def _write_supports(plan: Plan, needs: dict[str, Any], delivery: Delivery, outcome: Outcome) -> None:
    by_file: dict[str, tuple[set[str], set[str]]] = {}
    for _, file, names, used in needs.values():
        mine = by_file.setdefault(file, (set(), set()))
        mine[0].update(names)
        mine[1].update(used)
    support = load_support(plan.options.target)
    for file, (names, used) in sorted(by_file.items()):
        delivery.write({file: (support.module(names, used).encode(), 0o644)})
        outcome.supports.append(file)


def _others(plan: Plan, delivery: Delivery, outcome: Outcome) -> None:
    for e in plan.entries:
        if e.path in outcome.files:
            continue
        source = plan.project / e.path
        entry: dict[str, Any] = {"status": "copied", "why": e.why, "diagnostics": []}
        if e.role == "dependencies":
            text = source.read_text(encoding="utf-8", errors="surrogateescape")
            new, done = rewrite(e.path, text, outcome.imported, plan.options.target)
            if done and new != text:
                delivery.write({e.path: (new.encode("utf-8", "surrogateescape"), source.stat().st_mode & 0o777)})
                outcome.files[e.path] = {"status": "dependencies", "done": done, "diagnostics": []}
                continue
        delivery.copy(source, e.path, replace=e.why != "not chosen")
        if not e.is_beside:
            entry["lines"] = source.read_bytes().count(b"\n")
            outcome.files[e.path] = entry


def disagreements(plan: Plan, store: Store) -> dict[str, list[list[Any]]]:
    """file -> warnings where it uses a definition of another part that the two parts converted differently."""
    makes: dict[str, dict[str, str]] = {}
    for _, result in results(plan, store):
        makes.update(result["makes"])
    found: dict[str, list[list[Any]]] = {}
    for part, result in results(plan, store):
        for path, seen in sorted(result["seen"].items()):
            names = sorted(n for n, i in seen.items() if path in makes and makes[path].get(n, i) != i)
            if names:
                message = f"{', '.join(names)} of {path} looked different where this file was converted; compare the two"
                for user in _users(plan, part, path):
                    found.setdefault(user, []).append([1, 1, "MIG206", message])
    return found


def _users(plan: Plan, part: Part, path: str) -> list[str]:
    direct = [p for p in part.files if p in plan.scans and any(plan.layout.find(part.root, d) == path for d in plan.scans[p].imports)]
    return direct or list(part.files[:1])


def support_files(out: Path) -> Iterator[Path]:
    """The support modules of an output."""
    return out.rglob(f"{SUPPORT}*.py")
