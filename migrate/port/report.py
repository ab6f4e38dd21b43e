"""The report of a run: what became of each file, what was left and why, and where the work is that remains. JSON, and one page of HTML."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from migrate.diagnostics import CODES
from migrate.port.store import canonical

JSON, HTML = "migration-report.json", "migration-report.html"
# Minutes that a person needs for one diagnostic, roughly. Only the order that they give matters.
MINUTES = {
    "MIG301": 20,
    "MIG302": 10,
    "MIG303": 15,
    "MIG304": 5,
    "MIG305": 10,
    "MIG306": 20,
    "MIG307": 30,
    "MIG308": 20,
    "MIG501": 10,
    "MIG502": 10,
    "MIG503": 15,
    "MIG901": 30,
}
LOOK = 2  # minutes for a warning
STATUS = ("converted", "partly", "left", "unchanged", "dependencies", "copied")


def effort(codes: Mapping[str, int]) -> int:
    """Minutes of work that some diagnostics mean."""
    return sum(n * MINUTES.get(c, LOOK if CODES[c].severity == "warning" else 0) for c, n in codes.items())


def report(
    files: Mapping[str, dict[str, Any]], project: str, target: str, supports: list[str], checks: list[dict[str, Any]]
) -> dict[str, Any]:
    """All of the report, in an order that is always the same."""
    entries = []
    every: Counter[str] = Counter()
    for path, f in sorted(files.items()):
        codes = Counter(d[2] for d in f["diagnostics"])
        every.update(codes)
        told = [{"line": d[0], "column": d[1], "code": d[2], "severity": CODES[d[2]].severity, "message": d[3]} for d in f["diagnostics"]]
        entries.append({**f, "path": path, "diagnostics": told, "minutes": effort(codes), "codes": dict(sorted(codes.items()))})
    python = [e for e in entries if e["status"] in STATUS[:4]]
    totals = {
        "files": len(entries),
        "lines": sum(e.get("lines", 0) for e in python),
        "status": {s: sum(e["status"] == s for e in entries) for s in STATUS},
        "codes": {
            c: {"count": n, "severity": CODES[c].severity, "title": CODES[c].title, "way_out": CODES[c].way_out}
            for c, n in sorted(every.items())
        },
        "minutes": sum(e["minutes"] for e in entries),
    }
    work = sorted((e for e in entries if e["minutes"]), key=lambda e: (-e["minutes"], e["path"]))
    ranked = [{"path": e["path"], "minutes": e["minutes"]} for e in work]
    return {
        "version": 1,
        "project": project,
        "target": target,
        "support": supports,
        "totals": totals,
        "ranked": ranked,
        "checks": checks,
        "files": entries,
    }


def html(data: Mapping[str, Any], template: str = "report.html") -> str:
    """A page that needs nothing else: data, style and script are in it, and all text is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(data=data, packed=script_json(data)) + "\n"


def script_json(data: Any) -> Markup:
    """JSON that can stand in a script element: nothing in it can end the element."""
    text = canonical(data)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
