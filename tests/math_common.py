"""Compares a function of arrays with PyTorch's: structure, dtypes, values and gradients, under jit."""
import jax
import jax.numpy as jnp
import numpy as np
import torch

RANDOM = np.random.default_rng(0)
inf, nan = np.inf, np.nan


def floats(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def array(*values):
    return np.array(values, np.float32)


def grid(*values):
    """All pairs of the values, as two arrays."""
    a, b = np.meshgrid(array(*values), array(*values))
    return a.ravel(), b.ravel()


def leaves(found):
    """The arrays of a result, in order."""
    if isinstance(found, (tuple, list)):
        return [a for f in found for a in leaves(f)]
    return [found]


def same(got, want, what, rtol, atol):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, what
    assert got.dtype.kind == want.dtype.kind, f"{what}: {got.dtype} instead of {want.dtype}"
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=what)


def agree(ours, theirs, *args, grad=True, jit=True, rtol=2e-5, atol=1e-5):
    """`ours` gives what `theirs` gives; the gradients of a weighted sum by the float32 arrays of `args` agree as well."""
    tensors = [torch.from_numpy(a.copy()).requires_grad_(grad and a.dtype == np.float32) for a in args]
    want = leaves(theirs(*tensors))
    weights = [floats(*w.shape) if w.requires_grad else None for w in want]
    run = jax.jit(ours) if jit else ours
    got = leaves(run(*map(jnp.asarray, args)))
    assert len(got) == len(want)
    for i, (g, w) in enumerate(zip(got, want)):
        same(g, w.detach().numpy(), f"result {i}", rtol, atol)
    if not any(w is not None for w in weights):
        return
    wanted = [i for i, t in enumerate(tensors) if t.requires_grad]
    loss = sum((w * torch.from_numpy(weight)).sum() for w, weight in zip(want, weights) if weight is not None)
    found = torch.autograd.grad(loss, [tensors[i] for i in wanted], allow_unused=True)

    def total(*given):
        return sum((g * weight).sum() for g, weight in zip(leaves(run(*given)), weights) if weight is not None)

    grads = jax.grad(total, argnums=tuple(wanted))(*map(jnp.asarray, args))
    for i, g, w in zip(wanted, grads, found):
        same(g, np.zeros_like(args[i]) if w is None else w.numpy(), f"gradient of argument {i}", 10 * rtol, 10 * atol)


def agree_with(options, ours, theirs, *args, **kwargs):
    """`agree`, both called with keyword options."""
    agree(lambda *a: ours(*a, **options), lambda *a: theirs(*a, **options), *args, **kwargs)
