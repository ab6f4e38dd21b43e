"""Compares a Flax layer with PyTorch's: the same weights, the same inputs, in evaluation and in training."""
import os

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")  # compiles faster

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from flax import nnx  # noqa: E402

from migrate.weights.load import load_state_dict  # noqa: E402


def arrays(value):
    """Tensors of a nested value as JAX arrays."""
    if isinstance(value, torch.Tensor):
        return jnp.asarray(value.detach().numpy())
    if isinstance(value, (list, tuple)):
        return type(value)(arrays(v) for v in value)
    if isinstance(value, dict):
        return {k: arrays(v) for k, v in value.items()}
    return value


def flat(value):
    """The arrays of a nested result, in order."""
    if isinstance(value, torch.Tensor):
        return [value.detach().numpy()]
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in flat(v)]
    return [] if value is None else [np.asarray(value)]


def close(want, got, rtol=2e-5, atol=2e-6):
    """Fails unless the nested results are equal but for rounding."""
    want, got = flat(want), flat(got)
    assert len(want) == len(got)
    for a, b in zip(want, got):
        assert a.shape == b.shape
        assert a.dtype.kind == b.dtype.kind, f"{b.dtype} instead of {a.dtype}"
        np.testing.assert_allclose(b, a, rtol=rtol, atol=atol * max(1.0, float(np.abs(a[np.isfinite(a)]).max(initial=0))))


def sharpen(layer):
    """Every parameter and statistic gets values that show."""
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, t in layer.state_dict().items():
            if t.is_floating_point():
                t.copy_(torch.rand(t.shape, generator=g) + 0.5 if name.endswith("running_var") else torch.randn(t.shape, generator=g) * 0.4 + 0.1)


def weights_into(flax_layer, torch_layer):
    """Loads all of PyTorch's weights; nothing may be left over on either side."""
    loaded = load_state_dict(flax_layer, torch_layer.state_dict())
    assert loaded.complete, loaded
    assert set(loaded.loaded) == set(torch_layer.state_dict())


def gradients(torch_layer, flax_layer, inputs, kwargs):
    """The gradients of a weighted sum of the outputs, for the floating inputs and the parameters of both sides, by PyTorch's names."""
    leaves = [t.clone().requires_grad_() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in inputs]

    def total(out, module):
        parts = [o for o in jax.tree.leaves(out) if getattr(o, "dtype", None) is not None and "float" in str(o.dtype)]
        return sum((o * module.arange(o.size if module is jnp else o.numel(), dtype=o.dtype).reshape(o.shape) * 0.01).sum() for o in parts)

    for p in torch_layer.parameters():
        p.grad = None
    total(torch_layer(*leaves, **kwargs), torch).backward()
    want = [t.grad for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
    floating = [i for i, t in enumerate(leaves) if isinstance(t, torch.Tensor) and t.requires_grad]
    args, kw = [arrays(t) for t in inputs], arrays(kwargs)

    def loss(model, xs):
        full = list(args)
        for i, x in zip(floating, xs):
            full[i] = x
        return total(model(*full, **kw), jnp)
    by_model, by_input = nnx.jit(nnx.grad(loss, argnums=(0, 1)))(flax_layer, [args[i] for i in floating])
    close([torch.zeros_like(t) if g is None else g for g, t in zip(want, [leaves[i] for i in floating])], by_input, rtol=2e-4, atol=2e-5)
    holder = nnx.clone(flax_layer)  # the gradients take the place of the parameters, and are read by PyTorch's names
    nnx.update(holder, by_model)
    from migrate.weights.flax import leaves as leaves_of
    named = {n: leaf for leaf in leaves_of(holder) for n in leaf.names}
    for name, p in torch_layer.named_parameters():
        leaf = named[name]
        got = np.asarray(leaf.variable[...])
        got = got if leaf.axes is None else got.transpose(np.argsort(leaf.axes))
        close(torch.zeros_like(p) if p.grad is None else p.grad, got, rtol=2e-4, atol=2e-5)


def jitted(flax_layer, inputs, kwargs):
    """A function that calls the layer under `nnx.jit`: the floating arrays among the inputs are traced, all else is static."""
    args, kw = [arrays(t) for t in inputs], arrays(kwargs)
    traced = [i for i, a in enumerate(args) if isinstance(a, jax.Array)]

    @nnx.jit
    def call(model, given):
        full = list(args)
        for i, a in zip(traced, given):
            full[i] = a
        return model(*full, **kw)
    return lambda moved: call(flax_layer, [arrays(moved[i]) for i in traced])


def compare(torch_layer, flax_layer, *inputs, train=True, grad=True, jit=True, prepare=True, **kwargs):
    """Outputs in evaluation and in three training steps, with the statistics; gradients in both modes. Under `nnx.jit` unless told."""
    if prepare:
        sharpen(torch_layer)
    weights_into(flax_layer, torch_layer)
    for training in (False, True) if train else (False,):
        torch_layer.train(training), (flax_layer.train if training else flax_layer.eval)()
        call = jitted(flax_layer, inputs, kwargs) if jit else lambda xs: flax_layer(*[arrays(t) for t in xs], **arrays(kwargs))
        for step in range(3 if training else 1):
            moved = [t + step if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in inputs]
            with torch.enable_grad():  # without gradients PyTorch may take other ways
                want = torch_layer(*moved, **kwargs)
            close(want, call(moved))
        if training:
            statistics_agree(torch_layer, flax_layer)
        if grad:
            gradients(torch_layer, flax_layer, inputs, kwargs)


def statistics_agree(torch_layer, flax_layer):
    """Every entry of PyTorch's state dict that the Flax layer holds has the same value."""
    from migrate.weights.flax import leaves as leaves_of
    named = {n: leaf for leaf in leaves_of(flax_layer) for n in leaf.names}
    for name, t in torch_layer.state_dict().items():
        if name in named:
            got = np.asarray(named[name].variable[...])
            axes = named[name].axes
            np.testing.assert_allclose(got if axes is None else got.transpose(np.argsort(axes)), t.numpy(), rtol=2e-5, atol=1e-6, err_msg=name)
