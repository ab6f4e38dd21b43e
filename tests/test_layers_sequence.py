"""Recurrent layers, packed sequences, attention and transformers against PyTorch."""
# ruff: noqa: C408
import jax  # noqa: I001
import jax.numpy as jnp
import pytest
import torch
from flax import nnx
from layers_common import arrays, close, compare, sharpen, weights_into  # first: it sets flags of XLA
from torch import nn
from torch.nn.utils import rnn

from migrate.support.flax import attention, embedding, recurrent, transformer
from migrate.support.jax import packed

R = nnx.Rngs(0)


def x(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


RNNS = [
    {}, dict(num_layers=2, bidirectional=True), dict(num_layers=2, bias=False, batch_first=True), dict(bidirectional=True, batch_first=True),
]


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("options", RNNS, ids=str)
def test_recurrent(name, options):
    theirs, ours = getattr(nn, name)(3, 5, **options), getattr(recurrent, name)(3, 5, **options, rngs=R)
    compare(theirs, ours, x(4, 2, 3), train=False)
    h = x(len(ours.runs()), 4 if options.get("batch_first") else 2, 5, seed=1)
    compare(theirs, ours, x(4, 2, 3), (h, h * 0.5) if name == "LSTM" else h, train=False, grad=False)
    compare(theirs, ours, x(4, 3), train=False, grad=False)
    compare(theirs, ours, x(4, 3), (h[:, 0], h[:, 1]) if name == "LSTM" else h[:, 0], train=False, grad=False)


def test_lstm_state_as_list():
    theirs, ours = nn.LSTM(3, 5, 2), recurrent.LSTM(3, 5, 2, rngs=R)
    compare(theirs, ours, x(4, 2, 3), [x(2, 2, 5), x(2, 2, 5, seed=1)], train=False, grad=False)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("options", [dict(proj_size=2), dict(proj_size=2, num_layers=2, bidirectional=True, bias=False)], ids=str)
def test_lstm_projection(options):
    theirs, ours = nn.LSTM(3, 5, **options), recurrent.LSTM(3, 5, **options, rngs=R)
    compare(theirs, ours, x(4, 2, 3), train=False)
    n = len(ours.runs())
    compare(theirs, ours, x(4, 2, 3), (x(n, 2, 2), x(n, 2, 5)), train=False, grad=False)


def test_rnn_nonlinearity():
    compare(nn.RNN(3, 5, 2, "relu"), recurrent.RNN(3, 5, 2, "relu", rngs=R), x(4, 2, 3), train=False)


def test_recurrent_dropout():
    layer = recurrent.GRU(3, 5, 2, dropout=0.5, rngs=nnx.Rngs(0))
    a = jnp.ones((4, 2, 3))
    layer.eval()
    assert jnp.array_equal(layer(a)[0], layer(a)[0])
    layer.train()
    step = nnx.jit(lambda m, v: m(v)[0])
    first, second = step(layer, a), step(layer, a)
    assert not jnp.array_equal(first, second)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_packed(name, enforce_sorted):
    theirs, ours = getattr(nn, name)(3, 4, 2, bidirectional=True), getattr(recurrent, name)(3, 4, 2, bidirectional=True, rngs=R)
    sharpen(theirs)
    weights_into(ours, theirs)
    a, lengths, h = x(6, 3, 3), [5, 3, 2] if enforce_sorted else [2, 5, 3], x(4, 3, 4)
    state = (h, h * 0.5) if name == "LSTM" else h
    for hx in (None, state):
        out, last = theirs(rnn.pack_padded_sequence(a, torch.tensor(lengths), enforce_sorted=enforce_sorted), hx)
        mine = packed.pack_padded_sequence(arrays(a), jnp.array(lengths), enforce_sorted=enforce_sorted)
        got, got_last = ours(mine, arrays(hx))
        close(last, got_last)
        close((out.data, out.batch_sizes), (got.data, got.batch_sizes))
        close(rnn.pad_packed_sequence(out, padding_value=-1.0), packed.pad_packed_sequence(got, padding_value=-1.0))
        close(rnn.pad_packed_sequence(out, True, total_length=8), packed.pad_packed_sequence(got, True, total_length=8))

    @nnx.jit
    def run(model, a, lengths):
        out, last = model(packed.pack_padded_sequence(a, lengths, enforce_sorted=enforce_sorted))
        return packed.pad_packed_sequence(out, total_length=6), last

    out, last = theirs(rnn.pack_padded_sequence(a, torch.tensor(lengths), enforce_sorted=enforce_sorted))
    close((rnn.pad_packed_sequence(out, total_length=6), last), run(ours, arrays(a), jnp.array(lengths)))


def test_packing():
    parts = [x(2, 3), x(4, 3, seed=1), x(1, 3, seed=2)]
    mine = [arrays(p) for p in parts]
    for options in ({}, dict(batch_first=True, padding_value=7.0), dict(padding_side="left")):
        close(rnn.pad_sequence(parts, **options), packed.pad_sequence(mine, **options))
    a, b = rnn.pack_sequence(parts, enforce_sorted=False), packed.pack_sequence(mine, enforce_sorted=False)
    close(tuple(a), (b.data, b.batch_sizes, b.sorted_indices, b.unsorted_indices))
    again = packed.PackedSequence(b.data * 2, b.batch_sizes, b.sorted_indices)
    close(rnn.pad_packed_sequence(rnn.PackedSequence(a.data * 2, a.batch_sizes, a.sorted_indices)), packed.pad_packed_sequence(again))
    close(rnn.unpack_sequence(a), packed.unpack_sequence(b))
    close(rnn.unpad_sequence(rnn.pad_sequence(parts), torch.tensor([2, 4, 1])), packed.unpad_sequence(packed.pad_sequence(mine), [2, 4, 1]))
    with pytest.raises(ValueError, match="enforce_sorted"):
        packed.pack_sequence(mine)
    with pytest.raises(ValueError, match="total_length"):
        jax.jit(lambda v, n: packed.pad_packed_sequence(packed.pack_padded_sequence(v, n))[0])(jnp.ones((4, 2, 3)), jnp.array([4, 2]))


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name):
    for options in ({}, dict(bias=False)):
        theirs, ours = getattr(nn, name)(3, 5, **options), getattr(recurrent, name)(3, 5, **options, rngs=R)
        compare(theirs, ours, x(2, 3), train=False)
        h = x(2, 5, seed=4)
        compare(theirs, ours, x(2, 3), (h, h * 2) if name == "LSTMCell" else h, train=False, grad=False)
        compare(theirs, ours, x(3), train=False, grad=False)
    if name == "RNNCell":
        compare(nn.RNNCell(3, 5, nonlinearity="relu"), recurrent.RNNCell(3, 5, nonlinearity="relu", rngs=R), x(2, 3), train=False)


BOOL = torch.tensor([[False, False, False, True, True], [False, True, False, False, False]])
CAUSAL = torch.triu(torch.ones(4, 5), 2).bool()


@pytest.mark.parametrize("options", [
    {}, dict(bias=False, batch_first=True), dict(add_bias_kv=True), dict(add_zero_attn=True, add_bias_kv=True), dict(kdim=3, vdim=7), dict(kdim=3, batch_first=True),
], ids=str)
def test_multihead_attention(options):
    theirs, ours = nn.MultiheadAttention(6, 2, **options), attention.MultiheadAttention(6, 2, **options, rngs=R)
    q, k, v = x(4, 2, 6), x(5, 2, options.get("kdim", 6), seed=1), x(5, 2, options.get("vdim", 6), seed=2)
    if options.get("batch_first"):
        q, k, v = (t.transpose(0, 1).contiguous() for t in (q, k, v))
    compare(theirs, ours, q, k, v, train=False)
    heads = torch.randn(4, 4, 5)
    for kwargs in (
        dict(key_padding_mask=BOOL), dict(attn_mask=CAUSAL, key_padding_mask=BOOL), dict(attn_mask=x(4, 5)), dict(attn_mask=heads, average_attn_weights=False),
        dict(attn_mask=heads > 1, need_weights=False), dict(key_padding_mask=BOOL.float()), dict(need_weights=False),
    ):
        compare(theirs, ours, q, k, v, train=False, grad=False, jit=False, **kwargs)
    if not options.get("batch_first"):
        compare(theirs, ours, q[:, 0], k[:, 0], v[:, 0], train=False, grad=False, key_padding_mask=BOOL[0], attn_mask=CAUSAL)


def test_attention_dropout():
    layer = attention.MultiheadAttention(6, 2, dropout=0.5, rngs=nnx.Rngs(0))
    a = jnp.ones((4, 2, 6))
    step = nnx.jit(lambda m, v: m(v, v, v)[1])
    assert not jnp.array_equal(step(layer, a), step(layer, a))
    layer.eval()
    assert jnp.allclose(layer(a, a, a)[1], 0.25)


LAYERS = [{}, dict(norm_first=True, batch_first=True), dict(activation="gelu", bias=False), dict(layer_norm_eps=0.1)]


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_encoder(options):
    theirs, ours = (m.TransformerEncoderLayer(6, 2, 8, 0.0, **options, **r) for m, r in ((nn, {}), (transformer, dict(rngs=R))))
    compare(theirs, ours, x(2, 5, 6), train=False)
    mask = torch.triu(torch.ones(5, 5), 1).bool() if options.get("batch_first") else torch.zeros(2, 2)
    compare(theirs, ours, x(2, 5, 6), train=False, grad=False, src_mask=mask)
    stack = nn.TransformerEncoder(theirs, 2, norm=nn.LayerNorm(6)), transformer.TransformerEncoder(ours, 2, nnx.LayerNorm(6, epsilon=1e-5, rngs=R))
    compare(*stack, x(2, 5, 6), train=False, grad=False, mask=mask)


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_decoder(options):
    theirs, ours = (m.TransformerDecoderLayer(6, 2, 8, 0.0, **options, **r) for m, r in ((nn, {}), (transformer, dict(rngs=R))))
    memory = x(2, 3, 6, seed=5) if options.get("batch_first") else x(3, 5, 6, seed=5)
    compare(theirs, ours, x(2, 5, 6), memory, train=False)
    stack = nn.TransformerDecoder(theirs, 2), transformer.TransformerDecoder(ours, 2)
    pad = torch.tensor([[False, False, True]] * (2 if options.get("batch_first") else 5))
    compare(*stack, x(2, 5, 6), memory, train=False, grad=False, memory_key_padding_mask=pad)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformer():
    theirs, ours = (m.Transformer(4, 2, 1, 2, 6, 0.0, batch_first=True, **r) for m, r in ((nn, {}), (transformer, dict(rngs=R))))
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    close(mask, ours.generate_square_subsequent_mask(3))
    compare(theirs, ours, x(2, 5, 4), x(2, 3, 4, seed=1), train=False, tgt_mask=mask)
    ours = transformer.Transformer(4, 2, 1, 1, 6, rngs=nnx.Rngs(0))
    streams = [s.key[...] for _, s in nnx.iter_graph(ours) if isinstance(s, nnx.RngStream)]
    assert len({str(k) for k in streams}) == len(streams)  # no two layers drop out alike


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("pad", [[[0, 0, 0, 1], [0, 0, 1, 1]], [[0, 1, 0, 1], [0, 0, 1, 1]]])
@pytest.mark.parametrize("norm", [False, True])
def test_encoder_zeroes_padding_in_evaluation(pad, norm):
    layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
    theirs = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(6) if norm else None)
    ours = transformer.TransformerEncoder(
        transformer.TransformerEncoderLayer(6, 2, 8, batch_first=True, rngs=R), 2, nnx.LayerNorm(6, epsilon=1e-5, rngs=R) if norm else None,
    )
    sharpen(theirs)
    weights_into(ours, theirs)
    theirs.eval(), ours.eval()
    pad = torch.tensor(pad).bool()
    with torch.no_grad():
        want = theirs(x(2, 4, 6), src_key_padding_mask=pad)
    close(want, ours(arrays(x(2, 4, 6)), src_key_padding_mask=arrays(pad)))


IDS = torch.tensor([[1, 0, 4], [4, 2, 1]])


@pytest.mark.parametrize("options", [{}, dict(padding_idx=1), dict(padding_idx=-1), dict(max_norm=1.0), dict(max_norm=0.8, norm_type=1.0), dict(scale_grad_by_freq=True)], ids=str)
def test_embedding(options):
    layer = embedding.Embedding(5, 3, **options, rngs=R)
    assert isinstance(layer, nnx.Embed)
    compare(nn.Embedding(5, 3, **options), layer, IDS, grad="max_norm" not in options)
    if "padding_idx" in options:
        assert not embedding.Embedding(5, 3, **options, rngs=R).embedding[...][options["padding_idx"]].any()


def test_embedding_from_pretrained():
    table = x(5, 3)
    frozen, free = embedding.Embedding.from_pretrained(arrays(table)), embedding.Embedding.from_pretrained(arrays(table), freeze=False, padding_idx=2)
    close(table[IDS], frozen(arrays(IDS)))
    close(table[IDS], free(arrays(IDS)))
    assert not jax.tree.leaves(nnx.state(frozen, nnx.Param)) and len(jax.tree.leaves(nnx.state(free, nnx.Param))) == 1
    compare(nn.Embedding.from_pretrained(table), frozen, IDS, train=False, grad=False)
    bag = embedding.EmbeddingBag.from_pretrained(arrays(table), mode="max")
    close(nn.EmbeddingBag.from_pretrained(table, mode="max")(IDS), bag(arrays(IDS)))
    assert not jax.tree.leaves(nnx.state(bag, nnx.Param))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, dict(padding_idx=1), dict(max_norm=0.8)], ids=str)
def test_embedding_bag(mode, options):
    theirs, ours = nn.EmbeddingBag(5, 3, mode=mode, **options), embedding.EmbeddingBag(5, 3, mode=mode, **options, rngs=R)
    compare(theirs, ours, IDS, grad=not options)
    compare(theirs, ours, IDS.flatten(), torch.tensor([0, 2, 2]), grad=False)
    if mode == "sum":
        compare(theirs, ours, IDS.flatten(), torch.tensor([0, 2, 2]), torch.linspace(-1, 1, 6), grad=False)
