"""What is done otherwise for large models comes to the same: no copy in float64, gradients compared as they come."""

import copy
import json

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from migrate.check import oracle, torch_sides
from migrate.check.store import Reader, Writer
from migrate.check.torch_gradients import gradients
from migrate.check.torch_sides import Sides


class Tied(nn.Module):
    """A tied weight, statistics, and something computed once."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.words.weight
        self.scale = torch.tensor(0.1)

    def forward(self, ids, x):
        if not hasattr(self, "ramp"):
            self.ramp = torch.linspace(0, 1, 6) * self.scale
        return self.head(self.norm(self.words(ids) + x + self.ramp))


class Borrows(Tied):
    """It looks at the weight of a module that it does not call."""

    def forward(self, ids, x):
        return F.linear(super().forward(ids, x)[:, :6] * self.norm.weight.exp(), self.head.weight)


class Attends(nn.Module):
    """Attention, whose projection is a module that it does not call."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.attention = nn.MultiheadAttention(6, 2)

    def forward(self, ids, x):
        y = self.words(ids) + x
        return self.attention(y, y, y)[0]


MODELS = (Tied, Borrows, Attends)


def both(monkeypatch, cls):
    """Sides with a copy, and without."""
    torch.manual_seed(0)
    model = cls().eval()
    plain = Sides(copy.deepcopy(model), cls)
    monkeypatch.setattr(torch_sides, "LARGE", 0)
    return plain, Sides(model, cls), ((torch.arange(4), torch.randn(4, 6)), {})


def forward(model, given):
    args, kwargs = given
    with torch.no_grad():
        return model(*args, **kwargs)


@pytest.mark.parametrize("cls", MODELS)
def test_a_model_in_turns_gives_what_a_copy_gives(monkeypatch, cls):
    plain, turns, values = both(monkeypatch, cls)
    for train in (False, True, False):
        for sides in (plain, turns):
            for model in set(sides.models.values()):
                model.train(train)
        (want, _), (got, _) = plain.each(forward, values), turns.each(forward, values)
        assert list(got) == ["f32", "f64", "near"] and got["f64"].dtype is torch.float64
        assert all(torch.equal(got[s], want[s]) for s in ("f32", "f64"))
        off, usual = ((r["near"] - r["f64"]).abs().max() for r in (got, want))  # a tied weight is off elsewhere
        assert usual / 8 < off < usual * 8
    assert not turns.failed and turns._whole == (cls is Borrows)
    model = turns.models["f32"]
    assert all(p.dtype is torch.float32 for p in [*model.parameters(), *model.buffers()] if p.is_floating_point())
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), plain.models["f32"].parameters(), strict=True))


@pytest.mark.parametrize("cls", MODELS)
def test_gradients_that_are_compared_as_they_come_are_the_same(monkeypatch, tmp_path, cls):
    plain, turns, values = both(monkeypatch, cls)
    found = []
    for sides, large, folder in ((plain, 10**9, tmp_path / "copy"), (turns, 0, tmp_path / "turns")):
        folder.mkdir()
        monkeypatch.setattr(torch_sides, "LARGE", large)
        writer = Writer(folder)
        made = gradients(sides, values, writer)
        writer.flush()
        found.append((made, Reader(folder, writer.files)))
    (want, a), (got, b) = found
    assert not turns.failed and not got["skipped"] and got["parameters"].keys() == want["parameters"].keys()
    for leaf, other in zip([*want["parameters"].values(), want["inputs"][1]], [*got["parameters"].values(), got["inputs"][1]], strict=True):
        assert leaf["path"] == other["path"] and (a.get(leaf["key"]) == b.get(other["key"])).all()
        assert leaf["own"] / 50 < other["own"] < leaf["own"] * 8  # a smaller model is looked at more often


def test_a_reader_follows_what_is_made(tmp_path):
    following = oracle.Following(tmp_path)
    oracle.publish(tmp_path, {"model": "Net()", "files": {"a": "one"}})
    files = following["files"]
    assert following["model"] == "Net()" and files == {"a": "one"}
    oracle.write(tmp_path, {"version": oracle.VERSION, "model": "Net()", "runs": [], "files": {"a": "one", "b": "two"}})
    assert following["runs"] == [] and files == {"a": "one", "b": "two"} and following.whole
    assert following.get("gradients") is None and not (tmp_path / oracle.PART).exists()
    assert json.loads(json.dumps(following))["model"] == "Net()"
