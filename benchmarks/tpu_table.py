"""Writes the table of docs/tpu.md: what the TPU compiler makes of models of the size of ResNet-50 and GPT-2 small. Needs libtpu.

usage: tpu_table.py
"""

import re
import tempfile
from pathlib import Path

import migrate
from migrate.check.child import Limits
from migrate.report.tpu_table import cells
from migrate.tpu.run import EVERY, compile_for

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "tpu.md"
CASES = {
    "ResNet-50, batch of 8": ("resnet50", "ResNet()", "f32[8,3,224,224]"),
    "GPT-2 small, 8 x 1024 tokens": ("gpt2", "GPT()", "i64[8,1024](0,50257)"),
}
HEAD = ("model", "topology", "", "GFLOP", "GB moved", "time", "least", "GiB", "of", "padding")


def rows(title, name, model, inputs):
    """A line for each generation."""
    with tempfile.TemporaryDirectory() as folder:
        migrate.convert_path(HERE / "models" / f"{name}.py", Path(folder))
        report = compile_for(Path(folder) / f"{name}.py", model=model, inputs=[inputs], topologies=EVERY, limits=Limits(7200))
    for row in report.rows:
        found = [re.sub(r"\[/?\w*\]", "", c) for c in cells(row)]
        yield [title, found[0], *found[2:10]]


def main():
    """Puts the table between its marks, after each model."""
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for title, case in CASES.items():
        lines += [f"| {' | '.join(row)} |" for row in rows(title, *case)]
        before, _, rest = PAGE.read_text().partition("<!-- table -->\n")
        PAGE.write_text(before + "<!-- table -->\n" + "\n".join(lines) + "\n<!-- end -->" + rest.partition("<!-- end -->")[2])


if __name__ == "__main__":
    main()
