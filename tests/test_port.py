"""Whole projects: what is written and what stays, that a run that was killed goes on to the same output, and that one bad file stops nothing."""

import ast
import json
import subprocess
import sys

import pytest
from port_common import BLOCKS, FILES, NET, output, write_project

import migrate.port.store as store_module
from migrate.cli.main import run
from migrate.fitting.extract import _import_order
from migrate.infer.facts import Facts
from migrate.port import Options, port
from migrate.port.deliver import Delivery
from migrate.port.discover import Choice, discover
from migrate.port.layout import layout
from migrate.port.notebooks import read as read_notebook
from migrate.port.parts import divide
from migrate.port.pool import Processes
from migrate.port.report import html, report
from migrate.port.requirements import rewrite
from migrate.port.scan import Scan, pack, unpack
from migrate.port.store import Store, keep, load
from migrate.port.work import Here
from migrate.project import convert_path


def silent(what, done, total):
    """Nobody looks."""


@pytest.fixture
def project(tmp_path):
    """The small project."""
    return write_project(tmp_path / "p")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """(output folder, what the run returned) of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("port")
    return folder / "out", port(write_project(folder / "p"), folder / "out", Options(), Here(), silent)


def statuses(ported):
    """path -> status."""
    return {f["path"]: f["status"] for f in ported.report["files"]}


def test_what_becomes_of_each_file(undisturbed):
    out, done = undisturbed
    found = statuses(done)
    assert found["one/net.py"] == found["one/blocks.py"] == found["tools/train.py"] == "converted"
    assert found["two/net.py"] == "partly" and found["broken.py"] == "left" and found["requirements.txt"] == "dependencies"
    assert found["tests/test_net.py"] == "copied"
    there = output(out)
    assert {"README.md", "keep.log", "one/data.json", ".gitignore", "tests/test_net.py"} <= set(there)
    assert not {"noise.log", "secret/key.py"} & set(there)
    assert there["broken.py"].decode() == FILES["broken.py"]
    for path, data in there.items():
        if path.endswith(".py") and path != "broken.py":
            ast.parse(data)
    assert b"from one.blocks import Block, make_norm" in there["one/net.py"] and b"rngs=rngs" in there["one/net.py"]
    assert b"def __init__(self, n=3, *, rngs: nnx.Rngs)" in there["one/net.py"]


def test_packages_that_import_each_other_share_one_support_module(undisturbed):
    out, done = undisturbed
    (support,) = [p for p in output(out) if "torch_support" in p and "tools" not in p]
    assert done.report["support"] == [support]
    text = (out / support).read_text()
    assert "BatchNorm1d" in text
    names = {a.name for p in ("one/blocks.py", "two/blocks.py", "one/net.py") for n in ast.parse((out / p).read_text()).body if isinstance(n, ast.ImportFrom) and n.module == "torch_support" for a in n.names}
    assert names and names <= {n.name for n in ast.parse(text).body if hasattr(n, "name")}


def test_the_output_imports(undisturbed):
    out, _ = undisturbed
    code = "import sys; sys.path[:0] = ['.', 'tools']; import one, three, tools.helper; from flax import nnx; import jax.numpy as jnp; print(three.Big(3, rngs=nnx.Rngs(0))(jnp.ones((2, 3))).shape, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=out, capture_output=True, text=True)
    assert done.stdout.split("\n")[0] == "(2, 3) False", done.stderr


def test_notebooks_keep_magics_and_lose_outputs(undisturbed):
    out, done = undisturbed
    book = json.loads((out / "demo.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(c["source"]) for c in book["cells"]]
    assert "secret" not in json.dumps(book) and all(c.get("execution_count") is None for c in book["cells"])
    assert cells[0] == "# Café\n" and cells[1].startswith("%matplotlib inline\n") and cells[1].endswith("!pip install torch")
    assert "files = !ls" in cells[2] and "y = jnp.ones((3,))  # a comment\ny" in cells[2]
    assert cells[3] == "%%bash\necho torch" and cells[4] == "this is no python" and cells[5].startswith("%%time\n")
    (entry,) = [f for f in done.report["files"] if f["path"] == "demo.ipynb"]
    told = {d["message"].partition(":")[0]: d["code"] for d in entry["diagnostics"]}
    assert told["cell 5"] == "MIG501" and told["cell 6"] == "MIG301"


def test_dependencies(undisturbed):
    out, _ = undisturbed
    lines = (out / "requirements.txt").read_text().splitlines()
    assert lines[0] == "# what it needs" and "requests==2.0  # http" in lines and "torchvision" not in lines
    assert lines[1:3] == ["jax>=0.7", "flax>=0.12"] and "torch>=2.0" in lines, "two/net.py still imports torch"
    text = (out / "pyproject.toml").read_text()
    assert '"jax>=0.7", "flax>=0.12"' in text and '"requests"' in text


@pytest.mark.parametrize(
    ("path", "text", "imported", "new"),
    [
        ("requirements.txt", "torch\n", {"jax", "flax"}, "jax>=0.7\nflax>=0.12\n"),
        ("requirements.txt", "jax\ntorch==2.1 ; python_version > '3'\n", {"jax"}, "jax\nflax>=0.12\n"),
        ("requirements.txt", "-r base.txt\ntorchmetrics\n", {"jax"}, "-r base.txt\ntorchmetrics\n"),
        ("requirements-dev.txt", "pytest\ntorchvision>=0.1\n", {"jax"}, "pytest\n"),
        ("environment.yml", "dependencies:\n  - python=3.11\n  - pytorch\n", {"optax"}, "dependencies:\n  - python=3.11\n  - jax>=0.7\n  - flax>=0.12\n  - optax>=0.2.5\n"),
        ("pyproject.toml", '[project]\ndependencies = [\n    "numpy",\n    "torch>=2",\n    "torchvision",\n]\n', {"jax"}, '[project]\ndependencies = [\n    "numpy",\n    "jax>=0.7",\n    "flax>=0.12",\n]\n'),
        ("pyproject.toml", '[project]\ndependencies = ["torch"]\n[tool.x]\ny = ["torch"]\n', {"jax"}, '[project]\ndependencies = ["jax>=0.7", "flax>=0.12"]\n[tool.x]\ny = ["torch"]\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.11"\ntorch = "^2.0"\n', {"torch"}, '[tool.poetry.dependencies]\npython = "^3.11"\njax = ">=0.7"\nflax = ">=0.12"\ntorch = "^2.0"\n'),
        ("setup.cfg", "[options]\ninstall_requires =\n    torch\n    requests\n[options.x]\ntorch\n", {"jax"}, "[options]\ninstall_requires =\n    jax>=0.7\n    flax>=0.12\n    requests\n[options.x]\ntorch\n"),
    ],
)
def test_rewriting_of_dependencies(path, text, imported, new):
    assert rewrite(path, text, imported, "flax")[0] == new


def test_a_second_run_converts_nothing_and_a_change_only_its_part(project, tmp_path):
    out = tmp_path / "out"
    first = port(project, out, Options(), Here(), silent)
    before = output(out)
    again = port(project, out, Options(), Here(), silent)
    assert first.plan.reused == 0 and again.plan.reused == len(again.plan.parts) and not again.outcome.changed
    assert output(out) == before
    (project / "tools/helper.py").write_text("import torch\n\n\ndef seed(n):\n    return torch.zeros(n)\n")
    third = port(project, out, Options(), Here(), silent)
    assert third.plan.reused == len(third.plan.parts) - 1 and third.outcome.changed == ["tools/helper.py"]
    (project / "tools/helper.py").unlink()
    (project / "tools/train.py").write_text("x = 3\n")
    assert port(project, out, Options(), Here(), silent).outcome.removed == ["tools/helper.py"]
    assert not (out / "tools/helper.py").exists()
    port(project, tmp_path / "new", Options(), Here(), silent)
    assert output(tmp_path / "new") == output(out), "many runs give what one gives"


def test_edited_output_is_kept(project, tmp_path):
    out = tmp_path / "out"
    port(project, out, Options(), Here(), silent)
    (out / "one/net.py").write_text("mine = 1\n")
    (project / "one/net.py").write_text(FILES["one/net.py"] + "\n\nx = torch.ones(3)\n")
    assert port(project, out, Options(), Here(), silent).outcome.edited == ["one/net.py"]
    assert (out / "one/net.py").read_text() == "mine = 1\n"
    port(project, out, Options(), Here(), silent, force=True)
    assert "jnp.ones((3,))" in (out / "one/net.py").read_text()


def test_only_and_exclude(project, tmp_path):
    out = tmp_path / "out"
    done = port(project, out, Options(choice=Choice(only=("one/",))), Here(), silent)
    assert statuses(done)["two/net.py"] == "copied" and (out / "two/net.py").read_text() == FILES["two/net.py"]
    port(project, out, Options(choice=Choice(only=("two/",))), Here(), silent)
    assert "nnx" in (out / "one/net.py").read_text() and "nnx" in (out / "two/net.py").read_text(), "what an earlier run converted stays"
    done = port(project, tmp_path / "other", Options(choice=Choice(exclude=("tools",), tests=True)), Here(), silent)
    assert statuses(done)["tools/train.py"] == "copied" and statuses(done)["tests/test_net.py"] == "converted"


def test_processes_give_the_same_and_a_dead_one_stops_nothing(project, undisturbed, tmp_path, monkeypatch):
    engine = Processes(2)
    port(project, tmp_path / "out", Options(), engine, silent)
    engine.close()
    assert output(tmp_path / "out") == output(undisturbed[0])
    monkeypatch.setenv("MIGRATE_TEST_DIE", "two/blocks.py")
    (project / "two/blocks.py").write_text(FILES["two/blocks.py"] + "\n")
    engine = Processes(2)
    done = port(project, tmp_path / "out", Options(), engine, silent)
    engine.close()
    found = statuses(done)
    assert found["two/blocks.py"] == "left" and found["one/net.py"] == "converted" and found["two/net.py"] == "partly" and engine.replaced >= 2
    monkeypatch.delenv("MIGRATE_TEST_DIE")
    assert statuses(port(project, tmp_path / "out", Options(), Here(), silent))["two/blocks.py"] == "converted", "tried again"


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it is done, and nothing catches it."""


def test_killed_anywhere_the_next_run_gives_the_same(project, undisturbed, tmp_path, monkeypatch):
    """Every place where a file is written, flushed, renamed or linked is one where a run ends, one after the other."""
    expected = output(undisturbed[0])
    os = store_module.os
    real = {name: getattr(os, name) for name in ("replace", "fsync")}
    state = {"left": 0}

    def dying(name):
        def call(*args):
            state["left"] -= 1
            if state["left"] == 0:
                raise Killed
            if state["left"] == -1:
                raise AssertionError("a dead run went on")
            return real[name](*args)

        return call

    for name in real:
        monkeypatch.setattr(os, name, dying(name))
    out, deaths = tmp_path / "out", 0
    for step in range(1, 200):
        state["left"] = 3 + step * 5 % 13
        try:
            port(project, out, Options(), Here(), silent)
            break
        except Killed:
            deaths += 1
    assert deaths > 10
    assert output(out) == expected


def test_names_and_code_are_escaped(undisturbed):
    page = (undisturbed[0] / "migration-report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page and page.count("</script>") == 2
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data == json.loads((undisturbed[0] / "migration-report.json").read_text(encoding="utf-8"))
    assert any(f["path"] == "<script>alert(1).py" for f in data["files"])
    assert "http:" not in page and "https:" not in page, "the page needs nothing from elsewhere"


def test_a_report_of_two_thousand_files_is_small():
    told = [[n, 1, "MIG301", "torch.frobnicate: torch.frobnicate has no equivalent yet"] for n in range(5)]
    files = {f"pkg/module_{n}.py": {"status": "partly", "lines": 100, "rewrites": {}, "diagnostics": told} for n in range(2000)}
    data = report(files, "p", "flax", [], [])
    assert data["totals"]["codes"]["MIG301"]["count"] == 10_000 and len(html(data)) < 4_000_000


def test_command_line(project, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["port", "p", "-o", "out", "--dry-run"]) == 0
    assert "nothing was written" in capsys.readouterr().out and not (tmp_path / "out").exists()
    assert run(["port", "p", "-o", "out", "--jobs", "1", "--only", "one/"]) == 0
    out = capsys.readouterr().out
    assert "migration-report.html" in out and "\033" not in out
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("")
    for arguments, said in [(["port", "p", "-o", "full"], "--force"), (["port", "nowhere", "-o", "x"], "no such folder"), (["port", "p", "-o", "p"], "itself")]:
        assert run(arguments) == 2
        assert said in capsys.readouterr().err


def test_state_that_is_torn_is_not_used(tmp_path):
    keep(tmp_path, "parts", "a", {"x": 1})
    assert load(tmp_path, "parts", "a") == {"x": 1}
    path = tmp_path / "parts/a.json"
    path.write_text(path.read_text()[:-1])
    assert load(tmp_path, "parts", "a") is None
    store = Store(tmp_path / "out")
    with store.opened():
        Delivery(store).write({"a": (b"1", 0o644)})
        with (tmp_path / "out/.migrate/written.jsonl").open("a") as journal:
            journal.write('["b", "tor')
    with store.opened():
        assert list(store.written) == ["a"]


def test_ignored_files(tmp_path):
    for path in ("a.py", "b/c.py", "b/d.py", "b/.git/x.py", "node_modules/x.py", "out/a.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "b/.gitignore").write_text("*.py\n!d.py\n.gitignore\n")
    (tmp_path / "link.py").symlink_to("a.py")
    found = {e.path: e.role for e in discover(tmp_path, Choice(), tmp_path / "out")}
    assert found == {"a.py": "python", "b/d.py": "python", "link.py": "link"}


def test_import_roots_and_parts():
    found = layout(["src/a/__init__.py", "src/a/b.py", "src/a/c.py", "tools/x.py", "run.py", "src/a/d.py"])
    assert found.modules["src/a/b.py"] == "a.b" and found.roots["src/a/b.py"] == "src" and found.modules["tools/x.py"] == "x"
    assert found.find("", "a.b") == "src/a/b.py" and found.find("tools", "a.c") == "src/a/c.py" and found.find("src", "nothing") is None
    scans = {p: Scan(10) for p in found.modules}
    scans["src/a/b.py"] = Scan(10, ("a", "a.c"))
    parts = divide(found, scans, scans)
    assert ("src/a/c.py", "src/a/b.py") in [p.files for p in parts] and len(parts) == 5, "`from a import c` is about a.c"
    assert all(p.lines <= 15 for p in divide(found, scans, scans, most=15))


def test_a_notebook_that_is_none_is_left(project, tmp_path):
    (project / "demo.ipynb").write_text("[]")
    found = statuses(port(project, tmp_path / "out", Options(choice=Choice(only=("*.ipynb",))), Here(), silent))
    assert found["demo.ipynb"] == "left" and (tmp_path / "out/demo.ipynb").read_text() == "[]"


def test_magics_of_all_kinds():
    lines = ["%time x = 1", "  !ls {x}", "x?", "a.b??", "y = %who_ls", "z = x % 2", "'''", "w = '?'"]
    book = read_notebook(json.dumps({"cells": [{"cell_type": "code", "source": [f"if 1:\n  !ls\n{line}"]} for line in lines]}).encode())
    assert set(book.unreadable) == {6} and book.aside.count("!ls") == 7
    assert [a for a in book.aside if a != "!ls"] == ["%time x = 1", "!ls {x}", "x?", "a.b??", "%who_ls"]


def test_a_folder_is_converted_the_same_by_any_number_of_processes(project, tmp_path):
    one = convert_path(project / "one", tmp_path / "a")
    two = convert_path(project / "one", tmp_path / "b", jobs=2)
    assert output(tmp_path / "a") == output(tmp_path / "b") and "net.py" in output(tmp_path / "a")
    assert one.support == two.support and [c.diagnostics for c in one.files.values()] == [c.diagnostics for c in two.files.values()]
    (project / "one/use.py").write_text("from two.net import Net\n")
    mixed = convert_path(project / "one", tmp_path / "c", roots=[project])
    assert (tmp_path / "c/two/net.py").exists() and len(mixed.files) > len(one.files), "modules from elsewhere are converted with the folder"


def test_imports_of_a_support_module_have_one_order():
    lines = ["from functools import partial", "from functools import cache", "import math", "from flax import nnx"]
    assert len({_import_order(line) for line in lines}) == len(lines)


def test_a_scan_is_the_same_after_it_was_kept():
    scan = Scan(3, ("torch",), Facts(hooked_layers=True), ("weight",), looks_up=True, swaps=False, error="not valid Python")
    assert unpack(json.loads(json.dumps(pack(scan)))) == scan


def test_what_is_only_handed_on_costs_nothing_and_the_costly_come_first():
    found = layout(["p/__init__.py", *(f"p/m{n}.py" for n in range(6)), "p/small.py"])
    scans = {f"p/m{n}.py": Scan(100, ("p.m0", "p.m0.f")) for n in range(1, 6)} | {"p/m0.py": Scan(100)}
    scans["p/__init__.py"] = Scan(6, tuple(d for n in range(6) for d in (f"p.m{n}", f"p.m{n}.*")))
    scans["p/small.py"] = Scan(5, tuple(d for n in range(6) for d in (f"p.m{n}", f"p.m{n}.f")))
    parts = divide(found, scans, scans, most=210)
    last = next(p for p in parts if "p/__init__.py" in p.files)
    assert len(parts) == 3 and all(p.cut for p in parts) and parts == sorted(parts, key=lambda p: -p.cost)
    assert last.lines > 100, "the file that hands on everything is no part of its own"
    small = next(p for p in parts if "p/small.py" in p.files)
    assert small.seen == sum(scans[f"p/m{n}.py"].lines for n in range(6) if f"p/m{n}.py" not in small.files)


def test_what_a_package_hands_on_is_converted_where_it_is(tmp_path, monkeypatch):
    folder = tmp_path / "p/pkg"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from .blocks import *\nfrom .net import *\nfrom .types import Tensor\n")
    (folder / "types.py").write_text("from torch import Tensor\n")
    (folder / "blocks.py").write_text(BLOCKS)
    (folder / "net.py").write_text(NET.format(package="pkg", extra="0"))
    port(tmp_path / "p", tmp_path / "one", Options(), Here(), silent)
    monkeypatch.setattr("migrate.port.run.divide", lambda *a: divide(*a, most=20))
    done = port(tmp_path / "p", tmp_path / "cut", Options(), Here(), silent)
    assert len(done.plan.parts) > 1 and output(tmp_path / "one") == output(tmp_path / "cut")
    assert "Tensor" not in output(tmp_path / "cut")["pkg/__init__.py"].decode()
    assert {"pkg/blocks.py", "pkg/net.py"} <= {p for p, s in statuses(done).items() if s == "converted"}


def test_checks_are_told(tmp_path, capsys, monkeypatch):
    (tmp_path / "p").mkdir()
    (tmp_path / "p/net.py").write_text(BLOCKS)
    rows = [{"path": "net.py", "model": "A()", "result": "equal", "message": "the models agree"}, {"path": "net.py", "model": "B()", "result": "different", "message": "outputs differ"}]
    monkeypatch.setattr("migrate.cli.port._checker", lambda target: lambda plan, outcome, out: rows)
    assert run(["port", str(tmp_path / "p"), "-o", str(tmp_path / "out"), "--check", "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "2 models checked: 1 different, 1 equal" in out and "net.py: B(): outputs differ" in out and "A()" not in out
