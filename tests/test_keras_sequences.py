"""Recurrent layers, attention and the Transformer of the Keras target against PyTorch."""
import os

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from test_keras_layers import LAYERS, pair, same
from torch import nn
from torch.nn.utils import rnn

from migrate.support.jax import packed
from migrate.weights.load import load_state_dict

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch.*", "ignore:.*nested.tensor.*")


def randn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def arrays(*tensors):
    return [None if t is None else tuple(arrays(*t)) if isinstance(t, tuple) else jnp.asarray(t.numpy()) for t in tensors]


RECURRENT = [
    ("RNN(3, 4)", (5, 2, 3), None),
    ("RNN(3, 4, 2, nonlinearity='relu', bias=False)", (5, 3), None),
    ("GRU(3, 4, bidirectional=True)", (5, 2, 3), (2, 2, 4)),
    ("GRU(3, 4, 2, batch_first=True)", (2, 5, 3), (2, 2, 4)),
    ("LSTM(3, 4, 2, bidirectional=True)", (5, 2, 3), None),
    ("LSTM(3, 4, proj_size=2, num_layers=2)", (5, 2, 3), ((2, 2, 2), (2, 2, 4))),
    ("LSTM(3, 4, bias=False)", (5, 3), ((1, 4), (1, 4))),
    ("RNNCell(3, 4, nonlinearity='relu')", (2, 3), (2, 4)),
    ("GRUCell(3, 4)", (3,), None),
    ("LSTMCell(3, 4, bias=False)", (2, 3), ((2, 4), (2, 4))),
    ("LSTMCell(3, 4)", (2, 3), None),
]


@pytest.mark.parametrize("text, shape, state", RECURRENT, ids=lambda v: v if isinstance(v, str) else "")
def test_recurrent(text, shape, state):
    theirs, ours = pair(text, torch.Generator().manual_seed(1))
    x = randn(*shape)
    hx = None if state is None else tuple(randn(*s) for s in state) if isinstance(state[0], tuple) else randn(*state)
    same(ours(*arrays(x, hx)), theirs(x, hx))
    same(ours(*arrays(x, hx), training=True), theirs(x, hx))
    if isinstance(hx, tuple):
        same(ours(arrays(x)[0], arrays(*hx)), theirs(x, list(hx)))  # the state as a list


@pytest.mark.parametrize("lengths", [[5, 3, 3, 1], [3, 5, 1, 3]])
@pytest.mark.parametrize("text", ["LSTM(3, 4, 2, bidirectional=True, batch_first=True)", "GRU(3, 4, batch_first=True)"])
def test_packed_sequences(text, lengths):
    theirs, ours = pair(text, torch.Generator().manual_seed(1))
    x = randn(4, 5, 3)
    want, state = theirs(rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False))
    got, own = ours(packed.pack_padded_sequence(arrays(x)[0], jnp.asarray(lengths), batch_first=True, enforce_sorted=False))
    same(packed.pad_packed_sequence(got, batch_first=True)[0], rnn.pad_packed_sequence(want, batch_first=True)[0])
    same(own, state)


def test_dropout_between_layers_is_for_training_only():
    ours = LAYERS["LSTM"](3, 4, 2, dropout=0.5)
    x = arrays(randn(5, 2, 3))[0]
    assert (ours(x)[0] == ours(x)[0]).all()
    assert (ours(x, training=True)[0] != ours(x, training=True)[0]).any()


MASKS = {
    "none": {},
    "bool": {"attn_mask": torch.triu(torch.ones(4, 5, dtype=torch.bool), 2)},
    "float": {"attn_mask": randn(4, 5, seed=3), "average_attn_weights": False},
    "heads": {"attn_mask": randn(6, 4, 5, seed=3)},
    "padding": {"key_padding_mask": torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])},
    "no weights": {"need_weights": False, "key_padding_mask": torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 5])},
}
ATTENTION = ["8, 2", "8, 2, bias=False", "8, 2, add_bias_kv=True, add_zero_attn=True", "8, 2, kdim=3, vdim=6", "8, 2, batch_first=True"]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("arguments", ATTENTION)
def test_multihead_attention(arguments, mask):
    theirs, ours = pair(f"MultiheadAttention({arguments})", torch.Generator().manual_seed(2))
    query, key, value = randn(4, 3, 8), randn(5, 3, theirs.kdim, seed=1), randn(5, 3, theirs.vdim, seed=2)
    if theirs.batch_first:
        query, key, value = (x.swapaxes(0, 1) for x in (query, key, value))
    given = {k: v if isinstance(v, bool) else arrays(v)[0] for k, v in MASKS[mask].items()}
    for mode in (True, False):
        theirs.train(mode)
        same(ours(*arrays(query, key, value), training=mode, **given), theirs(query, key, value, **MASKS[mask]))


@pytest.mark.parametrize("arguments", [
    "8, 2, 16, 0.0", "8, 2, 16, 0.0, norm_first=True, batch_first=True", "8, 2, 16, 0.0, 'gelu', bias=False",
])
def test_transformer_layers(arguments):
    src, tgt = randn(2, 2, 8), randn(2, 2, 8, seed=1)
    padding = torch.tensor([[False, False], [False, True]])
    mask = torch.triu(torch.full((2, 2), float("-inf")), 1)
    for text, xs, named in [
        (f"TransformerEncoderLayer({arguments})", (src,), {"src_mask": mask}),
        (f"TransformerEncoderLayer({arguments})", (src,), {"src_key_padding_mask": padding}),
        (f"TransformerDecoderLayer({arguments})", (tgt, src), {"tgt_mask": mask, "memory_key_padding_mask": padding}),
    ]:
        theirs, ours = pair(text, torch.Generator().manual_seed(3))
        given = {k: arrays(v)[0] for k, v in named.items()}
        same(ours(*arrays(*xs), training=True, **given), theirs.train()(*xs, **named))
        with torch.no_grad():
            same(ours(*arrays(*xs), **given), theirs.eval()(*xs, **named))


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("padding", [[[False] * 3, [False, True, True]], [[False] * 3, [True, False, False]]])
def test_transformer_encoder_with_padding(batch_first, padding):
    theirs = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first), 2, nn.LayerNorm(8)).eval()
    ours = LAYERS["TransformerEncoder"](LAYERS["TransformerEncoderLayer"](8, 2, 16, batch_first=batch_first), 2, LAYERS["LayerNorm"](8))
    assert load_state_dict(ours, theirs.state_dict()).complete
    assert len(ours.layers) == 2
    x = randn(2, 3, 8) if batch_first else randn(3, 2, 8)
    with torch.no_grad():
        same(ours(*arrays(x), src_key_padding_mask=jnp.asarray(padding)), theirs(x, src_key_padding_mask=torch.tensor(padding)))
        same(ours(*arrays(x)), theirs(x))


def test_transformer():
    theirs = nn.Transformer(8, 2, 2, 2, 16, 0.0)
    ours = LAYERS["Transformer"](8, 2, 2, 2, 16, 0.0)
    assert load_state_dict(ours, theirs.state_dict()).complete
    src, tgt = randn(5, 2, 8), randn(4, 2, 8, seed=1)
    mask = theirs.generate_square_subsequent_mask(4)
    np.testing.assert_array_equal(ours.generate_square_subsequent_mask(4), mask)
    for mode in (True, False):
        same(ours(*arrays(src, tgt), tgt_mask=arrays(mask)[0], training=mode), theirs.train(mode)(src, tgt, tgt_mask=mask))


def test_copies_in_a_stack_are_independent():
    ours = LAYERS["TransformerEncoder"](LAYERS["TransformerEncoderLayer"](8, 2, 16), 2)
    first, second = ours.layers
    assert first is not second and (first.linear1.weight.value == second.linear1.weight.value).all()
    first.linear1.weight.assign(first.linear1.weight.value + 1)
    assert (first.linear1.weight.value != second.linear1.weight.value).all()


def test_ctc_and_unpooling():
    logs = randn(6, 2, 4).log_softmax(2)
    targets = torch.tensor([[1, 2, 0], [3, 1, 2]])
    lengths = torch.tensor([6, 5]), torch.tensor([2, 3])
    same(LAYERS["CTCLoss"]()(*arrays(logs, targets, *lengths)), nn.CTCLoss()(logs, targets, *lengths))
    x = randn(2, 3, 6, 6)
    values, indices = nn.MaxPool2d(2, return_indices=True)(x)
    same(LAYERS["MaxUnpool2d"](2)(*arrays(values, indices)), nn.MaxUnpool2d(2)(values, indices))
    same(LAYERS["MaxUnpool2d"](2)(*arrays(values, indices), output_size=(7, 6)), nn.MaxUnpool2d(2)(values, indices, output_size=(7, 6)))
    samples = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(1))
    theirs = nn.FractionalMaxPool2d(2, output_size=3, _random_samples=samples)
    same(LAYERS["FractionalMaxPool2d"](2, output_size=3, _random_samples=jnp.asarray(samples.numpy()))(*arrays(x)), theirs(x))


STATS = "affine=True, track_running_stats=True"


@pytest.mark.parametrize("lazy, plain, shape", [
    ("LazyLinear(3)", "Linear(4, 3)", (2, 4)),
    ("LazyConv1d(6, 3, groups=2)", "Conv1d(4, 6, 3, groups=2)", (2, 4, 5)),
    ("LazyConv2d(6, 3)", "Conv2d(4, 6, 3)", (4, 5, 5)),
    ("LazyConv3d(6, 2)", "Conv3d(4, 6, 2)", (4, 3, 3, 3)),
    ("LazyConvTranspose1d(6, 3)", "ConvTranspose1d(4, 6, 3)", (2, 4, 5)),
    ("LazyConvTranspose2d(6, 3, 2)", "ConvTranspose2d(4, 6, 3, 2)", (2, 4, 5, 5)),
    ("LazyConvTranspose3d(6, 2)", "ConvTranspose3d(4, 6, 2)", (4, 3, 3, 3)),
    ("LazyBatchNorm1d()", "BatchNorm1d(4)", (2, 4)),
    ("LazyBatchNorm2d(1e-3)", "BatchNorm2d(4, 1e-3)", (2, 4, 5, 5)),
    ("LazyBatchNorm3d()", "BatchNorm3d(4)", (2, 4, 2, 2, 2)),
    ("LazyInstanceNorm1d()", f"InstanceNorm1d(4, {STATS})", (4, 5)),
    ("LazyInstanceNorm2d()", f"InstanceNorm2d(4, {STATS})", (2, 4, 5, 5)),
    ("LazyInstanceNorm3d()", f"InstanceNorm3d(4, {STATS})", (4, 2, 2, 2)),
])
@pytest.mark.parametrize("called_first", [True, False])
def test_lazy_layers(lazy, plain, shape, called_first):
    theirs, _ = pair(plain, torch.Generator().manual_seed(4))
    ours, x = eval(lazy, dict(LAYERS)), randn(*shape)
    if called_first:
        ours(*arrays(x))
    assert load_state_dict(ours, theirs.state_dict()).complete
    same(ours(*arrays(x)), theirs.eval()(x))
    assert len(ours.trainable_variables) == len(list(theirs.parameters()))
