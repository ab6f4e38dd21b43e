"""Convolutions, pooling, resizing, sampling, padding and folding against PyTorch."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from functional_common import SUPPORT, check

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'", "ignore:Default grid_sample", "ignore:Since version 1.3.0")
SIZES = {1: (9,), 2: (7, 8), 3: (5, 6, 7)}


@pytest.mark.parametrize(("call", "inputs"), [
    ("conv1d(x, w, b, 2, 1)", {"x": (2, 4, 9), "w": (6, 4, 3), "b": (6,)}),
    ("conv1d(x, w)", {"x": (4, 9), "w": (6, 4, 3)}),
    ("conv1d(x, w, padding='same', dilation=3)", {"x": (2, 4, 9), "w": (6, 4, 4)}),
    ("conv2d(x, w, b, (2, 1), (1, 2), (1, 2), 2)", {"x": (2, 4, 7, 8), "w": (6, 2, 3, 2), "b": (6,)}),
    ("conv2d(x, w, padding='same', groups=4)", {"x": (4, 7, 8), "w": (8, 1, 2, 3)}),
    ("conv2d(x, w, padding='valid', stride=[2])", {"x": (1, 4, 7, 8), "w": (3, 4, 2, 3)}),
    ("conv3d(x, w, b, (2, 1, 1), 1)", {"x": (1, 2, 5, 6, 4), "w": (3, 2, 3, 2, 3), "b": (3,)}),
    ("conv_transpose1d(x, w, b, 3, 1, 2)", {"x": (2, 4, 5), "w": (4, 6, 3), "b": (6,)}),
    ("conv_transpose1d(x, w, padding=4)", {"x": (2, 4, 9), "w": (4, 6, 3)}),
    ("conv_transpose2d(x, w, b, (2, 3), (1, 0), (1, 2), 2, (2, 1))", {"x": (2, 4, 4, 3), "w": (4, 3, 3, 2), "b": (6,)}),
    ("conv_transpose2d(x, w, stride=2)", {"x": (4, 4, 3), "w": (4, 3, 2, 2)}),
    ("conv_transpose3d(x, w, b, 2, 1, 1, groups=2)", {"x": (1, 4, 3, 2, 3), "w": (4, 2, 3, 3, 3), "b": (4,)}),
    ("conv_tbc(x, w, b, 1)", {"x": (7, 2, 4), "w": (3, 4, 6), "b": (6,)}),
])
def test_convolution(call, inputs):
    check(call, **inputs)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("arguments", [
    "2", "3, 2, 1", "3, 2, 1, ceil_mode=True", "2, 3, ceil_mode=True", "2, 1, 1, 2", "3, 2, 1, return_indices=True",
    "2, dilation=2, ceil_mode=True, return_indices=True",
])
def test_max_pool(n, arguments):
    check(f"max_pool{n}d(x, {arguments})", x=(2, 2, *SIZES[n]))


def test_max_pool_gives_the_gradient_of_equal_values_to_the_first():
    check("max_pool2d(x, 3, 1, 1)", x=np.ones((1, 1, 4, 4)))
    check("max_pool2d(x, 2, 1, return_indices=True)", x=np.ones((1, 4, 4)))


def test_max_pool_of_integers():
    check("max_pool2d(x, (1, 2))", x=np.array([[[3, 1, -5, -2]]]))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("arguments", [
    "2", "3, 2, 1", "3, 2, 1, ceil_mode=True", "3, 2, 1, ceil_mode=True, count_include_pad=False", "2, 3, ceil_mode=True",
    "3, 1, 1, count_include_pad=False",
])
def test_avg_pool(n, arguments):
    check(f"avg_pool{n}d(x, {arguments})", x=(2, 2, *SIZES[n]))


@pytest.mark.parametrize(("call", "shape"), [
    ("avg_pool2d(x, (2, 3), (1, 2), (1, 0), divisor_override=5)", (2, 7, 8)),
    ("avg_pool3d(x, 2, divisor_override=3)", (1, 2, 4, 5, 4)),
    ("lp_pool1d(x, 2, 3)", (2, 3, 9)),
    ("lp_pool2d(x, 2, (2, 3), 2, True)", (2, 3, 7, 8)),
    ("lp_pool2d(x, inf, 2)", (1, 2, 4, 4)),
    ("lp_pool3d(x, 4, 2)", (1, 2, 4, 5, 4)),
])
def test_other_pools(call, shape):
    check(call, x=shape)


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize(("n", "size"), [(1, 1), (1, 4), (1, 12), (2, (3, 5)), (2, (None, 2)), (2, 1), (3, (2, 3, 7)), (3, 4)])
def test_adaptive_pool(kind, n, size):
    check(f"adaptive_{kind}_pool{n}d(x, {size})", x=(2, 2, *SIZES[n]))
    if kind == "max":
        check(f"adaptive_max_pool{n}d(x, {size}, return_indices=True)", x=(2, *SIZES[n]))


def test_adaptive_means_do_not_leak():
    check("adaptive_avg_pool1d(x, 4)", x=[[np.inf, 1.0, 2.0, 3.0, np.nan, 5.0, 6.0]])


@pytest.mark.parametrize(("call", "inputs"), [
    ("max_unpool1d(x, i, 2)", {"x": (1, 2, 3), "i": np.array([[[0, 3, 4], [1, 2, 5]]])}),
    ("max_unpool2d(x, i, 2, output_size=(1, 1, 5, 5))", {"x": (1, 1, 2, 2), "i": np.array([[[[6, 8], [16, 24]]]])}),
    ("max_unpool2d(x, i, 3, 2, 1)", {"x": (1, 2, 2), "i": np.array([[[4, 5], [6, 8]]])}),
    ("max_unpool3d(x, i, (1, 1, 2))", {"x": (1, 1, 1, 2, 2), "i": np.array([[[[[0, 3], [5, 6]]]]])}),
])
def test_max_unpool(call, inputs):
    check(call, **inputs)


def test_unpooled_copies_each_get_the_gradient():
    check("max_unpool1d(x, i, 2)", x=[[[2.0, 2.0]]], i=np.array([[[1, 1]]]))


@pytest.mark.parametrize(("n", "arguments"), [(2, "3, (3, 4)"), (2, "(2, 3), output_ratio=(0.5, 0.7)"), (3, "2, (2, 3, 4)"), (3, "2, 1")])
def test_fractional_max_pool_at_given_places(n, arguments):
    rng = np.random.default_rng(0)
    x, places = rng.normal(size=(2, 3, *SIZES[n])).astype(np.float32), rng.uniform(size=(2, 3, n)).astype(np.float32)
    want, where = eval(f"F(x, {arguments}, return_indices=True, _random_samples=s)", {
        "F": getattr(torch.nn.functional, f"fractional_max_pool{n}d"), "x": torch.tensor(x), "s": torch.tensor(places)})
    got, there = eval(f"F(x, {arguments}, return_indices=True, random_samples=s)", {
        "F": SUPPORT[f"fractional_max_pool{n}d"], "x": jnp.asarray(x), "s": jnp.asarray(places)})
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(there, where)


def test_fractional_max_pool_draws_places():
    x, rngs = jax.random.normal(jax.random.key(0), (1, 30, 9, 9)), nnx.Rngs(0)
    first, second = (SUPPORT["fractional_max_pool2d"](x, 2, 4, rngs=rngs) for _ in range(2))
    assert first.shape == (1, 30, 4, 4) and bool((first != second).any())


@pytest.mark.parametrize("size", [
    "size=(3, 9)", "size=(5, 6)", "scale_factor=2", "scale_factor=(0.6, 2.3)",
    "scale_factor=0.6, recompute_scale_factor=True", "size=(1, 1)",
])
@pytest.mark.parametrize("mode", [
    "mode='nearest'", "mode='nearest-exact'", "mode='bilinear'", "mode='bilinear', align_corners=True", "mode='bicubic'",
    "mode='bicubic', align_corners=True",
    "mode='area'", "mode='bilinear', antialias=True", "mode='bicubic', antialias=True",
    "mode='bicubic', antialias=True, align_corners=True",
    "mode='lanczos', antialias=True",
])
def test_interpolate(size, mode):
    check(f"interpolate(x, {size}, {mode})", x=(1, 2, 5, 6))


@pytest.mark.parametrize(("call", "shape"), [
    ("interpolate(x, 5)", (1, 2, 7)),
    ("interpolate(x, 11, mode='linear')", (1, 2, 7)),
    ("interpolate(x, [4, 3, 5], mode='trilinear')", (1, 2, 3, 4, 5)),
    ("interpolate(x, scale_factor=2.3)", (1, 1, 4)), ("interpolate(x, scale_factor=(1.5, 2, 1), mode='nearest')", (1, 1, 3, 3, 2)),
    ("interpolate(x, scale_factor=3, mode='area')", (1, 2, 3, 4)),
    ("interpolate(x, scale_factor=1.7, mode='linear', align_corners=True)", (1, 2, 7)),
])
def test_interpolate_other_ranks(call, shape):
    check(call, x=shape)


@pytest.mark.parametrize("size", range(1, 40, 3))
def test_nearest_rounds_as_pytorch_does(size):
    check(f"interpolate(x, {size})", x=(1, 1, 23))
    check(f"interpolate(x, scale_factor={size / 7}, mode='nearest-exact')", x=(1, 1, 23))


def test_interpolate_of_bytes_rounds():
    x = np.random.default_rng(0).integers(0, 255, (1, 1, 5, 6)).astype(np.uint8)
    want = torch.nn.functional.interpolate(torch.tensor(x), size=(7, 4), mode="bilinear").numpy().astype(int)
    got = np.asarray(SUPPORT["interpolate"](jnp.asarray(x), size=(7, 4), mode="bilinear"))
    assert got.dtype == np.uint8 and np.abs(got.astype(int) - want).max() <= 1


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode, padding, corners):
    g = np.random.default_rng(3).uniform(-2, 2, (2, 3, 5, 2))
    check(f"grid_sample(x, g, {mode!r}, {padding!r}, {corners})", x=(2, 2, 4, 6), g=g)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_of_volumes(mode, padding):
    g = np.random.default_rng(3).uniform(-2, 2, (1, 2, 3, 2, 3))
    check(f"grid_sample(x, g, {mode!r}, {padding!r})", x=(1, 2, 3, 4, 5), g=g)


def test_grid_sample_at_the_outer_pixels():
    corners = [[[[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0], [1.0, -1.0]]]]
    for padding in ("zeros", "border", "reflection"):
        check(f"grid_sample(x, g, padding_mode={padding!r}, align_corners=False)", x=(1, 1, 3, 4), g=corners)
        check(f"grid_sample(x, g, padding_mode={padding!r}, align_corners=True)[..., 2]", x=(1, 1, 3, 4), g=corners)
    check("grid_sample(x, g, padding_mode='border', align_corners=True)", x=(1, 1, 1, 4), g=corners)


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize(("theta", "size"), [((2, 2, 3), (2, 3, 4, 5)), ((1, 3, 4), (1, 2, 3, 1, 5))])
def test_affine_grid(theta, size, corners):
    check(f"affine_grid(t, {size}, {corners})", t=theta)


@pytest.mark.parametrize(("call", "shape"), [
    ("pad(x, (1, 2))", (2, 3, 4)),
    ("pad(x, (1, -1, 2, 0), value=0.5)", (2, 3, 4)),
    ("pad(x, (0, 0, 0, 0, -1, 1))", (2, 3, 4)),
    ("pad(x, [], 'constant')", (2,)),
    ("pad(x, (1, 2), 'reflect')", (3, 4)),
    ("pad(x, (1, 2, 2, 1), 'reflect')", (2, 3, 4)),
    ("pad(x, (-1, 2, 1, -2), 'reflect')", (1, 2, 3, 4)),
    ("pad(x, (1, 2, 3, 0), 'replicate')", (2, 3, 4)),
    ("pad(x, (-3, 5, 2, -1), 'replicate')", (1, 2, 3, 4)),
    ("pad(x, (1, 1, 0, 2, 2, 1), 'replicate')", (2, 3, 4, 2)),
    ("pad(x, (3, 4), 'circular')", (1, 3, 4)),
    ("pad(x, (-1, 2, 1, -1), 'circular')", (1, 2, 3, 4)),
    ("pad(x, (1, 1, 2, 0, 0, 1), 'circular')", (1, 2, 3, 3, 2)),
    ("pixel_shuffle(x, 2)", (2, 8, 3, 4)),
    ("pixel_shuffle(x, 3)", (9, 2, 2)),
    ("pixel_unshuffle(x, 2)", (2, 3, 4, 6)),
    ("pixel_unshuffle(x, 3)", (2, 1, 3, 6)),
    ("channel_shuffle(x, 3)", (2, 6, 3, 4)),
    ("unfold(x, 2)", (2, 3, 4, 5)), ("unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))", (3, 4, 6)),
    ("fold(x, (4, 5), 2)", (2, 12, 12)), ("fold(x, (4, 6), (2, 3), (2, 1), (1, 0), (1, 2))", (18, 8)),
])
def test_moves(call, shape):
    check(call, x=shape)
