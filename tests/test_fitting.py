"""Support code that is fitted to its calls: what it loses, what it keeps on any doubt, and that the values stay."""
import ast
import textwrap

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrate
from migrate.fitting.extract import load, used_by
from migrate.fitting.fitting import Fitting
from migrate.fitting.folding import Folder
from migrate.fitting.receivers import settled
from migrate.fitting.uses import words_of

POOL = '''
def pool(x, size, gap=1, places=False):
    """Pools."""
    if places:
        return helper(x, size)
    # a gap
    if gap > 1 and size:
        x = x[::gap]
    return x
'''
HELPER = 'def helper(x, size):\n    """Helps."""\n    return x\n'
LAYER = '''
class Layer(nnx.Module):
    """Pools."""

    def __init__(self, size, gap=1, mode="zeros", *, rngs=None):
        self.size, self.gap, self.mode = size, gap, mode

    def __call__(self, x):
        if self.mode != "zeros":
            return helper(x, self.size)
        return pool(x, self.size, self.gap)
'''


def fit(words: str, *texts: str, roots: str = "pool") -> dict[str, str]:
    given = {ast.parse(t.strip()).body[0].name: t.strip() for t in texts}  # type: ignore[attr-defined]
    return Fitting(given, roots.split(), words.split("; ")).run()


def test_what_no_call_passes_goes() -> None:
    found = fit("pool(_, 2)", POOL, HELPER)
    assert found == {"pool": 'def pool(x, size):\n    """Pools."""\n    return x'}


def test_what_a_call_passes_stays() -> None:
    assert fit("pool(_, 2); pool(_, 3, places=_)", POOL, HELPER)["pool"].startswith("def pool(x, size, places=False):")
    assert fit("pool(_, 2); pool(_, 3, _, _)", POOL, HELPER)["pool"] == POOL.strip()


@pytest.mark.parametrize("words", ["=pool", "pool(_, 2); =pool", "", "pool(_, 2); type()"])
def test_other_uses_keep_the_general_form(words: str) -> None:
    given = (POOL, HELPER) if "type" not in words else (LAYER, POOL, HELPER)
    roots = "Layer" if "type" in words else "pool"
    found = fit(words.replace("pool(_, 2); type()", "Layer(_); type()"), *given, roots=roots)
    assert found[roots] == (LAYER if roots == "Layer" else POOL).strip()


def test_an_attribute_that_is_always_one_constant() -> None:
    found = fit("Layer(_)", LAYER, POOL, HELPER, roots="Layer")
    assert found["Layer"] == textwrap.dedent('''
        class Layer(nnx.Module):
            """Pools."""

            def __init__(self, size):
                self.size = size

            def __call__(self, x):
                return pool(x, self.size)
    ''').strip()
    assert "gap" not in found["pool"] and "helper" not in found


@pytest.mark.parametrize("words", ["Layer(_); =mode", "Layer(_); =*"])
def test_an_attribute_that_code_may_write(words: str) -> None:
    assert 'if self.mode != "zeros":' in fit(words, LAYER, POOL, HELPER, roots="Layer")["Layer"]


def test_an_attribute_that_code_reads_stays() -> None:
    assert "self.mode = size" not in fit("Layer(_)", LAYER, POOL, HELPER, roots="Layer")["Layer"]
    assert 'self.size, self.mode = size, "zeros"' in fit("Layer(_); mode", LAYER, POOL, HELPER, roots="Layer")["Layer"]


def test_an_attribute_that_another_class_of_the_family_writes() -> None:
    other = 'class Other(Layer):\n    """Pools."""\n\n    def turn(self):\n        self.mode = "edge"\n'
    assert 'if self.mode != "zeros":' in fit("Other(_)", LAYER, POOL, HELPER, other, roots="Other")["Layer"]


def test_a_mixin_keeps_what_it_is_mixed_with() -> None:
    mixin = 'class Mixin(nnx.Module):\n    """Mixes."""\n\n    def __init__(self, *args):\n        super().__init__(*args)\n'
    both = 'class Both(Mixin, Layer):\n    """Both."""\n'
    assert fit("Both(_, _)", LAYER, POOL, HELPER, mixin, both, roots="Both")["Layer"] == LAYER.strip()


MODES = '''
def resize(x, mode="nearest"):
    """Resizes."""
    if mode == "nearest":
        return x
    x = x + 1
    x = x + 2
    x = x + 3
    return x
'''


def test_a_literal_that_all_calls_pass_is_checked() -> None:
    found = fit('resize(_, mode="nearest")', MODES, roots="resize")["resize"]
    assert found == 'def resize(x, mode="nearest"):\n    """Resizes."""\n    assert mode == "nearest"\n    return x'
    assert fit('resize(_, mode="nearest"); resize(_, "area")', MODES, roots="resize")["resize"] == MODES.strip()
    assert fit("resize(_, mode=_)", MODES, roots="resize")["resize"] == MODES.strip()


BOUND = {
    "a loop": "def f(x, n=None):\n    for i in x:\n        if n is None:\n            x = i\n        n = i\n    return x, n",
    "a branch": "def f(x, n=None):\n    if n is None:\n        x = x + 1\n    if x:\n        n = x\n    return x, n",
    "added to": "def f(x, n=0):\n    if n == 0:\n        x = 1\n    n += x\n    return n",
    "a closure": "def f(x, n=None):\n    g = lambda: 1 if n is None else helper(n, 1)\n    n = x\n    return g()",
    "itself": "def f(x, n=None):\n    return x if n is None else f(x, n)",
}


@pytest.mark.parametrize("text", BOUND.values(), ids=BOUND)
def test_a_parameter_that_is_bound_anew(text: str) -> None:
    found = fit("f(_)", text, HELPER, roots="f")
    old: dict[str, object] = {}
    new: dict[str, object] = {}
    exec(f"{HELPER}\n{text}", old)
    exec("\n".join(found.values()), new)
    for x in ([], [3, 4]) if "for" in text else (0, 2):
        assert old["f"](x) == new["f"](x)  # type: ignore[operator]
    assert "n=" in found["f"]


FOLDS = {
    "a or b": ("a = None", "b"), "a and b": ("a = 1", "b"), "b or a": ("a = None", "b or a"), "a if c else b": ("a = 1", "a if c else b"),
    "x if a is None else y": ("a = None", "x"), "not a": ("a = 0", "True"), "a == 'x' or b": ("a = 'y'", "b"), "[a for a in b if a]": ("a = 1", "[a for a in b if a]"),
    "lambda a: a or b": ("a = 1", "lambda a: a or b"), "f'{a}' if b else a in (1, 2)": ("a = 1", "f'{a}' if b else True"), "a < b": ("a = 1", "a < b"),
    "isinstance(a, (str, int))": ("a = 1", "True"), "isinstance(a, Thing)": ("a = 1", "isinstance(a, Thing)"), "(b or a).x": ("a = 1", "(b or a).x"),
}


@pytest.mark.parametrize("text", FOLDS)
def test_expressions(text: str) -> None:
    given, expected = FOLDS[text]
    value = ast.literal_eval(given.partition(" = ")[2])
    e = ast.parse(text, mode="eval").body
    assert Folder([text], {"a": (value,)}).render(e) == expected


WORDS = {
    "conv(x, 2)": "conv(_, 2)", "conv(*x)": "=conv", "conv(x, **o)": "=conv", "f(conv)": "=conv", "class A(conv): ...": "=conv", "x.stride = 1": "=stride",
    "setattr(x, n, 1)": "=*", "setattr(x, 'stride', 1)": "=stride", "type(m)(1)": "type()", "m.__class__(1)": "type()", "getattr(o, 'conv')": "=conv",
}


@pytest.mark.parametrize("text", WORDS)
def test_words(text: str) -> None:
    assert WORDS[text] in words_of(ast.walk(ast.parse(f"from torch_support import conv\n{text}")))


@pytest.mark.parametrize("text", ["isinstance(m, conv)", "type(m) == conv2 or type(m).__name__", "raise TypeError(type(m))"])
def test_words_that_ask_only(text: str) -> None:
    assert not words_of(ast.walk(ast.parse(f"from torch_support import conv\n{text}"))) & {"=conv", "type()"}


def test_names_that_come_by_another_module() -> None:
    assert "=conv" in words_of(ast.walk(ast.parse("from .layers import conv\nconv(1)")))
    assert "=conv" in words_of(ast.walk(ast.parse("from .layers import *\nconv(1)")))
    assert "=conv" in words_of(ast.walk(ast.parse("from . import layers\nlayers.conv(1)")))


CALLS = {
    "F.max_pool2d(x, 2)": "max_pool2d", "F.max_pool2d(x, 3, 2, 1, ceil_mode=True)": "max_pool2d", "F.max_pool2d(x, 2, dilation=2)": "max_pool2d",
    "F.max_pool2d(x, 2, return_indices=True)[1]": "max_pool2d", "F.avg_pool2d(x, 2)": "avg_pool2d", "F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)": "avg_pool2d",
    "F.interpolate(x, scale_factor=2)": "interpolate", "F.interpolate(x, (5, 7), mode='bilinear')": "interpolate",
    "F.interpolate(x, scale_factor=0.6, mode='bicubic', align_corners=True)": "interpolate", "F.interpolate(x, size=(3, 3), mode='bilinear', antialias=True)": "interpolate",
    "F.interpolate(x, size=3, mode='area')": "interpolate", "F.pad(x, (1, -1, n, 0))": "pad_nd", "F.pad(x, (1, n), mode='reflect')": "pad_nd", "F.pad(x, (1, n), value=3.0)": "pad_nd",
    "torch.linalg.vector_norm(x, dim=n)": "vector_norm", "torch.linalg.vector_norm(x, 1, dim=n)": "vector_norm", "torch.linalg.vector_norm(x, float('inf'))": "vector_norm",
    "F.conv2d(x, x[:3, :4], padding=1)": "conv2d", "F.conv2d(x, x[:3, :2], None, 2, 'same' if n > 5 else 1, groups=2)": "conv2d", "F.layer_norm(x, (6, 8))": "layer_norm",
}


@pytest.mark.parametrize("call", CALLS)
def test_values_are_those_of_the_general_form(call: str) -> None:
    source = f"import torch\nimport torch.nn.functional as F\n\n\ndef f(x, n):\n    return {call}\n"
    made = migrate.convert_source(source)
    fitted = made.support["torch_support.py"]
    general = load("flax").module(made.names)
    assert CALLS[call] in fitted and len(fitted) <= len(general)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 4, 6, 8)), jnp.float32)
    results = [_run(made.code, text)(x, 1) for text in (fitted, general)]
    np.testing.assert_array_equal(*results)


def _run(code: str, support: str):  # type: ignore[no-untyped-def]
    space: dict[str, object] = {}
    exec(support, space)
    exec("\n".join(line for line in code.split("\n") if not line.startswith("from torch_support")), space)
    return space["f"]


def test_layers_of_the_support_code() -> None:
    source = "import torch.nn as nn\n\n\ndef f():\n    return nn.MaxPool2d(2), nn.LSTM(3, 4), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, padding=1)\n"
    made = migrate.convert_source(source)
    fitted, general = made.support["torch_support.py"], load("flax").module(made.names)
    for gone in ("window_max", "class PackedSequence", "padding_mode", "num_batches_tracked[", "self.proj_size"):
        assert gone in general and gone not in fitted
    x, outputs = jnp.asarray(np.random.default_rng(0).standard_normal((2, 4, 6, 8)), jnp.float32), []
    for text in (fitted, general):
        pool, lstm, norm, conv = _run(made.code, text)(rngs=nnx.Rngs(0))
        outputs.append([pool(x), lstm(x[0, ..., :3])[0], norm(x), norm.var[...], conv(x)])
    for a, b in zip(*outputs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_definition_loses_what_it_looks_up() -> None:
    support = load("flax")
    for name, d in list(support.definitions.items())[::3]:
        if not isinstance(d.node, (ast.FunctionDef, ast.ClassDef)):
            continue
        tree = ast.parse(support.module([name], {f"{name}()", *support.definitions[name].attributes}))
        bound = {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))} | {a.asname or a.name for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
        bound |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        compile(tree, name, "exec")
        for n in ast.walk(tree):
            if isinstance(n, ast.Name) and n.id in support:
                assert n.id in bound | {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)} | _stored(tree), (name, n.id)


def _stored(tree: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


def test_a_support_module_that_is_there(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """The same run again gives the same; another run keeps what is there as general as it may be."""
    source, out = tmp_path / "net.py", tmp_path / "out"
    source.write_text("import torch.nn.functional as F\n\n\ndef f(x):\n    return F.max_pool2d(x, 2)\n")
    first = migrate.convert_path(source, out).support["torch_support.py"]
    assert migrate.convert_path(source, out).support["torch_support.py"] == first
    source.write_text("import torch.nn.functional as F\n\n\ndef f(x):\n    return F.avg_pool2d(x, 2)\n")
    second = migrate.convert_path(source, out).support["torch_support.py"]
    assert "def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):" in second


def test_used_by_names_attributes_and_calls() -> None:
    assert {"shape", "conv(_)"} <= used_by(ast.parse("from torch_support import conv\nconv(x.shape)"))


ASKED = {
    "layers = []\n    layers.append(x)": False, "layers = x\n    layers.append(x)": True, "layers = []\n    layers = x\n    layers.append(x)": True,
    "layers = [1] * 2\n    layers += [3]\n    layers.append(x)": False, "x.append(1)": True, "for layers in x:\n        layers.append(1)": True,
    "layers = []\n    def g():\n        nonlocal layers\n        layers = x\n    layers.append(1)": True, "layers = list(x)\n    layers.append(1)": False,
    "x.layers = nnx.List([])\n    x.layers.append(1)": False, "x.layers = Sequential()\n    x.layers.append(1)": True, "x.layers.append(1)": True,
    "x.layers = []\n    setattr(x, y, x)\n    x.layers.append(1)": True, "layers = []\n    getattr(x, 'append')(layers)": True, "layers, y = [], x\n    layers.append(1)": False,
    "layers, y = x\n    layers.append(1)": True,
}
STORES = {"x.bias[...] = 0": False, "layers = {}\n    layers[1] = 2": False, "x[0] = y": True, "x.net[0] = y": True, "x.net = []\n    x.net[0] = y": False}


@pytest.mark.parametrize("body", STORES)
def test_items_that_only_lists_and_variables_are_given(body: str) -> None:
    assert ("[]=" in settled(used_by(ast.parse(f"def f(x):\n    {body}\n")))) == STORES[body]


@pytest.mark.parametrize("body", ASKED)
def test_methods_that_only_lists_are_asked_for(body: str) -> None:
    assert ("append" in settled(used_by(ast.parse(f"def f(x):\n    {body}\n")))) == ASKED[body]


def test_methods_that_another_file_makes_one_ask_for() -> None:
    lists = used_by(ast.parse("class A:\n    def f(self):\n        self.layers = []\n        self.layers.append(1)\n"))
    assert "append" not in settled(lists)
    for other in ("self.layers = Sequential()", "self.layers, self.n = x", "setattr(self, name, x)"):
        assert "append" in settled(lists | used_by(ast.parse(f"class B(A):\n    def g(self, x):\n        {other}\n"))), other
    assert "append" in settled(lists | used_by(ast.parse("class B(A):\n    layers: Sequential\n")))


def test_keyword_arguments_are_a_dict() -> None:
    assert "pop" not in settled(used_by(ast.parse("def f(**options):\n    return options.pop('a')\n")))
