"""Inputs and constructors that nobody named: from a table, from the file, by trial; and the whole way of `convert --check`."""

import json

import pytest
import torch
import torch.nn as nn

from migrate.check import guess, settings, shapes, spec, torch_plan, trial
from migrate.cli.main import run

NETS = {
    "picture": (nn.Sequential(nn.Conv2d(5, 4, 3), nn.ReLU()), "f32[2,5,32,32]"),
    "row": (nn.Sequential(nn.Linear(7, 3)), "f32[2,7]"),
    "sound": (nn.Sequential(nn.Conv1d(6, 4, 9)), "f32[2,6,64]"),
    "words": (nn.Sequential(nn.Embedding(31, 4)), "i64[2,12](0,31)"),
    "corrected": (nn.Sequential(nn.Flatten(), nn.Linear(48, 3)), "f32[2,48]"),
}


@pytest.mark.parametrize("name", NETS)
def test_first_layers_tell(name):
    model, expected = NETS[name]
    assert trial.find_inputs(model.eval()) == ((expected,), "")


class Told(nn.Module):
    """Sums, of x: (B, 4, 9)."""

    def forward(self, x):
        b, c, n = x.shape
        assert (c, n) == (4, 9)
        return x.sum(-1)


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x, mask=None, *, scale: float):
        return self.fc(x) * scale


class Never(nn.Module):
    def forward(self, x):
        raise ValueError("not today")


def test_docstrings_and_annotations_tell():
    assert trial.find_inputs(Told()) == (("f32[2,4,9]",), "")
    assert trial.find_inputs(Two()) == (("f32[2,8]", "scale=0.5"), "")
    found, problem = trial.find_inputs(Never(), seconds=5)
    assert found == () and "not today" in problem


def test_complaints_correct_the_shape():
    (fixed,) = trial.corrected([spec.parse("f32[2,3,8,8]")], "expected input[2, 3, 8, 8] to have 6 channels, but got 3 channels instead")
    assert fixed.shape == (2, 6, 8, 8)
    (fixed,) = trial.corrected([spec.parse("f32[2,16]")], "mat1 and mat2 shapes cannot be multiplied (2x16 and 40x3)")
    assert fixed.shape == (2, 40)
    assert trial.corrected([spec.parse("f32[2,16]")], "something else") is None


def test_shapes_in_words():
    assert [s.shape for s in shapes.from_text("x: [batch, 3, H, W]\nother: (B, 7)", "x")] == [(2, 3, 32, 32)]


class Settings:
    width = 8


class Typed(nn.Module):
    def __init__(self, in_channels: int, num_heads, config: Settings, act_layer=None):
        super().__init__()


class Unguessable(nn.Module):
    def __init__(self, backbone):
        super().__init__()


def test_constructors_are_guessed_and_not_where_there_is_no_idea():
    first = next(guess.constructions(Typed, {"Settings": Settings}))
    assert guess.expression("Typed", first) == "Typed(in_channels=3, num_heads=4, config=Settings())"
    assert list(guess.constructions(Unguessable, {})) == []


FILE = """
import torch
import torch.nn as nn


class Part(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.fc(x))


class Whole(nn.Module):
    def __init__(self, width, odd):
        super().__init__()
        assert width == 11 and odd == "yes"
        self.part = Part(width)

    def forward(self, x):
        return self.part(x) + x


class Needy(nn.Module):
    def __init__(self, backbone):
        super().__init__()

    def forward(self, x):
        return x


if __name__ == "__main__":
    model = Whole(11, odd="yes")
    print(model(torch.zeros(3, 5, 11)).shape)
    raise SystemExit("not reached")
"""


def test_the_main_block_tells(tmp_path):
    (tmp_path / "net.py").write_text(FILE)
    entries = {e["name"]: e for e in torch_plan.plan({"original": str(tmp_path / "net.py"), "roots": []})}
    assert entries["Whole"]["expression"] == "Whole(11, odd='yes')" and entries["Whole"]["inputs"] == ["f32[3,5,11]"]
    assert entries["Part"]["part_of"] == "Whole"
    assert entries["Needy"]["reason"]


def test_convert_and_check_with_nothing_else(tmp_path, monkeypatch, capfd):
    """The class that can be built is checked, with its parts; the one that can't is named, and is no success."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FILE)
    assert run(["convert", "net.py", "--check", "--html", "report.html"]) == 1
    out = capfd.readouterr().out
    assert "checking Whole(11, odd='yes') on f32[3,5,11] (found by trial), with its parts Part" in out
    assert "equal" in out and "not checked: Needy" in out
    assert "Whole(11" in (tmp_path / "report.html").read_text()


def test_the_table_of_a_project(tmp_path):
    (tmp_path / "net.py").write_text("class Net(object):\n    pass\n")
    (tmp_path / "pyproject.toml").write_text('[tool.migrate.check.Net]\nmodel = "Net(3)"\ninput = ["f32[2,3]"]\n[tool.migrate.check.Other]\ninput = []\n')
    assert settings.settings_of(tmp_path / "net.py") == [settings.Setting("Net", "Net(3)", ("f32[2,3]",))]
    (tmp_path / "pyproject.toml").write_text("[tool.migrate.check.Net]\nmodle = 3\n")
    with pytest.raises(settings.SettingsError, match="Net"):
        settings.settings_of(tmp_path / "net.py")


def test_specs_are_written_as_they_are_read():
    for text in ("f32[2,3]", "i64[2,12](0,50)", "mask=bool[2,5]", "size=(2, 3)", "None"):
        assert spec.text(spec.parse(text)) == text
    assert json.dumps(spec.text(spec.Spec("", "int64", (torch.Size([2])[0],), 0.0, 5.0))) == '"i64[2](0,5)"'
