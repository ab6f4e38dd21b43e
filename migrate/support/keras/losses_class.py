"""Losses on classes as layers with PyTorch's arguments."""
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

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
from migrate.support.keras.containers import ModuleList, Sequential
from migrate.support.keras.linear import Linear
from migrate.support.keras.losses import Loss
from migrate.support.keras.module import Buffer, Module, value_of


class WeightedLoss(Loss):
    """What losses with a weight for each class or value share."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.weight = None if weight is None else Buffer(weight)


class NLLLoss(WeightedLoss):
    """Minus the log-probability (N, C, *) of each target class (N, *)."""

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def call(self, input, target):
        return nll_loss(input, target, value_of(self.weight), self.ignore_index, self.reduction)


class NLLLoss2d(NLLLoss):
    """The same, under its old name."""


class CrossEntropyLoss(NLLLoss):
    """Cross entropy of logits (N, C, *) with class ids (N, *), or with probabilities (N, C, *)."""

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
        super().__init__(weight, size_average, ignore_index, reduce, reduction)
        self.label_smoothing = label_smoothing

    def call(self, input, target):
        return cross_entropy(input, target, value_of(self.weight), self.ignore_index, self.reduction, self.label_smoothing)


class LinearCrossEntropyLoss(WeightedLoss):
    """A linear layer without an activation, and the cross entropy of its outputs."""

    def __init__(
        self, in_features, num_classes, *, out_features=(), bias=False, reduction="mean", weight=None, ignore_index=None,
        label_smoothing=0.0, options=None,
    ):
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias)

    def call(self, input, target):
        weight = self.linear.weight.value.reshape(self.num_classes, *self.out_features, -1)
        return linear_cross_entropy(
            input, weight, target, linear_bias=value_of(self.linear.bias), weight=value_of(self.weight), reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
        )


class BCELoss(WeightedLoss):
    """Binary cross entropy of probabilities."""

    def call(self, input, target):
        return binary_cross_entropy(input, target, value_of(self.weight), self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """Binary cross entropy of logits; `pos_weight` is the weight of the positive term."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
        super().__init__(weight, size_average, reduce, reduction)
        self.pos_weight = None if pos_weight is None else Buffer(pos_weight)

    def call(self, input, target):
        return binary_cross_entropy_with_logits(input, target, value_of(self.weight), self.reduction, value_of(self.pos_weight))


class MultiLabelSoftMarginLoss(WeightedLoss):
    """Binary cross entropy of logits (*, C), averaged over the classes."""

    def call(self, input, target):
        return multilabel_soft_margin_loss(input, target, value_of(self.weight), self.reduction)


class MultiLabelMarginLoss(Loss):
    """The sum over target classes (up to the first -1) and other classes of max(0, 1 - x[target] + x[other]) / C."""

    def call(self, input, target):
        return multilabel_margin_loss(input, target, self.reduction)


class MultiMarginLoss(WeightedLoss):
    """The sum over the other classes of max(0, margin - x[target] + x[other])^p / C."""

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.p, self.margin = p, margin

    def call(self, input, target):
        return multi_margin_loss(input, target, self.p, self.margin, value_of(self.weight), self.reduction)


class CTCLoss(Loss):
    """Connectionist temporal classification of log-probabilities (T, N, C) or (T, C)."""

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def call(self, log_probs, targets, input_lengths, target_lengths):
        return ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


class AdaptiveLogSoftmax(NamedTuple):
    """What AdaptiveLogSoftmaxWithLoss gives: the log-probability of each target, and minus their mean."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over many classes, sorted by frequency: rare ones are in clusters of lower rank."""

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False):
        super().__init__()
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(cutoffs)
        self.head = Linear(in_features, self.shortlist_size + self.n_clusters, bias=head_bias)
        ranks = [int(in_features // div_value ** (i + 1)) for i in range(self.n_clusters)]
        sizes = [b - a for a, b in zip(self.cutoffs, self.cutoffs[1:])]
        self.tail = ModuleList(
            Sequential(Linear(in_features, rank, bias=False), Linear(rank, size, bias=False)) for rank, size in zip(ranks, sizes)
        )

    def log_prob(self, input):
        """(N, in_features) -> (N, n_classes)."""
        head = jax.nn.log_softmax(self.head(input))
        parts = [head[..., : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(jax.nn.log_softmax(cluster(input)) + head[..., self.shortlist_size + i, None])
        return jnp.concatenate(parts, axis=-1)

    def predict(self, input):
        """The likeliest class of each row."""
        return self.log_prob(input).argmax(-1)

    def call(self, input_, target_):
        output = jnp.take_along_axis(self.log_prob(input_), target_[..., None], axis=-1)[..., 0]
        return AdaptiveLogSoftmax(output, -output.mean())
