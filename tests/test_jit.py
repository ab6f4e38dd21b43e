"""What is known while tracing stays known: converted code gives the same under `jax.jit` as eagerly, and as PyTorch."""
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import migrate

HEAD = "import torch\nimport torch.nn as nn\n\n\n"
GUARD = "def f(x: torch.Tensor):\n    if (x < 0).any():\n        raise ValueError('below 0')\n    return x * 2\n"
SEVERAL = "def f(x: torch.Tensor):\n    if x.dim() > 1 and not (x >= 0).all():\n        raise ValueError('below 0')\n    return x * 2\n"
CASES = {
    "guard": GUARD,
    "several": SEVERAL,
    "range": "def f(x: torch.Tensor):\n    return x.mean(torch.arange(1, x.dim()).tolist())\n",
    "mask": "def f(x: torch.Tensor):\n    keep = ~torch.eye(x.shape[-1]).bool()\n    return x.masked_select(keep).reshape(x.shape[0], -1), x[:, keep[0]]\n",
    "selected": "def f(x: torch.Tensor):\n    low = x < 3\n    if low.any():\n        y = (x - 1).abs()\n        x = torch.where(low, y, x)\n    return x\n",
    "flag": "def g(x, mode):\n    return x + 1 if mode else x - 1\n\n\ndef f(x: torch.Tensor):\n    return g(x, torch.tensor(False))\n",
}


def load(source: str, converted: bool, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("case")
    code = HEAD + source
    if converted:
        found = migrate.convert_source(code, target="flax", filename="case.py")
        support = types.ModuleType("torch_support")
        for text in found.support.values():
            exec(text, support.__dict__)
        monkeypatch.setitem(__import__("sys").modules, "torch_support", support)
        code = found.code
    exec(code, module.__dict__)
    return module


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("start", [0, 5])
def test_same_under_jit(name: str, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original, made = load(CASES[name], False, monkeypatch), load(CASES[name], True, monkeypatch)
    x = np.arange(start, start + 9, dtype=np.float32).reshape(3, 3)
    want = jax.tree.map(np.asarray, original.f(torch.from_numpy(x)), is_leaf=torch.is_tensor)
    for f in (made.f, jax.jit(made.f)):
        jax.tree.map(np.testing.assert_array_equal, f(jnp.asarray(x)), want)


@pytest.mark.parametrize("source", [GUARD, SEVERAL])
def test_checks_where_values_are_known(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = load(source, True, monkeypatch)
    with pytest.raises(ValueError, match="below 0"):
        made.f(jnp.asarray([[-1.0, 2.0]]))
    assert jax.jit(made.f)(jnp.asarray([[-1.0, 2.0]])).tolist() == [[-2.0, 4.0]]
