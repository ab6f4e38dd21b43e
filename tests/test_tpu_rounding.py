"""TPU numerics on the CPU, against bfloat16 computed independently: operands rounded by ml_dtypes, sums in float64 by numpy and PyTorch."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

from migrate.tpu.rounding import rounded

DRAW = np.random.RandomState(0)
X, W, V = (DRAW.standard_normal(s).astype(np.float32) for s in ((6, 40), (40, 40), (40, 40)))


def near(x):
    """Rounded to bfloat16, in float64."""
    return np.asarray(x, np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)


def product(x, w):
    return near(x) @ near(w)


def same(got, want):
    """Equal but for sums in float32; rounding to bfloat16 is a thousand times coarser."""
    scale = np.abs(want).max()
    assert np.abs(np.asarray(got, np.float64) - want).max() < 3e-6 * scale


def test_a_product_is_that_of_rounded_operands():
    got = rounded(lambda x, w: x @ w)(X, W)
    same(got, product(X, W))
    exact = X.astype(np.float64) @ W.astype(np.float64)
    drift = np.abs(np.asarray(got) - exact).max() / np.abs(exact).max()
    assert 1e-4 < drift < 2e-2, "the difference to float32 is that of bfloat16"


def test_it_is_what_a_bfloat16_product_with_float32_sums_gives():
    x, w = jnp.asarray(X, jnp.bfloat16), jnp.asarray(W, jnp.bfloat16)
    want = jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)
    same(rounded(lambda x, w: x @ w)(X, W), np.asarray(want, np.float64))


@pytest.mark.parametrize(("groups", "stride"), [(1, 1), (2, 2)])
def test_a_convolution_is_that_of_rounded_operands(groups, stride):
    x, k = DRAW.standard_normal((2, 6, 9, 9)).astype(np.float32), DRAW.standard_normal((4, 6 // groups, 3, 3)).astype(np.float32)

    def convolve(x, k):
        return jax.lax.conv_general_dilated(x, k, (stride, stride), ((1, 1), (1, 1)), feature_group_count=groups)

    want = torch.nn.functional.conv2d(torch.tensor(near(x)), torch.tensor(near(k)), stride=stride, padding=1, groups=groups)
    same(rounded(convolve)(x, k), want.numpy())


def test_who_asks_for_more_precision_gets_it():
    got = rounded(lambda x, w: jnp.matmul(x, w, precision="highest"))(X, W)
    same(got, X.astype(np.float64) @ W.astype(np.float64))


@jax.custom_jvp
def tripled(x, w):
    return 3 * (x @ w)


tripled.defjvp(lambda p, t: (tripled(*p), t[0]))


@jax.custom_vjp
def halved(x, w):
    return (x @ w) / 2


halved.defvjp(lambda x, w: (halved(x, w), w), lambda w, g: (g @ w.T, jnp.zeros_like(w)))


def steps(n):
    """`n` products one after the other, kept small, in plain numpy."""
    x = X
    for _ in range(n):
        x = (product(x, W) / 8).astype(np.float32)
    return x


INSIDE = {
    "jit": (lambda x: jax.jit(lambda x: x @ W)(x), product(X, W)),
    "scan": (lambda x: jax.lax.scan(lambda c, _: (c @ W / 8, None), x, None, length=3)[0], steps(3)),
    "scan over inputs": (
        lambda x: jax.lax.scan(lambda c, w: (c, c @ w), x, jnp.stack([W, V]))[1],
        np.stack([product(X, W), product(X, V)]),
    ),
    "while": (lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] @ W / 8), (0, x))[1], steps(3)),
    "fori": (lambda x: jax.lax.fori_loop(0, 3, lambda _, x: x @ W / 8, x), steps(3)),
    "cond": (lambda x: jax.lax.cond(x[0, 0] > 1e9, lambda x: x @ V, lambda x: x @ W, x), product(X, W)),
    "switch": (
        lambda x: jax.lax.switch(jnp.int32(1) + x.astype(int).max() * 0, [lambda x: x @ V, lambda x: x @ W, lambda x: x], x),
        product(X, W),
    ),
    "checkpoint": (lambda x: jax.checkpoint(lambda x: x @ W)(x), product(X, W)),
    "custom_jvp": (lambda x: tripled(x, W), 3 * product(X, W)),
    "custom_vjp": (lambda x: halved(x, W), product(X, W) / 2),
    "nested": (
        lambda x: jax.jit(jax.checkpoint(lambda x: jax.lax.scan(lambda c, _: (tripled(c, W) / 24, None), x, None, length=2)[0]))(x),
        steps(2),
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_holds_code_is_entered(name):
    function, want = INSIDE[name]
    skipped = set()
    same(rounded(function, skipped)(X), want)
    same(jax.jit(rounded(function))(X), want)
    assert not skipped


def test_gradients():
    """The gradient of a product is two products, of rounded operands each."""
    grads = rounded(jax.grad(lambda x, w: (x @ w * jnp.asarray(G)).sum(), argnums=(0, 1)))(X, W)
    same(grads[0], near(G) @ near(W).T)
    same(grads[1], near(X).T @ near(G))


G = DRAW.standard_normal((6, 40)).astype(np.float32)


def test_what_is_not_entered_is_told():
    from jax.sharding import Mesh, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:1]), ("a",))
    skipped = set()
    rounded(jax.shard_map(lambda x: x @ W, mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec()), skipped)(X)
    assert skipped == {"shard_map"}
