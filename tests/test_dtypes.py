"""What depends on the dtype: calls on both sides, with values, the exact dtypes and, where there are floats, gradients."""
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from rows_common import HEADER, jax_gradients, load, torch_gradients

import migrate

X = np.array([1.5, -2.25, 0.0, 119.0], np.float32)
SMALL = np.array([3, 200, 255, 7], np.float32)
# What JAX has for PyTorch's 64 bits.
HERE = {"int64": "int32", "float64": "float32", "complex128": "complex64"}

CALLS = {
    "uint8 // and %": ("u = s.byte()\nreturn u // 7, u % 7, 250 // u, u // -7 % 3, u / 7, torch.floor_divide(u, 9), torch.remainder(u, 9), torch.fmod(u, 9)"),
    "int8 // and %": ("u = x.to(torch.int8)\nreturn u // -7, u % -7, torch.fmod(u, -7), torch.div(u, -7, rounding_mode='floor'), torch.div(u, -7, rounding_mode='trunc')"),
    "uint8 wraps": ("u = s.to(torch.uint8)\nreturn u + 250, u - 9, u * 100, -u, ~u, u << 2, u >> 1"),
    "uint8 in place": ("u = s.byte()\nu += 100\nu *= 2\nreturn u"),
    "uint8 sums": ("u = s.byte()\nreturn u.sum(), u.sum(0) - 1000, u.cumsum(0), u.prod(), torch.sum(u, dim=(0,), keepdim=True), u.float().mean()"),
    "int16 sums": ("u = s.short() * 99\nreturn u.sum(), u.cumsum(0), u.max(), u.argmax()"),
    "truth values": ("u = x > 0\nreturn u.sum(), u.cumsum(0), u + u, u * 2, u & True, ~u, u ^ u, u.prod(), u.max(), u.int() - 1, u.sum(dtype=torch.float32), u == 1"),
    "complex": ("z = torch.complex(x, s)\nreturn z.abs(), z.angle(), z * z.conj(), z.real, z.imag, torch.view_as_real(z), z.sgn(), z / 2, z ** 2, 1j * z, z == z, z.H if z.ndim > 1 else z"),
    "complex reductions": ("z = torch.complex(x, s)\nreturn z.sum(), z.mean(0), z @ z, torch.vdot(z, z), z.prod(), z.cumsum(0), z.var(), torch.linalg.norm(z), z.isreal()"),
    "made complex": ("z = x + 0j\nz *= s\nz[0] = 1j\nreturn z, x * 2j, x.long() * 2j, x.to(torch.complex64).dtype == torch.complex64, torch.is_complex(z)"),
    "infinite bounds": ("return x.clamp(-math.inf, 0.1), torch.clamp(x, float('-inf'), float('inf')), x.clamp_max(math.inf), F.hardtanh(x, -math.inf, 0.5), torch.clamp(x, min=-torch.inf, max=9)"),
    "bounds of integers": ("u = x.long()\nreturn u.clamp(0.5), u.clamp(0, 2.5), u.clamp(max=2), torch.clamp(u, max=math.inf), s.byte().clamp(5, 100)"),
    "0-d beside 16 bits": ("h = x.half()\nn = x.mean()\nreturn h * n, n - h, h / x.abs().max(), h ** 2, h > n, h + n.long()"),
    "0-d beside 8 bits": ("u = s.byte()\nn = x.long().sum()\nreturn u + n, u * n"),
    "0-d of 16 bits": ("h = x.half()\nreturn h.sum() * x, h.mean() + x.long(), h * h.sum()"),
    "+= in 16 bits": ("h = (x * 1).half()\nh += x\nh -= x.sum()\nh *= 2\nh[0] += x[1]\nh[1:3] = s[1:3]\nreturn h"),
    "methods in place in 16 bits": ("h = (x * 1).to(torch.bfloat16)\nh.mul_(x).add_(1)\nh.copy_(h + x)\nk = torch.zeros_like(x, dtype=torch.float16)\nk.add_(s)\nreturn h, k"),
    "functions of 16 bits": ("h = x.bfloat16()\nreturn F.softmax(h, 0), F.softmax(h, 0, dtype=torch.float32), F.gelu(h), h.cumsum(0), h.logsumexp(0), h.norm(), h.mean(), torch.stack([h, h]), torch.cat([h, x])"),
    "uint8 in lists": ("L = [s.byte(), s.byte()]\nv = torch.stack(L)\nreturn v.cumsum(0), v.sum() - 1000, torch.cat(L).sum() - 1000, torch.hstack(L).cumsum(0), torch.stack([a for a in L]).sum() - 1000"),
    "uint8 in pieces": ("u = s.byte()\na, b = u.chunk(2)\nc, d = u.view(2, 2).unbind(0)\nreturn a.sum() - 1000, b.cumsum(0), c.cumsum(0), d.sum() - 1000, u.split(3)[0].sum() - 1000, [p.cumsum(0) for p in u.tensor_split(2)][1]"),
    "uint8 in part": ("u = s.byte()\nv = torch.where(x > 0, u, u)\nw = torch.where(x > 0, x, u)\nreturn v.cumsum(0), v.sum() - 5000, w.sum(), w.cumsum(0), torch.minimum(u, u).sum() - 1000, (u & u).cumsum(0), u.bitwise_or(3).cumsum(0)"),
    "uint8 among floats": ("u = s.byte()\nreturn u.exp2().sum() if u.ndim > 1 else u.sqrt().sum(), u.sqrt().cumsum(0), u.clamp(0.5).sum(), torch.clamp(u, min=x).sum(), u.clamp_max(2.5).sum(), torch.max(u, x).sum(), torch.add(u, x).sum(), u.mul(0.5).sum()"),
    "values and indices of uint8": ("u = s.byte()\nv, i = u.sort()\nreturn v.cumsum(0), i.sum(), u.topk(2).values.sum() - 1000, u.cummax(0).values.sum() - 1000, u.view(2, 2).max(1)[0].sum() - 1000, u.view(2, 2).max(dim=1).indices / 2, u.aminmax()[1].sum() - 1000"),
    "+= of what is given": ("def g(acc: torch.Tensor, v):\n    acc = acc * 1\n    acc += v\n    return acc\nreturn g(torch.zeros(4, dtype=torch.float16), s), g(x.half(), x)"),
    "integers among floats": ("u = x.long()\nreturn u / 2, u.exp(), 2 ** u.clamp(0, 3), u + 0.5, u * x, u.true_divide(3), torch.full((2,), 1), torch.full((2,), 1.0)"),
}


@pytest.mark.parametrize("target", ["flax", "keras"])
@pytest.mark.parametrize("name", CALLS)
def test_dtypes(name, target):
    text = f"{HEADER}def f(x: torch.Tensor, s: torch.Tensor):\n    " + CALLS[name].replace("\n", "\n    ") + "\n"
    space = {}
    exec(text, space)
    made = migrate.convert_source(text, target=target)
    assert not [d for d in made.diagnostics if d.severity != "info"], made.diagnostics
    ours = load(made.code, dict(made.support))["f"]
    inputs = {"x": X, "s": SMALL}
    pairs = [(w, g) for w, g in zip(several(space["f"](*map(torch.tensor, inputs.values()))), several(ours(*map(jnp.asarray, inputs.values()))), strict=True)]
    for i, (want, got) in enumerate(pairs):
        if not isinstance(want, torch.Tensor):
            assert bool(got) == want
            continue
        dtype = str(want.dtype).removeprefix("torch.")
        assert str(got.dtype) == HERE.get(dtype, dtype), i
        few = dtype in ("float16", "bfloat16")
        got, want = np.asarray(got.astype(jnp.float32) if few else got), (want.float() if few else want).resolve_conj().numpy()
        np.testing.assert_allclose(got, want, rtol=1e-2 if few else 1e-5, atol=1e-2 if few else 1e-6, err_msg=str(i))
    if not any(w.dtype in (torch.float16, torch.bfloat16) for w, _ in pairs if isinstance(w, torch.Tensor)) and (found := torch_gradients(lambda *t: space["f"](*(a.clone() for a in t)), inputs)):
        for n, g in jax_gradients(ours, inputs, found[0]).items():
            np.testing.assert_allclose(g, found[1][n], rtol=1e-4, atol=1e-4, err_msg=n)


def several(result):
    return list(result) if isinstance(result, tuple) else [result]
