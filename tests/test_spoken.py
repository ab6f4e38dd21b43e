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


TO = "def to(t):\n    return {'device': t.device, 'dtype': t.dtype}\n\n\n"


@pytest.mark.parametrize(("head", "said", "code"), [
    (TO, "torch.zeros((n, 1), **to(x))", "torch.zeros((n, 1), device = x.device, dtype = x.dtype)"),
    ("def to(t):\n    return dict(dtype=t.dtype)\n\n\n", "[f(1, **to(x)), f('é', **to(y))]", "[f(1, dtype = x.dtype), f('é', dtype = y.dtype)]"),
    (TO, "f(**to(x), dtype=None)", None),
    (TO, "f(**to(x + 1))", None),  # made once
    (f"{TO}from a import to\n", "f(**to(x))", None),
    ("def to(t):\n    return {'device': t.device, 'dtype': t.type}, 3\n\n\n", "f(**to(x))", None),
    ("def to(t):\n    return {'bias': t.dtype}\n\n\n", "f(**to(x))", None),
    ("def to(t, n=1):\n    return {'dtype': t.dtype}\n\n\n", "f(**to(x))", None),
])
def test_written_out(head: str, said: str, code: str | None) -> None:
    assert read(f"{head}{HEAD}{said}\n", "a.py").text == f"{head}{HEAD}{code or said}\n"


def test_mapping_of_placement() -> None:
    found = migrate.convert_source(f"import torch\n\n\n{TO}def pad(x: torch.Tensor):\n    return torch.zeros((3, 1), **to(x))\n")
    assert "    return jnp.zeros((3, 1), dtype=x.dtype)\n" in found.code
    assert not [d for d in found.diagnostics if d.severity == "error"]


ADD = "class Mixin:\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n        self.key = 3\n\n\ndef added(cls):\n    cls.__bases__ = (Mixin,) + {}\n    return cls\n\n\n"
NET = "@added\nclass Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.lin = nn.Linear(n, self.key)\n"


@pytest.mark.parametrize(("kept", "changed"), [("cls.__bases__", True), ("tuple(\n        b for b in cls.__bases__ if b != Mixin\n    )", True), ("(object,)", False)])
def test_bases_named(kept: str, changed: bool) -> None:
    text = f"import torch.nn as nn\n\n\n{ADD.format(kept)}{NET}"
    wanted = text.replace("@added\n", "\n").replace("Net(nn", "Net(Mixin, nn") if changed else text
    assert read(text, "a.py").text == wanted


def test_given_base() -> None:
    found = migrate.convert_source(f"import torch.nn as nn\n\n\n{ADD.format('cls.__bases__')}{NET}")
    ns: dict[str, object] = {}
    exec(found.code, ns)
    from flax import nnx

    assert ns["Net"](2, rngs=nnx.Rngs(0)).lin.kernel.shape == (2, 3)  # type: ignore[operator]
