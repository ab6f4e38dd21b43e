"""Makes docs/coverage.md from runs over real models: which packages and models convert, and what became of each.

usage: coverage_page.py flax=RUN.jsonl [keras=RUN.jsonl ...] [--models MANIFEST.toml] -o docs/coverage.md

A run is one JSON object a line: label, package, tier, verdict, why, and where known files, convert_s, problems, jit.
The manifest, where given, adds the lines of source that each model spans. Several runs of one target are joined; later lines win.
"""
import argparse
import json
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORDS = {
    "equal": "values equal", "shapes": "only shapes compared", "warned": "other values, and a diagnostic says so", "refused": "refused", "crashed": "does not run",
    "converter": "not converted", "differs": "WRONG, in silence", "no-oracle": "does not run in PyTorch here",
}


@dataclass
class Model:
    """What is known of one model, by target."""

    label: str
    package: str
    lines: int = 0
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)


def read(pairs: list[str], manifest: str | None) -> dict[str, Model]:
    """The models by label, in the order of their packages."""
    lines = {}
    if manifest:
        lines = {e["id"]: e.get("sloc_files_used", 0) for e in tomllib.loads(Path(manifest).read_text())["entry"]}
    models: dict[str, Model] = {}
    for pair in pairs:
        target, _, path = pair.partition("=")
        for row in map(json.loads, Path(path).read_text().splitlines()):
            m = models.setdefault(row["label"], Model(row["label"], row.get("package", ""), lines.get(row["label"], 0)))
            m.runs[target] = row
    return dict(sorted(models.items(), key=lambda kv: (kv[1].package, kv[0])))


def result(row: dict[str, Any] | None) -> str:
    """The cell of a model and a target."""
    if row is None:
        return ""
    said = WORDS[row["verdict"]]
    if row["verdict"] == "equal":
        said += ", with warnings" if row.get("problems") else ""
        said += ", not under jit" if row.get("jit") else ""
    return said


def why(row: dict[str, Any] | None) -> str:
    """What a failure said, short, safe in a table."""
    if row is None or row["verdict"] in ("equal", "shapes"):
        return ""
    return " ".join(str(row.get("why", "")).split())[:110].replace("|", "\\|").replace("<", "&lt;")


def page(models: dict[str, Model], versions: str) -> str:
    """The page."""
    targets = sorted({t for m in models.values() for t in m.runs})
    out = ["# Coverage", "", "<!-- made by tools/coverage_page.py; do not edit -->", "",
           "Models of published packages, built by their own code, converted with every module they reach, given the original's weights and compared with it.",
           "*Values equal* means within a small factor of PyTorch's own rounding error. " + versions, ""]
    out += ["| target | models | values equal | of them with warnings | of them not under jit | only shapes | refused or failing | silently wrong |",
        "|---|---|---|---|---|---|---|---|"]
    for t in targets:
        rows = [m.runs[t] for m in models.values() if t in m.runs and m.runs[t]["verdict"] != "no-oracle"]
        n = Counter(r["verdict"] for r in rows)
        equal = [r for r in rows if r["verdict"] == "equal"]
        loud, eager = sum(bool(r.get("problems")) for r in equal), sum(bool(r.get("jit")) for r in equal)
        failed = len(rows) - n["equal"] - n["shapes"] - n["differs"]
        out.append(f"| {t} | {len(rows)} | {n['equal']} | {loud} | {eager} | {n['shapes']} | {failed} | {n['differs']} |")
    packages: dict[str, list[Model]] = defaultdict(list)
    for m in models.values():
        packages[m.package].append(m)
    for package, members in sorted(packages.items()):
        out += ["", f"## {package}", "", "| model | lines | " + " | ".join(targets) + " | seconds | why not |", "|---|---|" + "---|" * (len(targets) + 2)]
        for m in members:
            seconds = next((r["convert_s"] for r in m.runs.values() if "convert_s" in r), "")
            reason = next((w for t in targets if (w := why(m.runs.get(t)))), "")
            out.append(f"| {m.label} | {m.lines or ''} | " + " | ".join(result(m.runs.get(t)) for t in targets) + f" | {seconds} | {reason} |")
    return "\n".join(out) + "\n"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("runs", nargs="+", metavar="TARGET=RUN.jsonl")
    p.add_argument("--models", help="a manifest that knows the lines of each model")
    p.add_argument("--versions", default="", help="a sentence on the releases that were used")
    p.add_argument("-o", "--output", required=True)
    a = p.parse_args()
    Path(a.output).write_text(page(read(a.runs, a.models), a.versions))


if __name__ == "__main__":
    main()
