"""What a conversion takes along: data files beside modules, installed libraries that build on PyTorch."""
import importlib
import sys
from pathlib import Path

import pytest

import migrate
from migrate.source import installed


def test_data_files(tmp_path: Path) -> None:
    package = tmp_path / "src" / "lib"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for name in ("table.npy", "small.pt", "large.pt", "other.npy"):
        (package / "data" / name).write_bytes(name.encode())
    (package / "net.py").write_text(
        "from pathlib import Path\nimport torch\nHERE = Path(__file__).parent\n\n\ndef f(size):\n    return HERE / 'data' / 'table.npy', HERE / f'data/{size}.pt'\n"
    )
    (package / "data" / "call.jinja").write_text("{{ head }}\nimport torch\n\n\ndef call(x):\n    return torch.sin(x)\n")
    (package / "made.py").write_text("from pathlib import Path\nTEMPLATE = Path(__file__).parent / 'data' / 'call.jinja'\n")
    (tmp_path / "src" / "main.py").write_text("from lib.made import TEMPLATE\nfrom lib.net import f\nprint(f('small'), TEMPLATE)\n")
    found = migrate.convert_path(tmp_path / "src" / "main.py", tmp_path / "out")
    assert "call.jinja" in str([d for d in found.files[package / "made.py"].diagnostics if d.code == "MIG301"])
    held = {p.name for p in (tmp_path / "out" / "lib" / "data").iterdir()}
    assert held == {"table.npy", "small.pt", "large.pt"}
    assert tmp_path / "out" / "lib" / "data" / "table.npy" in found.written


def test_installed_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    for name, needs in (("onlayers", "Requires-Dist: torch>=2\n"), ("plainlib", 'Requires-Dist: torch; extra == "nn"\n')):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("from torch import nn\n\n\nclass Act(nn.Module):\n    def forward(self, x):\n        return x.relu()\n")
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
        (info / "top_level.txt").write_text(f"{name}\n")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    for cached in (installed._distributions, installed.folder_of, installed._requires_torch):
        cached.cache_clear()
    importlib.invalidate_caches()
    (tmp_path / "tools.py").write_text("from onlayers import Act\nprint(Act)\n")
    found = migrate.convert_path(tmp_path / "tools.py", tmp_path / "tools")
    assert not (tmp_path / "tools" / "onlayers").exists(), "no class needs it"
    assert "MIG502" in {d.code for c in found.files.values() for d in c.diagnostics}
    (tmp_path / "main.py").write_text("from onlayers import Act\nfrom plainlib import Act as Other\n\n\nclass Net:\n    parts = [Act, Other]\n")
    migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    assert "jax.nn.relu(x)" in (tmp_path / "out" / "onlayers" / "__init__.py").read_text()
    assert not (tmp_path / "out" / "plainlib").exists()
    for cached in (installed._distributions, installed.folder_of, installed._requires_torch):
        cached.cache_clear()


def test_registered_definitions(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(
        "import functools\n\n\nclass Table:\n    def __init__(self):\n        self.held = {}\n\n    def register(self, name):\n        return lambda f: self.held.setdefault(name, f)\n\n\n"
        "TABLE = Table()\n\n\n@TABLE.register('a')\ndef first():\n    return 1\n\n\n@functools.lru_cache\ndef other():\n    return 2\n"
    )
    (tmp_path / "main.py").write_text("import functools\nfrom parts import TABLE\n\nprint(TABLE.held, functools)\n")
    migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    text = (tmp_path / "out" / "parts.py").read_text()
    assert "def first" in text and "def other" not in text


def test_alias_of_a_class_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("from parts.inner import Maker\nM = Maker\n")
    (tmp_path / "parts" / "inner.py").write_text("import torch.nn as nn\n\n\ndef make(n):\n    return nn.Linear(n, n)\n\n\nclass Maker:\n    pass\n\n\nMaker.make = staticmethod(make)\n")
    (tmp_path / "main.py").write_text("import torch.nn as nn\nfrom parts import M\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = M.make(3)\n")
    migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    assert "M.make(3, rngs=rngs)" in (tmp_path / "out" / "main.py").read_text()


def test_names_looked_up_in_globals(tmp_path: Path) -> None:
    (tmp_path / "acts.py").write_text(
        "import torch.nn as nn\n\n\nclass Act(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.a = nn.Linear(n, n)\n\n\ndef get(name):\n    return globals().get(name)\n"
    )
    (tmp_path / "main.py").write_text("import torch.nn as nn\nfrom acts import get\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = get('Act')(3)\n")
    migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    assert "class Act" in (tmp_path / "out" / "acts.py").read_text()
    assert "build(get('Act'), 3, rngs=rngs)" in (tmp_path / "out" / "main.py").read_text()


def test_names_from_star_imports_of_other_libraries(tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text("from colorsys import *\n")
    (tmp_path / "parts.py").write_text("from names import *\n\n\nclass Shade:\n    def to(self, *c):\n        return rgb_to_hsv(*c)\n")
    (tmp_path / "main.py").write_text("from parts import Shade\n\nprint(Shade)\n")
    migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    assert "from names import *" in (tmp_path / "out" / "parts.py").read_text()
    assert "from colorsys import *" in (tmp_path / "out" / "names.py").read_text()


def test_what_registers_a_class_at_import_is_kept(tmp_path: Path) -> None:
    """`register("conv", Conv)` at the top of a module runs when it is imported; other calls there may go."""
    (tmp_path / "table.py").write_text("TABLE = {}\n\n\ndef register(name, made):\n    TABLE[name] = made\n\n\ndef note(name):\n    print(name)\n")
    (tmp_path / "blocks.py").write_text(
        "from torch import nn\nfrom table import note, register\n\n\nclass Conv(nn.Module):\n    def forward(self, x):\n        return x\n\n\nregister('conv', Conv)\nnote('conv')\n\n\ndef size():\n    return 3\n"
    )
    (tmp_path / "model.py").write_text("from blocks import size\nfrom table import TABLE\n\n\ndef make():\n    return TABLE['conv'](), size()\n")
    found = migrate.convert_path(tmp_path / "model.py", tmp_path / "out")
    code = {p.name: c.code for p, c in found.files.items()}
    assert "register('conv', Conv)" in code["blocks.py"] and "class Conv(nnx.Module)" in code["blocks.py"]
    assert "note('conv')" not in code["blocks.py"]


def test_names_looked_up_in_the_module_of_a_function_are_kept(tmp_path: Path) -> None:
    """A decorator that reads `defaults` of the module in which the decorated function stands."""
    (tmp_path / "table.py").write_text(
        "import sys\n\nSIZES = {}\n\n\ndef register(fn):\n    module = sys.modules[fn.__module__]\n    SIZES[fn.__name__] = module.defaults[fn.__name__]\n    return fn\n"
    )
    (tmp_path / "net.py").write_text(
        "from torch import nn\nfrom table import SIZES, register\n\ndefaults = {'small': 3}\nunused = {'small': 4}\n\n\n@register\ndef small():\n    return nn.Linear(SIZES['small'], 2)\n"
    )
    (tmp_path / "model.py").write_text("from net import small\n\n\ndef make():\n    return small()\n")
    found = migrate.convert_path(tmp_path / "model.py", tmp_path / "out")
    code = {p.name: c.code for p, c in found.files.items()}["net.py"]
    assert "defaults = {'small': 3}" in code and "unused" not in code


def test_headings_and_gaps_of_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(
        "# Licence.\nimport math\n\nfrom random import random\n\nimport torch\n\n# constants\n\nLIMIT = 3\n\n# helpers\n\ndef used(x: torch.Tensor):\n    # inside\n    return x.sin() * math.pi\n\n\n"
        "# datasets\n\n\nclass Data:\n    # far\n    pass\n\n# training\n\n\nclass Trainer:\n    pass\n\n# a last word\n"
    )
    (tmp_path / "main.py").write_text("from parts import used\n\nprint(used)\n")
    migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    text = (tmp_path / "out" / "parts.py").read_text()
    assert text == (
        "# Licence.\nimport math\n\nimport jax\nimport jax.numpy as jnp\n\n\n# helpers\n\ndef used(x: jax.Array):\n    # inside\n    return jnp.sin(x) * math.pi\n\n\n# a last word\n"
    )


def test_star_imports_that_have_a_name_come_before_those_that_may(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text("from unknownlib import *\n")
    (tmp_path / "core.py").write_text("from torch import nn\n\n\nclass Base(nn.Module):\n    pass\n")
    (tmp_path / "every.py").write_text("from base import *\nfrom core import *\n")
    (tmp_path / "main.py").write_text("from every import *\n\n\nclass Net(Base):\n    def forward(self, x):\n        return x.relu()\n")
    migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    assert "class Base(nnx.Module)" in (tmp_path / "out" / "core.py").read_text()
    assert "jax.nn.relu(x)" in (tmp_path / "out" / "main.py").read_text()


def test_names_that_a_function_binds_itself_need_nothing(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "kept = {}\n\nfor o in ('a', 'b'):\n    kept[o] = print\n\n\ndef scale(n):\n    return n\n\n\ndef size():\n    return 3\n\n\n"
        "def used(n, size=size()):\n    scale = 2\n    return [o * scale for o in range(n) if n < size], (lambda kept: kept)(n)\n"
    )
    (tmp_path / "main.py").write_text("from tools import used\n\nprint(used(3))\n")
    migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    text = (tmp_path / "out" / "tools.py").read_text()
    assert "def size" in text and "def scale" not in text and "for o in (" not in text


def test_names_in_settings_that_a_package_searches(tmp_path: Path) -> None:
    package = tmp_path / "src" / "lib"
    (package / "cfg").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "cfg" / "small.yaml").write_text("layers:  # nn.Conv3d\n  - [nn.Upsample, 2]\n")
    (package / "cfg" / "notes.txt").write_text("no settings")
    (package / "net.py").write_text(
        "import glob\nfrom pathlib import Path\nfrom torch import nn\nROOT = Path(__file__).parent\n\n\n"
        "def find(name):\n    return glob.glob(str(ROOT / '**' / (name + '.yaml')), recursive=True), '.yaml'\n\n\ndef make(name):\n    return getattr(nn, name[3:])(2)\n"
    )
    (tmp_path / "src" / "main.py").write_text("from lib.net import find, make\nprint(find('small'), make('nn.Upsample'))\n")
    migrate.convert_path(tmp_path / "src" / "main.py", tmp_path / "out")
    assert {p.name for p in (tmp_path / "out" / "lib" / "cfg").iterdir()} == {"small.yaml"}
    assert 'LAYERS = {"Upsample": Upsample}' in (tmp_path / "out" / "lib" / "net.py").read_text()


KERNELS = "from torch import nn\ntry:\n    from {first} import Norm as LayerNorm\nexcept ImportError:\n    from {second} import LayerNorm\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.norm = LayerNorm(4)\n"


def test_imports_that_stand_in_for_one_another(tmp_path: Path) -> None:
    """An extension of PyTorch's is tried first; what is known comes before it, and nothing before what is local."""
    (tmp_path / "fast.py").write_text("from torch import nn\n\n\nclass Norm(nn.Module):\n    def forward(self, x):\n        return x * 2\n")
    for first, second, made in (
        ("some_kernels.norms", "torch.nn", "nnx.LayerNorm(4,"), ("fast", "torch.nn", "LayerNorm(rngs=rngs)"), ("torch.nn", "some_kernels.norms", "nnx.LayerNorm(4,"),
    ):
        text = KERNELS.format(first=first, second=second).replace("Norm as LayerNorm", "LayerNorm" if first == "torch.nn" else "Norm as LayerNorm")
        (tmp_path / "net.py").write_text(text.replace("LayerNorm(4)", "LayerNorm()") if first == "fast" else text)
        found = migrate.convert_path(tmp_path / "net.py", tmp_path / "out")
        assert made in found.files[tmp_path / "net.py"].code, first


def test_options_of_functions_are_refused() -> None:
    """An activation is a function here and keeps no options."""
    found = migrate.convert_source("from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.act = nn.ELU(0.5)\n\n    def forward(self, x):\n        return self.act(x) * self.act.alpha\n", target="flax")
    assert [d.line for d in found.diagnostics if d.code == "MIG301"] == [10]


@pytest.mark.parametrize(("name", "kept"), [("self.kind", True), ("'Wide'", True), ("'Small'", False)])
def test_classes_by_name(tmp_path: Path, name: str, kept: bool) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("")
    block = "class {}(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.lin = nn.Linear(n, n)\n\n\n"
    (tmp_path / "lib" / "blocks.py").write_text(f"import torch.nn as nn\n\n\n{block.format('Small')}{block.format('Wide')}TABLE = 3\n")
    (tmp_path / "lib" / "config.py").write_text(
        f"class Config:\n    kind = 'Wide'\n\n    @property\n    def block(self) -> type:\n        import lib.blocks\n\n        return getattr(lib.blocks, {name})\n"
    )
    (tmp_path / "main.py").write_text(
        "import torch.nn as nn\nfrom lib.config import Config\n\n\nclass Net(nn.Module):\n    def __init__(self, config: Config):\n        super().__init__()\n        self.block = config.block(3)\n"
    )
    found = migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    blocks = found.files[tmp_path / "lib" / "blocks.py"].code
    assert ("class Wide(nnx.Module)" in blocks) == kept and "TABLE" not in blocks
    assert "config.block(3, rngs=rngs)" in found.files[tmp_path / "main.py"].code


@pytest.mark.parametrize("said", ["from .data import other, Table", "from .data import other"])
def test_module_that_a_package_loads(tmp_path: Path, said: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text(f"{said}\nfrom .net import Net\n")
    (tmp_path / "lib" / "data.py").write_text("class Table:\n    n = 3\n\n\ndef other():\n    return 4\n")
    (tmp_path / "lib" / "net.py").write_text(
        "import torch.nn as nn\nimport lib\n\n\nclass Net(nn.Module):\n    def __init__(self, table: lib.data.Table):\n        super().__init__()\n        self.lin = nn.Linear(table.n, lib.data.Table.n)\n"
    )
    (tmp_path / "main.py").write_text("from lib.net import Net\n")
    found = migrate.convert_path(tmp_path / "main.py", tmp_path / "out")
    package = found.files[tmp_path / "lib" / "__init__.py"].code
    assert package.strip() == ("from .data import Table" if "Table" in said else said)
