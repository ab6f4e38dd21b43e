"""Reviews: any choice of pieces gives a file that parses and binds its names; all accepted is the conversion, none is the original."""

import ast
import builtins
import random
import symtable
from functools import partial
from pathlib import Path

import pytest
from test_rules import EXAMPLES

import migrate
from migrate.fitting.extract import load as load_support
from migrate.pipeline import convert_source, deep
from migrate.port import folder
from migrate.port.parts import divide
from migrate.project import convert_path
from migrate.review import explain, words
from migrate.review.compose import compose
from migrate.review.decisions import ACCEPTED, REJECTED, Decision, Decisions
from migrate.review.filters import Filter, choices
from migrate.review.marks import ABOVE, KEEP, unmarked
from migrate.review.measured import said
from migrate.review.pieces import group, read
from migrate.review.project import open_review
from migrate.review.session import Session
from migrate.review.store import Store
from migrate.rules.example import HEADER
from migrate.tables import standard

ROOT = Path(__file__).parent.parent
FIXTURES = sorted((ROOT / "fixtures").glob("*/torch.py"))
MODEL = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.scale = nn.Parameter(torch.ones(n))

    def forward(self, x):
        scale = self.scale
        return F.relu(self.fc(x)) * scale


class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.block = Block(n)
        self.out = nn.Linear(n, 1)

    def forward(self, x):
        x = torch.frobnicate(x)
        x = torch.cat([x, x], dim=1)
        return self.out(self.block(x)).sigmoid()
"""


def session_of(text, target="flax", name="model.py"):
    """A session over one file's text; None where nothing was converted."""
    conversion = convert_source(text, target, name)
    reading = deep(lambda: read(name, conversion, list(load_support(target).definitions)))
    if reading is None:
        return None
    session = Session([reading.file], group([reading], standard(), target))
    assert reading.file.converted == conversion.code.replace("\r\n", "\n")
    return session


def piece(session, start):
    """The piece whose title starts with something, or the first whose new text holds it."""
    found = [p for p in session.pieces if p.title.startswith(start)] or [p for p in session.pieces if any(start in h.new for h in p.hunks)]
    return found[0]


def unbound(text):
    """The names that a text looks up as globals and does not bind."""
    top = symtable.symtable(text, "model.py", "exec")
    known = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()} | set(dir(builtins))
    found, stack = set(), [top]
    while stack:
        table = stack.pop()
        stack += table.get_children()
        for s in table.get_symbols():
            if s.is_declared_global() and s.is_assigned():
                known.add(s.get_name())
            if s.is_referenced() and (s.is_global() or table is top):
                found.add(s.get_name())
    return found - known


def check_all_choices(session, seeds):
    """Everything, nothing, and random choices with and without what belongs together."""
    (file,) = session.files
    original, converted = file.source.text, file.converted
    session.accept(session.pieces)
    assert session.text(file) == (converted if session.pieces else original) or not session.pieces
    session.reject(session.pieces)
    assert session.text(file, mark=False) == original or not session.pieces
    assert unmarked(session.text(file)) == original or KEEP in original or not session.pieces
    allowed = unbound(original) | unbound(converted)
    for seed in seeds:
        lot = random.Random(seed)
        share = lot.random()
        ast.parse(compose(file, {p.key: Decision(ACCEPTED if lot.random() < share else REJECTED) for p in session.pieces}))
        one = Session(session.files, session.needs)
        for p in lot.sample(session.pieces, len(session.pieces)):
            assert not (one.accept if lot.random() < share else one.reject)([p]).error
        for p in one.pieces:
            assert one.state(p)
            assert one.state(p) == REJECTED or all(one.state(n) == ACCEPTED for n in one.needs[p])
        assert unbound(one.text(file)) <= allowed


@pytest.mark.parametrize("target", ["flax", "keras"])
@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.parent.name)
def test_every_choice_of_pieces_of_a_model(path, target):
    check_all_choices(session_of(path.read_text(encoding="utf-8"), target), range(1))


@pytest.mark.parametrize("example", [pytest.param(e, id=f"{rule}-{i}") for rule, i, e in EXAMPLES if len(e.source) < 5000])
def test_every_choice_of_pieces_of_the_rules_examples(example):
    session = session_of(HEADER + example.source)
    if session is not None:
        check_all_choices(session, range(1))


def test_accepting_brings_what_is_needed_and_rejecting_takes_what_needs_it():
    s = session_of(MODEL)
    block, net, made = piece(s, "class Block"), piece(s, "class Net"), piece(s, "Block(n, rngs=rngs)")
    outcome = s.accept([block])
    assert set(outcome.along) >= {made, net}
    layer = piece(s, "self.fc = nnx.Linear")
    assert s.state(layer) == ""
    s.accept([layer])
    outcome = s.reject([net])
    assert {s.state(p) for p in (block, net, made, layer)} == {REJECTED}
    text = s.text(s.files[0])
    assert text.count(KEEP) + text.count(ABOVE) >= 6 and "nnx" not in text and "rngs" not in text


def test_a_variable_and_its_readers_move_together():
    s = session_of(MODEL)
    maker, reader = piece(s, "self.scale = nnx.Param"), piece(s, "self.scale[...]")
    assert s.accept([reader]).along == (maker,)
    s.reject([maker])
    assert s.state(reader) == REJECTED


def test_imports_follow():
    s = session_of(MODEL)
    s.accept([piece(s, "jnp.concatenate")])
    text = s.text(s.files[0])
    assert "import jax.numpy as jnp\n" in text and "import torch\n" in text and "nnx" not in text
    s.accept(s.pieces)
    s.reject([piece(s, "jax.nn.sigmoid")])
    assert "import torch.nn" not in s.text(s.files[0])
    s.reject([piece(s, "jax.nn.relu")])
    assert "import torch.nn.functional as F\n" in s.text(s.files[0])


def test_names_with_two_meanings_move_together():
    s = session_of(
        "from torch.nn import Conv2d\n\n\ndef f():\n    a = Conv2d(3, 3, 1)\n    return a\n\n\n"
        "def g(m):\n    return isinstance(m, Conv2d)\n"
    )
    user = next(p for p in s.pieces if p.line == 5)
    s.accept([user])
    assert {s.state(p) for p in s.pieces if "Conv2d" in p.hunks[0].old} == {ACCEPTED}


def test_the_converter_respects_what_was_rejected():
    s = session_of(MODEL)
    s.reject([piece(s, "jnp.concatenate"), piece(s, "jax.nn.sigmoid"), piece(s, "self.scale = nnx.Param")])
    again = convert_source(s.text(s.files[0])).code
    assert "x = torch.cat([x, x], dim=1)  # migrate: keep" in again and "sigmoid()  # migrate: keep" in again
    assert "nn.Parameter(torch.ones(n))  # migrate: keep" in again and "nnx.Linear" in again


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = torch.sin(\n    y,  # one\n)\n", "x = torch.sin(\n    y,  # one\n)  # migrate: keep\n"),
        ("x = torch.sin(y)  # two\n", "x = torch.sin(y)  # two  # migrate: keep\n"),
        ("x = torch.sin(y); z = torch.cos(x)\n", "x = torch.sin(y); z = torch.cos(x)  # migrate: keep\n"),
        ("with torch.no_grad():\n    x = y + 1\n", "with torch.no_grad():  # migrate: keep\n    x = y + 1\n"),
        ("if torch.is_tensor(y):\n    x = y\n", "# migrate: left as it was\nif torch.is_tensor(y):\n    x = y\n"),
        ("x = torch.sin(y) + \\\n    1", "x = torch.sin(y) + \\\n    1  # migrate: keep"),
    ],
)
def test_marks(old, new):
    s = session_of("import torch\n" + old)
    s.reject(s.pieces)
    assert s.text(s.files[0]) == "import torch\n" + new
    assert unmarked(new) == old


def test_a_block_never_becomes_empty():
    s = session_of(
        "import torch\n\n\ndef f(x):\n    with torch.no_grad():\n        torch.manual_seed(0)\n        x = torch.sin(x)\n    return x\n"
    )
    check_all_choices(s, range(8))


def test_edits_are_taken_and_imports_come_with_them():
    s = session_of(MODEL)
    p = piece(s, "jnp.concatenate")
    assert "not be valid Python" in s.edit(p, ["        x = (\n"]).error
    assert s.state(p) == ""
    assert not s.edit(p, ["        x = optax.scale(np.array(x))"]).error
    text = s.text(s.files[0])
    assert "        x = optax.scale(np.array(x))\n" in text and "import numpy as np\n" in text and "import optax\n" in text
    assert s.progress().edited == 1


def test_undo_takes_back_whole_commands():
    s = session_of(MODEL)
    s.accept([piece(s, "class Block")])
    before = dict(s.decisions.made)
    s.reject(s.pieces)
    s.accept(s.of_kind(piece(s, "nn.Linear")))
    s.undo()
    s.undo()
    assert s.decisions.made == before
    s.undo()
    assert not s.decisions.made and s.undo().error


def test_what_needs_attention():
    s = session_of(MODEL)
    found = [p for p in s.pieces if p.needs_attention]
    assert [p.kind for p in found] == ["left (MIG301)"]
    assert s.following(None, attention=True) is found[0]
    s.accept(s.harmless())
    assert s.following(None) is found[0] and s.progress().open == 1
    s.reject(found)
    assert s.following(found[0]) is None
    assert "# MIG301" not in s.text(s.files[0]) and KEEP in s.text(s.files[0])


def test_filters():
    s = session_of(MODEL)
    found = {label: n for label, _, n in choices(s.pieces, s.state)}
    assert (
        found["everything"] == len(s.pieces) and found["errors only"] == 1 and found["kind class frame"] == 2 and found["rule layers"] >= 4
    )
    assert not any(n == 0 for label, n in found.items() if label.startswith(("rule", "kind")))
    assert [p for p in s.pieces if Filter(rule="state").holds(p, "")] == [piece(s, "self.scale = nnx.Param"), piece(s, "self.scale[...]")]


def test_why():
    s = session_of(MODEL)
    said_ = words.about(piece(s, "jnp.concatenate"), standard(), "flax", {})
    assert any(kind == "why" and "operators" in line for kind, line in said_) and any(
        kind == "row" and "jnp.concatenate" in line for kind, line in said_
    )
    assert ("error", "MIG301 torch.frobnicate(x): torch.frobnicate has no equivalent yet") in words.about(
        piece(s, "left"), standard(), "flax", {}
    )
    assert words.about(piece(s, "class Net"), standard(), "flax", {})[0] == ("why", explain.FRAME)


def test_measured_error_of_the_submodule():
    rows = [
        {"name": "", "cls": "Net", "verdict": "same", "units": 0.5, "error": 1e-7},
        {"name": "out", "cls": "Linear", "verdict": "differs", "units": 9.0, "error": 1e-3},
        {"name": "block.fc", "cls": "Linear", "verdict": "same", "units": 0.1, "error": 1e-8},
        {"name": "block", "cls": "Block", "verdict": "same", "units": 0.2, "error": 2e-8},
    ]
    s = session_of(MODEL)
    assert said(piece(s, "self.out = "), {"submodules": rows}).startswith("out: differs, max error 1.0e-03, 9.00 units")
    assert said(piece(s, "self.fc = "), {"submodules": rows}).startswith("block.fc: same")
    assert said(piece(s, "jnp.concatenate"), {"submodules": rows}).startswith("the model: same")
    assert said(piece(s, "jnp.concatenate"), {}) == ""


def test_the_editor_gets_each_part_and_gives_it_back():
    s = session_of(MODEL)
    p = piece(s, "class Net")
    texts = [h.new for h in p.hunks]
    shown = words.to_edit(p, texts)
    assert shown.count(words.MARK) == len(p.hunks) - 1 and f"{words.ORIGINAL}class Net(nn.Module):" in shown
    assert words.from_edit(p, shown) == texts
    assert words.from_edit(p, shown.replace(words.MARK, "# gone")) is None


def test_progress_is_kept_and_survives_changes_of_the_source(tmp_path):
    s = session_of(MODEL)
    store = Store(tmp_path, "model", "flax")
    s.save = lambda: store.save(s.decisions)
    keys = [p.key for p in s.pieces]
    assert len(set(keys)) == len(keys)
    store.load(keys, "one")
    s.accept([piece(s, "class Block")])
    s.reject([piece(s, "jnp.concatenate")])
    kept, changed = Store(tmp_path, "model", "flax").load(keys, "one")
    assert kept.made == s.decisions.made and not changed and len(kept.history) == 2
    other = session_of("# a comment\n" + MODEL.replace("sigmoid", "tanh"))
    kept, changed = Store(tmp_path, "model", "flax").load([p.key for p in other.pieces], "two")
    assert changed and kept.made == s.decisions.made
    store.path.write_text('{"version": 1, "decisions": {"a": {"state": "maybe"}}, "history": []}')
    assert store.load(["a"], "one")[0].made == {}
    store.path.write_text("{")
    assert store.load(keys, "one")[0].made == {}


def test_a_folder_is_reviewed_as_one_and_written_as_convert_does(tmp_path):
    pkg = tmp_path / "src/pkg"
    pkg.mkdir(parents=True)
    (pkg / "__init__.py").write_text("")
    (pkg / "parts.py").write_bytes(MODEL.partition("class Net")[0].replace("\n", "\r\n").encode())
    (pkg / "net.py").write_text(
        "import torch\nfrom torch import nn\nfrom .parts import Block\n\n\nclass Net(nn.Module):"
        + MODEL.partition("class Net(nn.Module):")[2]
    )
    convert_path(tmp_path / "src", tmp_path / "whole")
    review = open_review(tmp_path / "src")
    s = review.session
    outcome = s.accept([piece(s, "class Block")])
    assert {p.file for p in outcome.along} == {"pkg/net.py"}  # the caller in the other file
    s.accept(s.pieces)
    for path, data in review.outputs(tmp_path / "whole").items():
        assert data == path.read_bytes(), path
    s.reject(s.pieces)
    for path, data in review.outputs(tmp_path / "none").items():
        original = (tmp_path / "src" / path.relative_to(tmp_path / "none")).read_bytes()
        assert unmarked(data.decode().replace("\r\n", "\n")) == original.decode().replace("\r\n", "\n") and data.count(
            b"\r"
        ) >= original.count(b"\r")


def test_a_folder_in_parts_is_reviewed_as_convert_writes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "divide", partial(divide, most=10))
    pkg = tmp_path / "src/pkg"
    pkg.mkdir(parents=True)
    (pkg / "__init__.py").write_text("from .net import Net\n")
    (pkg / "broken.py").write_text("def f(:\n")
    (pkg / "net.py").write_text(MODEL)
    body = "import torch\nfrom torch import nn\n\n\nclass Other(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.s = nn.Sequential(nn.Linear(2, 2), nn.ReLU())\n"
    (pkg / "other.py").write_text(body + "\n    def forward(self, x):\n        return self.s(x)\n")
    (pkg / "use.py").write_text("from .other import Other\n\n\ndef last(x: Other):\n    return x.s[0]\n")
    written = set(convert_path(tmp_path / "src", tmp_path / "out").written)
    review = open_review(tmp_path / "src")
    assert review.files and len(review.files) == 4, "all but the broken file have pieces"
    review.session.accept(review.session.pieces)
    outputs = review.outputs(tmp_path / "out")
    assert set(outputs) <= written and all(data == path.read_bytes() for path, data in outputs.items())
    assert {d.code for d in review.loose} >= {"MIG501"}


def test_support_holds_what_is_still_used(tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.Conv2d(3, 3, 1)\n        self.b = nn.BatchNorm1d(3)\n"
    )
    review = open_review(tmp_path / "model.py")
    s = review.session
    s.accept(s.pieces)
    s.reject([piece(s, "nn.BatchNorm1d")])
    out = review.outputs(tmp_path / "out")
    text = out[tmp_path / "out/torch_support.py"].decode()
    assert "class Conv2d" in text and "class BatchNorm1d" not in text
    assert "from torch_support import Conv2d\n" in out[tmp_path / "out/model.py"].decode()


def test_decisions_of_pieces_that_are_gone_are_dropped():
    d = Decisions({"a": Decision(ACCEPTED), "b": Decision("edited", ("x\n",))}, [{"a": None}, {"b": None}])
    again = Decisions.from_json(d.to_json(), ["b"])
    assert again.made == {"b": Decision("edited", ("x\n",))} and again.history == [{"b": None}]


def test_the_library_does_not_load_the_screen():
    import subprocess
    import sys

    modules = "migrate, migrate.cli.convert, migrate.cli.review, migrate.cli.prompts"
    code = f"import sys, {modules}; sys.exit(any(m.startswith('textual') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert migrate.convert_source(MODEL).code
