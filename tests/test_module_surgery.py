"""Modules that are built, changed or extended from outside: the converted one must compute the same."""

import numpy as np
import pytest
import torch
from converted import load

HEAD = "import torch\nfrom torch import nn\n\n\n"
TEXTS = {
    "own weight into the layer's convolution": """
class Net(nn.Conv2d):
    def __init__(self):
        super().__init__(2, 4, 3, padding=1, padding_mode="circular", groups=2)

    def forward(self, x):
        return self._conv_forward(x, self.weight * 2, self.bias)
""",
    "the same size by padding": """
class Net(nn.Conv2d):
    def __init__(self):
        super().__init__(2, 4, (2, 3), padding="same", dilation=2)

    def forward(self, x):
        return self._conv_forward(x, self.weight - self.weight.mean(), None)
""",
    "layers that are swapped by name": """
def swap(m):
    for name, child in m.named_children():
        if isinstance(child, nn.ReLU):
            setattr(m, name, nn.GELU())
        else:
            swap(child)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Sequential(nn.ReLU(), nn.Conv2d(3, 2, 3)), nn.ReLU())
        swap(self)

    def forward(self, x):
        return self.body(x)
""",
    "what is written to parameters in a loop": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 3), nn.Conv1d(2, 3, 1)

    def forward(self, x):
        for i, (name, p) in enumerate(self.named_parameters()):
            if name.endswith("weight"):
                with torch.no_grad():
                    p.copy_(torch.linspace(-1, i, p.numel()).view_as(p))
        return self.a(x), self.b(x.mean(2))
""",
    "what modules are asked for": """
def fill(m):
    if hasattr(m, "weight") and m.weight is not None:
        nn.init.constant_(m.weight, 0.25)
    if hasattr(m, "named_children"):
        for name, child in m.named_children():
            fill(child)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.body = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3 * 56, 4), nn.LayerNorm(4), nn.LayerNorm(4, elementwise_affine=False))
        fill(self)
        self.count = sum(hasattr(m, "weight") for m in self.modules())
        for p in self.parameters():
            if p.ndim == 1 and len(p) < 5:
                nn.init.constant_(p, 0.5)
        self.total = sum(p.sum().item() for p in self.parameters())

    def forward(self, x):
        return self.body(x) * self.count + self.total
""",
    "parameters as one vector and back": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 3), nn.Conv1d(2, 3, 1)

    def forward(self, x):
        flat = nn.utils.parameters_to_vector(self.parameters())
        with torch.no_grad():
            nn.utils.vector_to_parameters(flat * torch.arange(flat.numel()), self.parameters())
        return self.a(x), self.b(x.mean(2)), flat
""",
    "which layers are recurrent": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.GRU(8, 3), nn.Linear(8, 3)
        self.n = [isinstance(m, nn.RNNBase) for m in self.modules()]

    def forward(self, x):
        return x.mean(2) * self.n.index(True), x.sum(1) * sum(self.n)
""",
    "constructors that are wrapped and recorded": """
import functools


def recorded(init):
    @functools.wraps(init)
    def wrapper(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.given = dict(sorted(kwargs.items()))

    return wrapper


class Scaled(nn.Module):
    @recorded
    def __init__(self, channels, scale=1.0):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3)
        self.scale = scale

    def forward(self, x):
        return self.conv(x) * self.given["scale"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Scaled(2, scale=2.0)

    def forward(self, x):
        return self.body(x)
""",
    "a class that may make one of another": """
class Wide(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv = nn.Conv2d(2, n, 3)

    def forward(self, x):
        return self.conv(x)


class Any(nn.Module):
    def __new__(cls, n, wide):
        if wide:
            return Wide(2 * n)
        return super().__new__(cls)

    def __init__(self, n, wide):
        super().__init__()
        self.conv = nn.Conv2d(2, n, 1)

    def forward(self, x):
        return self.conv(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Any(3, True), Any(3, False)

    def forward(self, x):
        return self.a(x), self.b(x)
""",
    "functions that a decorator makes classes of": """
def module(*names, **defaults):
    def make(f):
        class Made(nn.Module):
            def __init__(self, *args, **kwargs):
                super().__init__()
                for name, value in {**defaults, **dict(zip(names, args)), **kwargs}.items():
                    setattr(self, name, value)

            forward = f

        return Made

    return make


@module("low", high=1.0)
def Range(self, x):
    return x.sigmoid() * (self.high - self.low) + self.low


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.range = nn.Conv2d(2, 3, 3), Range(-1.0)

    def forward(self, x):
        return self.range(self.conv(x))
""",
}


@pytest.mark.parametrize("target", ["flax", "keras"])
@pytest.mark.parametrize("kind", TEXTS)
def test_same(kind, target):
    namespace = {}
    exec(HEAD + TEXTS[kind], namespace)
    original = namespace["Net"]().eval()
    x = torch.randn(3, 2, 7, 8)
    converted = load(HEAD + TEXTS[kind], target, "Net", original)
    want = original(x)
    got = converted(x.numpy())
    for a, b in zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]:
        np.testing.assert_allclose(np.asarray(b), a.detach().numpy(), atol=1e-5)


MODES = '''
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.bn = nn.BatchNorm1d(3, eps=0.5)
        self.w = nn.Parameter(torch.full((3, 3), 2.0))
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        self.bn.eval()
        if mode and self.merged:
            self.a.weight.data -= self.w
        elif not mode and not self.merged:
            self.a.weight.data += self.w
        self.merged = not mode
        return self

    def forward(self, x):
        y = self.bn(self.a(x))
        return y if self.merged else y + x @ self.w.T


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Inner()])

    def forward(self, x):
        return self.parts[0](x) * 2 if self.training else self.parts[0](x)
'''


def test_modules_with_a_train_of_their_own():
    namespace = {}
    exec(HEAD + MODES, namespace)
    original = namespace["Net"]()
    converted, x = load(HEAD + MODES, "flax", "Net", original), torch.randn(4, 3)
    for mode in ("eval", "train", "train", "eval"):
        getattr(original, mode)()
        getattr(converted, mode)()
        np.testing.assert_allclose(np.asarray(converted(x.numpy())), original(x).detach().numpy(), atol=1e-5)
        assert converted.parts[0].merged == original.parts[0].merged
