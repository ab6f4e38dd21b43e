"""Linear, convolution, normalisation, embedding and lazy layers against PyTorch."""
# ruff: noqa: C408
import jax.numpy as jnp  # noqa: I001
import pytest
import torch
from flax import nnx
from layers_common import arrays, compare  # first: it sets flags of XLA
from torch import nn

from migrate.support.flax import batchnorm, conv, instancenorm, lazy, linear, norms

R = nnx.Rngs(0)


def x(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + 0.3


@pytest.mark.parametrize("bias", [True, False])
def test_linear(bias):
    layer = linear.Linear(4, 3, bias=bias, rngs=R)
    assert isinstance(layer, nnx.Linear)
    compare(nn.Linear(4, 3, bias=bias), layer, x(2, 5, 4))
    compare(nn.Linear(4, 3, bias=bias), nnx.Linear(4, 3, use_bias=bias, rngs=R), x(4))


def test_bilinear():
    compare(nn.Bilinear(3, 4, 5), linear.Bilinear(3, 4, 5, rngs=R), x(2, 6, 3), x(2, 6, 4, seed=1))
    compare(nn.Bilinear(3, 4, 5, bias=False), linear.Bilinear(3, 4, 5, bias=False, rngs=R), x(3), x(4))


def test_identity():
    layer = linear.Identity(54, unused="x", rngs=R)
    assert layer(jnp.ones(3)).shape == (3,)


CONVS = [
    dict(kernel_size=3), dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=2, padding="same"), dict(kernel_size=4, padding="same", dilation=2),
    dict(kernel_size=3, padding="valid", bias=False), dict(kernel_size=3, padding=2, dilation=2, groups=2), dict(kernel_size=1, groups=4),
    dict(kernel_size=3, padding=2, padding_mode="reflect"), dict(kernel_size=3, padding=2, padding_mode="replicate", stride=2),
    dict(kernel_size=3, padding=2, padding_mode="circular"), dict(kernel_size=4, padding="same", padding_mode="circular"),
    dict(kernel_size=2, padding="same", padding_mode="reflect"), dict(kernel_size=3, padding="valid", padding_mode="reflect"),
]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("rank, options", [(r, o) for r in (1, 2, 3) for o in (CONVS if r == 2 else CONVS[1::4])], ids=str)
def test_conv(rank, options):
    theirs, ours = getattr(nn, f"Conv{rank}d"), getattr(conv, f"Conv{rank}d")
    layer = ours(4, 6 if options.get("groups") != 4 else 8, **options, rngs=R)
    assert isinstance(layer, nnx.Conv)
    compare(theirs(4, 6 if options.get("groups") != 4 else 8, **options), layer, x(2, 4, 7, 6, 5)[..., *[0] * (3 - rank)].contiguous(), train=False)


def test_conv_unbatched_and_tuples():
    compare(nn.Conv2d(2, 3, (3, 2), (1, 2), (2, 0), (1, 2)), conv.Conv2d(2, 3, (3, 2), (1, 2), (2, 0), (1, 2), rngs=R), x(2, 6, 7))
    compare(nn.Conv1d(2, 3, 3, padding=1, padding_mode="circular"), conv.Conv1d(2, 3, 3, padding=1, padding_mode="circular", rngs=R), x(2, 6))


def test_conv_attributes_may_be_changed():
    theirs, ours = nn.Conv2d(2, 4, 3, groups=2), conv.Conv2d(2, 4, 3, groups=2, rngs=R)
    for name in ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"):
        assert getattr(ours, name) == getattr(theirs, name)
    for layer in (theirs, ours):
        layer.stride, layer.dilation, layer.padding = (2, 1), (1, 2), (1, 0)
    compare(theirs, ours, x(1, 2, 8, 8))


TRANSPOSED = [
    dict(kernel_size=3), dict(kernel_size=3, stride=2, padding=1, output_padding=1), dict(kernel_size=4, stride=3, dilation=2, output_padding=2),
    dict(kernel_size=2, stride=2, groups=2, bias=False), dict(kernel_size=3, stride=1, padding=2),
]


@pytest.mark.parametrize("rank, options", [(r, o) for r in (1, 2, 3) for o in (TRANSPOSED if r == 2 else TRANSPOSED[1:3])], ids=str)
def test_conv_transpose(rank, options):
    theirs, ours = getattr(nn, f"ConvTranspose{rank}d"), getattr(conv, f"ConvTranspose{rank}d")
    compare(theirs(4, 6, **options), ours(4, 6, **options, rngs=R), x(2, 4, 4, 3, 5)[..., *[0] * (3 - rank)].contiguous(), train=False)


def test_conv_transpose_output_size():
    theirs, ours = nn.ConvTranspose2d(2, 3, 3, stride=2), conv.ConvTranspose2d(2, 3, 3, stride=2, rngs=R)
    compare(theirs, ours, x(1, 2, 4, 4), output_size=[10, 9])
    with pytest.raises(ValueError, match="output_size"):
        ours(jnp.ones((1, 2, 4, 4)), output_size=[20, 9])


NORMS = [dict(), dict(eps=0.1), dict(momentum=0.4), dict(momentum=None), dict(affine=False), dict(track_running_stats=False), dict(bias=False)]


@pytest.mark.parametrize("name, shape, options", [
    ("BatchNorm1d", (5, 4), {}), ("BatchNorm1d", (3, 4, 6), dict(eps=0.1)), ("BatchNorm3d", (2, 4, 2, 3, 2), {}),
    *[("BatchNorm2d", (3, 4, 2, 5), o) for o in NORMS],
], ids=str)
def test_batch_norm(name, shape, options):
    layer = getattr(batchnorm, name)(4, **options, rngs=R)
    assert isinstance(layer, nnx.BatchNorm)
    compare(getattr(nn, name)(4, **options), layer, x(*shape))


def test_batch_norm_attributes_may_be_changed():
    theirs, ours = nn.BatchNorm2d(4), batchnorm.BatchNorm2d(4, rngs=R)
    for layer in (theirs, ours):
        layer.eps, layer.momentum = 0.2, 0.03
    compare(theirs, ours, x(3, 4, 2, 5))
    with pytest.raises(ValueError, match="more than one value"):
        ours(jnp.ones((1, 4, 1, 1)))


def test_sync_batch_norm():
    compare(nn.SyncBatchNorm(4), batchnorm.SyncBatchNorm(4, rngs=R), x(3, 4, 2, 5), train=False)
    model = nnx.List([batchnorm.BatchNorm1d(3, rngs=R)])
    assert batchnorm.SyncBatchNorm.convert_sync_batchnorm(model) is model


@pytest.mark.parametrize("options", [dict(), dict(affine=True), dict(track_running_stats=True), dict(affine=True, track_running_stats=True, momentum=0.3, eps=0.1)], ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_instance_norm(rank, options):
    theirs, ours = getattr(nn, f"InstanceNorm{rank}d"), getattr(instancenorm, f"InstanceNorm{rank}d")
    shape = (3, 4, 5, 2, 3)[:rank + 2]
    compare(theirs(4, **options), ours(4, **options, rngs=R), x(*shape))
    compare(theirs(4, **options), ours(4, **options), x(*shape)[0])


def test_layer_norm():
    for shape, options in [(6, {}), ((5, 6), {}), ([6], dict(eps=0.1)), (6, dict(bias=False)), ((5, 6), dict(elementwise_affine=False))]:
        layer = norms.LayerNorm(shape, **options, rngs=R)
        assert isinstance(layer, nnx.LayerNorm)
        compare(nn.LayerNorm(shape, **options), layer, x(3, 5, 6) * 3 + 5)


def test_rms_norm():
    for shape, options in [(6, {}), ((5, 6), dict(eps=0.1)), (6, dict(elementwise_affine=False))]:
        compare(nn.RMSNorm(shape, **options), norms.RMSNorm(shape, **options, rngs=R), x(3, 5, 6))
    compare(nn.RMSNorm(6, eps=0.1), nnx.RMSNorm(6, epsilon=0.1, rngs=R), x(3, 5, 6))


def test_group_norm():
    for options, shape in [({}, (3, 6, 4)), (dict(eps=0.1), (3, 6)), (dict(affine=False), (2, 6, 2, 3)), (dict(bias=False), (2, 6, 2, 3))]:
        layer = norms.GroupNorm(3, 6, **options, rngs=R)
        assert isinstance(layer, nnx.GroupNorm)
        compare(nn.GroupNorm(3, 6, **options), layer, x(*shape))


def test_local_response_norm():
    for options, shape in [({}, (3, 6, 4)), (dict(alpha=0.1, beta=0.5, k=2.0), (2, 6, 2, 3))]:
        compare(nn.LocalResponseNorm(3, **options), norms.LocalResponseNorm(3, **options), x(*shape))


def test_cross_map_lrn():
    for size, options, channels in [(3, {}, 6), (4, dict(alpha=0.5, beta=0.6, k=2), 9), (5, dict(alpha=0.3), 3), (2, dict(alpha=0.2), 4)]:
        compare(nn.CrossMapLRN2d(size, **options), norms.CrossMapLRN2d(size, **options), x(2, channels, 3, 2))


LAZY = [
    ("Linear", (5,), {}, (2, 4)), ("Conv1d", (6, 3), dict(groups=2), (2, 4, 7)), ("Conv2d", (6, 3, 1, 1), {}, (2, 4, 5, 5)),
    ("Conv3d", (6, 2), dict(padding_mode="circular", padding=1), (2, 4, 3, 4, 3)), ("ConvTranspose1d", (6, 3), dict(groups=2), (2, 4, 5)),
    ("ConvTranspose2d", (6, 3), {}, (2, 4, 5, 4)), ("ConvTranspose3d", (6, 2), {}, (2, 4, 3, 4, 3)),
    ("BatchNorm1d", (), {}, (5, 4)), ("BatchNorm2d", (), dict(eps=0.1), (3, 4, 2, 2)), ("BatchNorm3d", (), {}, (3, 4, 2, 2, 2)),
    ("InstanceNorm1d", (), {}, (3, 4, 5)), ("InstanceNorm2d", (), {}, (3, 4, 2, 3)), ("InstanceNorm3d", (), {}, (3, 4, 2, 3, 2)),
]


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("name, args, options, shape", LAZY, ids=[c[0] for c in LAZY])
@pytest.mark.parametrize("first", ["weights", "call", "jit"])
def test_lazy(name, args, options, shape, first):
    if first != "weights" and name[-2:] in ("1d", "3d"):
        return  # 2d tells
    theirs, ours = getattr(nn, "Lazy" + name)(*args, **options), getattr(lazy, "Lazy" + name)(*args, **options, rngs=nnx.Rngs(0))
    theirs.eval(), ours.eval()
    theirs(x(*shape))
    if first == "call":
        ours(arrays(x(*shape)))
    elif first == "jit":
        nnx.jit(lambda m, a: m(a))(ours, arrays(x(*shape)))
    compare(theirs, ours, x(*shape), grad=False)
