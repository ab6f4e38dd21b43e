"""Writes the tables of docs/tpu.md: what the TPU compiler makes of models of the size of ResNet-50 and GPT-2 small. Needs libtpu.

usage: tpu_table.py [generations] [meshes]
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import migrate
from migrate.check.child import Limits
from migrate.report.tpu_table import cells
from migrate.tpu.meshes import read_mesh
from migrate.tpu.run import EVERY, compile_for

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "tpu.md"
GENERATIONS = (
    ("ResNet-50, batch of 8", "resnet50", "ResNet()", "f32[8,3,224,224]", EVERY, "", False),
    ("GPT-2 small, 8 x 1024 tokens", "gpt2", "GPT()", "i64[8,1024](0,50257)", EVERY, "", False),
)
MESHES = (
    ("ResNet-50, batch of 1024, trained", "resnet50", "ResNet()", "f32[1024,3,224,224]", ("v5e:2x2",), "", True),
    ("ResNet-50, batch of 1024, trained", "resnet50", "ResNet()", "f32[1024,3,224,224]", ("v5e:4x4",), "data=16", True),
    ("ResNet-50, batch of 1024, trained", "resnet50", "ResNet()", "f32[1024,3,224,224]", ("v5e:16x16",), "data=256", True),
    ("GPT-2 small, 64 x 1024 tokens, trained", "gpt2", "GPT()", "i64[64,1024](0,50257)", ("v5e:2x2",), "", True),
    ("GPT-2 small, 64 x 1024 tokens, trained", "gpt2", "GPT()", "i64[64,1024](0,50257)", ("v5e:4x4",), "data=16", True),
    ("GPT-2 small, 64 x 1024 tokens, trained", "gpt2", "GPT()", "i64[64,1024](0,50257)", ("v5e:16x16",), "data=16,model=16", True),
    ("GPT-2 small, 64 x 1024 tokens, trained", "gpt2", "GPT()", "i64[64,1024](0,50257)", ("tpu7x:2x2x1",), "fsdp=8", True),
)
PARTS = {"generations": GENERATIONS, "meshes": MESHES}
# The columns of the report that each table has.
COLUMNS = {
    "generations": {0: "topology", 2: "", 3: "GFLOP", 4: "GB moved", 5: "time", 6: "least", 7: "GiB", 8: "of", 9: "padding"},
    "meshes": {0: "topology", 1: "devices", 2: "", 3: "GFLOP", 4: "GB moved", 6: "least", 7: "GiB", 8: "of", 10: "collectives"},
}


def rows(part: str, case: tuple[Any, ...]) -> Iterator[list[str]]:
    """A line for each topology."""
    title, name, model, given, topologies, mesh, train = case
    axes = read_mesh(mesh) if mesh else None
    with tempfile.TemporaryDirectory() as folder:
        migrate.convert_path(HERE / "models" / f"{name}.py", Path(folder))
        file = Path(folder) / f"{name}.py"
        report = compile_for(file, model=model, inputs=[given], topologies=topologies, mesh=axes, train=train, limits=Limits(7200))
    for row in report.rows:
        found = [re.sub(r"\[/?\w*\]", "", c) for c in cells(row)]
        kept = [found[i] for i in COLUMNS[part]]
        yield [title, *kept] if part == "generations" else [title, mesh or "one device", *kept]
        print(" | ".join([title, mesh, *found, row["message"]]), flush=True)


def write(part: str, lines: list[str]) -> None:
    """Puts a table between its marks."""
    before, _, rest = PAGE.read_text().partition(f"<!-- {part} -->\n")
    after = rest.partition("<!-- end -->")[2]
    PAGE.write_text(before + f"<!-- {part} -->\n" + "\n".join(lines) + "\n<!-- end -->" + after)


def main() -> None:
    """Makes the tables, each after each of its models."""
    for part in [p for p in PARTS if p in sys.argv[1:]] or list(PARTS):
        head = ["model", *(["mesh"] if part == "meshes" else []), *COLUMNS[part].values()]
        lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        for case in PARTS[part]:
            lines += [f"| {' | '.join(row)} |" for row in rows(part, case)]
            write(part, lines)


if __name__ == "__main__":
    main()
