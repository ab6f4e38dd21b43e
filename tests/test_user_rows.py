"""Rows that users add, the errors for bad ones, and `migrate draft`."""

import tomllib

import pytest

import migrate
from migrate import settings
from migrate.cli.main import run
from migrate.report import draft
from migrate.tables import TableError, read

ROWS = """
[[op]]
torch = "my_ops.fused_bias_gelu"
signature = "(input, bias, *, scale=1.0)"
imports = ["from my_jax_ops import fused_bias_gelu as fused"]
  [[op.jax]]
  to = "fused(input, bias, scale=scale)"
[[op]]
torch = "torch.frobnicate"
methods = ["frobnicate"]
signature = "(input, n=2)"
  [[op.jax]]
  to = "jnp.sin(input) * n"
[[op]]
torch = "torch.sin"
signature = "(input)"
  [[op.jax]]
  reason = "no sines here"
"""
SOURCE = "import torch\nfrom my_ops import fused_bias_gelu\n\n\ndef f(x: torch.Tensor, b):\n    return fused_bias_gelu(x, b, scale=2), x.frobnicate(3), torch.frobnicate(x), x.cos()\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.migrate]\nmappings = ["rows/ops.toml"]\n')
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "ops.toml").write_text(ROWS)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "net.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("target", ["flax", "keras"])
def test_rows_of_a_project(project, target):
    made = migrate.convert_path("src/net.py", project / "out", target=target)
    code = (project / "out" / "net.py").read_text()
    assert "import jax.numpy as jnp\nfrom my_jax_ops import fused_bias_gelu as fused\n" in code
    assert "    return fused(x, b, scale=2), jnp.sin(x) * 3, jnp.sin(x) * 2, jnp.cos(x)\n" in code
    assert not [d for c in made.files.values() for d in c.diagnostics if d.severity != "info"]
    assert "import torch" not in code and "my_ops import" not in code


def test_a_row_takes_the_place_of_ours(project, capsys):
    (project / "src" / "net.py").write_text("import torch\n\n\ndef f(x):\n    return torch.sin(x)\n")
    made = migrate.convert_path("src/net.py", project / "out")
    assert [d.code for c in made.files.values() for d in c.diagnostics] == ["MIG302"]
    assert run(["ops", "frobnicate"]) == 0
    assert "jnp.sin(input) * n" in capsys.readouterr().out


def test_rows_hold_for_their_project_only(project, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "net.py").write_text(SOURCE)
    made = migrate.convert_path(elsewhere / "net.py", elsewhere / "out")
    assert "MIG301" in [d.code for c in made.files.values() for d in c.diagnostics]


BAD = {
    "no equals": ("[[op]]\ntorch 3\n", "ops.toml: Expected '=' after a key"),
    "no name": ('[[op]]\nsignature = "(x)"\n', r"ops.toml: \[\[op\]\] number 1 says not what it is for"),
    "a lost parameter": (
        '[[op]]\ntorch = "a.b"\nsignature = "(x, y)"\n[[op.jax]]\nto = "jnp.sin(x)"\n',
        r"ops.toml: a.b, jax: `jnp.sin\(x\)` does not account for y",
    ),
    "an unknown key": ('[[op]]\ntorch = "a.b"\nfoo = 3\n', "ops.toml: a.b: unknown keys: foo"),
    "neither to nor reason": (
        '[[op]]\ntorch = "a.b"\nsignature = "(x)"\n[[op.jax]]\nnote = "x"\n',
        "a.b: a variant has either `to` or `reason`",
    ),
    "a name that nothing binds": (
        '[[op]]\ntorch = "a.b"\nsignature = "(x)"\n[[op.jax]]\nto = "fused(x)"\n',
        r"a.b: `fused\(x\)`: nothing binds fused; add imports = ",
    ),
    "a bad import": (
        '[[op]]\ntorch = "a.b"\nimports = ["import a, b"]\nsignature = "(x)"\n[[op.jax]]\nto = "x"\n',
        "a.b: imports: 'import a, b' is not one import",
    ),
    "a bad template": ('[[op]]\ntorch = "a.b"\nsignature = "(x)"\n[[op.jax]]\nto = "jnp.sin(x"\n', "a.b: .*never closed"),
    "a bad signature": ('[[op]]\ntorch = "a.b"\nsignature = "(x"\n[[op.jax]]\nto = "x"\n', "a.b: "),
    "a variant that is no table": ('[[op]]\ntorch = "a.b"\nsignature = "(x)"\njax = "x"\n', "a.b: "),
    "twice": ('[[op]]\ntorch = "a.b"\nsignature = "(x)"\n[[op.jax]]\nto = "x"\n' * 2, "`a.b` is already a name of a.b"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_row_is_told(project, kind, capsys):
    text, message = BAD[kind]
    (project / "rows" / "ops.toml").write_text(text)
    settings._table.cache_clear()
    with pytest.raises(TableError, match=message):
        settings.table_for(project / "src")
    assert run(["convert", "src/net.py"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("migrate: ") and "ops.toml" in told and len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.migrate]\nmappings = ["gone.toml"]\n', "no such file: .*gone.toml"),
        ('[tool.migrate]\nmappings = "rows/ops.toml"\n', "mappings is a list of files"),
        ("[tool.migrate]\nmapings = []\n", "unknown keys: mapings"),
        ("[tool\n", "pyproject.toml: "),
    ],
)
def test_a_bad_setting_is_told(project, text, message):
    (project / "pyproject.toml").write_text(text)
    with pytest.raises(TableError, match=message):
        settings.table_for(project / "src" / "net.py")


def test_rows_of_installed_packages(tmp_path, monkeypatch):
    package = tmp_path / "rows_of_mine"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "ops.toml").write_text(ROWS)
    info = tmp_path / "rows_of_mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rows-of-mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[migrate.mappings]\nmine = rows_of_mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    settings._installed_files.cache_clear()
    try:
        assert settings.table_for(tmp_path).get("torch.frobnicate") is not None
        (info / "entry_points.txt").write_text("[migrate.mappings]\nmine = rows_of_nobody\n")
        settings._installed_files.cache_clear()
        with pytest.raises(TableError, match="rows_of_nobody"):
            settings.table_for(tmp_path)
    finally:
        monkeypatch.undo()
        settings._installed_files.cache_clear()


def test_draft(capsys):
    assert run(["draft", "torch.cummax"]) == 0
    told = capsys.readouterr().out
    row = tomllib.loads(told)["op"][0]
    assert row["signature"] == "(input, dim)" and row["methods"] == ["cummax"] and row["returns"] == "tensors"
    assert "is known already" in told
    read(told, "draft.toml")  # it is a row that loads
    assert run(["draft", "torch.no_such_thing"]) == 1
    assert run(["draft", "torch.linalg.svd"]) == 0
    row = tomllib.loads(capsys.readouterr().out)["op"][0]
    assert row["signature"] == "(A, full_matrices=True, *, driver=None)" and "methods" not in row and row["jax"][0]["to"].startswith("jnp.linalg.svd(")


def test_drafts_from_what_pytorch_says():
    asked = draft.Asked(True, "2", doc="foo(input, other, *, alpha=1, out=None) -> Tensor\n\nFoos.", method=True)
    assert 'signature = "(input, other, *, alpha=1)"' in draft.draft("torch.foo", asked)
    asked = draft.Asked(
        True,
        "2",
        layer=True,
        signature="(self, n: int, bias: bool = True, device=None, dtype=None) -> None",
        call="(self, input: Tensor) -> Tensor",
    )
    layer = tomllib.loads(draft.draft("torch.nn.Foo", asked))["layer"][0]
    assert layer["signature"] == "(n, bias=True)" and layer["call"] == "(input)"
    asked = draft.Asked(
        True,
        "2",
        schemas=[
            "aten::foo.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
            "aten::foo(Tensor self, int[1] dim, bool keepdim=False) -> (Tensor, Tensor)",
        ],
    )
    assert 'signature = "(input, dim, keepdim=False)"' in draft.draft("torch.foo", asked)
    assert "PyTorch is not installed here" in draft.draft("torch.foo", None)


def test_coverage(capsys):
    assert run(["ops", "--coverage"]) == 0
    assert "layers" in (told := capsys.readouterr().out) and "flax: whole" in told
