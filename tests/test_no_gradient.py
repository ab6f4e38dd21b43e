"""What `torch.no_grad` and its like compute is constant to the gradient, by whatever way it is handed on."""

import textwrap
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from converted import load
from flax import nnx

import migrate

HEAD = '''
import contextlib
import functools
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.a, self.b = nn.Linear(d, d), nn.Linear(d, d)
        self.register_buffer("mean", torch.zeros(d))
        self.flag = 0.5

    def part(self, t, name):
        return getattr(torch, name)(t)

    @torch.no_grad()
    def target(self, t):
        s = self.b(t)
        self.seen = s.cos()
        return s.sigmoid()

    @torch.no_grad()
    def both(self, t):
        u = t.sin()
        with torch.enable_grad():
            v = t.cos()
        return u, v

    @torch.no_grad()
    def kept(self, t):
        if self.flag < 1:
            return t
        return t * 2

    @torch.no_grad()
    def steps(self, t):
        for i in range(3):
            yield (t * i).exp()

    def forward(self, x):
        y = self.a(x)
'''
BODIES = {
    "a weight through data": "self.a.weight.data.clamp_(0)\nreturn self.a(x)",
    "a weight in place": "with torch.no_grad():\n    self.a.weight.clamp_(0)\nreturn self.a(x)",
    "an attribute": "with torch.no_grad():\n    self.cache = y.exp()\nreturn y * self.cache",
    "an element": "out = torch.zeros_like(y)\nwith torch.no_grad():\n    out[:, 0] = y[:, 1].exp()\nreturn y * out",
    "a list": "ys = []\nwith torch.no_grad():\n    for i in range(3):\n        ys.append((y * i).exp())\nreturn y * torch.stack(ys).sum(0)",
    "the next turn of a loop": "s = torch.ones_like(y)\nfor i in range(3):\n    y = y * s\n    with torch.no_grad():\n        s = y.exp() / 3\nreturn y",
    "a mapping": 'with torch.no_grad():\n    d = {"s": y.exp(), "t": y.sin(), "n": 3}\nreturn y * d["s"] + d["t"]',
    "an entry of a mapping": 'd = {}\nwith torch.no_grad():\n    d["s"] = y.exp()\nreturn y * d["s"]',
    "a nested tuple": "with torch.no_grad():\n    s, (t, u) = y.exp(), (y.sin(), y.cos())\nreturn y * s + t * u",
    "a sum in place": "s = y * 2\nwith torch.no_grad():\n    s += y.exp()\nreturn y * s",
    "a comprehension": "with torch.no_grad():\n    s = [f(y) for f in (torch.sin, torch.cos)]\nreturn y * s[0] + s[1]",
    "a function's result": "f = lambda t: t.exp()\nwith torch.no_grad():\n    s = f(y)\nreturn y * s",
    "a method with a name of a function": 'with torch.no_grad():\n    s = self.part(y, "sin")\nreturn y * s',
    "a decorated method": "return y * self.target(y) + self.seen * y",
    "a decorated generator": "return y * sum(self.steps(y))",
    "a buffer in place": "with torch.no_grad():\n    self.mean.mul_(0.9).add_(0.1 * y.mean(0))\nreturn y - self.mean",
    "a buffer": "with torch.no_grad():\n    self.mean = 0.9 * self.mean + 0.1 * y.mean(0)\nreturn y - self.mean",
    "gradients again": "with torch.no_grad():\n    s = y.exp()\n    with torch.enable_grad():\n        t = y.sin()\nreturn y * s + t",
    "by a value": "with torch.set_grad_enabled(self.flag > 1):\n    s = y.exp()\nreturn y * s",
    "on by a value": "with torch.set_grad_enabled(self.flag < 1):\n    s = y.exp()\nreturn y * s",
    "one of two contexts": "with torch.no_grad() if self.flag < 1 else contextlib.nullcontext():\n    s = y.exp()\nreturn y * s",
    "in training only": "with torch.set_grad_enabled(self.training):\n    s = y.exp()\nreturn y * s",
    "a list in an attribute": "with torch.no_grad():\n    self.taps = [y.exp(), y.sin()]\nreturn y * self.taps[0] + self.taps[1]",
    "several names": "with torch.no_grad():\n    s, t = y, y.exp()\nreturn s * t",
    "a loop that is left": "s = y\nfor i in range(3):\n    with torch.no_grad():\n        s = y * i\n        if i == 1:\n            break\nreturn y * s",
    "a mapping that is joined": 'd = {}\nwith torch.no_grad():\n    d |= {"s": y.exp()}\nreturn y * d["s"]',
    "a list that grows": "d = []\nwith torch.no_grad():\n    d += [y.exp()]\nreturn y * d[0]",
    "a list within a comprehension": "s = []\nwith torch.no_grad():\n    [s.append(f(y)) for f in (torch.sin, torch.cos)]\nreturn s[0] * s[1] * y",
    "names of a comprehension": "with torch.no_grad():\n    p = [(i, t.exp()) for i, t in enumerate((y, y * 2))]\nfor i, t in p:\n    y = y * t + i\nreturn y",
    "a generator that runs later": "with torch.no_grad():\n    g = (f(y) for f in (torch.sin, torch.cos))\nreturn sum(g) * y",
    "a name of the function around": "s = y\ndef g():\n    nonlocal s\n    with torch.no_grad():\n        s = y.exp()\ng()\nreturn s * y",
    "a list of the function around": "found = []\n@torch.no_grad()\ndef g(t):\n    found.append(t.exp())\ng(y)\nreturn found[0] * y",
    "an attribute by its name": "with torch.no_grad():\n    setattr(self, 'seen', self.b(y))\nreturn self.seen * y",
    "zeros that are filled": "z = torch.zeros(3, 4)\nwith torch.no_grad():\n    z.copy_(y)\nreturn z * y",
    "zeros that are added to": "z = torch.zeros(3, 4)\nwith torch.no_grad():\n    z += y\nreturn z * y",
    "zeros that are filled in part": "z = torch.zeros(3, 4)\nwith torch.no_grad():\n    z[:2].copy_(y[:2])\n    z[2] = y[0]\nreturn z * y",
    "a buffer that takes a name": "m = y.mean(0)\nwith torch.no_grad():\n    self.mean.copy_(m)\nreturn y - self.mean",
    "results of both kinds": "return self.both(y)[0] * y + self.both(y)[1]",
    "another name": "with torch.no_grad():\n    s = y\n    t = s.exp()\nreturn s * t",
    "a name of what is made there": "with torch.no_grad():\n    s = y.exp()\n    t = s\nreturn y * t",
    "what is given": "return y * self.kept(y)",
    "a step of a walrus": "with torch.no_grad():\n    if (s := y.exp()) is not None:\n        t = s * 2\nreturn y * s + t",
    "names that change places": "a, b = y, x * 2\nwith torch.no_grad():\n    a, b = b, a\nreturn a.exp() * b",
    "names that change places in a loop": "a, b = y, x * 2\nwith torch.no_grad():\n    for _ in range(3):\n        a, b = b, a\nreturn a.exp() * b",
    "a name before it is bound anew": "b = y\nwith torch.no_grad():\n    a = b\n    b = x.exp()\nreturn a * b",
    "one of two values": "with torch.no_grad():\n    if self.flag < 1:\n        s = y\n    else:\n        s = y.exp()\nreturn s * s",
    "the other of two values": "with torch.no_grad():\n    if self.flag > 1:\n        s = y\n    else:\n        s = y.exp()\nreturn s * y",
    "a tuple with what stands outside": "with torch.no_grad():\n    s = (y, y.exp())\nreturn s[0] * s[1]",
    "a mapping with what stands outside": 'with torch.no_grad():\n    s = {"a": y, "b": [y, y.exp()]}\nreturn s["a"] * s["b"][0] * s["b"][1]',
    "a list to which something from outside is given": "s = []\nwith torch.no_grad():\n    s.append((y, y.exp()))\nreturn s[0][0] * s[0][1]",
    "a display that is given back": "@torch.no_grad()\ndef g(t):\n    return [t, t.exp()]\ns = g(y)\nreturn s[0] * s[1]",
    "a choice": "with torch.no_grad():\n    s = y if self.flag < 1 else y.exp()\nreturn s * s",
    "the other choice": "with torch.no_grad():\n    s = y if self.flag > 1 else y.exp()\nreturn s * y",
    "what there is": "with torch.no_grad():\n    s = None or y\nreturn s * y",
    "an element of a list from outside": "with torch.no_grad():\n    s = [y, x][0]\nreturn s * y",
    "an entry of a mapping from outside": 'd = {"a": y}\nwith torch.no_grad():\n    s = d["a"]\nreturn s * y',
    "what a function hands back": "def g(t):\n    return t\nwith torch.no_grad():\n    s = g(y)\nreturn s * y",
    "targets of a loop": "with torch.no_grad():\n    for t in (x, y):\n        pass\nreturn t * y",
    "a view that is taken there": "with torch.no_grad():\n    s = y[0]\nreturn s * y",
    "a view from outside": "v = y[0]\nwith torch.no_grad():\n    s = v\nreturn s * y",
    "an identity": "f = nn.Identity()\nwith torch.no_grad():\n    s = f(y)\nreturn s * y",
    "part of a call": "with torch.no_grad():\n    p = functools.partial(torch.mul, y.exp())\nreturn p(y)",
    "a default": "with torch.no_grad():\n    def g(t, k=y.exp()):\n        return t * k\nreturn g(y)",
    "a default of a lambda": "with torch.no_grad():\n    g = lambda t, k=y.exp(): t * k\nreturn g(y)",
    "zeros that a function fills": "def fill(t, v):\n    t[0] = v[0]\n    return t\nz = torch.zeros(3, 4)\nwith torch.no_grad():\n    fill(z, y)\nreturn z * y",
    "zeros of a tensor's kind": "z = y.new_zeros(3, 4)\nwith torch.no_grad():\n    z.copy_(y)\nreturn z * y",
    "zeros through data": "z = torch.zeros(3, 4)\nz.data.copy_(y)\nz.data += y\nreturn z * y",
    "data of zeros itself": "z = torch.zeros(3, 4)\nw = z\nz.data = y.exp()\nreturn z * y + w",
    "data of an attribute": "self.kept_one = torch.zeros(3, 4)\nself.kept_one.data = y.exp()\nreturn self.kept_one * y",
    "a buffer through data": "self.mean.data.mul_(0.9).add_(0.1 * y.mean(0))\nself.mean.data[0] = y[0, 0]\nself.mean.data = self.mean * 0.5 + y[0]\nreturn y - self.mean",
    "what is detached and used alone": "z = (y * 2).detach()\nz.clamp_(0)\nz[0] = y[0]\nreturn z * y",
    "a record": "from typing import NamedTuple\nclass R(NamedTuple):\n    a: torch.Tensor\nwith torch.no_grad():\n    r = R(y.exp())\nreturn r.a * y",
    "a record that is given back": "from typing import NamedTuple\nclass R(NamedTuple):\n    a: torch.Tensor\n@torch.no_grad()\ndef g(t):\n    return R(t.exp())\nreturn g(y).a * y",
}
LEFT = {
    "for the rest of a function": "torch.set_grad_enabled(False)\ns = y.exp()\ntorch.set_grad_enabled(True)\nreturn y * s",
    "a context with a name": "off = torch.no_grad() if self.flag < 1 else contextlib.nullcontext()\nwith off:\n    s = y.exp()\nreturn y * s",
    "a stack of contexts": "with contextlib.ExitStack() as stack:\n    stack.enter_context(torch.no_grad())\n    s = y.exp()\nreturn y * s",
    "an element in place": "s = y * 2\nwith torch.no_grad():\n    s[0] = 1.0\nreturn y * s",
    "what another generator gives": "def g():\n    with torch.no_grad():\n        yield from (t.exp() for t in (y, y))\nreturn sum(g())",
    "a view through detach": "s = y * 2\ns.detach().clamp_(0)\nreturn y * s",
    "a product through data": "s = y * 2\ns.data.mul_(0.5)\nreturn y * s",
    "an element through data": "s = y * 2\ns.data[0] = 5.0\nreturn y * s",
    "data itself": "s = y * 2\ns.data = y.exp()\nreturn y * s",
    "a sum through data": "s = y * 2\ns.data += y.exp()\nreturn y * s",
    "a name of the data": "s = y * 2\nd = s.data\nd.mul_(2)\nreturn y * s",
    "a name of what is detached": "s = y * 2\nd = s.detach()\nd[0] = 5.0\nreturn y * s",
    "a name of zeros' data": "z = torch.zeros(3, 4)\nd = z.data\nd.copy_(y)\nreturn y * z",
    "a function that works in place": "s = y * 2\nwith torch.no_grad():\n    torch.nn.functional.relu(s, inplace=True)\nreturn y * s",
    "a local function that works in place": "def half(t):\n    t.mul_(0.5)\n    return t\ns = y * 2\nwith torch.no_grad():\n    half(s)\nreturn y * s",
    "an element of a list in place": "s = [y * 2]\nwith torch.no_grad():\n    s[0].mul_(2)\nreturn y * s[0]",
    "a view in place": "s = y * 2\nwith torch.no_grad():\n    t = s[0]\n    t.mul_(2)\nreturn y * s",
    "an element that is multiplied": "s = y * 2\nwith torch.no_grad():\n    s[0] *= 2\nreturn y * s",
    "an attribute in place": "self.kept_one = y * 2\nwith torch.no_grad():\n    self.kept_one.mul_(2)\nreturn y * self.kept_one",
    "zeros that got a gradient": "z = torch.zeros(3, 4)\nz += y\nwith torch.no_grad():\n    z.mul_(2)\nreturn y * z",
    "a write by a value": "s = y * 2\nwith torch.set_grad_enabled(self.flag > 1):\n    s.mul_(2)\nreturn y * s",
    "a list by a value": "s = []\nwith torch.set_grad_enabled(self.flag > 1):\n    s.append(y.exp())\nreturn y * s[0]",
    "a generator that waits": "def g():\n    with torch.no_grad():\n        yield y.exp()\nreturn sum(s * y for s in g())",
    "a context of one's own": "@contextlib.contextmanager\ndef off():\n    with torch.no_grad():\n        yield\nwith off():\n    s = y.exp()\nreturn y * s",
    "an object": "class Box:\n    def __init__(self, t):\n        self.t = t.exp()\nwith torch.no_grad():\n    s = Box(y)\nreturn y * s.t",
    "what may be a copy": "with torch.no_grad():\n    s = y.float()\nreturn y * s",
    "what may be handed back": "def g(t):\n    return t if t.mean() > 0 else t.exp()\nwith torch.no_grad():\n    s = g(y)\nreturn y * s",
    "the rest of several": "with torch.no_grad():\n    a, *b = y.exp(), y\nreturn a * b[0]",
    "a product in place": "s = y.clone()\nwith torch.no_grad():\n    s.mul_(2.0)\nreturn y * s",
}


def text(body: str) -> str:
    return HEAD + textwrap.indent(body, " " * 8) + "\n"


@pytest.mark.parametrize("name", BODIES)
def test_gradients_stop(name: str) -> None:
    source = text(BODIES[name])
    space: dict[str, Any] = {}
    exec(source, space)
    torch.manual_seed(0)
    original, x = space["Net"]().eval(), torch.randn(3, 4)
    mine = load(source, "flax", "Net", original)
    mine.eval()
    given = x.clone().requires_grad_(True)
    (original(given) * torch.arange(12.0).reshape(3, 4)).sum().backward()

    def loss(model: Any, x: Any) -> Any:
        return (model(x) * jnp.arange(12.0).reshape(3, 4)).sum()

    found = nnx.grad(loss, argnums=1)(mine, jnp.asarray(x.numpy()))
    np.testing.assert_allclose(found, given.grad.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_followed_is_said(name: str) -> None:
    found = migrate.convert_source(text(LEFT[name])).diagnostics
    assert [d.code for d in found if d.severity != "info"] == ["MIG201"], found


def test_the_steps_of_an_optimizer_have_no_gradient() -> None:
    step = "class Plain({}):\n    def step(self, p: torch.Tensor):\n        q = p * 2\n        q.data.add_(p)\n        return q\n"
    for base, codes in (("torch.optim.Optimizer", set()), ("object", {"MIG201"})):
        found = migrate.convert_source("import torch\n\n\n" + step.format(base)).diagnostics
        assert {d.code for d in found} & {"MIG201"} == codes
