"""Activations, norms, distances, tables and attention against PyTorch, at kinks too."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from functional_common import SUPPORT, check

KINKS = [-7.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 30.0]
BOOL_MASK = np.array([[True, False, True], [False, False, False], [True, True, True]])
FLOAT_MASK = np.where(BOOL_MASK, [[0.5, 1.0, -1.0]], -np.inf)


@pytest.mark.parametrize("call", [
    "leaky_relu(x)", "leaky_relu(x, 0.5)", "elu(x)", "elu(x, 0.5)", "celu(x)", "celu(x, 2.0)", "selu(x)", "hardtanh(x)",
    "hardtanh(x, -0.5, 3.0)",
    "hardshrink(x)", "hardshrink(x, 1.0)", "softshrink(x)", "softshrink(x, 1.0)", "tanhshrink(x)", "threshold(x, 0.5, 20.0)", "softplus(x)",
    "softplus(x, 2.0, 1.0)", "rrelu(x)", "rrelu(x, 0.25, 0.5)", "softmax(x)", "log_softmax(x)",
])
@pytest.mark.filterwarnings("ignore:Implicit dimension")
def test_activation_and_its_gradient_at_kinks(call):
    check(call, x=KINKS)


def test_elu_keeps_the_digits_of_small_values():
    x = np.float32([-1e-6, -1e-3, -20.0])
    value, slope = jax.value_and_grad(lambda v: SUPPORT["elu"](v).sum())(jnp.asarray(x))
    np.testing.assert_allclose(SUPPORT["elu"](jnp.asarray(x)), np.expm1(x.astype(np.float64)), rtol=1e-6)
    np.testing.assert_allclose(slope, np.exp(x.astype(np.float64)), rtol=1e-6)
    assert np.isfinite(value)


@pytest.mark.parametrize(("call", "shapes"), [
    ("prelu(x, w)", {"x": [[0.0, -1.0, 2.0]], "w": [0.25, 0.5, -0.5]}),
    ("prelu(x, w)", {"x": [0.0, -1.0, 2.0], "w": [0.25]}),
    ("prelu(x, w)", {"x": (2, 3, 4), "w": (3,)}),
    ("softmax(x, 1)", {"x": [[-np.inf, 1.0], [2.0, 3.0]]}),
    ("layer_norm(x, (3, 4), w, b, 0.1)", {"x": (2, 3, 4), "w": (3, 4), "b": (3, 4)}),
    ("layer_norm(x, (4,))", {"x": (2, 3, 4)}),
    ("rms_norm(x, (4,), w)", {"x": (2, 4), "w": (4,)}),
    ("rms_norm(x, (3, 4), eps=0.5)", {"x": (2, 3, 4)}),
    ("group_norm(x, 3, w, b)", {"x": (2, 6, 4, 2), "w": (6,), "b": (6,)}),
    ("group_norm(x, 2, eps=0.1)", {"x": (3, 4)}),
    ("instance_norm(x)", {"x": (2, 3, 4)}),
    ("instance_norm(x, None, None, w, b, eps=0.1)", {"x": (2, 3, 4, 2), "w": (3,), "b": (3,)}),
    ("instance_norm(x, M, V, use_input_stats=False)", {"x": (2, 3, 4), "M": (3,), "V": [0.5, 1.0, 2.0]}),
    ("batch_norm(x, None, None, training=True)", {"x": (4, 3)}),
    ("batch_norm(x, None, None, w, b, True, eps=0.1)", {"x": (2, 3, 4, 2), "w": (3,), "b": (3,)}),
    ("batch_norm(x, M, V, w, b)", {"x": (2, 3, 4), "M": (3,), "V": [0.5, 1.0, 2.0], "w": (3,), "b": (3,)}),
    ("local_response_norm(x, 3)", {"x": (2, 5, 4)}),
    ("local_response_norm(x, 2, 0.5, 0.5, 2.0)", {"x": (2, 5, 4, 3)}),
    ("linear(x, w, b)", {"x": (2, 3, 4), "w": (5, 4), "b": (5,)}),
    ("linear(x, w)", {"x": (4,), "w": (4,)}),
    ("bilinear(x, y, w, b)", {"x": (2, 3), "y": (2, 4), "w": (5, 3, 4), "b": (5,)}),
])
def test_norm(call, shapes):
    check(call, **shapes)


def test_norm_of_large_values_keeps_its_digits():
    check("layer_norm(x, (4,))", x=[[1000.0, 1000.25, 1000.5, 999.75]])


@pytest.mark.parametrize(("call", "shapes"), [
    ("normalize(x)", {"x": (2, 3)}),
    ("normalize(x, dim=0)", {"x": [0.0, 0.0, 0.0]}),
    ("normalize(x, dim=0, eps=1.0)", {"x": [0.125, 0.25, 0.0]}),
    ("normalize(x, 1.0, 0)", {"x": [0.0, 1.0, -2.0]}),
    ("normalize(x, 3.0, 0)", {"x": [0.0, 2.0, -2.0]}),
    ("normalize(x, 0.5, 0)", {"x": [0.0, 2.0, -2.0]}),
    ("normalize(x, inf, 0)", {"x": [0.0, 2.0, -2.0]}),
    ("normalize(x, 0.0, 0)", {"x": [0.0, 2.0, -2.0]}),
    ("normalize(x, -1.0, 0)", {"x": [1.0, 2.0, -2.0]}),
    ("cosine_similarity(x, y)", {"x": (2, 3), "y": (2, 3)}),
    ("cosine_similarity(x, y, -1)", {"x": (1, 2, 3), "y": (2, 1, 3)}),
    ("cosine_similarity(x, y, 0, 1.0)", {"x": [0.125, 0.25, 0.5], "y": [1.0, 2.0, 3.0]}),
    ("cosine_similarity(x, y, 0)", {"x": [1.0, 2.0, 3.0], "y": [3.0, -1.0, 2.0]}),
    ("pairwise_distance(x, y)", {"x": (2, 3), "y": (2, 3)}),
    ("pairwise_distance(x, y, 1.0, 0.5, True)", {"x": (2, 3), "y": (2, 3)}),
    ("pairwise_distance(x, y, eps=0.0)", {"x": [[0.0, 0.0]], "y": [[0.0, 0.0]]}),
    ("pdist(x)", {"x": [[0.0, 1.0], [0.0, 1.0], [1.0, 2.0]]}),
    ("pdist(x, 1.0)", {"x": [[0.0, 1.0], [0.0, 1.0], [1.0, 2.0]]}),
    ("pdist(x, inf)", {"x": [[0.0, 1.0], [0.0, 1.0], [1.0, 2.0]]}),
    ("pdist(x, 3.0)", {"x": (4, 3)}),
])
def test_distance(call, shapes):
    check(call, **shapes)


IDS = np.array([[1, 3, 1], [0, 4, 1]])


@pytest.mark.parametrize(("call", "inputs"), [
    ("embedding(x, w)", {"x": IDS, "w": (5, 4)}),
    ("embedding(x, w, padding_idx=1)", {"x": IDS, "w": (5, 4)}),
    ("embedding(x, w, padding_idx=-1)", {"x": IDS, "w": (5, 4)}),
    ("embedding(x, w, scale_grad_by_freq=True)", {"x": IDS, "w": (5, 4)}),
    ("embedding(x, w, 1, scale_grad_by_freq=True)", {"x": IDS, "w": (5, 4)}),
    ("embedding_bag(x, w)", {"x": IDS, "w": (5, 4)}),
    ("embedding_bag(x, w, mode='max')", {"x": IDS, "w": (5, 4)}),
    ("embedding_bag(x, w, padding_idx=1)", {"x": IDS, "w": (5, 4)}),
    ("embedding_bag(x, w, o, mode='sum', per_sample_weights=p)", {"x": IDS.ravel(), "w": (5, 4), "o": np.array([0, 2, 2]), "p": (6,)}),
    ("embedding_bag(x, w, o, include_last_offset=True)", {"x": IDS.ravel(), "w": (5, 4), "o": np.array([0, 2, 6])}),
    ("embedding_bag(x, w, o, mode='max', padding_idx=1)", {"x": IDS.ravel(), "w": (5, 4), "o": np.array([0, 0, 2])}),
    ("embedding_bag(x, w, scale_grad_by_freq=True, mode='sum')", {"x": np.array([[0, 1], [1, 0]]), "w": (5, 4)}),
    ("one_hot(x, 6)", {"x": IDS}),
])
def test_table(call, inputs):
    check(call, **inputs)


@pytest.mark.parametrize("norm_type", [1.0, 2.0])
def test_max_norm_shortens_rows_and_not_their_gradient(norm_type):
    w, ids = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32), torch.tensor(IDS)
    mine = torch.tensor(w)
    want = torch.nn.functional.embedding(ids, mine, max_norm=1.0, norm_type=norm_type).numpy()
    got, back = jax.vjp(lambda t: SUPPORT["embedding"](jnp.asarray(IDS), t, max_norm=1.0, norm_type=norm_type), jnp.asarray(w))
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(back(jnp.ones_like(got))[0], np.bincount(IDS.ravel(), minlength=5)[:, None] * np.ones(4))
    assert not np.allclose(want, w[IDS])


def test_one_hot_reads_the_number_of_classes():
    assert SUPPORT["one_hot"](jnp.asarray(IDS)).shape == (2, 3, 5)


QKV = {"q": (2, 3, 4), "k": (2, 3, 4), "v": (2, 3, 5)}


@pytest.mark.parametrize(("call", "inputs"), [
    ("scaled_dot_product_attention(q, k, v)", {"q": (2, 2, 3, 4), "k": (2, 2, 5, 4), "v": (2, 2, 5, 6)}),
    ("scaled_dot_product_attention(q, k, v, is_causal=True)", {"q": (2, 3, 4), "k": (2, 5, 4), "v": (2, 5, 6)}),
    ("scaled_dot_product_attention(q, k, v, is_causal=True)", {"q": (2, 5, 4), "k": (2, 3, 4), "v": (2, 3, 6)}),
    ("scaled_dot_product_attention(q, k, v, m)", QKV | {"m": BOOL_MASK}),
    ("scaled_dot_product_attention(q, k, v, m)", QKV | {"m": FLOAT_MASK}),
    ("scaled_dot_product_attention(q, k, v, scale=0.25)", QKV),
    ("scaled_dot_product_attention(q, k, v, enable_gqa=True)", {"q": (1, 4, 3, 4), "k": (1, 2, 3, 4), "v": (1, 2, 3, 4)}),
])
def test_attention(call, inputs):
    check(call, **inputs)


HEADS = {"q": (3, 2, 4), "k": (5, 2, 4), "v": (5, 2, 4), "w": (12, 4), "b": (12,), "o": (4, 4), "c": (4,)}
LATE = np.array([[False, False, False, True, True], [False, False, True, False, False]])
ADDED = np.linspace(-1, 1, 15).reshape(3, 5)


@pytest.mark.parametrize(("rest", "inputs"), [
    ("None, None, False, 0.0, o, c", {}),
    ("None, None, False, 0.0, o, c, need_weights=False", {}),
    ("None, None, False, 0.0, o, None, average_attn_weights=False", {}),
    ("None, None, False, 0.0, o, c, key_padding_mask=p", {"p": LATE}),
    ("None, None, True, 0.0, o, c, key_padding_mask=p, attn_mask=m", {"p": LATE, "m": ADDED > 0.5}),
    ("None, None, False, 0.0, o, c, attn_mask=m, need_weights=False", {"m": ADDED}),
    ("e, f, True, 0.0, o, c, attn_mask=m", {"m": ADDED, "e": (1, 1, 4), "f": (1, 1, 4)}),
    ("None, None, False, 0.5, o, c, training=False, attn_mask=m", {"m": np.stack([ADDED] * 3 + [-ADDED])}),
])
@pytest.mark.filterwarnings("ignore:Support for mismatched")
def test_multi_head_attention(rest, inputs):
    check(f"multi_head_attention_forward(q, k, v, 4, 2, w, b, {rest})", **HEADS, **inputs)


def test_multi_head_attention_without_batch_and_with_its_own_projections():
    shapes = {"q": (3, 4), "k": (5, 2), "v": (5, 6), "x": (4, 4), "y": (4, 2), "z": (4, 6), "b": (12,), "o": (4, 4), "c": (4,)}
    call = "multi_head_attention_forward(q, k, v, 4, 2, None, b, None, None, False, 0.0, o, c, use_separate_proj_weight=True, "
    check(call + "q_proj_weight=x, k_proj_weight=y, v_proj_weight=z)", **shapes)


X = jnp.ones((40, 50))


@pytest.mark.parametrize(("name", "kept", "shape", "whole"), [
    ("dropout", 1 / 0.75, (40, 50), 0), ("dropout1d", 1 / 0.75, (40, 20, 3), 1), ("dropout2d", 1 / 0.75, (40, 20, 3, 2), 2),
    ("dropout3d", 1 / 0.75, (40, 20, 2, 2, 2), 3), ("dropout2d", 1 / 0.75, (40, 20, 3), 1),
])
def test_dropout(name, kept, shape, whole):
    rngs = nnx.Rngs(0)
    first, second = (SUPPORT[name](jnp.ones(shape), 0.25, rngs=rngs) for _ in range(2))
    assert set(np.unique(first)) == {0.0, np.float32(kept)}
    assert abs(float((first == 0).mean()) - 0.25) < 0.06
    assert bool((first != second).any())
    channels = first.reshape(40, -1) if whole == 0 else first.reshape(800, -1)
    assert bool((channels == channels[:, :1]).all()) == (whole > 0)
    assert SUPPORT[name](X, 0.25, False, rngs=rngs) is X
    assert not SUPPORT[name](jnp.ones(shape), 1.0, rngs=rngs).any()


@pytest.mark.parametrize(("name", "shape"), [("alpha_dropout", (4000,)), ("feature_alpha_dropout", (40, 50, 3))])
def test_alpha_dropout_keeps_mean_and_variance(name, shape):
    x = jnp.broadcast_to(jax.random.normal(jax.random.key(1), shape[:2] + (1,) * (len(shape) - 2)), shape)
    out = SUPPORT[name](x, 0.3, True, rngs=nnx.Rngs(0))
    assert abs(float(out.mean())) < 0.1 and abs(float(out.var()) - 1) < 0.15
    assert not np.allclose(out, x)
    assert SUPPORT[name](x, 0.3, rngs=None) is x


def test_lowest_value_of_alpha_dropout():
    torch.manual_seed(0)
    want = torch.nn.functional.alpha_dropout(torch.zeros(100), 0.3, True).unique().numpy()
    got = np.unique(SUPPORT["alpha_dropout"](jnp.zeros(100), 0.3, True, rngs=nnx.Rngs(0)))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_rrelu_draws_slopes():
    out = SUPPORT["rrelu"](-jnp.ones(1000), 0.1, 0.3, True, rngs=nnx.Rngs(0))
    assert -0.3 <= float(out.min()) < -0.29 and -0.11 < float(out.max()) <= -0.1


def test_gumbel_softmax_follows_the_logits():
    rngs, logits = nnx.Rngs(0), jnp.log(jnp.asarray([0.7, 0.2, 0.1]))
    hard = SUPPORT["gumbel_softmax"](jnp.broadcast_to(logits, (4000, 3)), hard=True, rngs=rngs)
    np.testing.assert_allclose(hard.mean(0), [0.7, 0.2, 0.1], atol=0.03)
    np.testing.assert_allclose(hard.sum(-1), 1, rtol=1e-5)
    slope = jax.grad(lambda v: SUPPORT["gumbel_softmax"](v, 0.5, True, rngs=nnx.Rngs(1))[0])(logits)
    assert bool((slope != 0).all())


def test_attention_drops_weights():
    q = jnp.ones((1, 50, 4))
    out = SUPPORT["scaled_dot_product_attention"](q, q, jnp.ones((1, 50, 1)), dropout_p=0.5, rngs=nnx.Rngs(0))
    assert float(out.std()) > 0.05 and abs(float(out.mean()) - 1) < 0.1
