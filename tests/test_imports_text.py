"""Imports of which only some names stay."""
import ast

import pytest

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
