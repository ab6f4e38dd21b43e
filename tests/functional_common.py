"""Runs one call of torch.nn.functional, as text, with PyTorch and with the support functions under jit: values and gradients must agree."""
import importlib
import os
import types

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")  # compiles faster

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

FILES = (
    "activations", "attention", "conv", "distances", "dropout", "embedding", "losses", "losses_class", "losses_ctc", "norms", "padding",
    "pooling", "pooling_adaptive", "resize", "vision",
)
MODULES = [importlib.import_module(f"migrate.support.jax.{name}") for name in FILES]
SUPPORT = {k: v for m in MODULES for k, v in vars(m).items() if isinstance(v, types.FunctionType) and v.__module__ == m.__name__}
RENAMED = {"pad": "pad_nd", "threshold": "threshold_at"}  # where PyTorch's name is also that of an argument


def array(value, seed):
    """A shape becomes random numbers; ("int", high, shape) random ids; anything else is taken as it is."""
    rng = np.random.default_rng(seed)
    if isinstance(value, tuple) and value and value[0] == "int":
        return rng.integers(0, value[1], value[2])
    if isinstance(value, tuple):
        return rng.normal(size=value).astype(np.float32)
    made = np.asarray(value)
    return made.astype(np.float32) if made.dtype == np.float64 else made


def weighting(size):
    """A fixed weight for each value of a result, so that every gradient counts differently."""
    return np.cos(np.arange(size))


def in_torch(call, arrays):
    """The results of the call, and the gradients of a weighted sum of them by each floating argument with a small letter, in float64."""
    inputs = {k: torch.tensor(v) for k, v in arrays.items()}
    inputs = {k: v.double().requires_grad_(k.islower()) if v.is_floating_point() else v for k, v in inputs.items()}
    out = eval(call, vars(F) | {"inf": float("inf")} | inputs)
    outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o is not None]
    smooth = [o for o in outs if o.requires_grad]
    wanted = {k: v for k, v in inputs.items() if v.requires_grad}
    loss = sum((o * torch.tensor(weighting(o.numel())).reshape(o.shape)).sum() for o in smooth)
    grads = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True) if smooth else [None] * len(wanted)
    found = {k: np.zeros(v.shape) if g is None else g.numpy() for (k, v), g in zip(wanted.items(), grads, strict=True)}
    return [o.detach().numpy() for o in outs], found, [bool(o.requires_grad) for o in outs]


def in_jax(call, arrays, smooth):
    """The same with the support functions, compiled."""
    names = SUPPORT | {k: SUPPORT[v] for k, v in RENAMED.items()} | {"inf": float("inf")}
    floating = {k: jnp.asarray(v) for k, v in arrays.items() if v.dtype.kind == "f" and k.islower()}
    rest = {k: jnp.asarray(v) for k, v in arrays.items() if k not in floating}

    def loss(inputs, others):
        out = eval(call, names | inputs | others)
        outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o is not None]
        terms = [(o * weighting(o.size).reshape(o.shape)).sum() for o, s in zip(outs, smooth, strict=True) if s]
        return jnp.asarray(sum(terms), jnp.float32), outs

    (_, outs), grads = jax.jit(jax.value_and_grad(loss, has_aux=True))(floating, rest)
    return outs, grads


def check(call, **inputs):
    """Values and gradients of both sides agree to float32."""
    arrays = {k: array(v, seed) for seed, (k, v) in enumerate(inputs.items())}
    want, want_grads, smooth = in_torch(call, arrays)
    got, grads = in_jax(call, arrays, smooth)
    assert len(want) == len(got)
    for a, b in zip(want, got, strict=True):
        assert a.shape == b.shape and a.dtype.kind == np.asarray(b).dtype.kind
        close(np.asarray(b), a, "values")
    for k in want_grads:
        close(np.asarray(grads[k]), want_grads[k], f"gradient of {k}")


def close(got, want, what):
    """Equal to float32, measured against the largest finite value."""
    finite = np.abs(want[np.isfinite(want)]) if want.size else want
    scale = float(finite.max()) if finite.size else 1.0
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6 * max(scale, 1e-3), err_msg=what)
