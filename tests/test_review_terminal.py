"""The real program in a terminal of its own: a review of thirty pieces with a crash in the middle, and the same as prompts."""

import io
import json
import os
import signal
import sys
import time

import pexpect
import pytest

import migrate
from migrate.cli.main import run

OPERATORS = (
    "sin cos tan exp sinh cosh tanh sqrt rsqrt log log2 log10 log1p expm1 ceil floor round sign square erf asinh atan asin acos sigmoid"
).split()
MODEL = (
    """import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.drop = nn.Dropout(0.1)
        self.table = nn.Embedding(7, n)

    def forward(self, x, i):
        x = self.drop(self.fc(x)) + self.table(i)
"""
    + "".join(f"        x = torch.{name}(x)\n" for name in OPERATORS)
    + """        x = torch.frobnicate(x)
        return x
"""
)
SIZE = 30
EDITOR = """import sys

path = sys.argv[1]
text = open(path).read()
open(path, "w").write(text.replace("jnp.sqrt(x)", "jnp.sqrt(abs(x))"))
"""


CODE = migrate.convert_source(MODEL).code
LINES = dict(zip(OPERATORS, CODE.partition("self.table(i)\n")[2].splitlines(keepends=True), strict=False))


def keep(code, name):
    """The expected file with the original line of an operator, marked."""
    return code.replace(LINES[name], f"        x = torch.{name}(x)  # migrate: keep\n")


EXPECTED = keep(keep(CODE, "cos"), "log1p").replace("jnp.sqrt(x)", "jnp.sqrt(abs(x))")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a model and an editor."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "editor.py").write_text(EDITOR)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {tmp_path / 'editor.py'}")
    return tmp_path


def state(folder):
    """The progress file, as it is on disk."""
    try:
        return json.loads((folder / "migrated/.migrate/review-model-flax.json").read_text())
    except FileNotFoundError:
        return {"decisions": {}, "history": []}


class Terminal:
    """`migrate review model.py` on a screen. Keys are sent one at a time; what they do is awaited on disk."""

    def __init__(self, folder):
        self.folder = folder
        env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path)}
        env.pop("NO_COLOR", None)
        self.child = pexpect.spawn(sys.executable, ["-m", "migrate.cli", "review", "model.py"], env=env, dimensions=(40, 140), timeout=60)
        self.child.expect("migrate|accept")
        self.until(lambda: b"quit" in self.seen)

    seen = b""

    def until(self, holds):
        """Reads the screen until something holds."""
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end, self.seen[-2000:]
            try:
                self.seen += self.child.read_nonblocking(65536, timeout=0.05)
            except pexpect.TIMEOUT:
                continue

    def keys(self, keys):
        """Sends keys, each when the one before is on disk."""
        for key in keys:
            steps = len(state(self.folder)["history"])
            self.child.send(key)
            self.until(lambda steps=steps: len(state(self.folder)["history"]) != steps)

    def crash(self):
        """SIGKILL, at once."""
        os.kill(self.child.pid, signal.SIGKILL)
        self.child.close(force=True)

    def end(self):
        """Waits for the program to end; its exit code and what it said."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        return self.child.exitstatus, (self.seen + self.child.before).decode()


def test_a_review_with_a_crash_writes_exactly_what_was_accepted(folder):
    screen = Terminal(folder)
    screen.keys("yyyyy")  # the frame, three layers, sin
    assert len(state(folder)["decisions"]) == 5
    screen.keys("n")  # cos stays
    screen.keys("yyyyy")
    screen.keys("u")  # tanh is open again, and at hand
    screen.keys("y")
    screen.keys("e")  # sqrt, in the editor
    screen.keys("yy")
    before = state(folder)
    screen.crash()
    assert state(folder) == before and len(before["decisions"]) == 14
    assert not (folder / "migrated/model.py").exists()

    screen = Terminal(folder)
    screen.until(lambda: b"14 of 30" in screen.seen)
    screen.keys("yy")  # log2, log10
    screen.keys("n")  # log1p stays
    screen.keys("g")  # everything that is harmless
    assert len(state(folder)["decisions"]) == SIZE - 1
    screen.keys("y")  # the construct that was left
    screen.until(lambda: b"Write the result" in screen.seen)
    screen.child.send("w")
    code, said = screen.end()
    assert code == 1 and "30 of 30 decided: 27 accepted, 2 rejected, 1 edited" in said
    written = (folder / "migrated/model.py").read_text()
    assert written == EXPECTED and written.count("# migrate: keep") == 2
    assert (folder / "model.py").read_text() == MODEL


def answers(monkeypatch, text):
    """Standard input with these lines."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_prompts_do_the_same(folder, monkeypatch, capsys):
    answers(monkeypatch, "\n".join("yyyyynyyyyyuyeyy"))
    assert run(["review", "model.py", "--no-tui"]) == 1
    assert "Nothing written" in capsys.readouterr().out and not (folder / "migrated/model.py").exists()
    answers(monkeypatch, "\n".join("yyngx?ry"))
    assert run(["review", "model.py", "--no-tui"]) == 1
    said = capsys.readouterr()
    assert "resumed: 14 of 30 decided" in said.err
    assert "(30/30) left: torch.frobnicate(x)" in said.out and "MIG301" in said.out
    assert (folder / "migrated/model.py").read_text() == EXPECTED
    answers(monkeypatch, "uq")  # all is decided: it asks before it writes again
    assert run(["review", "model.py", "--no-tui"]) == 1
    assert "everything is decided" in capsys.readouterr().out
    answers(monkeypatch, "u\ny\n")
    assert run(["review", "model.py", "--no-tui"]) == 1
    assert (folder / "migrated/model.py").read_text() == EXPECTED


def test_accepting_everything_writes_the_conversion(folder, monkeypatch, capsys):
    (folder / "model.py").write_text(MODEL.replace("        x = torch.frobnicate(x)\n", ""))
    assert run(["convert", "model.py", "-o", "whole"]) == 0
    answers(monkeypatch, "g\n")
    assert run(["review", "model.py"]) == 0
    assert (folder / "migrated/model.py").read_bytes() == (folder / "whole/model.py").read_bytes()


def test_what_was_changed_by_hand_is_not_replaced(folder, monkeypatch, capsys):
    assert run(["convert", "model.py"]) == 1
    answers(monkeypatch, "n\nA\n")  # over what convert wrote
    assert run(["review", "model.py"]) == 1
    answers(monkeypatch, "A\n")  # over what a review wrote
    assert run(["review", "model.py", "--fresh"]) == 1
    (folder / "migrated/model.py").write_text("mine")
    answers(monkeypatch, "q\n")
    assert run(["review", "model.py"]) == 2
    assert "--force" in capsys.readouterr().err and (folder / "migrated/model.py").read_text() == "mine"


def test_the_source_is_never_replaced(folder, capsys):
    (folder / "src").mkdir()
    (folder / "src/model.py").write_text(MODEL)
    assert run(["review", "src", "-o", "src", "--force"]) == 2
    assert run(["review", "model.py", "-o", "."]) == 2
    assert capsys.readouterr().err.count("is the source itself") == 2
    assert (folder / "model.py").read_text() == (folder / "src/model.py").read_text() == MODEL


def test_bad_input_is_told_in_one_line(folder, capsys):
    (folder / "broken.py").write_text("def f(:\n")
    assert run(["review", "broken.py"]) == 2
    assert capsys.readouterr().err.startswith("migrate: broken.py:1: ")
    assert run(["review", "nothing.py"]) == 2
    assert run(["review", "model.py", "-o", "out.py"]) == 2
