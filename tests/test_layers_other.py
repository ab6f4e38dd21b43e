"""Activations, pooling, padding, shapes, losses, dropout and containers against PyTorch."""
# ruff: noqa: C408
import inspect
from collections import OrderedDict  # noqa: I001

import jax
import jax.numpy as jnp
import pytest
import torch
from flax import nnx
from layers_common import arrays, close, compare, sharpen, weights_into  # first: it sets flags of XLA
from torch import nn

from migrate.support.flax import activations, building, containers, copies, dropout, embedding, linear, losses, norms, padding, pooling, shapes
from migrate.support.flax.batchnorm import BatchNorm1d
from migrate.support.flax.state import Buffer

R = nnx.Rngs(0)


def x(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def made(module, name, args, kwargs):
    """A support layer, with random numbers only where it asks for them."""
    cls = getattr(module, name)
    required = inspect.signature(cls.__init__).parameters["rngs"].default is inspect.Parameter.empty
    return cls(*args, **kwargs, **(dict(rngs=nnx.Rngs(0)) if required else {}))


ACTIVATIONS = [
    ("ReLU", (), {}), ("ReLU6", (), {}), ("LeakyReLU", (0.2,), {}), ("PReLU", (), {}), ("PReLU", (3,), {}), ("ELU", (0.7,), {}), ("CELU", (0.7,), {}),
    ("SELU", (), {}), ("GELU", (), {}), ("GELU", ("tanh",), {}), ("SiLU", (), {}), ("Mish", (), {}), ("Sigmoid", (), {}), ("LogSigmoid", (), {}),
    ("Tanh", (), {}), ("Tanhshrink", (), {}), ("Softsign", (), {}), ("Softplus", (), {}), ("Softplus", (2, 1.5), {}), ("Hardtanh", (), {}),
    ("Hardtanh", (-0.5, 0.7), {}), ("Hardsigmoid", (), {}), ("Hardswish", (), {}), ("Hardshrink", (), {}), ("Softshrink", (0.3,), {}),
    ("Threshold", (0.1, 20), {}), ("Softmax", (1,), {}), ("Softmin", (), dict(dim=0)), ("LogSoftmax", (-1,), {}), ("Softmax2d", (), {}), ("GLU", (2,), {}),
]


@pytest.mark.parametrize("name, args, kwargs", ACTIVATIONS, ids=str)
def test_activation(name, args, kwargs):
    a = x(2, 3, 4, 5)
    a[0, 0, 0, :] = torch.tensor([0.0, 6.0, -0.0, 1.0, -30.0])  # kinks
    compare(getattr(nn, name)(*args, **kwargs), made(activations, name, args, kwargs), a, train=False)


@pytest.mark.filterwarnings("ignore:Implicit dimension choice")
def test_softmax_without_dim():
    for a in (x(3), x(3, 4), x(2, 3, 4), x(2, 3, 4, 5)):
        for name in ("Softmax", "Softmin", "LogSoftmax"):
            compare(getattr(nn, name)(), getattr(activations, name)(), a, train=False, grad=False)


def test_rrelu():
    compare(nn.RReLU(), activations.RReLU(rngs=R), x(3, 4), train=False)
    layer = activations.RReLU(0.1, 0.3, rngs=nnx.Rngs(0))
    out = layer(-jnp.ones(1000))
    assert -0.3 <= out.min() < -0.29 and -0.11 < out.max() <= -0.1


@pytest.mark.parametrize("name", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"])
def test_dropout(name):
    layer = getattr(dropout, name)(0.3, rngs=nnx.Rngs(0))
    shape = {"Dropout1d": (2, 2000, 3), "Dropout2d": (2, 2000, 2, 3), "Dropout3d": (2, 2000, 2, 1, 3)}.get(name, (2, 2000, 3))
    a = jnp.ones(shape) + jnp.arange(3)
    layer.eval()
    assert jnp.array_equal(layer(a), a)
    layer.train()
    step = nnx.jit(lambda m, v: m(v))
    out, again = step(layer, a), step(layer, a)
    assert not jnp.array_equal(out, again)
    if "Alpha" in name:
        return
    zero = out == 0
    assert abs(zero.mean() - 0.3) < 0.03
    close(jnp.where(zero, 0, a / 0.7), out)
    if name != "Dropout":
        assert jnp.array_equal(zero.any(range(2, a.ndim)), zero.all(range(2, a.ndim)))


def test_dropout_of_everything_and_its_name():
    layer = dropout.Dropout(p=1.0, rngs=nnx.Rngs(0))
    assert not layer(jnp.ones(4)).any()
    layer.p = 0.0
    assert layer(jnp.ones(4)).all() and isinstance(layer, nnx.Dropout)


def test_alpha_dropout_keeps_mean_and_variance():
    a = jax.random.normal(jax.random.key(0), (100, 300))
    for out in (dropout.AlphaDropout(0.3, rngs=nnx.Rngs(0))(a), dropout.FeatureAlphaDropout(0.3, rngs=nnx.Rngs(0))(a[:, :, None])):
        assert abs(out.mean()) < 0.03 and abs(out.var() - 1) < 0.05


def test_dropout2d_without_a_batch_drops_axis_1():
    out = dropout.Dropout2d(0.5, rngs=nnx.Rngs(0))(jnp.ones((2, 50, 6))) == 0
    assert jnp.array_equal(out.any(2), out.all(2)) and not jnp.array_equal(out[0], out[1])


SIZES = {1: (2, 3, 9), 2: (2, 3, 9, 8), 3: (1, 2, 7, 8, 6)}
POOLS = [
    ("MaxPool{}d", (3,), {}), ("MaxPool{}d", (3, 2, 1), dict(ceil_mode=True, return_indices=True)), ("MaxPool{}d", (2,), dict(dilation=2)),
    ("AvgPool{}d", (3,), {}), ("AvgPool{}d", (3, 2, 1), dict(ceil_mode=True, count_include_pad=False)), ("LPPool{}d", (2, 3), dict(stride=2)),
    ("AdaptiveAvgPool{}d", (4,), {}), ("AdaptiveMaxPool{}d", (4,), dict(return_indices=True)),
]


@pytest.mark.parametrize("rank, pool", [(r, p) for r in SIZES for p in (POOLS if r == 2 else POOLS[1::3])], ids=str)
def test_pooling(rank, pool):
    name, args, kwargs = pool
    a = x(*SIZES[rank]).abs()
    compare(getattr(nn, name.format(rank))(*args, **kwargs), made(pooling, name.format(rank), args, kwargs), a, train=False)


def test_pooling_options():
    compare(nn.AvgPool2d(2, divisor_override=3), pooling.AvgPool2d(2, divisor_override=3), x(2, 3, 5, 4), train=False)
    compare(nn.AdaptiveAvgPool2d((None, 2)), pooling.AdaptiveAvgPool2d((None, 2)), x(3, 5, 4), train=False)
    samples = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(0))
    ours = pooling.FractionalMaxPool2d(2, output_size=4, _random_samples=arrays(samples), rngs=R)
    close(nn.FractionalMaxPool2d(2, output_size=4, _random_samples=samples)(x(2, 3, 9, 8)), ours(arrays(x(2, 3, 9, 8))))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_unpool(rank):
    values, at = getattr(nn, f"MaxPool{rank}d")(2, return_indices=True)(x(*SIZES[rank]))
    theirs, ours = getattr(nn, f"MaxUnpool{rank}d")(2), getattr(pooling, f"MaxUnpool{rank}d")(2)
    compare(theirs, ours, values, at, train=False, output_size=list(SIZES[rank]))


@pytest.mark.parametrize("kind", ["Constant", "Zero", "Reflection", "Replication", "Circular"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_padding(kind, rank):
    for pad in (2, (1, 2, 0, 1, 2, 0)[:2 * rank]):
        args = (pad, 3.5) if kind == "Constant" else (pad,)
        compare(getattr(nn, f"{kind}Pad{rank}d")(*args), getattr(padding, f"{kind}Pad{rank}d")(*args), x(*SIZES[rank]), train=False, grad=rank == 2)


SHAPES = [
    ("Flatten", (), {}, (2, 3, 4)), ("Flatten", (0, 1), {}, (2, 3, 4)), ("Unflatten", (1, (2, -1)), {}, (2, 6)), ("PixelShuffle", (2,), {}, (1, 8, 3, 2)),
    ("PixelUnshuffle", (2,), {}, (1, 2, 4, 6)), ("ChannelShuffle", (2,), {}, (1, 4, 3, 2)), ("Unfold", ((2, 3),), dict(padding=1), (1, 2, 4, 6)),
    ("Fold", ((4, 5), (2, 3)), {}, (1, 12, 9)), ("Upsample", (), dict(scale_factor=2), (1, 2, 3, 4)),
    ("Upsample", ((5, 6),), dict(mode="bilinear", align_corners=True), (1, 2, 3, 4)), ("UpsamplingNearest2d", (), dict(scale_factor=2), (1, 2, 3, 4)),
    ("UpsamplingBilinear2d", ((5, 7),), {}, (1, 2, 3, 4)),
]


@pytest.mark.parametrize("name, args, kwargs, shape", SHAPES, ids=str)
def test_shape(name, args, kwargs, shape):
    compare(getattr(nn, name)(*args, **kwargs), getattr(shapes, name)(*args, **kwargs), x(*shape), train=False)


IDS, W4 = torch.tensor([0, 3, 1]), torch.tensor([0.5, 1.0, 2.0, 0.7])
P, SIGN = torch.sigmoid(x(3, 4, seed=2)), torch.tensor([1.0, -1.0, 1.0])
LOSSES = [
    ("L1Loss", {}, (x(3, 4), P)), ("MSELoss", dict(reduction="sum"), (x(3, 4), P)), ("SmoothL1Loss", dict(beta=0.5), (x(3, 4), P)),
    ("HuberLoss", dict(delta=0.5), (x(3, 4), P)), ("KLDivLoss", dict(reduction="batchmean"), (P.log(), P.flip(0))), ("SoftMarginLoss", {}, (x(3), SIGN)),
    ("GaussianNLLLoss", dict(full=True), (x(3, 4), P, P + 0.1)), ("PoissonNLLLoss", dict(full=True, reduction="none"), (x(3, 4), P * 5)),
    ("NLLLoss", dict(weight=W4, ignore_index=3), (x(3, 4), IDS)), ("CrossEntropyLoss", dict(weight=W4, label_smoothing=0.1), (x(3, 4), IDS)),
    ("CrossEntropyLoss", dict(ignore_index=1, reduction="none"), (x(3, 4, 2), torch.stack([IDS, IDS.flip(0)], 1))), ("CrossEntropyLoss", {}, (x(3, 4), P)),
    ("BCELoss", dict(weight=W4), (P, P.flip(0))), ("BCEWithLogitsLoss", dict(pos_weight=W4), (x(3, 4), P)), ("MultiLabelMarginLoss", {}, (x(4), torch.tensor([3, 0, -1, 1]))),
    ("MultiLabelSoftMarginLoss", dict(weight=W4), (x(3, 4), P.round())), ("MultiMarginLoss", dict(p=2, weight=W4), (x(3, 4), IDS)),
    ("HingeEmbeddingLoss", dict(margin=0.5), (x(3), SIGN)), ("CosineEmbeddingLoss", dict(margin=0.1), (x(3, 4), P, SIGN)),
    ("MarginRankingLoss", dict(margin=0.1), (x(3), x(3, seed=1), SIGN)), ("TripletMarginLoss", dict(swap=True), (x(3, 4), P, x(3, 4, seed=4))),
    ("TripletMarginWithDistanceLoss", dict(margin=0.5), (x(3, 4), P, x(3, 4, seed=4))), ("CosineSimilarity", dict(dim=0), (x(3, 4), P)),
    ("PairwiseDistance", dict(p=1.0, keepdim=True), (x(3, 4), P)),
]


@pytest.mark.parametrize("name, kwargs, inputs", LOSSES, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(LOSSES)])
def test_loss(name, kwargs, inputs):
    theirs, ours = getattr(nn, name)(**kwargs), getattr(losses, name)(**arrays(kwargs))
    weights_into(ours, theirs)  # a weight is in the state dict
    compare(theirs, ours, *inputs, train=False, prepare=False, grad=name != "SoftMarginLoss")


@pytest.mark.filterwarnings("ignore:size_average and reduce args")
def test_older_reductions():
    for size_average in (None, True, False):
        for reduce in (None, True, False):
            theirs = nn.MSELoss(size_average, reduce)
            assert losses.MSELoss(size_average, reduce).reduction == theirs.reduction


def test_losses_with_parameters():
    compare(
        nn.AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], div_value=2.0, head_bias=True),
        losses.AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], div_value=2.0, head_bias=True, rngs=R), x(4, 8), torch.tensor([0, 8, 3, 4]), train=False,
    )
    compare(nn.LinearCrossEntropyLoss(4, 3, bias=True), losses.LinearCrossEntropyLoss(4, 3, bias=True, rngs=R), x(5, 4), torch.tensor([0, 2, 1, 1, 0]), train=False)


def test_ctc_loss():
    logs = x(6, 2, 4).log_softmax(-1)
    args = torch.tensor([[1, 2, 1], [3, 3, 0]]), torch.tensor([6, 5]), torch.tensor([3, 2])
    compare(nn.CTCLoss(), losses.CTCLoss(), logs, *args, train=False, grad=False)


class Swap(nnx.Module):
    def __call__(self, pair):
        return pair[1], pair[0]


def test_sequential_hands_one_value_on():
    net = containers.Sequential(Swap(), Swap(), lambda pair: pair[0] - pair[1])
    assert net((jnp.array(5.0), jnp.array(3.0))) == 2
    assert isinstance(net, nnx.Sequential) and containers.Sequential()(7) == 7


def test_sequential_behaves_like_a_list():
    theirs, ours = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), containers.Sequential(linear.Linear(2, 2, rngs=R), activations.ReLU())
    for net, m, act in ((theirs, lambda: nn.Linear(2, 2), nn.ReLU), (ours, lambda: linear.Linear(2, 2, rngs=R), activations.ReLU)):
        assert net.append(m()) is net
        net.insert(1, m())
        net.extend([act(), m()])
        net[0] = m()
        del net[1]
        net.pop(3)
    assert len(theirs) == len(ours) == 4 and len(list(ours)) == 4
    assert [type(m).__name__ for m in theirs] == [type(m).__name__ for m in ours]
    assert isinstance(ours[-1], linear.Linear) and len(ours[1:]) == 3
    compare(theirs, ours, x(3, 2))
    compare(theirs[2:], ours[2:], x(3, 2))


def test_functions_and_modules_take_each_others_place():
    net = containers.Sequential(nnx.relu, linear.Linear(2, 2, rngs=R))
    net[0], net[1] = net[1], net[0]
    branches = containers.ModuleDict({"a": nnx.relu, "b": activations.ReLU(), "c": None})
    branches["a"], branches["b"], branches["c"] = branches["b"], branches["a"], activations.ReLU()
    for model in (net, branches):
        nnx.jit(lambda m: None)(model)
    assert net(jnp.ones((1, 2))).min() >= 0 and branches["b"] is nnx.relu


def test_sequential_with_names():
    def build(m, seq, **k):
        net = seq(OrderedDict(first=m(2, 3, **k), second=m(3, 4, **k)))
        net.add_module("third", m(4, 2, **k))
        return net
    theirs, ours = build(nn.Linear, nn.Sequential), build(linear.Linear, containers.Sequential, rngs=R)
    compare(theirs, ours, x(3, 2))
    assert ours.second.out_features == 4 and ours[2] is ours.third
    with pytest.raises(AttributeError):
        ours.fourth
    nnx.jit(lambda m: None)(ours)
    assert ours.second.out_features == 4


def test_module_dict():
    names = {"items": 3, "b": 2, "a": 4, "keys": 2}
    theirs = nn.ModuleDict({k: nn.Linear(2, n) for k, n in names.items() if k not in ("items", "keys")})
    ours = containers.ModuleDict({k: linear.Linear(2, n, rngs=R) for k, n in names.items()})
    nnx.jit(lambda m: None)(ours)
    assert list(ours.keys()) == list(names) and [m.out_features for m in ours.values()] == list(names.values())
    assert ours["items"].out_features == 3 and "items" in ours and ours.b.out_features == 2 and len(ours) == 4
    assert ours.pop("items").out_features == 3
    del ours["keys"]
    ours.update({"b": linear.Linear(2, 2, rngs=R)})
    weights_into(ours, theirs)
    assert [k for k, _ in ours.items()] == ["b", "a"]
    ours.clear()
    assert len(ours) == 0


def test_parameter_containers():
    theirs = nn.ModuleDict(dict(
        w=nn.ParameterList([nn.Parameter(torch.full((3,), float(i))) for i in range(12)]), d=nn.ParameterDict({"s": nn.Parameter(torch.tensor(0.5)), "a": x(3)}),
    ))
    ours = containers.ModuleDict(dict(
        w=containers.ParameterList([nnx.Param(jnp.zeros(3)) for _ in range(11)]), d=containers.ParameterDict({"s": jnp.array(0.0), "a": jnp.zeros(3)}),
    ))
    ours["w"].append(jnp.zeros(3))
    weights_into(ours, theirs)
    assert [float(p[0]) for p in ours["w"]] == [float(i) for i in range(12)] and float(ours["d"]["s"][...]) == 0.5
    assert len(jax.tree.leaves(nnx.state(ours, nnx.Param))) == 14 and ours["d"].get("none") is None


def test_copies_draw_their_own_numbers():
    layer = nnx.Sequential(nnx.Linear(3, 3, rngs=R), nnx.Dropout(0.5, rngs=R))
    first, second = copies.copy_module(layer), copies.copy_module(layer)
    close(first.layers[0].kernel[...], layer.layers[0].kernel[...])
    masks = [m.layers[1](jnp.ones(64)) for m in (layer, first, second)]
    assert not jnp.array_equal(masks[0], masks[1]) and not jnp.array_equal(masks[1], masks[2])


def test_tied_linear():
    class Theirs(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.head = nn.Embedding(5, 3), nn.Linear(3, 5)
            self.head.weight = self.wte.weight

        def forward(self, ids):
            return self.head(self.wte(ids))

    class Ours(nnx.Module):
        def __init__(self, *, rngs):
            self.wte, self.head = nnx.Embed(5, 3, rngs=rngs), nnx.Linear(3, 5, rngs=rngs)
            self.head = linear.TiedLinear(self.wte, self.head.bias)

        def __call__(self, ids):
            return self.head(self.wte(ids))

    theirs, ours = Theirs(), Ours(rngs=nnx.Rngs(0))
    sharpen(theirs)
    compare(theirs, ours, torch.tensor([1, 4, 0]), train=False)
    assert len(jax.tree.leaves(nnx.state(ours, nnx.Param))) == 2


def test_a_tied_linear_is_started_as_a_linear_layer():
    table = nnx.Embed(5, 3, rngs=R)
    head = linear.TiedLinear(table, nnx.Param(jnp.ones(5)))
    net = containers.Sequential(head, table)
    assert [n for n, _ in building.named_parameters(net)] == ["0.weight", "0.bias"] and not list(building.children(head))
    assert [v.shape for v in building.torch_parameters(net)] == [(5, 3), (5,)]
    building.apply(net, lambda m: building.set_torch_weight(m, jnp.arange(15.0).reshape(5, 3)) if isinstance(m, nnx.Linear) else None)
    close(table.embedding[...], jnp.arange(15.0).reshape(5, 3))
    head.kernel[...] = 2 * head.kernel
    close(table.embedding[...], 2 * jnp.arange(15.0).reshape(5, 3))
    close(head(jnp.ones((1, 3))), 2 * jnp.arange(15.0).reshape(5, 3).sum(1)[None] + 1)
    close(building.torch_weight(head), table.embedding[...])


def test_buffer():
    b = Buffer(jnp.ones(2), persistent=False)
    assert not b.get_metadata()["persistent"] and not isinstance(b, nnx.Param)


def test_children_are_replaced_by_name():
    net = containers.Sequential(linear.Linear(2, 3, rngs=R), activations.ReLU())
    setattr(net, "1", activations.Tanh())
    assert isinstance(getattr(net, "1"), activations.Tanh) and isinstance(net[1], activations.Tanh) and len(net) == 2
    branches = containers.ModuleDict({"a": activations.ReLU()})
    branches.a = activations.Tanh()
    assert isinstance(branches["a"], activations.Tanh)


def test_names_of_variables():
    def build(m, n, d, p, one, **k):
        return m.Sequential(OrderedDict(
            first=n.Linear(2, 3, **k), norms=d({"b": n.BatchNorm1d(3, **k), "a": n.LayerNorm(3, **k)}), p=p({"w": one, "v": one + 1}), table=n.Embedding(3, 2, **k),
        ))

    class Layers:
        Linear, BatchNorm1d, LayerNorm, Embedding = linear.Linear, BatchNorm1d, norms.LayerNorm, embedding.Embedding

    theirs = build(nn, nn, nn.ModuleDict, nn.ParameterDict, torch.ones(2))
    ours = build(containers, Layers, containers.ModuleDict, containers.ParameterDict, jnp.ones(2), rngs=R)
    assert [n for n, _ in building.named_parameters(ours)] == [n for n, _ in theirs.named_parameters()]
    assert {n for n, _ in building.named_buffers(ours)} == {n for n, _ in theirs.named_buffers()} - {"norms.b.num_batches_tracked"}
    assert [n for n, _ in building.named_parameters(nnx.Linear(2, 2, rngs=R))] == ["weight", "bias"]
    assert [n for n, _ in building.named_modules(ours)] == [n for n, _ in theirs.named_modules()]
