"""Entries of the benchmark: functions, beside what one writes by hand."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from speed_common import floats, image, simple, whole

from migrate.support.jax import (
    activations,
    assignment,
    attention,
    conv,
    decompositions,
    distances,
    embedding,
    fourier,
    indexing,
    linalg,
    losses,
    losses_class,
    norms,
    pointwise,
    pooling_adaptive,
    reductions,
    scatter,
    special,
    statistics,
    vision,
)

ROW = lambda: floats(2000, 500)
OTHER = lambda: floats(2000, 500, seed=1)
POSITIVE = lambda: jnp.abs(floats(1000, 100)) + 0.1
LABELS = lambda: whole(500, 2000)
SIGNS = lambda: whole(2, 2000, 500) * 2 - 1
MATRICES = lambda: floats(8, 48, 48) + 8 * jnp.eye(48)
SYMMETRIC = lambda: MATRICES() @ MATRICES().mT + jnp.eye(48)
COLUMNS = lambda: floats(8, 48, 4)

# --- elementwise ---

simple("celu", activations.celu, jax.nn.celu, ROW)
simple("selu", activations.selu, jax.nn.selu, ROW)
simple("prelu", activations.prelu, lambda x, w: jnp.where(x > 0, x, w.reshape(-1, 1, 1) * x), image, lambda: floats(32))
simple("hardshrink", activations.hardshrink, lambda x: jnp.where(jnp.abs(x) <= 0.5, 0, x), ROW)
simple("softshrink", activations.softshrink, lambda x: jnp.sign(x) * jnp.maximum(jnp.abs(x) - 0.5, 0), ROW)
simple("tanhshrink", activations.tanhshrink, lambda x: x - jnp.tanh(x), ROW)
simple("threshold_at", lambda x: activations.threshold_at(x, 0.1, 2.0), lambda x: jnp.where(x > 0.1, x, 2.0), ROW)
simple("fmax", pointwise.fmax, jnp.fmax, ROW, OTHER)
simple("fmin", pointwise.fmin, jnp.fmin, ROW, OTHER)
simple("angle", pointwise.angle, jnp.angle, ROW)
simple("atan2", pointwise.atan2, jnp.arctan2, ROW, OTHER)
simple("copysign", pointwise.copysign, jnp.copysign, ROW, OTHER)
simple("heaviside", pointwise.heaviside, jnp.heaviside, ROW, OTHER)
simple("ldexp", pointwise.ldexp, jnp.ldexp, ROW, lambda: whole(5, 2000, 500))
simple("nextafter", pointwise.nextafter, jnp.nextafter, ROW, OTHER)
simple("sign", pointwise.sign, jnp.sign, ROW)
simple("power", lambda x, y: pointwise.power(jnp.abs(x), y), lambda x, y: jnp.abs(x) ** y, ROW, OTHER)
simple("trunc_divide", pointwise.trunc_divide, lambda x, y: jnp.trunc(x / y), ROW, OTHER)
simple("polar", pointwise.polar, lambda r, a: r * jnp.exp(1j * a), ROW, OTHER)
simple("view_as_real", lambda x, y: pointwise.view_as_real(x + 1j * y), lambda x, y: jnp.stack([x, y], -1), ROW, OTHER)
simple("view_as_complex", pointwise.view_as_complex, lambda x: x[..., 0] + 1j * x[..., 1], lambda: floats(2000, 250, 2))
simple("xlogy", special.xlogy, jsp.special.xlogy, lambda: floats(1000, 100), POSITIVE)
simple("xlog1py", special.xlog1py, jsp.special.xlog1py, lambda: floats(1000, 100), POSITIVE)
simple("i0", special.i0, jsp.special.i0, lambda: floats(1000, 100))
simple("digamma", special.digamma, jsp.special.digamma, POSITIVE)
simple("polygamma", lambda x: special.polygamma(2, x), lambda x: jsp.special.polygamma(2, x), POSITIVE)
simple("zeta", lambda x: special.zeta(x + 1.5, x + 1), lambda x: jsp.special.zeta(x + 1.5, x + 1), POSITIVE)

# --- losses ---

simple("mse_loss", losses.mse_loss, lambda x, y: jnp.mean((x - y) ** 2), ROW, OTHER)
simple("l1_loss", losses.l1_loss, lambda x, y: jnp.mean(jnp.abs(x - y)), ROW, OTHER)
simple("huber_loss", losses.huber_loss, lambda x, y: jnp.mean(jnp.where(jnp.abs(x - y) < 1, (x - y) ** 2 / 2, jnp.abs(x - y) - 0.5)), ROW, OTHER)
simple("mse_loss, weighted", lambda x, y: losses.mse_loss(x, y, weight=jnp.abs(y)), lambda x, y: jnp.sum((x - y) ** 2 * jnp.abs(y)) / jnp.sum(jnp.abs(y)), ROW, OTHER)
simple("soft_margin_loss", losses.soft_margin_loss, lambda x, y: jnp.mean(jnp.log1p(jnp.exp(-y * x))), ROW, SIGNS)
simple("poisson_nll_loss", losses.poisson_nll_loss, lambda x, y: jnp.mean(jnp.exp(x) - y * x), ROW, OTHER)
simple(
    "gaussian_nll_loss", losses.gaussian_nll_loss, lambda x, y, v: jnp.mean(0.5 * (jnp.log(jnp.maximum(v, 1e-6)) + (x - y) ** 2 / jnp.maximum(v, 1e-6))),
    POSITIVE, POSITIVE, POSITIVE,
)
simple(
    "hinge_embedding_loss", losses.hinge_embedding_loss, lambda x, y: jnp.mean(jnp.where(y == 1, x, jnp.maximum(1 - x, 0))), ROW, SIGNS
)
simple("margin_ranking_loss", losses.margin_ranking_loss, lambda x, y, t: jnp.mean(jnp.maximum(-t * (x - y), 0)), ROW, OTHER, SIGNS)


def cosine(x: jax.Array, y: jax.Array) -> jax.Array:
    """Of the last axes."""
    return (x * y).sum(-1) / jnp.maximum(jnp.sqrt((x * x).sum(-1) * (y * y).sum(-1)), 1e-8)


simple(
    "cosine_embedding_loss", losses.cosine_embedding_loss,
    lambda x, y, t: jnp.mean(jnp.where(t == 1, 1 - cosine(x, y), jnp.maximum(cosine(x, y), 0))), ROW, OTHER, lambda: SIGNS()[:, 0],
)
simple(
    "binary_cross_entropy", losses_class.binary_cross_entropy, lambda p, t: -jnp.mean(t * jnp.log(p) + (1 - t) * jnp.log1p(-p)),
    lambda: jax.nn.sigmoid(floats(2000, 500)), lambda: whole(2, 2000, 500),
)
simple(
    "multi_margin_loss", losses_class.multi_margin_loss,
    lambda x, y: jnp.mean(
        jnp.sum(jnp.where(jnp.arange(500) == y[:, None], 0, jnp.maximum(1 - jnp.take_along_axis(x, y[:, None], 1) + x, 0)), 1) / 500
    ),
    ROW, LABELS,
)


def multilabel_margin(x: jax.Array, y: jax.Array) -> jax.Array:
    """All pairs of a target class, which -1 ends, and another class."""
    others = ~jnp.any(jnp.arange(50) == y[:, :, None], 1)
    pairs = jnp.maximum(1 - jnp.take_along_axis(x, jnp.maximum(y, 0), 1)[..., None] + x[:, None], 0)
    return jnp.mean(jnp.sum(jnp.where((y >= 0)[..., None] & others[:, None], pairs, 0), (1, 2)) / 50)


simple(
    "multilabel_margin_loss", losses_class.multilabel_margin_loss, multilabel_margin, lambda: floats(200, 50),
    lambda: jnp.where(jnp.arange(50) < 4, jnp.arange(50) * 3, -1) * jnp.ones((200, 1), int),
)
simple(
    "multilabel_soft_margin_loss", losses_class.multilabel_soft_margin_loss,
    lambda x, y: -jnp.mean(y * jax.nn.log_sigmoid(x) + (1 - y) * jax.nn.log_sigmoid(-x)), ROW, lambda: whole(2, 2000, 500),
)
simple(
    "linear_cross_entropy", losses_class.linear_cross_entropy,
    lambda x, w, y: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x @ w.T), y[:, None], 1)), lambda: floats(2000, 64), lambda: floats(500, 64), LABELS,
)

# --- norms, convolutions, attention, pictures ---


def local_norm(x: jax.Array, k: float = 1.0) -> jax.Array:
    """By a window over the channels."""
    total = jax.lax.reduce_window(x * x, 0.0, jax.lax.add, (1, 5, 1, 1), (1, 1, 1, 1), [(0, 0), (2, 2), (0, 0), (0, 0)])
    return x / (k + 1e-4 * total / 5) ** 0.75


simple("local_response_norm", lambda x: norms.local_response_norm(x, 5), local_norm, image)
simple("cross_map_lrn", lambda x: norms.cross_map_lrn(x, 5), local_norm, image)


def normal_with_statistics(x: jax.Array, axes: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """Normalised, the mean, and 1 / the deviation."""
    mean, inverse = x.mean(axes, keepdims=True), 1 / jnp.sqrt(x.var(axes, keepdims=True) + 1e-5)
    return (x - mean) * inverse, mean, inverse


simple("native_layer_norm", lambda x: norms.native_layer_norm(x, (500,), None, None, 1e-5), lambda x: normal_with_statistics(x, (1,)), ROW)
simple(
    "native_group_norm", lambda x: norms.native_group_norm(x, None, None, 8, 32, 3136, 4, 1e-5), lambda x: normal_with_statistics(x.reshape(8, 4, -1), (2,)), image
)
simple(
    "native_batch_norm", lambda x: norms.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5), lambda x: normal_with_statistics(x, (0, 2, 3)), image
)
simple(
    "conv_tbc", lambda x, w, b: conv.conv_tbc(x, w, b, 2),
    lambda x, w, b: jax.lax.conv_general_dilated(x, w, (1,), [(2, 2)], dimension_numbers=("HNC", "HIO", "HNC")) + b,
    lambda: floats(500, 8, 32), lambda: floats(5, 32, 32), lambda: floats(32),
)
QKV = tuple(lambda seed=seed: floats(4, 4, 128, 32, seed=seed) for seed in range(3))
simple(
    "flex_attention", lambda q, k, v: attention.flex_attention(q, k, v, lambda s, b, h, i, j: s - (i - j)),
    lambda q, k, v: jax.nn.softmax(q @ k.mT / 32**0.5 - (jnp.arange(128)[:, None] - jnp.arange(128)), -1) @ v, *QKV,
)
simple(
    "create_block_mask", lambda x: attention.create_block_mask(lambda b, h, i, j: (i >= j) & (x[0, 0] > -9), None, None, 512, 512),
    lambda x: ((jnp.arange(512)[:, None] >= jnp.arange(512)) & (x[0, 0] > -9))[None, None], lambda: floats(2, 2),
)
simple("channel_shuffle", lambda x: vision.channel_shuffle(x, 4), lambda x: x.reshape(8, 4, 8, 56, 56).swapaxes(1, 2).reshape(x.shape), image)
simple(
    "pixel_unshuffle", lambda x: vision.pixel_unshuffle(x, 2),
    lambda x: x.reshape(8, 32, 28, 2, 28, 2).transpose(0, 1, 3, 5, 2, 4).reshape(8, 128, 28, 28), image,
)


def plain_grid(theta: jax.Array) -> jax.Array:
    """Points of the unit square by a matrix."""
    at = (jnp.arange(64) * 2 + 1) / 64 - 1
    x, y = jnp.meshgrid(at, at)
    return jnp.einsum("hwk,nik->nhwi", jnp.stack([x, y, jnp.ones_like(x)], -1), theta)


simple("affine_grid", lambda t: vision.affine_grid(t, (8, 3, 64, 64)), plain_grid, lambda: floats(8, 2, 3))


def fractional(x: jax.Array, u: jax.Array) -> jax.Array:
    """The windows' rows and columns are taken, then the largest."""
    u, alpha = u[..., None], 54 / 27
    at = jnp.minimum(jnp.floor((jnp.arange(28) + u) * alpha) - jnp.floor(u * alpha), 54).astype(int)[..., None] + jnp.arange(2)
    y = jnp.take_along_axis(x, at[:, :, 1].reshape(8, 32, 56, 1), 2)
    return jnp.take_along_axis(y, at[:, :, 0].reshape(8, 32, 1, 56), 3).reshape(8, 32, 28, 2, 28, 2).max((3, 5))


simple(
    "fractional_max_pool2d", lambda x, u: pooling_adaptive.fractional_max_pool2d(x, 2, 28, random_samples=u), fractional, image,
    lambda: jax.nn.sigmoid(floats(8, 32, 2)),
)

# --- linear algebra ---

simple("svd", decompositions.svd, lambda x: jnp.linalg.svd(x, full_matrices=False), MATRICES)
simple("eigh", decompositions.eigh, jnp.linalg.eigh, SYMMETRIC)
simple("eigvalsh", decompositions.eigvalsh, jnp.linalg.eigvalsh, SYMMETRIC)
simple("cholesky_ex", decompositions.cholesky_ex, lambda x: jnp.linalg.cholesky(x), SYMMETRIC)
simple("geqrf", decompositions.geqrf, lambda x: jnp.linalg.qr(x, mode="raw"), MATRICES)
simple("lu_factor", decompositions.lu_factor, jax.lax.linalg.lu, MATRICES)
simple("lu_factor_ex", decompositions.lu_factor_ex, jax.lax.linalg.lu, MATRICES)
simple("lu", decompositions.lu, lambda x: jsp.linalg.lu(x), lambda: MATRICES()[0])


def reflections(a: jax.Array, tau: jax.Array) -> jax.Array:
    """One after the other; JAX's own householder_product has no gradient."""
    out = jnp.broadcast_to(jnp.eye(48, 8), a.shape)
    for i in reversed(range(8)):
        v = jnp.where(jnp.arange(48) > i, a[..., i], 0).at[..., i].set(1)[..., None]
        out = out - tau[..., i, None, None] * v @ (v.mT @ out)
    return out


simple("householder_product", decompositions.householder_product, reflections, lambda: floats(8, 48, 8), lambda: floats(8, 8))
simple("ormqr", lambda a, t, x: decompositions.ormqr(a, t, x), lambda a, t, x: jax.lax.linalg.householder_product(a, t) @ x, lambda: floats(48, 48),
    lambda: floats(48), lambda: floats(48, 48))
simple("solve", linalg.solve, jnp.linalg.solve, MATRICES, COLUMNS)
simple("solve_ex", linalg.solve_ex, lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a)), MATRICES, COLUMNS)
simple("inv_ex", linalg.inv_ex, jnp.linalg.inv, MATRICES)
simple("logdet", linalg.logdet, lambda x: jnp.linalg.slogdet(x)[1], MATRICES)
simple("lu_solve", lambda a, b: linalg.lu_solve(*decompositions.lu_factor(a), b), lambda a, b: jnp.linalg.solve(a, b), MATRICES, COLUMNS)
simple("cholesky_solve", linalg.cholesky_solve, lambda b, low: jnp.linalg.solve(low @ low.mT, b), COLUMNS, MATRICES)
simple("cholesky_inverse", linalg.cholesky_inverse, lambda low: jnp.linalg.inv(low @ low.mT), MATRICES)
simple("solve_triangular", lambda a, b: linalg.solve_triangular(a, b, upper=True), lambda a, b: jsp.linalg.solve_triangular(a, b), MATRICES, COLUMNS)
simple("triangular_solve", linalg.triangular_solve, lambda b, a: jsp.linalg.solve_triangular(a, b), COLUMNS, MATRICES)
simple("lstsq", lambda a, b: linalg.lstsq(a, b).solution, lambda a, b: jnp.linalg.lstsq(a, b)[0], lambda: floats(80, 20), lambda: floats(80, 3))
simple("matrix_rank", linalg.matrix_rank, jnp.linalg.matrix_rank, MATRICES)
simple("matrix_norm, nuclear", lambda x: linalg.matrix_norm(x, "nuc"), lambda x: jnp.linalg.svdvals(x).sum(-1), MATRICES)
simple("norm", lambda x: linalg.norm(x), lambda x: jnp.sqrt((x * x).sum()), MATRICES)
simple("cond", linalg.cond, lambda x: jnp.linalg.cond(x), MATRICES)
simple("cross", linalg.cross, lambda x, y: jnp.cross(x, y, axis=0), lambda: floats(3, 2000), lambda: floats(3, 2000, seed=1))
simple("vander", lambda x: linalg.vander(x, 8), lambda x: jnp.vander(x, 8, increasing=True), lambda: floats(2000))
simple("bilinear", distances.bilinear, lambda x, y, w: jnp.einsum("na,oab,nb->no", x, w, y), lambda: floats(500, 32), lambda: floats(500, 32), lambda: floats(16, 32, 32))
simple(
    "pdist", distances.pdist, lambda x: jnp.sqrt(((x[np.triu_indices(100, 1)[0]] - x[np.triu_indices(100, 1)[1]]) ** 2).sum(-1)), lambda: floats(100, 32)
)

# --- indexing ---

simple("embedding", embedding.embedding, lambda i, w: w[i], lambda: whole(1000, 64, 128), lambda: floats(1000, 64))
simple("one_hot", lambda i: embedding.one_hot(i, 500), lambda i: jax.nn.one_hot(i, 500, dtype=int), LABELS)
simple("gather", lambda x, i: indexing.gather(x, 1, i), lambda x, i: jnp.take_along_axis(x, i, 1), ROW, lambda: whole(500, 2000, 50))
simple("masked_fill", lambda x: indexing.masked_fill(x, x > 0, 0.0), lambda x: jnp.where(x > 0, 0.0, x), ROW)
simple(
    "masked_scatter", lambda x, y: indexing.masked_scatter(x, x > 0, y),
    lambda x, y: jnp.where(x > 0, y.ravel()[jnp.cumsum((x > 0).ravel()) - 1].reshape(x.shape), x), ROW, OTHER,
)
simple("nonzero_static", lambda x: indexing.nonzero_static(x > 2, size=100), lambda x: jnp.stack(jnp.nonzero(x > 2, size=100, fill_value=-1), -1),
    lambda: floats(200, 100))
simple("set_item", lambda x: assignment.set_item(x, (slice(0, 9), 1), 2.0), lambda x: x.at[:9, 1].set(2.0), ROW)
simple("where_set", lambda x: assignment.where_set(x, x > 0, 2.0), lambda x: jnp.where(x > 0, 2.0, x), ROW)
simple("index_copy", lambda x, i, y: scatter.index_copy(x, 0, i, y), lambda x, i, y: x.at[i].set(y), ROW, lambda: whole(2000, 100), lambda: floats(100, 500))
simple("index_fill", lambda x, i: scatter.index_fill(x, 0, i, 1.0), lambda x, i: x.at[i].set(1.0), ROW, lambda: whole(2000, 100))
simple(
    "index_reduce", lambda x, i, y: scatter.index_reduce(x, 0, i, y, "amax"), lambda x, i, y: x.at[i].max(y), lambda: floats(200, 50),
    lambda: whole(200, 100), lambda: floats(100, 50),
)
simple("put", scatter.put, lambda x, i, y: x.ravel().at[i].set(y).reshape(x.shape), ROW, lambda: whole(9999, 100), lambda: floats(100))
simple("select_scatter", lambda x, y: scatter.select_scatter(x, y, 1, 3), lambda x, y: x.at[:, 3].set(y), ROW, lambda: floats(2000))
simple("slice_scatter", lambda x, y: scatter.slice_scatter(x, y, 0, 5, 105), lambda x, y: x.at[5:105].set(y), ROW, lambda: floats(100, 500))
simple("diagonal_scatter", scatter.diagonal_scatter, lambda x, y: x.at[jnp.arange(500), jnp.arange(500)].set(y), ROW, lambda: floats(500))
simple(
    "as_strided_scatter", lambda x, y: scatter.as_strided_scatter(x, y, (100, 50), (60, 1)),
    lambda x, y: x.at[(jnp.arange(100)[:, None] * 60 + jnp.arange(50))].set(y), lambda: floats(9000), lambda: floats(100, 50),
)

# --- reductions and statistics ---

simple("median", reductions.median, lambda x: jnp.sort(x.ravel())[49999], lambda: floats(1000, 100))
simple("nanmedian", reductions.nanmedian, lambda x: jnp.nanmedian(x), lambda: floats(1000, 100))
simple("nanmedian_dim", lambda x: reductions.nanmedian_dim(x, 1), lambda x: (jnp.nanmedian(x, 1), jnp.argsort(x, 1)[:, 50]), lambda: floats(1000, 100))
simple("min_dim", lambda x: reductions.min_dim(x, 1), lambda x: (x.min(1), x.argmin(1)), ROW)
simple("aminmax", reductions.aminmax, lambda x: (x.min(), x.max()), ROW)
simple("cummin", lambda x: reductions.cummin(x, 1).values, lambda x: jax.lax.cummin(x, axis=1), lambda: floats(500, 100))
simple("std_mean", lambda x: reductions.std_mean(x, 1), lambda x: (jnp.std(x, 1, ddof=1), x.mean(1)), ROW)
simple("var_mean", lambda x: reductions.var_mean(x, 1), lambda x: (jnp.var(x, 1, ddof=1), x.mean(1)), ROW)
simple("corrcoef", statistics.corrcoef, jnp.corrcoef, lambda: floats(50, 2000))
simple("trapezoid", statistics.trapezoid, lambda x: jnp.trapezoid(x, axis=-1), ROW)
simple("cumulative_trapezoid", statistics.cumulative_trapezoid, lambda x: jnp.cumsum((x[:, 1:] + x[:, :-1]) / 2, 1), lambda: floats(500, 200))
simple("gradient", statistics.gradient, lambda x: jnp.gradient(x), ROW)
simple("renorm", lambda x: statistics.renorm(x, 2, 0, 1.0), lambda x: x * jnp.minimum(1, 1 / (jnp.sqrt((x * x).sum(1, keepdims=True)) + 1e-7)), ROW)
simple("histogram", lambda x: statistics.histogram(x, 20), lambda x: jnp.histogram(x, 20), lambda: floats(20000))
simple("histogramdd", lambda x: statistics.histogramdd(x, [8, 8]), lambda x: jnp.histogramdd(x, [8, 8]), lambda: floats(5000, 2))

# --- signals ---


def inverse_stft(x: jax.Array, window: jax.Array) -> jax.Array:
    """Overlap and add by hand."""
    frames = jnp.fft.irfft(x, 256, axis=1) * window[:, None]
    at = jnp.arange(256)[:, None] + jnp.arange(x.shape[2]) * 64
    size = 256 + 64 * (x.shape[2] - 1)
    total = jnp.zeros((x.shape[0], size)).at[:, at].add(frames)
    weight = jnp.zeros(size).at[at].add(jnp.broadcast_to((window**2)[:, None], at.shape))
    return (total / jnp.maximum(weight, 1e-11))[:, 128:-128]


simple(
    "istft", lambda x, w: fourier.istft(x, 256, 64, window=w), inverse_stft,
    lambda: jax.lax.complex(floats(8, 129, 100), floats(8, 129, 100, seed=1)), lambda: jnp.hanning(258)[1:-1],
)
