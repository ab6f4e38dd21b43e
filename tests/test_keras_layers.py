"""Every support layer of the Keras target against PyTorch: outputs in evaluation and training, running statistics, gradients."""
import os

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import importlib
import pathlib

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
import torch
from torch import nn

from migrate.support import keras as package
from migrate.weights.load import load_state_dict

FILES = [p.stem for p in sorted(pathlib.Path(package.__file__).parent.glob("*.py")) if p.stem != "__init__"]
LAYERS = {k: v for f in FILES for k, v in vars(importlib.import_module(f"migrate.support.keras.{f}")).items() if isinstance(v, type)}

# constructor, shapes of the inputs ("i" for ids below 3); RANDOM ones are compared in evaluation only
CASES = [
    ("Linear(4, 3)", (2, 4)), ("Linear(4, 3, bias=False)", (4,)), ("Bilinear(4, 3, 5)", (2, 4), (2, 3)),
    ("Identity(3, unused=2)", (2, 4)), ("Embedding(5, 4)", "i2,3"), ("Embedding(5, 4, padding_idx=-3)", "i2,3"),
    ("Embedding(5, 4, max_norm=0.5)", "i2,3"), ("EmbeddingBag(5, 4)", "i2,3"),
    ("EmbeddingBag(5, 4, mode='max')", "i2,3"), ("EmbeddingBag(5, 4, mode='sum', padding_idx=1)", "i2,3"),
    ("Conv1d(4, 6, 3, padding=1)", (2, 4, 7)), ("Conv1d(4, 6, 3, 2, 2, 2, groups=2, bias=False)", (4, 9)),
    ("Conv2d(4, 6, 3)", (2, 4, 7, 8)), ("Conv2d(4, 6, (3, 2), padding='same')", (2, 4, 7, 8)),
    ("Conv2d(4, 4, 4, padding='same', dilation=(1, 2))", (2, 4, 9, 9)),
    ("Conv2d(4, 6, 3, padding=(2, 1), padding_mode='reflect')", (2, 4, 7, 8)),
    ("Conv2d(4, 6, 3, padding='same', padding_mode='circular')", (2, 4, 7, 8)),
    ("Conv2d(4, 6, 3, padding='valid', padding_mode='replicate')", (4, 7, 8)),
    ("Conv3d(2, 4, (1, 2, 3), padding=(0, 1, 2), groups=2)", (2, 2, 4, 5, 6)),
    ("ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2)", (2, 4, 7)),
    ("ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=(1, 0))", (4, 5, 6)),
    ("ConvTranspose2d(4, 6, 2, 2, bias=False)", (2, 4, 5, 6)),
    ("ConvTranspose3d(2, 4, 3, 2, dilation=2)", (1, 2, 3, 3, 3)), ("BatchNorm1d(4)", (5, 4)),
    ("BatchNorm1d(4, momentum=None)", (5, 4, 3)), ("BatchNorm2d(4, 1e-3, 0.3)", (2, 4, 5, 6)),
    ("BatchNorm2d(4, affine=False)", (2, 4, 5, 6)), ("BatchNorm2d(4, track_running_stats=False)", (2, 4, 5, 6)),
    ("BatchNorm2d(4, bias=False)", (2, 4, 5, 6)), ("BatchNorm3d(4)", (2, 4, 2, 3, 4)),
    ("InstanceNorm1d(4, affine=True)", (2, 4, 6)), ("InstanceNorm2d(4)", (4, 5, 6)),
    ("InstanceNorm2d(4, affine=True, track_running_stats=True)", (2, 4, 5, 6)),
    ("InstanceNorm3d(4, momentum=0.3, track_running_stats=True)", (4, 2, 3, 4)), ("LayerNorm(4)", (2, 4)),
    ("LayerNorm((3, 4), 1e-3, bias=False)", (2, 3, 4)), ("LayerNorm(4, elementwise_affine=False)", (2, 4)),
    ("RMSNorm(4)", (2, 4)), ("RMSNorm((3, 4), eps=1e-3)", (2, 3, 4)), ("GroupNorm(2, 4)", (2, 4, 5)),
    ("GroupNorm(2, 4, affine=False)", (2, 4)), ("LocalResponseNorm(3, 0.1)", (2, 6, 4, 4)),
    ("LocalResponseNorm(2)", (2, 6, 4)), ("CrossMapLRN2d(3, 0.1)", (2, 6, 4, 4)),
    ("CrossMapLRN2d(4, 0.1)", (2, 9, 4, 4)), ("ReLU(True)", (2, 4)), ("ReLU6()", (2, 4)), ("LeakyReLU(0.2)", (2, 4)),
    ("PReLU()", (2, 4)), ("PReLU(4)", (2, 4, 3)), ("RReLU()", (2, 4)), ("ELU(0.5)", (2, 4)), ("CELU(0.5)", (2, 4)),
    ("SELU()", (2, 4)), ("GELU()", (2, 4)), ("GELU('tanh')", (2, 4)), ("SiLU()", (2, 4)), ("Mish()", (2, 4)),
    ("Sigmoid()", (2, 4)), ("LogSigmoid()", (2, 4)), ("Tanh()", (2, 4)), ("Tanhshrink()", (2, 4)),
    ("Softsign()", (2, 4)), ("Softplus(2.0, 1.5)", (2, 4)), ("Hardtanh(-0.5, 0.7)", (2, 4)),
    ("Hardsigmoid()", (2, 4)), ("Hardswish()", (2, 4)), ("Hardshrink()", (2, 4)), ("Softshrink(0.3)", (2, 4)),
    ("Threshold(0.1, 2.0)", (2, 4)), ("GLU(1)", (2, 4, 3)), ("Softmax(1)", (2, 4)), ("Softmax()", (2, 3, 4)),
    ("Softmin(0)", (2, 4)), ("LogSoftmax(-1)", (2, 4)), ("Softmax2d()", (2, 3, 4, 5)), ("Softmax2d()", (3, 4, 5)),
    ("Dropout(0.3)", (2, 4)), ("Dropout1d(0.3)", (2, 4, 5)), ("Dropout2d(0.3)", (2, 4, 5, 5)),
    ("Dropout3d(0.3)", (2, 4, 3, 3, 3)), ("AlphaDropout(0.3)", (2, 4)), ("FeatureAlphaDropout(0.3)", (2, 4, 5)),
    ("MaxPool1d(2)", (2, 4, 7)), ("MaxPool2d(3, 2, 1, ceil_mode=True)", (2, 4, 8, 9)),
    ("MaxPool2d(2, dilation=2, return_indices=True)", (4, 8, 9)), ("MaxPool3d((1, 2, 2))", (1, 2, 4, 5, 6)),
    ("AvgPool1d(3, 2, 1)", (2, 4, 7)), ("AvgPool2d((2, 3), ceil_mode=True, count_include_pad=False)", (4, 8, 9)),
    ("AvgPool3d(2, 1, 1, divisor_override=3)", (1, 2, 4, 5, 6)), ("LPPool1d(2, 3)", (2, 4, 7)),
    ("LPPool2d(2, (2, 3), 1)", (2, 4, 7, 8)), ("LPPool3d(2, 2)", (1, 2, 4, 4, 4)),
    ("AdaptiveAvgPool1d(3)", (2, 4, 7)), ("AdaptiveAvgPool2d((None, 2))", (4, 7, 8)),
    ("AdaptiveAvgPool3d(1)", (2, 4, 3, 4, 5)), ("AdaptiveMaxPool1d(3, True)", (2, 4, 7)),
    ("AdaptiveMaxPool2d(3)", (2, 4, 7, 8)), ("AdaptiveMaxPool3d((1, 2, 3))", (2, 4, 3, 4, 5)),
    ("Flatten()", (2, 3, 4)), ("Flatten(0, 1)", (2, 3, 4)), ("Unflatten(1, (2, 3))", (2, 6, 4)),
    ("ZeroPad1d(2)", (2, 3, 4)), ("ZeroPad2d((1, 2, 0, -1))", (2, 3, 4, 5)), ("ZeroPad3d(1)", (1, 2, 3, 3, 3)),
    ("ConstantPad1d(1, 3.5)", (2, 3)), ("ConstantPad2d(1, 3.5)", (2, 3, 4, 5)),
    ("ConstantPad3d(1, 2.0)", (1, 2, 3, 3, 3)), ("ReflectionPad1d((2, 1))", (2, 3, 4)),
    ("ReflectionPad2d(1)", (3, 4, 5)), ("ReflectionPad3d(1)", (1, 2, 3, 3, 3)), ("ReplicationPad1d(2)", (2, 3, 4)),
    ("ReplicationPad2d((1, 0, 2, 3))", (2, 3, 4, 5)), ("ReplicationPad3d(1)", (1, 2, 3, 3, 3)),
    ("CircularPad1d(2)", (2, 3, 4)), ("CircularPad2d((1, 2, 0, 1))", (2, 3, 4, 5)),
    ("CircularPad3d(1)", (1, 2, 3, 3, 3)), ("Upsample(scale_factor=2)", (2, 3, 4)),
    ("Upsample((7, 9), mode='bilinear')", (2, 3, 4, 5)),
    ("Upsample(scale_factor=1.7, mode='bicubic', align_corners=True)", (2, 3, 4, 5)),
    ("UpsamplingNearest2d(scale_factor=2)", (2, 3, 4, 5)), ("UpsamplingBilinear2d(size=(7, 9))", (2, 3, 4, 5)),
    ("PixelShuffle(2)", (2, 8, 3, 4)), ("PixelUnshuffle(2)", (2, 3, 4, 6)), ("ChannelShuffle(2)", (2, 6, 4, 4)),
    ("Unfold((2, 3), 1, 1, 2)", (2, 3, 6, 7)), ("Fold((6, 7), (2, 3), 1, 1, 2)", (2, 18, 16)),
    ("MSELoss()", (2, 4), (2, 4)), ("MSELoss(size_average=False)", (2, 4), (2, 4)),
    ("L1Loss(reduce=False)", (2, 4), (2, 4)), ("SmoothL1Loss(beta=0.4)", (2, 4), (2, 4)),
    ("HuberLoss('sum', 0.4)", (2, 4), (2, 4)), ("KLDivLoss(reduction='batchmean', log_target=True)", (2, 4), (2, 4)),
    ("GaussianNLLLoss(full=True)", (2, 4), (2, 4), "p2,4"), ("PoissonNLLLoss(full=True)", (2, 4), "p2,4"),
    ("MarginRankingLoss(0.3)", (4,), (4,), "s4"), ("CosineEmbeddingLoss(0.1)", (3, 4), (3, 4), "s3"),
    ("HingeEmbeddingLoss()", (2, 4), "s2,4"), ("SoftMarginLoss()", (2, 4), "s2,4"),
    ("TripletMarginLoss(swap=True)", (2, 4), (2, 4), (2, 4)),
    ("TripletMarginWithDistanceLoss(margin=0.5)", (2, 4), (2, 4), (2, 4)), ("NLLLoss(ignore_index=1)", (5, 4), "i5"),
    ("NLLLoss2d()", (2, 4, 3, 3), "i2,3,3"), ("CrossEntropyLoss(weight=W, label_smoothing=0.1)", (5, 4), "i5"),
    ("CrossEntropyLoss(reduction='none')", (2, 4, 3), "i2,3"), ("BCELoss(weight=W)", "u3,4", "u3,4"),
    ("BCEWithLogitsLoss(pos_weight=W)", (3, 4), "u3,4"), ("MultiLabelSoftMarginLoss(W)", (3, 4), "u3,4"),
    ("MultiLabelMarginLoss()", (2, 4), "i2,4"), ("MultiMarginLoss(weight=W, margin=0.7)", (3, 4), "i3"),
    ("CosineSimilarity(0)", (3, 4), (3, 4)), ("PairwiseDistance(1.0, keepdim=True)", (3, 4), (3, 4)),
    ("AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], div_value=2.0, head_bias=True)", (6, 8), "i6"),
    ("LinearCrossEntropyLoss(4, 3, bias=True, label_smoothing=0.1)", (5, 4), "i5"),
    ("LinearCrossEntropyLoss(4, 3, out_features=(2,))", (5, 4), "i5,2"), ("KLDivLoss()", (2, 4), (2, 4)),
]
RANDOM = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "RReLU")


def tensor(spec, generator):
    """A tensor of a shape, or of a kind and shape: i ids, u in (0, 1), p positive, s signs."""
    if isinstance(spec, tuple):
        return torch.randn(spec, generator=generator)
    shape = [int(n) for n in spec[1:].split(",")]
    uniform = torch.rand(shape, generator=generator)
    return {"i": (uniform * 3).long(), "u": uniform * 0.9 + 0.05, "p": uniform + 0.1, "s": (uniform > 0.5) * 2.0 - 1}[spec[0]]


def pair(text, generator):
    """The layer in PyTorch, nothing about it symmetric, and the support layer with the same values."""
    weight = torch.rand(4, generator=generator) + 0.2
    theirs = eval("nn." + text, {"nn": nn, "W": weight})
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=generator))
        for name, b in theirs.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                b.add_(torch.rand(b.shape, generator=generator))
    ours = eval(text, {**LAYERS, "W": jnp.asarray(weight.numpy())})
    loaded = load_state_dict(ours, theirs.state_dict())
    assert loaded.complete, loaded
    return theirs, ours


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [v for x in value for v in leaves(x)]
    return [] if value is None else [np.asarray(value.detach() if hasattr(value, "detach") else value)]


def same(got, want):
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype.kind == b.dtype.kind
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*", "ignore::FutureWarning")  # of old arguments and even kernels
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_layer(case):
    text, *specs = case
    generator = torch.Generator().manual_seed(len(text))
    theirs, ours = pair(text, generator)
    xs = [tensor(s, generator) for s in specs]
    arrays = [jnp.asarray(x.numpy()) for x in xs]
    same(ours(*arrays), theirs.eval()(*xs))
    if type(theirs).__name__.startswith(RANDOM):
        assert np.abs(np.asarray(ours(*arrays, training=True) - ours(*arrays, training=True))).max() > 0
        return
    theirs.train()
    for _ in range(2):
        want = theirs(*xs)
        same(ours(*arrays, training=True), want)
    for name, value in theirs.named_buffers():
        if "." not in name:
            same(getattr(ours, name).value, value)
    same(ours(*arrays), theirs.eval()(*xs))
    gradients(theirs.train(), ours, xs, arrays)


def gradients(theirs, ours, xs, arrays):
    """Of a weighted sum of the output, with regard to each parameter."""
    if not ours.trainable_variables:
        return
    out = theirs(*xs)
    (out if isinstance(out, torch.Tensor) else out[0]).mul(1.5).cos().sum().backward()

    def total(values):
        out, _ = ours.stateless_call(values, [v.value for v in ours.non_trainable_variables], *arrays, training=True)
        return jnp.cos((out[0] if isinstance(out, tuple) else out) * 1.5).sum()

    grads = jax.jit(jax.grad(total))([v.value for v in ours.trainable_variables])
    by_name = {id(v): g for v, g in zip(ours.trainable_variables, grads, strict=True)}
    for name, p in theirs.named_parameters():
        if "." not in name:
            got = by_name[id(getattr(ours, name))]
            np.testing.assert_allclose(got, p.grad, rtol=1e-3, atol=1e-5)


def test_every_layer_has_a_case():
    named = {text.partition("(")[0] for text, *_ in CASES}
    public = {n for n in dir(nn) if isinstance(getattr(nn, n), type) and issubclass(getattr(nn, n), nn.Module)}
    words = ("Lazy", "RNN", "LSTM", "GRU", "Transformer", "Module", "Parameter", "Unpool", "Fractional")
    elsewhere = {n for n in public if any(w in n for w in words)}
    elsewhere |= {"Sequential", "Container", "DataParallel", "MultiheadAttention", "CTCLoss", "SyncBatchNorm"}
    assert public - elsewhere - named == set()


def test_a_layer_has_the_arguments_of_pytorch():
    for name, cls in LAYERS.items():
        if name.endswith("Base"):
            continue
        theirs = getattr(nn, name, None)
        if not isinstance(theirs, type) or not hasattr(theirs, "forward") or name == "Module":
            continue
        code = theirs.forward.__code__
        want = code.co_varnames[1 : code.co_argcount]
        if cls.call is not keras.Model.call and name not in ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict"):
            ours = cls.call.__code__
            assert ours.co_varnames[1 : ours.co_argcount] == want, name
