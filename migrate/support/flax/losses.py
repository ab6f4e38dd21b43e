"""Losses as layers, with PyTorch's arguments. A weight is a buffer, as in PyTorch."""
import math
from collections import namedtuple

import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.state import Buffer
from migrate.support.jax.distances import cosine_similarity, pairwise_distance
from migrate.support.jax.losses import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from migrate.support.jax.losses_class import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    linear_cross_entropy,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
)
from migrate.support.jax.losses_ctc import ctc_loss


def as_buffer(value):
    """An array as a buffer, None as it is."""
    return nnx.data(None) if value is None else Buffer(jnp.asarray(value))


def value_of(variable):
    """The array of a variable, None as it is."""
    return None if variable is None else variable[...]


def reduction_of(size_average, reduce, reduction):
    """The reduction that PyTorch's older arguments ask for."""
    if size_average is None and reduce is None:
        return reduction
    return "none" if reduce is False else "sum" if size_average is False else "mean"


class L1Loss(nnx.Module):
    """Absolute differences."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", *, rngs=None):
        self.reduction = reduction_of(size_average, reduce, reduction)

    def __call__(self, input, target):
        return l1_loss(input, target, self.reduction)


class MSELoss(L1Loss):
    """Squared differences."""

    def __call__(self, input, target):
        return mse_loss(input, target, self.reduction)


class SoftMarginLoss(L1Loss):
    """log(1 + exp(-target * input))."""

    def __call__(self, input, target):
        return soft_margin_loss(input, target, self.reduction)


class MultiLabelMarginLoss(L1Loss):
    """Hinges between target classes and the others."""

    def __call__(self, input, target):
        return multilabel_margin_loss(input, target, self.reduction)


class SmoothL1Loss(nnx.Module):
    """Absolute differences, squares below beta."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0, *, rngs=None):
        self.reduction, self.beta = reduction_of(size_average, reduce, reduction), beta

    def __call__(self, input, target):
        return smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(nnx.Module):
    """Half squares up to delta, straight beyond."""

    def __init__(self, reduction="mean", delta=1.0, *, rngs=None):
        self.reduction, self.delta = reduction, delta

    def __call__(self, input, target):
        return huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(nnx.Module):
    """Kullback-Leibler divergence of log-probabilities from the target; "mean" is over all values, "batchmean" over the batch."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False, *, rngs=None):
        self.reduction, self.log_target = reduction_of(size_average, reduce, reduction), log_target

    def __call__(self, input, target):
        return kl_div(input, target, self.reduction, self.log_target)


class GaussianNLLLoss(nnx.Module):
    """Negative log-likelihood of normal distributions."""

    def __init__(self, *, full=False, eps=1e-6, reduction="mean", rngs=None):
        self.full, self.eps, self.reduction = full, eps, reduction

    def __call__(self, input, target, var):
        return gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(nnx.Module):
    """Negative log-likelihood of Poisson distributions."""

    def __init__(self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean", *, rngs=None):
        self.log_input, self.full, self.eps = log_input, full, eps
        self.reduction = reduction_of(size_average, reduce, reduction)

    def __call__(self, log_input, target):
        return poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps, self.reduction)


class NLLLoss(nnx.Module):
    """Minus the log-probability (N, C, *) of each target class (N, *)."""

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", *, rngs=None):
        self.weight, self.ignore_index, self.reduction = as_buffer(weight), ignore_index, reduction_of(size_average, reduce, reduction)

    def __call__(self, input, target):
        return nll_loss(input, target, value_of(self.weight), self.ignore_index, self.reduction)


class CrossEntropyLoss(nnx.Module):
    """Cross entropy of logits (N, C, *) with class ids (N, *), or with probabilities (N, C, *)."""

    def __init__(
        self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0, *, rngs=None
    ):
        self.weight, self.ignore_index, self.label_smoothing = as_buffer(weight), ignore_index, label_smoothing
        self.reduction = reduction_of(size_average, reduce, reduction)

    def __call__(self, input, target):
        return cross_entropy(input, target, value_of(self.weight), self.ignore_index, self.reduction, self.label_smoothing)


class LinearCrossEntropyLoss(nnx.Module):
    """A linear layer without an activation, and the cross entropy of its outputs."""

    def __init__(
        self, in_features, num_classes, *, out_features=(), bias=False, reduction="mean", weight=None, ignore_index=None,
        label_smoothing=0.0, options=None, rngs,
    ):
        self.num_classes, self.out_features, self.reduction = num_classes, tuple(out_features), reduction
        self.weight, self.ignore_index, self.label_smoothing = as_buffer(weight), ignore_index, label_smoothing
        self.linear = nnx.Linear(in_features, math.prod(out_features, start=num_classes), use_bias=bias, rngs=rngs)

    def __call__(self, input, target):
        shape = self.num_classes, *self.out_features, -1
        return linear_cross_entropy(
            input, self.linear.kernel[...].T.reshape(shape), target, linear_bias=value_of(self.linear.bias), weight=value_of(self.weight),
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
        )


class BCELoss(nnx.Module):
    """Binary cross entropy of probabilities."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", *, rngs=None):
        self.weight, self.reduction = as_buffer(weight), reduction_of(size_average, reduce, reduction)

    def __call__(self, input, target):
        return binary_cross_entropy(input, target, value_of(self.weight), self.reduction)


class BCEWithLogitsLoss(nnx.Module):
    """Binary cross entropy of logits; `pos_weight` is the weight of the positive term."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None, *, rngs=None):
        self.weight, self.pos_weight = as_buffer(weight), as_buffer(pos_weight)
        self.reduction = reduction_of(size_average, reduce, reduction)

    def __call__(self, input, target):
        return binary_cross_entropy_with_logits(input, target, value_of(self.weight), self.reduction, value_of(self.pos_weight))


class MultiLabelSoftMarginLoss(BCELoss):
    """Binary cross entropy of logits (*, C), averaged over the classes."""

    def __call__(self, input, target):
        return multilabel_soft_margin_loss(input, target, value_of(self.weight), self.reduction)


class MultiMarginLoss(nnx.Module):
    """Hinges between the target class and the others."""

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean", *, rngs=None):
        self.p, self.margin, self.weight = p, margin, as_buffer(weight)
        self.reduction = reduction_of(size_average, reduce, reduction)

    def __call__(self, input, target):
        return multi_margin_loss(input, target, self.p, self.margin, value_of(self.weight), self.reduction)


class HingeEmbeddingLoss(nnx.Module):
    """input where target is 1, max(0, margin - input) where it is -1."""

    def __init__(self, margin=1.0, size_average=None, reduce=None, reduction="mean", *, rngs=None):
        self.margin, self.reduction = margin, reduction_of(size_average, reduce, reduction)

    def __call__(self, input, target):
        return hinge_embedding_loss(input, target, self.margin, self.reduction)


class CosineEmbeddingLoss(nnx.Module):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean", *, rngs=None):
        self.margin, self.reduction = margin, reduction_of(size_average, reduce, reduction)

    def __call__(self, input1, input2, target):
        return cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class MarginRankingLoss(CosineEmbeddingLoss):
    """max(0, -target * (input1 - input2) + margin)."""

    def __call__(self, input1, input2, target):
        return margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(nnx.Module):
    """max(0, |anchor - positive| - |anchor - negative| + margin)."""

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean", *, rngs=None):
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap
        self.reduction = reduction_of(size_average, reduce, reduction)

    def __call__(self, anchor, positive, negative):
        return triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap, self.reduction)


class TripletMarginWithDistanceLoss(nnx.Module):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean", rngs=None):
        self.distance_function, self.margin, self.swap, self.reduction = distance_function, margin, swap, reduction

    def __call__(self, anchor, positive, negative):
        return triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(nnx.Module):
    """Connectionist temporal classification of log-probabilities (T, N, C) or (T, C)."""

    def __init__(self, blank=0, reduction="mean", zero_infinity=False, *, rngs=None):
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def __call__(self, log_probs, targets, input_lengths, target_lengths):
        return ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


class CosineSimilarity(nnx.Module):
    """The cosine of the angle along `dim`."""

    def __init__(self, dim=1, eps=1e-8, *, rngs=None):
        self.dim, self.eps = dim, eps

    def __call__(self, x1, x2):
        return cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(nnx.Module):
    """|x1 - x2 + eps|_p along the last axis."""

    def __init__(self, p=2.0, eps=1e-6, keepdim=False, *, rngs=None):
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def __call__(self, x1, x2):
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


ASMoutput = namedtuple("ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(nnx.Module):
    """Softmax over many classes whose rare ones are in clusters of smaller layers: (N, in_features) or (in_features,)."""

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, *, rngs):
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, (*cutoffs, n_classes)
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = nnx.Linear(in_features, self.head_size, use_bias=head_bias, rngs=rngs)
        self.tail = nnx.List()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            width = int(in_features // div_value ** (i + 1))
            first = nnx.Linear(in_features, width, use_bias=False, rngs=rngs)
            self.tail.append(nnx.Sequential(first, nnx.Linear(width, high - low, use_bias=False, rngs=rngs)))

    def __call__(self, input_, target_):
        picked = jnp.take_along_axis(self.log_prob(input_), target_[..., None], axis=-1)[..., 0]
        return ASMoutput(picked, -picked.mean())

    def log_prob(self, input):
        """The log-probabilities of all classes."""
        head = jax.nn.log_softmax(self.head(input))
        parts = [head[..., : self.shortlist_size]]
        for i, tail in enumerate(self.tail, self.shortlist_size):
            parts.append(head[..., i : i + 1] + jax.nn.log_softmax(tail(input)))
        return jnp.concatenate(parts, axis=-1)

    def predict(self, input):
        """The most probable class."""
        return jnp.argmax(self.log_prob(input), axis=-1)
