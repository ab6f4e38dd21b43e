"""Parameters that a forward pass writes to: values, gradients and the checker's runs, each from the original's weights."""

import textwrap

import jax
import jax.numpy as jnp
import numpy as np
from converted import run
from flax import nnx

import migrate

HEAD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Linear(3, 3)
        self.a = nn.Linear(3, 3)
        self.w = nn.Parameter(torch.randn(3, 3))

    @torch.no_grad()
    def limit(self):
        self.w.mul_(0.5)
        self.a.weight.clamp_(-0.2, 0.2)

    @torch.no_grad()
    def follow(self, rate):
        for p, q in zip(self.a.parameters(), self.b.parameters()):
            p.mul_(rate).add_(q, alpha=1 - rate)
"""
BODIES = {
    "Method": "self.limit()\nreturn self.a(x) @ self.w",
    "Each": "self.follow(0.9)\nreturn self.a(x) + self.b(x)",
    "Region": "with torch.no_grad():\n    self.a.weight.copy_(self.a.weight / self.a.weight.norm())\nreturn self.a(x) @ self.w",
    "Replaced": "self.w.data = torch.renorm(self.w.data, 2, 0, 0.1)\nreturn self.b(x) @ self.w",
    "InPlace": "self.a.weight.data.mul_(0.5)\nself.b.bias.data[0] = 1.0\nreturn self.b(self.a(x))",
    "DataOfEach": "for p, q in zip(self.a.parameters(), self.b.parameters()):\n    p.data.mul_(0.5).add_(q.data, alpha=0.5)\nreturn self.a(x) + self.b(x)",
}
WHOLE = """

class Low(nn.Linear):
    def forward(self, x):
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=0.1)
        return super().forward(x)


class All(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Low(3, 3), {}])

    def forward(self, x):
        return [part(x) for part in self.parts]


def make_inputs():
    return [torch.randn(2, 3)]
"""


def test_values_and_gradients_agree(tmp_path):
    classes = [f"\n\nclass {name}(Net):\n    def forward(self, x):\n" + textwrap.indent(body, " " * 8) + "\n" for name, body in BODIES.items()]
    text = HEAD + "".join(classes) + WHOLE.format(", ".join(f"{name}()" for name in BODIES))
    made = migrate.convert_source(text)
    assert not [d for d in made.diagnostics if d.severity != "info"]
    for file, code in {"model.py": text, "out.py": made.code, **made.support}.items():
        (tmp_path / file).write_text(code)
    v = migrate.check(tmp_path / "model.py", tmp_path / "out.py", model="All()", inputs=["f32[2,3]"])
    assert v.ok and v.reached == "jit", v.message
    assert {t.name for t in v.gradients} >= {f"parts.{i}.a.bias" for i in (1, 2, 3, 5, 6)} | {"parts.0.kernel"}


EMA = """
import copy
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.zed = nn.Linear(3, 3)
        self.add = nn.Linear(3, 3)

    def forward(self, x):
        for layer in self.children():
            x = layer(x).tanh()
        return x


class Slow(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = copy.deepcopy(net)

    @torch.no_grad()
    def update(self, net: nn.Module):
        for a, b in zip(self.net.parameters(), net.parameters()):
            a.mul_(0.5).add_(b, alpha=0.5)


def make():
    net = Net()
    return net, Slow(net)
"""


def test_a_copy_has_its_parameters_in_the_original_order():
    net, slow = run(EMA, "flax")["make"](rngs=nnx.Rngs(0))
    before = [np.asarray(p[...]) for p in (net.zed.kernel, net.add.kernel)]
    for p in (net.zed.kernel, net.add.kernel):
        p[...] = p + 1
    slow.update(net)
    for p, old in zip((slow.net.zed.kernel, slow.net.add.kernel), before, strict=True):
        np.testing.assert_allclose(p[...], old + 0.5, atol=1e-6)


def test_children_come_in_order_under_jit():
    net, _ = run(EMA, "flax")["make"](rngs=nnx.Rngs(0))
    x = jax.random.normal(jax.random.key(0), (2, 3))
    wanted = jnp.tanh(net.add(jnp.tanh(net.zed(x))))
    for model in (net, nnx.clone(net), nnx.merge(*nnx.split(net))):
        np.testing.assert_allclose(model(x), wanted, atol=1e-6)
        np.testing.assert_allclose(nnx.jit(lambda m, x: m(x))(model, x), wanted, atol=1e-6)
