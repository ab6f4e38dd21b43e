"""Losses on classes."""
import jax
import jax.numpy as jnp

from migrate.support.jax.attention import linear
from migrate.support.jax.losses import reduce_loss


def class_axis(input):
    """The axis of the classes: 1, or 0 without a batch."""
    return 1 if input.ndim > 1 else 0


def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """Minus the log-probability (N, C, ...) of each target class (N, ...); the mean is by the sum of the weights."""
    axis = class_axis(input)
    kept = target != ignore_index
    target = jnp.where(kept, target, 0)
    share = (jnp.ones((), input.dtype) if weight is None else jnp.asarray(weight)[target]) * kept
    picked = jnp.take_along_axis(input, jnp.expand_dims(target, axis), axis=axis).squeeze(axis)
    values = jnp.where(kept, -picked * share, 0)
    return values.sum() / share.sum() if reduction == "mean" else reduce_loss(values, reduction)


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Cross entropy of logits (N, C, ...) with class ids (N, ...), or with probabilities (N, C, ...)."""
    axis = class_axis(input)
    classes = input.shape[axis]
    logs = jax.nn.log_softmax(input, axis=axis)
    by_class = None if weight is None else jnp.reshape(weight, (-1, *[1] * (input.ndim - axis - 1)))
    if target.shape == input.shape and jnp.issubdtype(target.dtype, jnp.floating):
        target = target * (1 - label_smoothing) + label_smoothing / classes
        values = -(logs * target if weight is None else logs * target * by_class).sum(axis)
        return values.sum() / (input.size // classes) if reduction == "mean" else reduce_loss(values, reduction)
    hard = nll_loss(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return hard
    kept = target != ignore_index
    smooth = jnp.where(kept, -(logs if weight is None else logs * by_class).sum(axis), 0)
    if reduction == "mean":
        smooth = smooth.sum() / (kept.sum() if weight is None else (jnp.asarray(weight)[jnp.where(kept, target, 0)] * kept).sum())
    else:
        smooth = reduce_loss(smooth, reduction)
    return (1 - label_smoothing) * hard + label_smoothing / classes * smooth


def linear_cross_entropy(
    input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None, label_smoothing=0.0
):
    """Cross entropy of the logits that a linear layer with weight (C, ..., in) gives for input (N, in) or (in,)."""
    bias = None if linear_bias is None else jnp.ravel(linear_bias)
    logits = linear(input, jnp.reshape(linear_weight, (-1, input.shape[-1])), bias)
    logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    return cross_entropy(logits, target, weight, -100 if ignore_index is None else ignore_index, reduction, label_smoothing)


def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    """Of probabilities; logarithms count as -100 at least, and the derivative is the one PyTorch has at 0 and 1."""

    @jax.custom_jvp
    def values(x, t):
        return -(t * jnp.maximum(jnp.log(x), -100) + (1 - t) * jnp.maximum(jnp.log1p(-x), -100))

    @values.defjvp
    def derivative(primals, tangents):
        (x, t), (dx, dt) = primals, tangents
        return values(x, t), dx * (x - t) / jnp.maximum((1 - x) * x, 1e-12) + dt * (jnp.log1p(-x) - jnp.log(x))

    out = values(jnp.asarray(input), jnp.asarray(target, input.dtype))
    return reduce_loss(out if weight is None else out * weight, reduction)


def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    """Of logits; `pos_weight` is the weight of the positive term."""
    share = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    values = (1 - target) * input - share * jax.nn.log_sigmoid(input)
    return reduce_loss(values if weight is None else values * weight, reduction)


def multilabel_soft_margin_loss(input, target, weight=None, reduction="mean"):
    """Binary cross entropy of logits (..., C), averaged over the classes."""
    values = -(target * jax.nn.log_sigmoid(input) + (1 - target) * jax.nn.log_sigmoid(-input))
    return reduce_loss((values if weight is None else values * weight).mean(-1), reduction)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, reduction="mean"):
    """The sum over the other classes of max(0, margin - x[target] + x[other])^p / C, of (N, C) or (C,)."""
    single, input, target = jnp.ndim(target) == 0, jnp.atleast_2d(input), jnp.atleast_1d(target)[:, None]
    size = margin - jnp.take_along_axis(input, target, axis=1) + input
    size = jnp.where(size > 0, size, 0) ** p
    size = size if weight is None else size * jnp.asarray(weight)[target]
    values = jnp.where(jnp.arange(input.shape[1]) == target, 0, size).mean(1)
    return reduce_loss(values[0] if single else values, reduction)


def multilabel_margin_loss(input, target, reduction="mean"):
    """The sum over target classes (up to the first -1) and other classes of max(0, 1 - x[target] + x[other]) / C."""
    input, target = jnp.atleast_1d(input, target)
    classes = input.shape[-1]
    listed = jnp.cumsum(target < 0, axis=-1) == 0
    is_target = (jax.nn.one_hot(target, classes, dtype=bool) & listed[..., None]).any(-2)
    picked = jnp.take_along_axis(input, jnp.where(listed, target, 0), axis=-1)
    size = 1 - picked[..., :, None] + input[..., None, :]
    values = jnp.where(listed[..., :, None] & ~is_target[..., None, :] & (size > 0), size, 0).sum((-2, -1)) / classes
    return reduce_loss(values, reduction)
