"""The command line: what is written and what is not, exit codes, one message for each error and no traceback."""

import io
import json
import os
import subprocess
import sys

import pytest

from migrate.cli.main import run

MODEL = '''import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    """A café."""

    def __init__(self, n=3):
        super().__init__()
        self.fc = nn.Linear(4, n)

    def forward(self, x):
        return F.relu(self.fc(x))
'''
LEFT = MODEL.replace("F.relu(self.fc(x))", "F.no_such_function(self.fc(x))")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    return tmp_path


def feed(monkeypatch, data):
    """Standard input with these bytes."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def files(folder):
    """Names of all files below a folder."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_convert_writes_beside_the_original(folder, capsys):
    assert run(["convert", "model.py"]) == 0
    assert files(folder) == ["migrated/model.py", "model.py"]
    code = (folder / "migrated/model.py").read_text(encoding="utf-8")
    assert "class Net(nnx.Module)" in code and "torch" not in code and "café" in code
    assert (folder / "model.py").read_text(encoding="utf-8") == MODEL
    out = capsys.readouterr().out
    assert "migrated/model.py" in out and "nothing left undone" in out


def test_existing_output_is_kept_without_force(folder, capsys):
    (folder / "out").mkdir()
    (folder / "out/model.py").write_text("mine")
    assert run(["convert", "model.py", "-o", "out"]) == 2
    assert (folder / "out/model.py").read_text() == "mine"
    err = capsys.readouterr().err
    assert "out/model.py" in err and "--force" in err
    assert run(["convert", "model.py", "-o", "out", "--force"]) == 0
    assert "nnx" in (folder / "out/model.py").read_text(encoding="utf-8")


def test_support_module_of_an_earlier_run_is_replaced_and_a_users_is_not(folder, capsys):
    (folder / "other.py").write_text(MODEL.replace("nn.Linear(4, n)", "nn.Conv2d(4, n, 1)"))
    (folder / "third.py").write_text(MODEL.replace("nn.Linear(4, n)", "nn.BatchNorm1d(n)"))
    assert run(["convert", "other.py", "-o", "out"]) == 0
    assert run(["convert", "third.py", "-o", "out"]) == 0
    text = (folder / "out/torch_support.py").read_text()
    assert "class Conv2d" in text and "class BatchNorm1d" in text
    (folder / "out2").mkdir()
    (folder / "out2/torch_support.py").write_text("mine = 1\n")
    assert run(["convert", "other.py", "-o", "out2"]) == 2
    assert (folder / "out2/torch_support.py").read_text() == "mine = 1\n"
    assert files(folder / "out2") == ["torch_support.py"], "nothing is written where one file may not be"


def test_output_may_be_a_file(folder):
    assert run(["convert", "model.py", "-o", "flax/net.py"]) == 0
    assert files(folder / "flax") == ["net.py"]


def test_diff_writes_nothing(folder, capsys):
    assert run(["convert", "model.py", "--diff"]) == 0
    out = capsys.readouterr().out
    assert "-class Net(nn.Module):" in out and "+class Net(nnx.Module):" in out
    assert "\033" not in out
    assert files(folder) == ["model.py"]


def test_standard_input_goes_to_standard_output(folder, capsys, monkeypatch):
    feed(monkeypatch, MODEL.encode())
    assert run(["convert", "-"]) == 0
    out, err = capsys.readouterr()
    compile(out, "out", "exec")
    assert "class Net(nnx.Module)" in out and "nothing left undone" in err
    assert files(folder) == ["model.py"]


def test_standard_input_with_a_name_and_a_folder(folder, capsys, monkeypatch):
    feed(monkeypatch, LEFT.encode())
    assert run(["convert", "-", "--stdin-filename", "deep/net.py", "-o", "out"]) == 1
    assert files(folder / "out") == ["net.py"]
    assert "deep/net.py:13:" in capsys.readouterr().out


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_line_ends_and_encoding_survive(folder, newline):
    (folder / "model.py").write_bytes(("# -*- coding: latin-1 -*-\n" + MODEL).replace("\n", newline).encode("latin-1"))
    assert run(["convert", "model.py"]) == 0
    data = (folder / "migrated/model.py").read_bytes()
    assert data.count(b"\n") == data.count(newline.encode())
    assert "café" in data.decode("latin-1")


def test_what_is_left_gives_exit_code_1_and_its_place(folder, capsys):
    (folder / "model.py").write_text(LEFT)
    assert run(["convert", "model.py"]) == 1
    out = capsys.readouterr().out
    assert "model.py:13:" in out and "MIG301" in out and "left as it was" in out


def test_json(folder, capsys):
    (folder / "model.py").write_text(LEFT)
    assert run(["convert", "model.py", "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    (entry,) = report["files"]
    assert entry["path"] == "model.py" and report["written"] == ["migrated/model.py"]
    assert any(d["severity"] == "error" and d["line"] == 13 for d in entry["diagnostics"])


def test_sarif(folder, capsys):
    (folder / "model.py").write_text(LEFT)
    assert run(["convert", "model.py", "--format", "sarif"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["version"] == "2.1.0"
    (only,) = report["runs"]
    rules = {r["id"] for r in only["tool"]["driver"]["rules"]}
    result = next(r for r in only["results"] if r["level"] == "error")
    assert result["ruleId"] in rules
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 13


def test_local_imports_are_followed(folder):
    (folder / "driver.py").write_text("from lib.net import Net\n\n\ndef make():\n    return Net(2)\n")
    (folder / "src/lib").mkdir(parents=True)
    (folder / "src/lib/__init__.py").write_text("")
    (folder / "src/lib/net.py").write_text(MODEL, encoding="utf-8")
    assert run(["convert", "driver.py", "-o", "out", "--root", "src"]) == 0
    assert {"driver.py", "lib/net.py"} <= set(files(folder / "out"))
    assert "rngs" in (folder / "out/driver.py").read_text()


ERRORS = {
    "no such file": (["convert", "missing.py"], "missing.py"),
    "no command": (["transmogrify"], "transmogrify"),
    "no option": (["convert", "model.py", "--fast"], "--fast"),
    "no target": (["convert", "model.py", "--target", "tinygrad"], "tinygrad"),
    "empty folder": (["convert", "empty"], "no Python file"),
    "syntax": (["convert", "broken.py"], "broken.py:2:"),
    "binary": (["convert", "binary.py"], "binary.py"),
    "diff with json": (["convert", "model.py", "--diff", "--format", "json"], "--diff"),
    "output is a file": (["convert", "model.py", "-o", "taken"], "taken"),
    "unknown code": (["explain", "MIG777"], "MIG777"),
    "no checkpoint": (["weights", "missing.pt", "--model", "model.py:Net()", "-o", "w.safetensors"], "missing.pt"),
    "no expression": (["weights", "model.py", "--model", "model.py", "-o", "w.safetensors"], "FILE:EXPRESSION"),
    "one file to check": (["check", "model.py"], "two files"),
    "missing file to check": (["check", "missing.py", "model.py"], "missing.py"),
    "no such stage": (["check", "model.py", "model.py", "--stages", "vibes"], "vibes"),
    "no such input": (["check", "model.py", "model.py", "--input", "f31[2]"], "f31"),
    "bad expression": (["check", "model.py", "model.py", "--model", "Net("], "Net("),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_message_and_exit_code_2(folder, capsys, name):
    (folder / "empty").mkdir()
    (folder / "taken").write_text("")
    (folder / "broken.py").write_text("x = 1\ny = (\n")
    (folder / "binary.py").write_bytes(b"\x80\x81\xfe\x00")
    arguments, said = ERRORS[name]
    before = files(folder)
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert said in out + err
    assert "Traceback" not in out + err
    assert files(folder) == before


def test_a_bug_of_ours_is_123(folder, capsys, monkeypatch):
    import migrate

    def fails(*args, **kwargs):
        raise KeyError("oops")

    monkeypatch.setattr(migrate, "convert_path", fails, raising=False)
    assert run(["convert", "model.py"]) == 123
    err = capsys.readouterr().err
    assert "KeyError" in err and "report" in err and "Traceback" not in err


def test_an_unwritable_folder(folder, capsys):
    (folder / "file").write_text("")
    assert run(["convert", "model.py", "-o", "file/out"]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explain", "302"], "MIG302"),
        (["explain", "mig501"], "MIG501"),
        (["explain"], "MIG901"),
        (["--version"], "migrate "),
        (["--help"], "convert"),
        (["convert", "--help"], "--target"),
        (["check", "--help"], "--input"),
        (["weights", "--help"], "--partial"),
        (["oracle", "--help"], "--output"),
        (["ops", "--help"], "NAME"),
    ],
)
def test_what_is_printed(capsys, arguments, said):
    assert run(arguments) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"), [("gelu", "approximate"), ("F.gelu", "jax.nn.gelu"), ("nn.Conv2d", "Conv2d"), ("torch.cat", "jnp.concatenate")]
)
def test_ops(capsys, name, said):
    assert run(["ops", name]) == 0
    assert said in capsys.readouterr().out


def test_ops_suggests(capsys):
    assert run(["ops", "geluu"]) == 1
    assert "gelu" in capsys.readouterr().err


def test_help_imports_nothing_large():
    names = "{'torch', 'jax', 'flax', 'keras', 'numpy', 'rich'}"
    code = f"import sys; from migrate.cli.main import run; run(['--help']); print(sorted({names} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert out.stdout.splitlines()[-1] == "[]"


def test_colours_follow_the_terminal(folder):
    """On a terminal the diff is coloured, and not with NO_COLOR."""
    import pty

    def diff(environment):
        main, side = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "migrate.cli", "convert", "model.py", "--diff"],
            stdout=side,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm", **environment},
        )
        os.close(side)
        text = b""
        try:
            while part := os.read(main, 4096):
                text += part
        except OSError:  # the other end is closed
            pass
        process.wait()
        os.close(main)
        return text.decode()

    assert "\033[32m" in diff({})
    plain = diff({"NO_COLOR": "1"})
    assert "nnx" in plain and "\033" not in plain
