"""Writes migrate/mappings/verified.json: on how many samples of PyTorch's own databases each operator and layer agreed, and with which
releases.

make record                                                     the project's own tests, whole
python tests/record_verified.py operators:keras=FILE ...        results that another program wrote: lines of JSON with `label` and `verdict`
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

PATH = Path(__file__).parent.parent / "migrate" / "mappings" / "verified.json"
RESULTS = ("equal", "refused", "fails")


def write(path: Path, releases: Mapping[str, str], found: Mapping[tuple[str, str, str, str], int]) -> None:
    """(kind, target, name, result) -> count. What is not in `found` keeps the count of an earlier run."""
    held = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for kind, target in {(k, t) for k, t, _, _ in found}:
        names = sorted({n for k, t, n, _ in found if (k, t) == (kind, target)})
        counts = {n: [found.get((kind, target, n, r), 0) for r in RESULTS] for n in names}
        held[f"{kind} {target}"] = {"releases": dict(releases), "counts": counts}
    lines = [
        f'{json.dumps(run)}: {{\n"releases": {json.dumps(held[run]["releases"])},\n"counts": {{\n'
        + ",\n".join(f"{json.dumps(n)}: {json.dumps(c)}" for n, c in held[run]["counts"].items())
        + "\n}}"
        for run in sorted(held)
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Reads the files that are named."""
    found: Counter[tuple[str, str, str, str]] = Counter()
    for argument in sys.argv[1:]:
        run, _, name = argument.partition("=")
        kind, _, target = run.partition(":")
        for line in Path(name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["verdict"] != "shapes":
                found[
                    kind, target, row["label"], {"equal": "equal", "refused": "refused", "warned": "refused"}.get(row["verdict"], "fails")
                ] += 1
    write(PATH, {r: version(r) for r in ("torch", "jax", "flax", "keras")}, found)


if __name__ == "__main__":
    main()
