"""Statements that a file holds as text."""
import pytest

import migrate
from migrate.source.text import read

HEAD = "class A:\n    def f(self, i, w):\n        "


@pytest.mark.parametrize(("said", "code"), [
    ("exec('self.b_0' + ' = zeros(3)')  # é", "self.b_0 = zeros(3)  # é"),
    ("exec(f'self.b_{i} = zeros(w[i+1])')", "setattr(self, f'b_{i}', zeros(w[i + 1]))"),
    ("exec(f'self.b.append(self.b_{i}_{w}x)')", "self.b.append(getattr(self, f'b_{i}_{w}x'))"),
    ("exec(f\"self.d['é'] = self.b_{i}\")", "self.d['é'] = getattr(self, f'b_{i}')"),
    ("exec(f'x{i} = 3')", None),  # binds a name
    ("exec('x = 3')", None),
    ("exec(f'self.x = {w}')", None),  # what the text says is not known
    ("exec(f'del self.x_{i}')", None),
    ("exec(w)", None),
    ("exec('self.x = 3', {})", None),
    ("exec('self.x = 3; self.y = 4')", None),
    ("exec('self.x = ')", None),
])
def test_spelled_out(said: str, code: str | None) -> None:
    assert read(f"{HEAD}{said}\n", "a.py").text == f"{HEAD}{code or said}\n"


def test_own_exec() -> None:
    text = f"from shell import run as exec\n\n\n{HEAD}exec('self.x = 3')\n"
    assert read(text, "a.py").text == text


def test_parameters() -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        for i in range(n):\n"
    text += "            exec(f'self.b_{i} = nn.Parameter(torch.zeros({i}))')\n            exec(f'self.c_{i} = nn.Parameter(torch.zeros(3))')\n"
    found = migrate.convert_source(text)
    assert "setattr(self, f'c_{i}', nnx.Param(jnp.zeros((3,))))" in found.code
    assert [d.code for d in found.diagnostics] == ["MIG301"]
