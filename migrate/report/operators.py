"""The pages of operators and layers (`docs/operators`), from the tables and from what was verified.

python -m migrate.report.operators docs/operators
"""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from migrate.known import Known, corners, difference
from migrate.report.rows import coverage, status
from migrate.tables import FOLDER, TARGETS, Row, Table, standard

GROUPS = {"torch": "Functions and methods", "functional": "torch.nn.functional", "nn": "Layers", "libraries": "Other libraries"}
HEAD = """<!-- Written by `make docs`; edit the tables instead. -->
# {title}

One line each. *whole*: every form of the call; *partly*: some forms are refused or differ, as the notes say; *refused*: never converted, with the reason. "Verified"
counts the samples of PyTorch's own test databases that were converted as source text and agreed with PyTorch, of those tried (the others were refused by name, or
raise, as the notes say); "-" is an operator that the databases do not have: its cases in the tables verify it. *Raises*: inputs that PyTorch takes and the target
does not; never a wrong value. *Open*: values that depend on PyTorch's own order of work, or that have another convention at one edge; nothing is asked of them.

| PyTorch | Flax | Keras | verified (Flax, Keras) | known differences and refusals |
| --- | --- | --- | --- | --- |
"""


@cache
def verified() -> Mapping[str, Any]:
    """What was verified, by run ("operators flax")."""
    path = FOLDER / "verified.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def counts(row: Row, target: str) -> tuple[int, int] | None:
    """How many samples of a row's operator agreed, of how many; None where the databases have none."""
    names = {n.removeprefix("torch.") for n in (row.torch, *row.also)} | set(row.methods)
    found = verified().get(f"{'layers' if row.kind == 'layer' else 'operators'} {target}", {}).get("counts", {})
    held = [c for name, c in found.items() if name.partition("/")[0].removeprefix("torch.") in names]
    return (sum(c[0] for c in held), sum(sum(c) for c in held)) if held else None


def notes(row: Row) -> str:
    """What there is to know, each thing once."""
    found: dict[str, list[str]] = {}
    for target in TARGETS:
        variants = row.for_target(target)
        if not variants and not (row.kind == "layer" and row.support):
            found.setdefault("has no equivalent yet", []).append(target)
        for v in variants:
            when = " and ".join(
                f"{c.parameter} {(c.predicate and ('is not ' if c.negated else 'is ') + c.predicate) or 'is ' + ' or '.join(c.literals)}"
                for c in v.when
            )
            if v.reason:
                found.setdefault(f"refused{f' when {when}' if when else ''}: {v.reason}", []).append(target)
            if v.deviates:
                found.setdefault(f"differs: {v.deviates}", []).append(target)
            if v.reject:
                found.setdefault(f"refused when given: {', '.join(f'`{r}`' for r in sorted(v.reject))}", []).append(target)
    told = [text if len(set(where)) == len(TARGETS) else f"{'/'.join(dict.fromkeys(where))}: {text}" for text, where in found.items()]
    raises = [f"raises: {difference(name, row.torch).what} ([why](#{name}))" for name in row.known]
    open_values = [f"open: {corner.what}" for corner in corners().get(row.torch, ())]
    return "; ".join([*([row.note.rstrip(".")] if row.note else []), *told, *raises, *open_values]).replace("|", "\\|").replace("\n", " ")


def line(row: Row) -> str:
    """The line of a row."""
    others = [*row.also, *(f".{m}" for m in row.methods)]
    name = f"`{row.torch}`" + (f" ({', '.join(f'`{o}`' for o in others)})" if others else "")
    seen = [counts(row, t) for t in TARGETS]
    told = ", ".join("-" if c is None else f"{c[0]}/{c[1]}" for c in seen) if any(seen) else "-"
    return f"| {name} | {' | '.join(status(row, t) for t in TARGETS)} | {told} | {notes(row)} |"


def pages(table: Table) -> dict[str, str]:
    """The pages by file name."""
    made = {"index.md": _index(table)}
    for folder, title in GROUPS.items():
        rows = sorted((r for r in table.rows if r.file.startswith(f"{folder}/")), key=lambda r: (r.torch.lower(), r.torch))
        made[f"{folder}.md"] = HEAD.format(title=title) + "".join(line(r) + "\n" for r in rows) + _raises(rows)
    return made


def _raises(rows: Sequence[Row]) -> str:
    """What the rows of a page name of `known.toml`."""
    found = {name: difference(name, row.torch) for row in rows for name in row.known}
    return "".join(["\n## What raises\n" if found else "", *map(_known, found.values())])


def _known(k: Known) -> str:
    return f"\n### {k.name}\n\n{k.what[0].upper()}{k.what[1:]}: {k.happens}. Instead: {k.instead}.\n"


def _index(table: Table) -> str:
    lines = [
        "<!-- Written by `make docs`; edit the tables instead. -->",
        "# Operators and layers",
        "",
        "`migrate ops NAME` tells the same of one operator, `migrate ops --coverage` prints the counts.",
        "",
    ]
    lines += [f"- [{title}]({folder}.md)" for folder, title in GROUPS.items()]
    lines += [
        "",
        "```text",
        coverage(table, tuple(TARGETS)),
        "```",
        "",
        "## Verified",
        "",
        "By PyTorch's own test databases, every sample converted as source text:",
        "",
    ]
    for run, found in sorted(verified().items()):
        agreed, tried = sum(c[0] for c in found["counts"].values()), sum(sum(c) for c in found["counts"].values())
        releases = ", ".join(f"{name} {release}" for name, release in found["releases"].items())
        lines.append(f"- {run}: {agreed} of {tried} samples of {len(found['counts'])} agree ({releases})")
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Writes the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(standard()).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
