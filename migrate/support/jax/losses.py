"""Losses on values."""
import math

import jax
import jax.numpy as jnp

from migrate.support.jax.distances import cosine_similarity, pairwise_distance
from migrate.support.jax.pointwise import absolute


def reduce_loss(values, reduction):
    """The values, their mean or their sum."""
    return {"none": jnp.asarray, "mean": jnp.mean, "sum": jnp.sum}[reduction](values)


def at_least_zero(x):
    """max(x, 0) with derivative 1 at 0, as of PyTorch's clamp."""
    return jnp.where(x < 0, 0, x)


def weighted_mean(values, weight, reduction):
    """Values times weight; the mean is by the sum of the weights."""
    total = reduce_loss(values * weight, "sum" if reduction == "mean" else reduction)
    return total / jnp.sum(weight) if reduction == "mean" else total


def mse_loss(input, target, reduction="mean", weight=None):
    """Squared differences."""
    values = (input - target) ** 2
    return reduce_loss(values, reduction) if weight is None else weighted_mean(values, weight, reduction)


def l1_loss(input, target, reduction="mean", weight=None):
    """Absolute differences."""
    values = absolute(input - target)
    return reduce_loss(values, reduction) if weight is None else weighted_mean(values, weight, reduction)


def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    """Absolute differences, squares below beta."""
    size = absolute(input - target)
    if beta == 0:
        return reduce_loss(size, reduction)
    return reduce_loss(jnp.where(size < beta, 0.5 * size**2 / beta, size - 0.5 * beta), reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Half squares up to delta, straight beyond."""
    size = absolute(input - target)
    values = jnp.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))
    return reduce_loss(values if weight is None else values * weight, reduction)


def kl_div(input, target, reduction="mean", log_target=False):
    """Kullback-Leibler divergence of log-probabilities `input` from `target`; "mean" is over all values, not over the batch."""
    if log_target:
        values = jnp.exp(target) * (target - input)
    else:
        some = target != 0
        values = jnp.where(some, target * jnp.log(jnp.where(some, target, 1)), 0) - target * input
    if reduction == "batchmean":
        return values.sum() / (input.shape[0] if input.ndim else 1)
    return reduce_loss(values, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log-likelihood of normal distributions; `var` counts as eps at least, and may lack the last axis."""
    var = jnp.asarray(var, input.dtype)
    if var.ndim and var.shape == input.shape[:-1] and var.shape != input.shape:
        var = var[..., None]
    var = var + jax.lax.stop_gradient(jnp.maximum(var, eps) - var)
    values = 0.5 * (jnp.log(var) + (input - target) ** 2 / var)
    return reduce_loss(values + 0.5 * math.log(2 * math.pi) if full else values, reduction)


def poisson_nll_loss(input, target, log_input=True, full=False, eps=1e-8, reduction="mean"):
    """Negative log-likelihood of Poisson distributions; `full` adds Stirling's term."""
    values = jnp.exp(input) - target * input if log_input else input - target * jnp.log(input + eps)
    if full:
        some = jnp.where(target > 1, target, 1)
        values = values + jnp.where(target > 1, some * jnp.log(some) - some + 0.5 * jnp.log(2 * math.pi * some), 0)
    return reduce_loss(values, reduction)


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """max(0, -target * (input1 - input2) + margin)."""
    return reduce_loss(at_least_zero(-target * (input1 - input2) + margin), reduction)


def hinge_embedding_loss(input, target, margin=1.0, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1."""
    other = at_least_zero(margin - input) + jnp.where(target == -1, 0, input)
    return reduce_loss(jnp.where(target == 1, input, other), reduction)


def soft_margin_loss(input, target, reduction="mean"):
    """log(1 + exp(-target * input)); infinite where the exponential is, as PyTorch's."""
    return reduce_loss(jnp.log1p(jnp.exp(-target * input)), reduction)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    cosine = cosine_similarity(input1, input2, dim=target.ndim, eps=1e-8)
    values = jnp.where(target == 1, 1 - cosine, 0) + jnp.where(target == -1, at_least_zero(cosine - margin), 0)
    return reduce_loss(values, reduction)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    far = jnp.minimum(far, distance(positive, negative)) if swap else far
    return reduce_loss(at_least_zero(margin + near - far), reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"):
    """max(0, |anchor - positive| - |anchor - negative| + margin)."""
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=lambda a, b: pairwise_distance(a, b, p, eps), margin=margin, swap=swap,
        reduction=reduction,
    )
