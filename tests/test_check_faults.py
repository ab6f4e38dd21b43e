"""The checker finds planted faults, at the stage and the submodule where they are, and raises no alarm on the right counterparts."""

import json
import sys
from pathlib import Path

import check_pairs as pairs
import pytest

from migrate.check import jax_side
from migrate.check.run import make_oracle
from migrate.check.verdict import STAGES, from_result

ASKED = STAGES[:-1]  # the TPU compiler has tests of its own
FEW = {
    "conv": (pairs.CONV_TORCH, pairs.CONV_FLAX, pairs.CONV_FAULTS, "Net()", ["f32[2,3,10,10]"]),
    "text": (pairs.TEXT_TORCH, pairs.TEXT_FLAX, pairs.TEXT_FAULTS, None, []),
}


@pytest.fixture(scope="module")
def oracles(tmp_path_factory):
    """One oracle for each pair."""
    found = {}
    for name, (torch_text, _, _, model, inputs) in FEW.items():
        folder = tmp_path_factory.mktemp(name)
        original = folder / f"{name}_original.py"
        original.write_text(torch_text)
        found[name] = (folder / "oracle", make_oracle(original, folder / "oracle", model=model, inputs=inputs, stages=ASKED))
    return found


def judge(oracles, name, text, tmp_path, monkeypatch):
    """The verdict on a converted text; the JAX side runs in this process."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    converted = tmp_path / "converted.py"
    converted.write_text(text)
    folder, content = oracles[name]
    job = {
        "converted": str(converted),
        "roots": [],
        "oracle": str(folder),
        "out": str(tmp_path),
        "model": None,
        "target": "flax",
        "stages": list(ASKED),
    }
    result = jax_side.check(job)
    json.dumps(result)
    return from_result(result, content, 0.0, "flax", ASKED)


@pytest.mark.parametrize("name", FEW)
def test_right_counterparts_pass(name, oracles, tmp_path, monkeypatch):
    v = judge(oracles, name, FEW[name][1], tmp_path, monkeypatch)
    assert v.ok and v.reached == "jit", v.message
    assert v.compared > 20
    assert all(s.status == "passed" for s in v.stages), [s for s in v.stages if s.status != "passed"]
    assert all(r.verdict != "differs" for r in v.submodules)
    worst = max([r.units for r in v.submodules] + [t.units for t in v.outputs + v.gradients + v.state])
    assert worst < 4, f"half of the tolerance is used up: {worst}"


@pytest.mark.parametrize(("name", "fault"), [(n, f) for n in FEW for f in FEW[n][2]])
def test_planted_faults_are_caught(name, fault, oracles, tmp_path, monkeypatch):
    _, text, faults, _, _ = FEW[name]
    old, new, stage, submodule = faults[fault]
    v = judge(oracles, name, pairs.fault(text, old, new), tmp_path, monkeypatch)
    assert not v.ok
    failed = next(s for s in v.stages if s.status == "failed")
    assert failed.name in stage.split("|"), v.message
    assert v.reached == (ASKED[ASKED.index(failed.name) - 1] if failed.name != ASKED[0] else "")
    if submodule is not None:
        assert v.first is not None and v.first.module == submodule, v.first
        assert v.first.converted.file == "" or (Path(v.first.converted.file).name == "converted.py" and v.first.converted.line > 0)


def test_a_submodule_that_became_a_function_is_named(tmp_path, monkeypatch):
    """The first difference says what ran since the last that agreed, and the lines of the user's own class."""
    torch_text = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 2))

    def forward(self, x):
        return self.body(x)
"""
    flax_text = """
from functools import partial
from flax import nnx

class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.body = nnx.Sequential(nnx.Linear(4, 6, rngs=rngs), partial(nnx.gelu, approximate=True), nnx.Linear(6, 2, rngs=rngs))

    def __call__(self, x):
        return self.body(x)
"""
    original = tmp_path / "made.py"
    original.write_text(torch_text)
    pair = {"made": (tmp_path / "oracle", make_oracle(original, tmp_path / "oracle", inputs=["f32[3,4]"], stages=ASKED))}
    first = judge(pair, "made", flax_text, tmp_path, monkeypatch).first
    assert first.module == "body" and "after `body.1` (GELU)" in first.message
    assert (first.original.line, first.converted.line) == (5, 5) and first.converted.file.endswith("converted.py")


def test_what_can_not_be_traced_is_compared_and_named(oracles, tmp_path, monkeypatch):
    head, _, rest = FEW["conv"][1].rpartition("    def __call__(self, x):\n")
    reads = "        assert bool(jnp.all(x < 1e9))\n"
    v = judge(oracles, "conv", f"{head}    def __call__(self, x):\n{reads}{rest}", tmp_path, monkeypatch)
    assert not v.ok and v.reached == "steps", v.message
    failed = next(s for s in v.stages if s.status == "failed")
    assert failed.name == "jit" and failed.place.source == reads.strip(), failed
