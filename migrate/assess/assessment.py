"""Converts a project in memory and sums up what it would take. Nothing is written."""

import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from migrate.assess.survey import BY_CODE, HOSTILE
from migrate.diagnostics import CODES
from migrate.port.merge import disagreements
from migrate.port.report import effort
from migrate.port.run import Engine, Options, Plan, Progress, convert, look, results
from migrate.port.store import Store
from migrate.port.work import Job
from migrate.source.installed import FRAMEWORKS, folder_of

PLACES = 20  # of each kind that are named


def assess(project: Path, options: Options, engine: Engine, progress: Progress) -> dict[str, Any]:
    """The assessment of a project, as plain values."""
    project = project.resolve()
    with tempfile.TemporaryDirectory(prefix="migrate-") as state, Store(Path(state)).opened() as store:
        plan = look(project, options, engine, None, None, progress)
        convert(plan, engine, store, progress)
        files = {}
        apart = disagreements(plan, store)
        for _, result in results(plan, store):
            for path, f in result["files"].items():
                files[path] = {"diagnostics": [*f["diagnostics"], *apart.get(path, ())], "rewrites": sum(f["rewrites"].values()), "lines": f.get("lines", 0)}
    return _summed(plan, dict(sorted(files.items())), _surveys(plan, list(files), engine))


def _surveys(plan: Plan, files: list[str], engine: Engine) -> dict[str, Any]:
    paths = sorted(p for p in files if p in plan.scans)
    jobs: list[Job] = [
        {"kind": "survey", "project": str(plan.project), "files": [[p, plan.layout.modules[p]] for p in paths[i : i + 20]]}
        for i in range(0, len(paths), 20)
    ]
    found: dict[str, Any] = {}
    for _, result in engine.run(jobs):
        found.update(result["scans"])
    return dict(sorted(found.items()))


def _summed(plan: Plan, files: dict[str, Any], surveys: dict[str, Any]) -> dict[str, Any]:
    codes: Counter[str] = Counter(d[2] for f in files.values() for d in f["diagnostics"])
    errors = {p: sum(CODES[d[2]].severity == "error" for d in f["diagnostics"]) for p, f in files.items()}
    rewrites, left = sum(f["rewrites"] for f in files.values()), sum(errors.values())
    lines = {p: plan.scans[p].lines if p in plan.scans else f["lines"] for p, f in files.items()}
    minutes = {p: effort(Counter(d[2] for d in f["diagnostics"])) for p, f in files.items()}
    return {
        "version": 1,
        "project": plan.project.name,
        "target": plan.options.target,
        "totals": {
            "files": len(files),
            "lines": sum(lines.values()),
            "modules": sum(s["modules"] for s in surveys.values()),
            "functions": sum(s["functions"] for s in surveys.values()),
            "constructs": rewrites + left,
            "minutes": sum(minutes.values()),
        },
        "share": {
            "constructs": _share(rewrites, rewrites + left),
            "files": _share(sum(not n for n in errors.values()), len(files)),
            "lines": _share(sum(n for p, n in lines.items() if not errors[p]), sum(lines.values())),
        },
        "operators": _operators(surveys, " ".join(d[3] for f in files.values() for d in f["diagnostics"] if CODES[d[2]].severity == "error")),
        "blockers": [
            _blocker(c, n, files)
            for c, n in sorted(codes.items(), key=lambda c: (-effort({c[0]: c[1]}), c))
            if CODES[c].severity == "error"
        ],
        "warnings": {c: n for c, n in sorted(codes.items()) if CODES[c].severity == "warning"},
        "hostile": _hostile(files, surveys),
        "libraries": _libraries(plan, files),
        "work": [{"path": p, "minutes": m, "left": errors[p]} for p, m in sorted(minutes.items(), key=lambda x: (-x[1], x[0])) if m],
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 1.0


def _operators(surveys: dict[str, Any], refused: str) -> list[dict[str, Any]]:
    """The names, with how often each is used; `known` where it has a row, or a rule that converts it: then nothing that was refused names it."""
    named = set(re.findall(r"[\w.]+", refused))
    counts: Counter[str] = Counter()
    known: dict[str, bool] = {}
    for s in surveys.values():
        for name, (n, is_known) in s["operators"].items():
            counts[name] += n
            known[name] = is_known or name not in named
    return [{"name": name, "times": n, "known": known[name]} for name, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))]


def _blocker(code: str, times: int, files: dict[str, Any]) -> dict[str, Any]:
    """A kind of diagnostic: what it is about, most frequent first, and places."""
    found = [(p, d) for p, f in files.items() for d in f["diagnostics"] if d[2] == code]
    messages = [re.sub(r"^cell \d+: ", "", d[3]) for _, d in found]
    about = Counter(m.partition(": ")[2] or m for m in messages)
    return {
        "code": code,
        "title": CODES[code].title,
        "times": times,
        "minutes": effort({code: times}),
        "way_out": CODES[code].way_out,
        "about": [{"message": m, "times": n} for m, n in sorted(about.items(), key=lambda c: (-c[1], c[0]))[:PLACES]],
        "places": _places((p, d[0], d[3]) for p, d in found),
    }


def _places(found: Iterable[tuple[str, int, str]]) -> list[dict[str, Any]]:
    return [{"path": p, "line": line, "text": text} for p, line, text in sorted(found)[:PLACES]]


def _hostile(files: dict[str, Any], surveys: dict[str, Any]) -> list[dict[str, Any]]:
    by_kind: dict[str, set[tuple[str, int, str]]] = {k: set() for k in HOSTILE}
    for path, s in surveys.items():
        for line, kind, text in s["hostile"]:
            by_kind[kind].add((path, line, text))
    for path, f in files.items():
        for line, _, code, message in f["diagnostics"]:
            if code in BY_CODE and not any(p == path and at == line for p, at, _ in by_kind[BY_CODE[code]]):
                by_kind[BY_CODE[code]].add((path, line, message.partition(":")[0]))
    return [
        {"kind": k, "times": len(v), "why": HOSTILE[k][0], "way_out": HOSTILE[k][1], "places": _places(v)} for k, v in by_kind.items() if v
    ]


def _libraries(plan: Plan, files: dict[str, Any]) -> list[dict[str, Any]]:
    """Imported packages that are not of the project and build on PyTorch, as far as the environment or the tables can tell."""
    own = {m.partition(".")[0] for m in plan.layout.modules.values()}
    counts: Counter[str] = Counter()
    for p in files:
        if p in plan.scans:
            counts.update({i.partition(".")[0] for i in plan.scans[p].imports} - own)
    builds = {
        n for n in counts if (n in FRAMEWORKS and n != "torch") or (n.startswith("torch") and n != "torch") or folder_of(n) is not None
    }
    return [{"name": n, "files": counts[n]} for n in sorted(builds, key=lambda n: (-counts[n], n))]
