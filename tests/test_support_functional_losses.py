"""Losses against PyTorch, with all their options, at kinks too."""
import numpy as np
import pytest
from functional_common import check

pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides", "ignore:Using a target size")
XY = {"x": (3, 4), "y": (3, 4)}
UNIT = np.random.default_rng(5).uniform(0.1, 0.9, (3, 4))
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
IDS = np.array([0, 2, -100, 1])
WEIGHT = [0.25, 1.0, 3.0]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("call", "inputs"), [
    ("mse_loss(x, y, reduction=R)", XY),
    ("mse_loss(x, y, reduction=R, weight=w)", XY | {"w": (3, 4)}),
    ("l1_loss(x, y, reduction=R)", {"x": [0.0, 1.0, 2.0], "y": [0.0, 2.0, 1.0]}),
    ("l1_loss(x, y, reduction=R, weight=w)", XY | {"w": (3, 4)}),
    ("smooth_l1_loss(x, y, reduction=R)", {"x": [0.0, 1.0, -1.0, 3.0], "y": [0.0, 0.0, 0.0, 0.5]}),
    ("smooth_l1_loss(x, y, reduction=R, beta=0.0)", {"x": [0.0, 1.0, -1.0], "y": [0.0, 0.0, 0.0]}),
    ("smooth_l1_loss(x, y, reduction=R, beta=0.5)", XY),
    ("huber_loss(x, y, reduction=R)", {"x": [0.0, 1.0, -1.0, 3.0], "y": [0.0, 0.0, 0.0, 0.5]}),
    ("huber_loss(x, y, reduction=R, delta=0.5, weight=w)", XY | {"w": (3, 4)}),
    ("nll_loss(x, y, reduction=R)", {"x": (4, 3), "y": IDS}),
    ("nll_loss(x, y, W, ignore_index=1, reduction=R)", {"x": (4, 3), "y": np.array([0, 2, 1, 1]), "W": WEIGHT}),
    ("nll_loss(x, y, W, reduction=R)", {"x": (2, 3, 2), "y": IDS.reshape(2, 2), "W": WEIGHT}),
    ("nll_loss(x, y, reduction=R)", {"x": (3,), "y": np.array(1)}),
    ("cross_entropy(x, y, reduction=R)", {"x": (4, 3), "y": IDS}),
    ("cross_entropy(x, y, W, reduction=R, label_smoothing=0.25)", {"x": (4, 3), "y": IDS, "W": WEIGHT}),
    ("cross_entropy(x, y, ignore_index=1, reduction=R, label_smoothing=0.25)", {"x": (4, 3), "y": np.array([0, 2, 1, 1])}),
    ("cross_entropy(x, y, W, reduction=R, label_smoothing=0.25)", {"x": (2, 3, 2), "y": IDS.reshape(2, 2), "W": WEIGHT}),
    ("cross_entropy(x, y, reduction=R)", {"x": (3,), "y": np.array(1)}),
    ("cross_entropy(x, y, w, reduction=R, label_smoothing=0.25)", {"x": (3,), "y": [0.25, 0.5, 0.25], "w": WEIGHT}),
    ("cross_entropy(x, y, w, reduction=R, label_smoothing=0.25)", {"x": (4, 3, 2), "y": (4, 3, 2), "w": WEIGHT}),
    ("linear_cross_entropy(x, w, y, linear_bias=b, reduction=R)", {"x": (4, 5), "w": (3, 5), "y": IDS, "b": (3,)}),
    ("linear_cross_entropy(x, w, y, reduction=R, label_smoothing=0.25)", {"x": (2, 5), "w": (3, 2, 5), "y": IDS.reshape(2, 2)}),
    ("binary_cross_entropy(x, y, reduction=R)", {"x": UNIT, "y": UNIT.T.reshape(3, 4)}),
    ("binary_cross_entropy(x, y, W, reduction=R)", {"x": UNIT, "y": UNIT.T.reshape(3, 4), "W": (4,)}),
    ("binary_cross_entropy_with_logits(x, y, reduction=R)", {"x": [-80.0, -1.0, 0.0, 90.0], "y": [1.0, 0.5, 0.25, 0.0]}),
    ("binary_cross_entropy_with_logits(x, y, W, reduction=R, pos_weight=P)",
     {"x": (3, 4), "y": UNIT, "W": (3, 4), "P": [0.5, 1.0, 2.0, 3.0]}),
    ("kl_div(x, y, reduction=R)", {"x": (3, 4), "y": UNIT}),
    ("kl_div(x, y, reduction=R, log_target=True)", XY),
    ("gaussian_nll_loss(x, y, v, reduction=R)", {"x": (3, 4), "y": (3, 4), "v": UNIT}),
    ("gaussian_nll_loss(x, y, v, full=True, eps=0.5, reduction=R)", {"x": (3, 4), "y": (3, 4), "v": [0.25, 1.0, 2.0]}),
    ("gaussian_nll_loss(x, y, v, reduction=R)", {"x": (3, 4), "y": (3, 4), "v": [[0.25], [1.0], [2.0]]}),
    ("poisson_nll_loss(x, y, reduction=R)", {"x": (4,), "y": [0.0, 1.0, 2.0, 5.0]}),
    ("poisson_nll_loss(x, Y, False, True, eps=0.125, reduction=R)", {"x": [0.5, 1.0, 2.0, 3.0], "Y": [0.0, 1.0, 2.0, 5.0]}),
    ("margin_ranking_loss(x, y, t, 1.0, reduction=R)", {"x": [0.0, 1.0, -1.0, 2.0], "y": [0.0, 0.0, -2.0, 1.0], "t": SIGNS}),
    ("hinge_embedding_loss(x, t, reduction=R)", {"x": [0.0, 1.0, 0.5, 2.0], "t": SIGNS}),
    ("soft_margin_loss(x, T, reduction=R)", {"x": [0.0, 1.0, -1.0, 60.0], "T": SIGNS}),
    ("cosine_embedding_loss(x, y, t, 0.125, reduction=R)", {"x": (4, 3), "y": (4, 3), "t": SIGNS}),
    ("cosine_embedding_loss(x, y, t, reduction=R)", {"x": (3,), "y": (3,), "t": np.array(-1.0)}),
    ("multilabel_soft_margin_loss(x, y, w, reduction=R)", {"x": (3, 4), "y": UNIT, "w": (4,)}),
    ("multi_margin_loss(x, y, reduction=R)", {"x": [[0.0, 1.0, -1.0, 2.0]], "y": np.array([1])}),
    ("multi_margin_loss(x, y, 2, 0.5, W, reduction=R)", {"x": (4, 3), "y": np.array([0, 2, 1, 1]), "W": WEIGHT}),
    ("multi_margin_loss(x, y, reduction=R)", {"x": (3,), "y": np.array(1)}),
    ("multilabel_margin_loss(x, y, reduction=R)", {"x": [[0.0, 1.0, 0.0, 2.0]], "y": np.array([[1, 0, -1, 2]])}),
    ("multilabel_margin_loss(x, y, reduction=R)", {"x": (4,), "y": np.array([3, -1, 1, 1])}),
    ("triplet_margin_loss(x, y, z, reduction=R)", {"x": (4, 3), "y": (4, 3), "z": (4, 3)}),
    ("triplet_margin_loss(x, y, z, 0.5, 1.0, 0.125, True, reduction=R)", {"x": (4, 3), "y": (4, 3), "z": (4, 3)}),
    ("triplet_margin_with_distance_loss(x, y, z, distance_function=lambda a, b: ((a - b) ** 2).sum(-1), swap=True, reduction=R)",
     {"x": (4, 3), "y": (4, 3), "z": (4, 3)}),
])
def test_loss(call, inputs, reduction):
    check(call.replace("R", repr(reduction)) if "=R" in call else call, **inputs)


def test_batchmean():
    check("kl_div(x, y, reduction='batchmean')", x=(3, 4), y=UNIT)


def test_nothing_kept_is_not_a_number():
    check("cross_entropy(x, y)", x=(2, 3), y=np.array([-100, -100]))


def test_kl_div_of_zero_targets():
    check("kl_div(x, Y, reduction='none')", x=[-1.0, -2.0], Y=[0.0, 1.0])


def test_binary_cross_entropy_at_its_ends():
    check("binary_cross_entropy(x, Y, reduction='none')", x=[0.0, 0.0, 1.0, 1.0, 0.25], Y=[0.0, 1.0, 0.0, 1.0, 0.5])


LOGS = {"x": (6, 3, 5)}
TARGETS = np.array([[1, 1, 2, 0], [3, 4, 0, 0], [2, 0, 0, 0]])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("call", "inputs"), [
    ("ctc_loss(log_softmax(x, 2), y, (6, 5, 6), (3, 2, 1), reduction=R)", LOGS | {"y": TARGETS}),
    ("ctc_loss(log_softmax(x, 2), y, n, m, reduction=R)", LOGS | {"y": TARGETS, "n": np.array([6, 5, 4]), "m": np.array([3, 2, 1])}),
    ("ctc_loss(log_softmax(x, 2), y, (6, 5, 6), (3, 2, 1), reduction=R)", LOGS | {"y": np.array([1, 1, 2, 3, 4, 2])}),
    ("ctc_loss(log_softmax(x, 2), y, (6, 5, 6), (3, 2, 0), blank=4, reduction=R)", LOGS | {"y": np.array([1, 1, 2, 3, 0])}),
    ("ctc_loss(log_softmax(x, 2), y, (6, 2, 6), (3, 4, 1), reduction=R, zero_infinity=True)", LOGS | {"y": TARGETS + 1 - (TARGETS == 4)}),
    ("ctc_loss(x, y, (6, 5, 6), (3, 2, 1), reduction=R)", LOGS | {"y": TARGETS}),
    ("ctc_loss(log_softmax(x, 1), y, n, m, reduction=R)", {"x": (6, 5), "y": np.array([1, 1, 2]), "n": np.array(6), "m": np.array(3)}),
])
def test_ctc_loss(call, inputs, reduction):
    check(call.replace("=R", f"={reduction!r}"), **inputs)
