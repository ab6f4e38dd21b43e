"""What other programs read and set: lint, formats, configuration, completion, hooks, kept code; and the assessment of a project."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from port_common import write_project

import migrate
from migrate.assess.assessment import assess
from migrate.cli.main import run
from migrate.port import Options
from migrate.port.report import html
from migrate.port.work import Here

LEFT = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return torch.frobnicate(x)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a file of which something is left."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "left.py").write_text(LEFT)
    return tmp_path


def test_lint(folder, capsys, monkeypatch):
    (folder / "good.py").write_text("import torch\n\nx = torch.ones(3)\n")
    assert run(["lint", "good.py"]) == 0
    assert run(["lint", "good.py", "left.py"]) == 1
    assert "left.py:7:16: MIG301" in capsys.readouterr().out
    assert sorted(p.name for p in folder.iterdir()) == ["good.py", "left.py"], "nothing is written"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LEFT.encode())))
    assert run(["lint", "-", "--stdin-filename", "a b/<c>.py", "--format", "sarif"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["runs"]
    places = [r["locations"][0]["physicalLocation"] for r in one["results"] if r["level"] == "error"]
    assert places[0]["artifactLocation"]["uri"] == "a%20b/%3Cc%3E.py" and places[0]["region"] == {"startLine": 7, "startColumn": 16}
    assert run(["lint", ".", "--format", "json"]) == 1
    assert {f["path"] for f in json.loads(capsys.readouterr().out)["files"]} == {"good.py", "left.py"}


def test_columns_count_characters():
    (found,) = [d for d in migrate.convert_source('import torch\ny = ["é🎉", torch.frobnicate]\n').diagnostics if d.severity == "error"]
    assert (found.line, found.column) == (2, 12)


def test_port_reports_for_programs(folder, capsys):
    write_project(folder / "p")
    assert run(["port", "p", "-o", "out", "--jobs", "1", "--format", "sarif"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["runs"]
    uris = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in one["results"]}
    assert "two/net.py" in uris and "%3Cscript%3Ealert%281%29.py" in uris
    assert run(["port", "p", "-o", "out", "--jobs", "1", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == json.loads((folder / "out/migration-report.json").read_text())


def test_configuration(folder, capsys):
    (folder / "pyproject.toml").write_text('[tool.migrate]\ntarget = "keras"\noutput = "there"\n')
    (folder / "model.py").write_text("from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n")
    assert run(["convert", "model.py"]) == 0
    assert "def call(" in (folder / "there/model.py").read_text()
    assert run(["convert", "model.py", "--target", "flax", "-o", "flax"]) == 0
    assert "def __call__(" in (folder / "flax/model.py").read_text(), "the command line goes before"
    for text, said in [('colour = "red"\n', "colour"), ("jobs = 'two'\n", "jobs is a number"), ("exclude = 3\n", "list of strings"), ("x = (\n", "pyproject.toml")]:
        (folder / "pyproject.toml").write_text(f"[tool.migrate]\n{text}")
        assert run(["convert", "model.py", "-o", "other"]) == 2
        assert said in capsys.readouterr().err
    write_project(folder / "p")
    (folder / "pyproject.toml").unlink()
    with (folder / "p/pyproject.toml").open("a") as f:
        f.write('[tool.migrate]\nexclude = ["one/", "three/"]\n')
    assert run(["port", "p", "-o", "out", "--dry-run"]) == 0
    assert "4 copied (excluded)" in capsys.readouterr().out


def test_completion_and_hooks():
    environment = {**os.environ, "_MIGRATE_COMPLETE": "bash_complete", "COMP_WORDS": "migrate p", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", "from migrate.cli.main import main; main()"], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["plain,port"]
    text = (Path(migrate.__file__).parent.parent / ".pre-commit-hooks.yaml").read_text()
    commands = [line.partition(":")[2].split() for line in text.splitlines() if line.strip().startswith("entry:")]
    assert commands and all(c[:2] == ["migrate", "lint"] for c in commands)


KEPT = """import torch
from torch import nn


class Old(nn.Module):  # migrate: keep
    def forward(self, x):
        return torch.frobnicate(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.old = Old()
        self.new = nn.Linear(3, 3)

    def forward(self, x):
        if x.sum() > 0:  # migrate: keep
            x = torch.frobnicate(x)
        return torch.relu(self.new(x))
"""


@pytest.mark.parametrize("target", ["flax", "keras"])
def test_kept_code_stays_to_the_byte(target):
    found = migrate.convert_source(KEPT, target=target)
    old = KEPT[KEPT.index("class Old") : KEPT.index("\n\n\nclass Net")]
    inner = KEPT[KEPT.index("        if x.sum") : KEPT.index("        return torch.relu")]
    assert old in found.code and inner in found.code and "self.old = Old()" in found.code
    assert "Linear(3, 3" in found.code and "torch.relu" not in found.code
    assert [d.code for d in found.diagnostics if d.severity == "error"] == []
    assert [d.line for d in found.diagnostics if d.code == "MIG110"] == [5, 17]


def test_assessment(tmp_path, capsys, monkeypatch):
    project = write_project(tmp_path / "p")
    (project / "hostile.py").write_text(
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\nimport torchmetrics\n\ne = nn.Embedding(3, 4, sparse=True)\nx = torch.nonzero(torch.ones(3))\n"
        "y = x.sum().item() if torch.cuda.is_available() else 0\nz = torch.zeros(3, dtype=torch.float64)\nloader = DataLoader([], batch_size=2)\nfine = DataLoader([], drop_last=True)\n"
    )
    found = assess(project, Options(), Here(), lambda *a: None)
    assert found["totals"]["modules"] == 4 and 0.5 < found["share"]["constructs"] < 1
    kinds = {h["kind"]: [p["line"] for p in h["places"] if p["path"] == "hostile.py"] for h in found["hostile"]}
    assert kinds == {"sparse embedding": [6], "data-dependent shape": [7], "host round trip": [8], "float64": [9], "dynamic batch": [10]}
    operators = {o["name"]: (o["times"], o["known"]) for o in found["operators"]}
    assert operators["torch.cuda.is_available"] == (1, True), "what a rule converts needs no row"
    assert operators["torch.frobnicate"] == (2, False) and operators["torch.nn.Linear"] == (2, True)
    assert {"message": "torch.frobnicate has no equivalent yet", "times": 3} in found["blockers"][0]["about"], "those in cells of notebooks too"
    assert found["blockers"][0]["places"] and {"name": "torchmetrics", "files": 1} in found["libraries"]
    page = html(found, "assess.html")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert run(["assess", "p", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "converts today" in out and "torch.frobnicate" in out and "\033" not in out
    assert sorted(tmp_path.rglob("*")) == before, "nothing is written"
    assert run(["assess", "p", "--jobs", "1", "--html", "a.html", "--out", "a.json"]) == 0
    assert json.loads((tmp_path / "a.json").read_text()) == found
