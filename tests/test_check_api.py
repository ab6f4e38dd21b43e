"""`migrate.check` and `migrate.testing` as a user calls them, with real processes; and what happens when user code misbehaves."""

import json
import sys
import types

import check_pairs as pairs
import numpy as np
import pytest
import torch
from flax import nnx

import migrate
import migrate.check
from migrate.check.child import Limits
from migrate.check.run import CheckError
from migrate.cli.main import run
from migrate.testing import assert_equivalent, compare


def module(name, text):
    """A module made of a text."""
    made = types.ModuleType(name)
    sys.modules[name] = made
    exec(compile(text, name, "exec"), vars(made))
    return made


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """Files of a pair: original, the right counterpart, and one with a fault."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(pairs.CONV_TORCH)
    (tmp_path / "good.py").write_text(pairs.CONV_FLAX)
    (tmp_path / "bad.py").write_text(pairs.fault(pairs.CONV_FLAX, *pairs.CONV_FAULTS["tanh gelu"][:2]))
    return tmp_path


def test_a_verdict(pair, capfd):
    v = migrate.check("model.py", "good.py", model="Net(classes=3)", inputs=["f32[2,3,10,10]"])
    assert v and v.ok and v.reached == "jit"
    assert v.model == "Net(classes=3)" and v.inputs == "f32[2,3,10,10]"
    plain = json.loads(json.dumps(v.to_json()))
    assert plain["ok"] is True and plain["submodules"][0]["name"] == "stem.conv"
    assert capfd.readouterr() == ("", ""), "nothing is printed"


def test_oracle_then_check_without_the_original(pair, capsys):
    assert run(["oracle", "model.py", "--model", "Net()", "--input", "f32[2,3,10,10]", "-o", "oracle"]) == 0
    assert run(["oracle", "model.py", "--model", "Net()", "--input", "f32[2,3,10,10]", "-o", "oracle"]) == 2
    (pair / "model.py").unlink()
    assert run(["check", "bad.py", "--oracle", "oracle", "--fast"]) == 1
    out = capsys.readouterr().out
    assert "first difference" in out and "`stem`" in out and "different" in out
    assert "bad.py:" in out, "the line of the converted class"
    assert run(["check", "good.py", "--oracle", "oracle", "--fast", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] and [s["name"] for s in report["stages"]][-1] == "submodules"


ORIGINALS = {
    "raises": ("raise RuntimeError('no')", "model.py:1", "no"),
    "fails to build": ("import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = 1 / 0\n", "model.py:7", "ZeroDivision"),
    "has no model": ("x = 1\n", "", "--model"),
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_an_original_that_can_not_be_run_is_told(pair, name):
    text, place, said = ORIGINALS[name]
    (pair / "model.py").write_text(text)
    with pytest.raises(CheckError, match=said) as e:
        migrate.check("model.py", "good.py", model=None if name == "has no model" else "Net()", inputs=["f32[2,3,10,10]"])
    assert f"{e.value.file}:{e.value.line}".endswith(place)


def test_wrong_inputs_are_told_with_the_line(pair):
    with pytest.raises(CheckError, match="channels") as e:
        migrate.check("model.py", "good.py", model="Net()", inputs=["f32[2,4,10,10]"])
    assert e.value.file.endswith("model.py") and e.value.line > 0


def test_a_process_that_hangs_is_a_verdict(pair):
    (pair / "model.py").write_text("while True:\n    pass\n")
    v = migrate.check("model.py", "good.py", model="Net()", inputs=["f32[2,3,10,10]"], limits=Limits(seconds=6))
    assert not v.ok and v.reached == "" and "longer than 6 s" in v.message


def test_a_converted_file_that_kills_its_process_is_a_verdict(pair):
    assert run(["oracle", "model.py", "--model", "Net()", "--input", "f32[2,3,10,10]", "-o", "oracle"]) == 0
    (pair / "good.py").write_text("import os\nos._exit(3)\n")
    v = migrate.check(converted="good.py", oracle="oracle")
    assert not v.ok and v.reached == "parses" and "imports" in v.message and "code 3" in v.message


def test_nothing_compared_is_a_failure(pair):
    (pair / "model.py").write_text("import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return None\n")
    (pair / "good.py").write_text("from flax import nnx\n\n\nclass Net(nnx.Module):\n    def __call__(self, x):\n        return None\n")
    v = migrate.check("model.py", "good.py", model="Net()", inputs=["f32[2]"])
    assert not v.ok and "nothing" in v.message


def test_live_models():
    original, flax = module("pair_original", pairs.CONV_TORCH), module("pair_flax", pairs.CONV_FLAX)
    net, converted = original.Net(), flax.Net(rngs=nnx.Rngs(0))
    before = {k: v.clone() for k, v in net.state_dict().items()}
    kernel = np.asarray(converted.head.kernel[...])
    assert_equivalent(net, converted, torch.randn(2, 3, 10, 10))
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items()), "the original is left alone"
    np.testing.assert_array_equal(np.asarray(converted.head.kernel[...]), kernel)
    assert converted.drop.deterministic is False, "and so are the mode and the weights of the other"

    fault = module("pair_fault", pairs.fault(pairs.CONV_FLAX, *pairs.CONV_FAULTS["other activation"][:2]))
    with pytest.raises(AssertionError, match=r"head(.|\n)*differs"):
        assert_equivalent(net, fault.Net(rngs=nnx.Rngs(0)), (np.random.randn(2, 3, 10, 10).astype("float32"),), stages=("forward", "submodules"))


def test_live_functions():
    def theirs(x, y):
        return torch.softmax(x, -1) + y

    def ours(x, y):
        import jax

        return jax.nn.softmax(x, -1) + y

    assert compare(theirs, ours, (torch.randn(3, 4), torch.randn(4)), stages=("forward", "gradients")).ok
    assert not compare(theirs, lambda x, y: ours(x, y * 1.001), (torch.randn(3, 4), torch.randn(4)), stages=("forward",)).ok
