"""torch.autograd.Function: the same values and the gradient that `backward` says, eagerly and under jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from converted import run

HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"
TEXTS = {
    "saved tensors and attributes": """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, scale, axes=(0,)):
        ctx.save_for_backward(x, w)
        ctx.scale, ctx.axes, ctx.mean = scale, axes, x.mean()
        return x @ w * scale + ctx.mean

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = grad @ w.t() * ctx.scale * 3 + ctx.mean
        if ctx.needs_input_grad[1]:
            gw = x.t().mm(grad) + grad.sum(ctx.axes)
        return gx, gw, None, None


def f(x, w):
    return Scaled.apply(x, w, 2.5) + Scaled.apply(w, x, 0.5, (0, 1)).sum()
""",
    "several results, an index and no gradient": """
class Pick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        best = x.argmax(1)
        ctx.mark_non_differentiable(best)
        return x.gather(1, index), x.relu(), best

    @staticmethod
    def backward(ctx, g1, g2, g3):
        (index,) = ctx.saved_tensors
        out = torch.zeros(ctx.shape)
        out.scatter_add_(1, index, g1 * 2)
        return out + g2, None


def f(x, w):
    a, b, c = Pick.apply(x, x.argsort(1)[:, :2])
    return a * w[:, :2], b, c
""",
    "a result that is marked as constant": """
class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y, z = x * 2, x * 3
        ctx.mark_non_differentiable(z)
        return y, z

    @staticmethod
    def backward(ctx, gy, gz):
        return gy * 2 + gz


two = Two.apply


def f(x, w):
    y, z = two(x)
    return y * z * w
""",
    "the context set up apart, and a straight-through estimator": """
class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(x, low):
        return x.round().clamp(min=low)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.low = inputs
        ctx.save_for_backward(x, output)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * (x > ctx.low).to(grad.dtype) + y, None


def f(x, w):
    return Rounded.apply(x @ w, -0.5)
""",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_same(kind):
    namespace = {}
    exec(HEAD + TEXTS[kind], namespace)
    x, w = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
    want = namespace["f"](x, w)
    want = want if isinstance(want, tuple) else (want,)
    sum((t * torch.arange(t.numel()).reshape(t.shape)).sum() for t in want).backward()
    f = run(HEAD + TEXTS[kind], "flax")["f"]

    def loss(x, w):
        out = jax.tree.leaves(f(x, w))
        return sum((t * jnp.arange(t.size).reshape(t.shape)).sum() for t in out), out

    for step in (jax.value_and_grad(loss, (0, 1), has_aux=True), jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))):
        (_, got), grads = step(jnp.asarray(x.detach().numpy()), jnp.asarray(w.detach().numpy()))
        for a, b in zip(want, got, strict=True):
            np.testing.assert_allclose(np.asarray(b), a.detach().numpy(), rtol=1e-5, atol=1e-6)
        for t, g in zip((x, w), grads, strict=True):
            np.testing.assert_allclose(np.asarray(g), np.zeros(t.shape) if t.grad is None else t.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_vmap_and_second_derivative():
    f = run(
        HEAD
        + "class Cube(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * x * x\n\n    @staticmethod\n"
        "    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * 3 * x * x\n\n\ndef f(x):\n    return Cube.apply(x)\n",
        "keras",
    )["f"]
    np.testing.assert_allclose(jax.vmap(jax.grad(jax.grad(f)))(jnp.array([1.0, 2.0])), [6, 12])
