"""How fast the support functions are under jit, on this machine's CPU, beside a hand-written jax.numpy equivalent or the framework's own layer.

    python benchmarks/support_speed.py [--only SUBSTRING] [--limit 1.5] [--repeats 9]

Prints the ratio of the best times of both, which are taken in turns; ends with 1 where a ratio is above the limit. Functions that are one call of JAX's, or
the same expression as one would write, are not listed: their ratio is 1 by nature.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import migrate.support.flax.attention as attention_layers
import migrate.support.flax.batchnorm as batchnorm_layers
import migrate.support.flax.conv as conv_layers
import migrate.support.flax.recurrent as recurrent_layers
import migrate.support.flax.transformer as transformer_layers
from migrate.support.jax import (
    activations,
    attention,
    conv,
    distances,
    embedding,
    fourier,
    linalg,
    losses,
    losses_class,
    losses_ctc,
    norms,
    padding,
    pointwise,
    pooling,
    pooling_adaptive,
    reductions,
    resize,
    scatter,
    shapes,
    sorting,
    statistics,
    vision,
)

sys.path.insert(0, str(Path(__file__).parent))
from speed_common import ENTRIES, RNGS, Entry, entry, floats, image, last, layer_pair, simple, whole

# --- convolutions ---


def lax_conv(x: jax.Array, w: jax.Array, stride: int = 1, pad: int = 1, groups: int = 1, dilation: int = 1) -> jax.Array:
    """What one writes by hand."""
    return jax.lax.conv_general_dilated(
        x, w, (stride, stride), [(pad, pad)] * 2, rhs_dilation=(dilation, dilation), dimension_numbers=("NCHW", "OIHW", "NCHW"), feature_group_count=groups
    )


simple("conv2d", lambda x, w: conv.conv2d(x, w, padding=1), lax_conv, image, lambda: floats(32, 32, 3, 3))
simple(
    "conv2d, groups and stride", lambda x, w: conv.conv2d(x, w, stride=2, padding=1, groups=4), lambda x, w: lax_conv(x, w, 2, 1, 4), image,
    lambda: floats(32, 8, 3, 3),
)
simple(
    "conv1d", lambda x, w: conv.conv1d(x, w, padding="same"),
    lambda x, w: jax.lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NCH", "OIH", "NCH")), lambda: floats(8, 32, 1000), lambda: floats(32, 32, 5),
)
simple(
    "conv_transpose2d", lambda x, w: conv.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
    lambda x, w: jax.lax.conv_general_dilated(
        x, jnp.flip(w, (2, 3)).swapaxes(0, 1), (1, 1), [(1, 2)] * 2, lhs_dilation=(2, 2), dimension_numbers=("NCHW", "OIHW", "NCHW")
    ),
    lambda: floats(4, 32, 28, 28), lambda: floats(32, 16, 3, 3),
)


@entry("layer Conv2d")
def _() -> Entry:
    return layer_pair(
        conv_layers.Conv2d(32, 32, 3, padding=1, rngs=RNGS), nnx.Conv(32, 32, (3, 3), padding=1, rngs=RNGS), image(), arrange=last
    )


@entry("layer BatchNorm2d")
def _() -> Entry:
    return layer_pair(batchnorm_layers.BatchNorm2d(32, rngs=RNGS), nnx.BatchNorm(32, rngs=RNGS), image(), arrange=last)


class Recurrent(nnx.Module):
    """A cell of Flax over time, from zeros."""

    def __init__(self, cell: nnx.Module) -> None:
        self.rnn = nnx.RNN(cell, time_major=True)

    def __call__(self, x: jax.Array) -> jax.Array:
        zeros = jnp.zeros((16, 64))
        return self.rnn(x, initial_carry=(zeros, zeros) if isinstance(self.rnn.cell, nnx.OptimizedLSTMCell) else zeros)


@entry("layer LSTM")
def _() -> Entry:
    return layer_pair(recurrent_layers.LSTM(64, 64, rngs=RNGS), Recurrent(nnx.OptimizedLSTMCell(64, 64, rngs=RNGS)), floats(50, 16, 64))


@entry("layer GRU")
def _() -> Entry:
    return layer_pair(recurrent_layers.GRU(64, 64, rngs=RNGS), Recurrent(nnx.GRUCell(64, 64, rngs=RNGS)), floats(50, 16, 64))


@entry("layer MultiheadAttention")
def _() -> Entry:
    ours = attention_layers.MultiheadAttention(64, 4, batch_first=True, rngs=RNGS)
    theirs = nnx.MultiHeadAttention(4, 64, decode=False, rngs=RNGS)
    _, run_theirs, (state, other_state, x) = layer_pair(ours, theirs, floats(8, 100, 64))
    graph = nnx.graphdef(ours)
    return lambda mine, other, x: nnx.merge(graph, mine)(x, x, x, need_weights=False)[0], run_theirs, (state, other_state, x)


@entry("layer TransformerEncoderLayer")
def _() -> Entry:
    class Encoder(nnx.Module):
        def __init__(self) -> None:
            self.attend = nnx.MultiHeadAttention(4, 64, decode=False, rngs=RNGS)
            self.one, self.two = nnx.LayerNorm(64, rngs=RNGS), nnx.LayerNorm(64, rngs=RNGS)
            self.up, self.down = nnx.Linear(64, 256, rngs=RNGS), nnx.Linear(256, 64, rngs=RNGS)

        def __call__(self, x: jax.Array) -> jax.Array:
            x = self.one(x + self.attend(x))
            return self.two(x + self.down(jax.nn.relu(self.up(x))))

    ours = transformer_layers.TransformerEncoderLayer(64, 4, 256, batch_first=True, rngs=RNGS)
    return layer_pair(ours, Encoder(), floats(8, 100, 64))


# --- attention and norms ---


def plain_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Softmax attention by hand, causal."""
    score = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    score = jnp.where(jnp.tril(jnp.ones(score.shape[-2:], bool)), score, -jnp.inf)
    return jax.nn.softmax(score, -1) @ v


simple(
    "scaled_dot_product_attention, causal", lambda q, k, v: attention.scaled_dot_product_attention(q, k, v, is_causal=True), plain_attention,
    *(lambda seed=seed: floats(8, 4, 128, 32, seed=seed) for seed in range(3)),
)


def by_hand_norm(x: jax.Array, axes: tuple[int, ...], eps: float = 1e-5) -> jax.Array:
    """(x - mean) / std over axes."""
    return (x - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + eps)


simple("layer_norm", lambda x: norms.layer_norm(x, (256,)), lambda x: by_hand_norm(x, (-1,)), lambda: floats(4000, 256))
simple("rms_norm", lambda x: norms.rms_norm(x, (256,)), lambda x: x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6), lambda: floats(4000, 256))
simple(
    "group_norm", lambda x: norms.group_norm(x, 4), lambda x: by_hand_norm(x.reshape(8, 4, -1), (-1,)).reshape(x.shape), image
)
simple("instance_norm", norms.instance_norm, lambda x: by_hand_norm(x, (2, 3)), image)
simple(
    "batch_norm, training", lambda x, w, b: norms.batch_norm(x, None, None, w, b, training=True),
    lambda x, w, b: by_hand_norm(x, (0, 2, 3)) * w.reshape(-1, 1, 1) + b.reshape(-1, 1, 1), image, lambda: floats(32), lambda: floats(32),
)


# --- pooling and windows ---


def reduce_window(x: jax.Array, k: int, s: int, p: int, least: float, op: Any) -> jax.Array:
    """lax.reduce_window over images."""
    return jax.lax.reduce_window(x, least, op, (1, 1, k, k), (1, 1, s, s), [(0, 0), (0, 0), (p, p), (p, p)])


simple("max_pool2d", lambda x: pooling.max_pool2d(x, 3, 2, 1), lambda x: reduce_window(x, 3, 2, 1, -jnp.inf, jax.lax.max), image)
simple("avg_pool2d", lambda x: pooling.avg_pool2d(x, 3, 2, 1), lambda x: reduce_window(x, 3, 2, 1, 0.0, jax.lax.add) / 9, image)


def with_indices(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Maximum and its place by the patches."""
    _n, _c, h, w = x.shape
    patches = jnp.stack([x[:, :, i::2, j::2] for i in range(2) for j in range(2)], -1)
    best = patches.argmax(-1)
    row, column = jnp.arange(h // 2)[:, None] * 2 + best // 2, jnp.arange(w // 2) * 2 + best % 2
    return patches.max(-1), row * w + column


simple("max_pool2d, with indices", lambda x: pooling.max_pool2d(x, 2, return_indices=True), with_indices, image)
simple(
    "max_unpool2d", lambda x, i: pooling_adaptive.max_unpool2d(x, i, 2),
    lambda x, i: jnp.zeros((8, 32, 56 * 56)).at[jnp.arange(8)[:, None, None], jnp.arange(32)[:, None], i.reshape(8, 32, -1)].set(x.reshape(8, 32, -1)),
    lambda: with_indices(image())[0], lambda: with_indices(image())[1],
)
simple("lp_pool2d", lambda x: pooling.lp_pool2d(x, 2.0, 3), lambda x: jnp.sqrt(reduce_window(x * x, 3, 3, 0, 0.0, jax.lax.add)), image)
simple(
    "adaptive_avg_pool2d, even", lambda x: pooling_adaptive.adaptive_avg_pool2d(x, 7), lambda x: x.reshape(8, 32, 7, 8, 7, 8).mean((3, 5)), image
)


def averaging(size: int, out: int) -> jax.Array:
    """The matrix of an adaptive average."""
    matrix = np.zeros((out, size), np.float32)
    for i in range(out):
        low, high = i * size // out, -(-(i + 1) * size // out)
        matrix[i, low:high] = 1 / (high - low)
    return jnp.asarray(matrix)


simple(
    "adaptive_avg_pool2d, uneven", lambda x: pooling_adaptive.adaptive_avg_pool2d(x, (5, 9)),
    lambda x: jnp.einsum("nchw,ah,bw->ncab", x, averaging(56, 5), averaging(56, 9)), image,
)
simple(
    "adaptive_max_pool2d, uneven", lambda x: pooling_adaptive.adaptive_max_pool2d(x, (5, 9)),
    lambda x: jnp.stack(
        [jnp.stack([x[:, :, i * 56 // 5 : -(-(i + 1) * 56 // 5), j * 56 // 9 : -(-(j + 1) * 56 // 9)].max((2, 3)) for j in range(9)], -1) for i in range(5)], -2
    ),
    image,
)
simple(
    "unfold", lambda x: windows_unfold(x), lambda x: jax.lax.conv_general_dilated_patches(x, (3, 3), (1, 1), [(1, 1)] * 2).reshape(8, 32 * 9, -1), image
)


def windows_unfold(x: jax.Array) -> jax.Array:
    """Ours."""
    return vision.unfold(x, 3, padding=1)


def fold_by_hand(x: jax.Array) -> jax.Array:
    """Adds the nine shifted images."""
    patches = x.reshape(8, 16, 3, 3, 28, 28)
    out = jnp.zeros((8, 16, 30, 30))
    for i in range(3):
        for j in range(3):
            out = out.at[:, :, i : i + 28, j : j + 28].add(patches[:, :, i, j])
    return out[:, :, 1:-1, 1:-1]


simple("fold", lambda x: vision.fold(x, (28, 28), 3, padding=1), fold_by_hand, lambda: floats(8, 16 * 9, 28 * 28))
simple(
    "pad_nd, reflect", lambda x: padding.pad_nd(x, (2, 2, 1, 1), "reflect"), lambda x: jnp.pad(x, [(0, 0), (0, 0), (1, 1), (2, 2)], mode="reflect"), image
)
simple(
    "pixel_shuffle", lambda x: vision.pixel_shuffle(x, 4), lambda x: x.reshape(8, 2, 4, 4, 56, 56).transpose(0, 1, 4, 2, 5, 3).reshape(8, 2, 224, 224), image
)


# --- images ---

simple(
    "interpolate, bilinear", lambda x: resize.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
    lambda x: jax.image.resize(x, (8, 32, 112, 112), "bilinear", antialias=False), image,
)
simple(
    "interpolate, bicubic", lambda x: resize.interpolate(x, size=(80, 90), mode="bicubic", align_corners=False),
    lambda x: jax.image.resize(x, (8, 32, 80, 90), "cubic", antialias=False), image,
)
simple(
    "interpolate, nearest", lambda x: resize.interpolate(x, scale_factor=2), lambda x: jnp.repeat(jnp.repeat(x, 2, 2), 2, 3), image
)
simple(
    "interpolate, antialias", lambda x: resize.interpolate(x, size=(20, 23), mode="bilinear", antialias=True),
    lambda x: jax.image.resize(x, (8, 32, 20, 23), "bilinear"), image,
)


def sample_by_hand(x: jax.Array, grid: jax.Array) -> jax.Array:
    """Bilinear samples with jax.scipy."""
    at = (grid[..., ::-1] + 1) * (jnp.asarray(x.shape[2:]) / 2) - 0.5

    def one(channel: jax.Array, places: jax.Array) -> jax.Array:
        return jax.scipy.ndimage.map_coordinates(channel, [places[..., 0], places[..., 1]], order=1, mode="constant")

    return jax.vmap(lambda channels, places: jax.vmap(lambda c: one(c, places))(channels))(x, at)


simple("grid_sample", vision.grid_sample, sample_by_hand, lambda: floats(4, 8, 56, 56), lambda: jnp.tanh(floats(4, 40, 40, 2)))

# --- embeddings and losses ---

simple(
    "embedding_bag, mean", lambda i, w, o: embedding.embedding_bag(i, w, o, mode="mean"),
    lambda i, w, o: jax.ops.segment_sum(w[i], jnp.searchsorted(o, jnp.arange(i.size), side="right") - 1, 512)
    / jnp.maximum(jnp.diff(o, append=i.size), 1)[:, None],
    lambda: whole(2000, 8192), lambda: floats(2000, 64), lambda: jnp.arange(0, 8192, 16),
)
simple(
    "cross_entropy", losses_class.cross_entropy, lambda x, y: optax.softmax_cross_entropy_with_integer_labels(x, y).mean(), lambda: floats(4096, 200),
    lambda: whole(200, 4096),
)
simple(
    "cross_entropy, label smoothing", lambda x, y: losses_class.cross_entropy(x, y, label_smoothing=0.1),
    lambda x, y: optax.softmax_cross_entropy(x, optax.smooth_labels(jax.nn.one_hot(y, 200), 0.1)).mean(), lambda: floats(4096, 200), lambda: whole(200, 4096),
)
simple(
    "nll_loss", losses_class.nll_loss, lambda x, y: -jnp.take_along_axis(x, y[:, None], 1).mean(), lambda: floats(4096, 200), lambda: whole(200, 4096)
)
simple(
    "binary_cross_entropy_with_logits", losses_class_bce := losses_class.binary_cross_entropy_with_logits
    if hasattr(losses_class, "binary_cross_entropy_with_logits") else losses.binary_cross_entropy_with_logits,
    lambda x, y: optax.sigmoid_binary_cross_entropy(x, y).mean(), lambda: floats(4096, 200), lambda: jax.nn.sigmoid(floats(4096, 200, seed=1)),
)
simple("smooth_l1_loss", losses.smooth_l1_loss, lambda x, y: optax.huber_loss(x, y).mean(), lambda: floats(4096, 200), lambda: floats(4096, 200, seed=1))
simple(
    "kl_div", losses.kl_div, lambda x, y: jnp.where(y > 0, y * (jnp.log(y) - x), 0).mean(), lambda: floats(4096, 200), lambda: jax.nn.softmax(floats(4096, 200))
)
simple(
    "triplet_margin_loss", losses.triplet_margin_loss,
    lambda a, p, n: jnp.maximum(jnp.linalg.norm(a - p + 1e-6, axis=1) - jnp.linalg.norm(a - n + 1e-6, axis=1) + 1, 0).mean(),
    *(lambda seed=seed: floats(4096, 128, seed=seed) for seed in range(3)),
)


@entry("ctc_loss")
def _() -> Entry:
    logits, labels = floats(100, 16, 30), whole(29, 16, 20) + 1
    lengths = jnp.full(16, 100), jnp.full(16, 20)

    def ours(x: jax.Array, y: jax.Array) -> jax.Array:
        return losses_ctc.ctc_loss(jax.nn.log_softmax(x, -1), y, *lengths, reduction="sum")

    def theirs(x: jax.Array, y: jax.Array) -> jax.Array:
        return optax.ctc_loss(x.swapaxes(0, 1), jnp.zeros((16, 100)), y, jnp.zeros((16, 20))).sum()

    return ours, theirs, (logits, labels)


# --- reductions, sorting, scattering ---

simple("std", lambda x: reductions_std(x), lambda x: jnp.std(x, axis=1, ddof=1), lambda: floats(2000, 500))


def reductions_std(x: jax.Array) -> jax.Array:
    """Ours."""
    return reductions.std(x, dim=1)


simple("vector_norm", lambda x: reductions.vector_norm(x, 2, 1), lambda x: jnp.linalg.norm(x, axis=1), lambda: floats(2000, 500))
simple("max_dim", lambda x: reductions.max_dim(x, 1), lambda x: (x.max(1), x.argmax(1)), lambda: floats(2000, 500))
simple(
    "median_dim", lambda x: reductions.median_dim(x, 1),
    lambda x: (jnp.sort(x, 1)[:, 250], jnp.argsort(x, 1)[:, 250]), lambda: floats(500, 501),
)
simple(
    "kthvalue", lambda x: reductions.kthvalue(x, 7, 1), lambda x: (jnp.sort(x, 1)[:, 6], jnp.argsort(x, 1)[:, 6]), lambda: floats(500, 501)
)
simple(
    "cummax", lambda x: reductions.cummax(x, 1),
    lambda x: jax.lax.associative_scan(
        lambda a, b: (jnp.maximum(a[0], b[0]), jnp.where(b[0] >= a[0], b[1], a[1])), (x, jnp.broadcast_to(jnp.arange(500), x.shape)), axis=1
    ),
    lambda: floats(500, 500),
)
simple(
    "mode", lambda x: reductions.mode(x, 1),
    lambda x: jax.vmap(lambda row: (lambda s: s[jnp.argmax(jnp.searchsorted(s, s, side="right") - jnp.searchsorted(s, s))])(jnp.sort(row)))(x),
    lambda: whole(20, 200, 300),
)
simple("sort", lambda x: sorting.sort(x, 1), lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1)), lambda: floats(500, 500))
simple("topk", lambda x: sorting.topk(x, 10), lambda x: jax.lax.top_k(x, 10), lambda: floats(500, 500))
simple("topk, smallest", lambda x: sorting.topk(x, 10, largest=False), lambda x: jax.lax.top_k(-x, 10), lambda: floats(500, 500))
simple(
    "searchsorted, rows", sorting.searchsorted, lambda s, x: jax.vmap(jnp.searchsorted)(s, x), lambda: jnp.sort(floats(200, 500), 1), lambda: floats(200, 100)
)
simple(
    "scatter_add", lambda x, i, s: scatter.scatter_add(x, 0, i, s), lambda x, i, s: x.at[i, jnp.arange(200)[None]].add(s), lambda: floats(500, 200),
    lambda: whole(500, 400, 200), lambda: floats(400, 200),
)
simple(
    "scatter_reduce, mean", lambda x, i, s: scatter.scatter_reduce(x, 0, i, s, "mean"),
    lambda x, i, s: x.at[i, jnp.arange(200)[None]].add(s) / jnp.ones(x.shape).at[i, jnp.arange(200)[None]].add(1), lambda: floats(500, 200),
    lambda: whole(500, 400, 200), lambda: floats(400, 200),
)
simple(
    "scatter_reduce, amax", lambda x, i, s: scatter.scatter_reduce(x, 0, i, s, "amax"), lambda x, i, s: x.at[i, jnp.arange(200)[None]].max(s),
    lambda: floats(500, 200), lambda: whole(500, 400, 200), lambda: floats(400, 200),
)
simple(
    "index_add", lambda x, i, s: scatter.index_add(x, 0, i, s), lambda x, i, s: x.at[i].add(s), lambda: floats(500, 200), lambda: whole(500, 400),
    lambda: floats(400, 200),
)
simple(
    "cdist", statistics.cdist, lambda a, b: jnp.sqrt(jnp.maximum((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T, 0)), lambda: floats(300, 32),
    lambda: floats(400, 32, seed=1),
)
simple(
    "cosine_similarity", distances.cosine_similarity,
    lambda a, b: (a * b).sum(1) / (jnp.linalg.norm(a, axis=1) * jnp.linalg.norm(b, axis=1)), lambda: floats(4000, 128), lambda: floats(4000, 128, seed=1),
)
simple(
    "normalize", distances.normalize, lambda x: x / jnp.maximum(jnp.linalg.norm(x, axis=1, keepdims=True), 1e-12), lambda: floats(4000, 128)
)
simple("histc", lambda x: statistics.histc(x, 50), lambda x: jnp.histogram(x, 50)[0], lambda: floats(100_000))
simple(
    "unfold_dimension", lambda x: shapes.unfold_dimension(x, 1, 20, 10), lambda x: jnp.stack([x[:, i * 10 : i * 10 + 20] for i in range(99)], 1),
    lambda: floats(100, 1000),
)
simple(
    "as_strided", lambda x: shapes.as_strided(x, (500, 8), (3, 1)), lambda x: x[jnp.arange(500)[:, None] * 3 + jnp.arange(8)], lambda: floats(2000)
)
simple("lu_solve and pinv", lambda x: linalg.pinv(x), lambda x: jnp.linalg.pinv(x), lambda: floats(60, 40))

# --- elementwise ---

ROW = lambda: floats(2000, 500)
simple("clamp", lambda x: pointwise.clamp(x, -1, 1), lambda x: jnp.clip(x, -1, 1), ROW)
simple("absolute", pointwise.absolute, jnp.abs, ROW)
simple("leaky_relu", activations.leaky_relu, jax.nn.leaky_relu, ROW)
simple("elu", activations.elu, jax.nn.elu, ROW)
simple("softplus", activations.softplus, jax.nn.softplus, ROW)
simple("hardtanh", activations.hardtanh, jax.nn.hard_tanh, ROW)
simple("lerp", lambda x: pointwise.lerp(x, x + 1, 0.3), lambda x: x + 0.3 * ((x + 1) - x), ROW)

# --- signals ---

simple(
    "stft", lambda x: fourier.stft(x, 256, 64, window=jnp.hanning(256), return_complex=True)
    if "return_complex" in fourier.stft.__code__.co_varnames else fourier.stft(x, 256, 64, window=jnp.hanning(256)),
    lambda x: jnp.fft.rfft(
        jnp.pad(x, [(0, 0), (128, 128)], mode="reflect")[:, jnp.arange(0, 8001, 64)[:, None] + jnp.arange(256)] * jnp.hanning(256), axis=-1
    ).swapaxes(1, 2),
    lambda: floats(8, 8000),
)


def best(functions: list[Callable[..., Any]], args: tuple[Any, ...], repeats: int) -> list[float]:
    """The best time of each, taken in turns; a time is that of enough calls for two milliseconds."""
    compiled = [jax.jit(f) for f in functions]
    counts, times = [], [float("inf")] * len(functions)
    for f in compiled:
        jax.block_until_ready(f(*args))
        start = time.perf_counter()
        jax.block_until_ready(f(*args))
        counts.append(max(1, int(0.002 / max(time.perf_counter() - start, 1e-7))))
    for _ in range(repeats):
        for i, (f, n) in enumerate(zip(compiled, counts, strict=True)):
            start = time.perf_counter()
            for _ in range(n):
                out = f(*args)
            jax.block_until_ready(out)
            times[i] = min(times[i], (time.perf_counter() - start) / n)
    return times


def main() -> int:
    """Prints the ratios."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="")
    p.add_argument("--limit", type=float, default=1.5)
    p.add_argument("--repeats", type=int, default=9)
    a = p.parse_args()
    import speed_functions  # noqa: F401
    import speed_layers  # noqa: F401

    slow = []
    print(f"{'':38}{'ours':>10}{'theirs':>10}{'ratio':>8}   (milliseconds; jax {jax.__version__})")
    for name, make in ENTRIES.items():
        if a.only not in name:
            continue
        ours, theirs, args = make()
        mine, other = best([ours, theirs], args, a.repeats)
        if mine > a.limit * other:  # once more: the machine may have been busy
            mine, other = best([ours, theirs], args, 3 * a.repeats)
        slow += [name] * (mine > a.limit * other)
        print(f"{name:38}{mine * 1e3:10.3f}{other * 1e3:10.3f}{mine / other:8.2f}{'  above the limit' if mine > a.limit * other else ''}", flush=True)
    print(f"above {a.limit}: {', '.join(slow) or 'none'}")
    return bool(slow)


if __name__ == "__main__":
    raise SystemExit(main())
