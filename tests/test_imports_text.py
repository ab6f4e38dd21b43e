"""Imports of which only some names stay."""
import ast

import pytest

import migrate
from migrate.source.text import import_text

NAMES = [f"name_number_{i}" for i in range(40)]


@pytest.mark.parametrize("text", [
    f"from a.b import {', '.join(NAMES)}",
    "from a.b import \\\n " + ", ".join(NAMES),
    "from a.b import (\n    " + ",\n    ".join(NAMES) + ",\n)",
    "from a.b import (\n    " + ", ".join(NAMES[:20]) + ",\n    " + ", ".join(NAMES[20:]) + ")",
    "from . import (\n    " + ",\n    ".join(f"{n} as x{i}" for i, n in enumerate(NAMES)) + ")",
    "import a, \\\n    b",
])
@pytest.mark.parametrize("kept", [1, 13, 39])
def test_no_more_lines_and_the_same_names(text: str, kept: int) -> None:
    node = ast.parse(text).body[0]
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    made = import_text(node, node.names[:kept])
    again = ast.parse(made).body[0]
    assert ast.dump(ast.Module([again], [])) == ast.dump(ast.Module([type(node)(**{**dict(ast.iter_fields(node)), "names": node.names[:kept]})], []))
    assert made.count("\n") <= text.count("\n")
    if text.count("\n") > 20 and kept == 13:
        assert max(map(len, made.splitlines())) <= 120


@pytest.mark.parametrize(
    "text, new",
    [
        ("import torch\n\n\ndef f(x):\n    return torch.sin(x)\n", "import jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.sin(x)\n"),
        ("import torch\n\nimport numpy\n\nx = torch.ones(numpy.pi)\n", "import jax.numpy as jnp\nimport numpy\n\nx = "),
        ("import torch\nfrom torch import nn\n\n\ndef f(x):\n    return torch.sin(x), isinstance(x, nn.Linear)\n", "import jax.numpy as jnp\nfrom flax import nnx\n\n\ndef f(x):\n"),
        ("import torch\n\nif torch.cuda.is_available():\n    import os\n\n\ndef f(x):\n    return torch.sin(x)\n", "import jax.numpy as jnp\n\n\ndef f(x):"),
        ("import torch\n\n\ndef f(x):\n    return 3\n", "\ndef f(x):\n    return 3\n"),
    ],
)
def test_the_blank_lines_after_a_lone_import_stay_where_another_takes_its_place(text, new):
    assert migrate.convert_source(text).code.startswith(new)
