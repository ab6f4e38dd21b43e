"""Losses on values as layers with PyTorch's arguments."""
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
from migrate.support.keras.module import Module


def reduction_of(size_average, reduce, reduction):
    """The reduction that PyTorch's old arguments mean, where they are given."""
    if size_average is None and reduce is None:
        return reduction
    return "none" if reduce is False else "sum" if size_average is False else "mean"


class Loss(Module):
    """What losses share: how the values are reduced."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)


class MSELoss(Loss):
    """Squared differences."""

    def call(self, input, target):
        return mse_loss(input, target, self.reduction)


class L1Loss(Loss):
    """Absolute differences."""

    def call(self, input, target):
        return l1_loss(input, target, self.reduction)


class SmoothL1Loss(Loss):
    """Absolute differences, squares below beta."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def call(self, input, target):
        return smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(Loss):
    """Half squares up to delta, straight beyond."""

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction)
        self.delta = delta

    def call(self, input, target):
        return huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(Loss):
    """Kullback-Leibler divergence of log-probabilities `input` from `target`."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def call(self, input, target):
        return kl_div(input, target, self.reduction, self.log_target)


class GaussianNLLLoss(Loss):
    """Negative log-likelihood of normal distributions."""

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def call(self, input, target, var):
        return gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(Loss):
    """Negative log-likelihood of Poisson distributions."""

    def __init__(self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def call(self, log_input, target):
        return poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps, self.reduction)


class MarginLoss(Loss):
    """What losses with a margin share."""

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class MarginRankingLoss(MarginLoss):
    """max(0, -target * (input1 - input2) + margin)."""

    def call(self, input1, input2, target):
        return margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class CosineEmbeddingLoss(MarginLoss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""

    def call(self, input1, input2, target):
        return cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(MarginLoss):
    """input where target is 1, max(0, margin - input) where it is -1."""

    def __init__(self, margin=1.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(margin, size_average, reduce, reduction)

    def call(self, input, target):
        return hinge_embedding_loss(input, target, self.margin, self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(-target * input))."""

    def call(self, input, target):
        return soft_margin_loss(input, target, self.reduction)


class TripletMarginLoss(Loss):
    """max(0, |anchor - positive| - |anchor - negative| + margin)."""

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def call(self, anchor, positive, negative):
        return triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap, self.reduction)


class TripletMarginWithDistanceLoss(Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(reduction=reduction)
        self.distance_function, self.margin, self.swap = distance_function, margin, swap

    def call(self, anchor, positive, negative):
        return triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`."""

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def call(self, x1, x2):
        return cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 along the last axis."""

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def call(self, x1, x2):
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
