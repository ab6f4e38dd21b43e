"""Hooks of modules: a feature that is kept, an output and an input that are replaced, a hook that is taken off."""

import numpy as np
import pytest
import torch
from converted import load

TEXT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        self.kept = []
        self.net[0].register_forward_hook(lambda m, args, out: self.kept.append(out))
        self.net[1].register_forward_hook(lambda m, args, out: out * 2)
        self.net[2].register_forward_pre_hook(lambda m, args: (args[0] + 1,))
        self.handle = self.net[2].register_forward_hook(lambda m, args, out: out - 5)

    def forward(self, x):
        self.kept.clear()
        y = self.net(x)
        self.handle.remove()
        return y, self.net(x), self.kept[0]
"""


@pytest.mark.parametrize("target", ["flax", "keras"])
def test_hooks(target):
    namespace = {}
    exec(TEXT, namespace)
    original = namespace["Net"]()
    x = torch.randn(2, 3)
    converted = load(TEXT, target, "Net", original)
    for want, got in zip(original(x), converted(x.numpy()), strict=True):
        np.testing.assert_allclose(np.asarray(got), want.detach().numpy(), atol=1e-5)
