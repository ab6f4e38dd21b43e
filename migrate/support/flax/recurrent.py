"""Recurrent layers and cells with PyTorch's parameters, run over time by `jax.lax.scan`."""
import jax
import jax.numpy as jnp
from flax import nnx

from migrate.support.flax.linear import uniform_param
from migrate.support.jax.attention import linear
from migrate.support.jax.dropout import dropout
from migrate.support.jax.packed import PackedSequence
from migrate.support.jax.recurrent import gru_step, lstm_step, rnn_step, scan_cell


class RNNBase(nnx.Module):
    """Layers of a cell over (T, B, input_size), (B, T, input_size) with `batch_first`, (T, input_size) or a PackedSequence.

    Gives the outputs of the last layer, both directions side by side, and the last states (num_layers * directions, B, hidden).
    """

    def __init__(
        self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0, *, rngs
    ):
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, dropout, bidirectional, proj_size
        self.deterministic = False
        self.rngs = rngs.fork() if dropout else nnx.data(None)
        out = proj_size or hidden_size
        for layer, suffix in self.runs():
            width = input_size if layer == 0 else out * (1 + bidirectional)
            shapes = {"weight_ih": (self.gates * hidden_size, width), "weight_hh": (self.gates * hidden_size, out)}
            if bias:
                shapes |= {"bias_ih": (self.gates * hidden_size,), "bias_hh": (self.gates * hidden_size,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for name, shape in shapes.items():
                setattr(self, name + suffix, uniform_param(rngs, shape, hidden_size))

    def runs(self):
        """The layers and the suffix of their parameters, each direction on its own."""
        ends = ("", "_reverse") if self.bidirectional else ("",)
        return [(layer, f"_l{layer}{end}") for layer in range(self.num_layers) for end in ends]

    def flatten_parameters(self):
        """Nothing to do."""

    def __call__(self, input, hx=None):
        packed = isinstance(input, PackedSequence)
        x, mask = (input.padded, input.mask) if packed else (input, None)
        batched, order = x.ndim == 3, input.sorted_indices if packed else None
        if not batched:
            x, hx = x[:, None], hx if hx is None else jax.tree.map(lambda h: h[:, None], hx)
        elif self.batch_first and not packed:
            x = jnp.swapaxes(x, 0, 1)
        if hx is None:
            hx = self.zeros(x)
        elif order is not None:
            hx = jax.tree.map(lambda h: h[:, order], hx)
        out, hx = self.run(x, hx, mask)
        if packed:
            out = input.replace(out)
            hx = hx if order is None else jax.tree.map(lambda h: h[:, input.unsorted_indices], hx)
        elif not batched:
            out, hx = out[:, 0], jax.tree.map(lambda h: h[:, 0], hx)
        elif self.batch_first:
            out = jnp.swapaxes(out, 0, 1)
        return out, hx

    def run(self, x, hx, mask):
        """All layers and directions over x (T, B, input_size)."""
        states, outputs = [], []
        for i, (layer, suffix) in enumerate(self.runs()):
            if outputs and suffix == f"_l{layer}":
                x = jnp.concatenate(outputs, -1)
                x = dropout(x, self.dropout, rngs=self.rngs) if self.dropout and not self.deterministic else x
                outputs = []
            w = {n: getattr(self, n + suffix, None) for n in ("weight_ih", "bias_ih", "weight_hh", "bias_hh", "weight_hr")}
            out, state = scan_cell(self.cell(w), x, jax.tree.map(lambda h, i=i: h[i], hx), mask, suffix.endswith("reverse"))
            outputs.append(out)
            states.append(state)
        return jnp.concatenate(outputs, -1), jax.tree.map(lambda *h: jnp.stack(h), *states)

    def cell(self, w):
        """(x, state) -> the new state, with the parameters `w`; the product with x is small enough to be faster within the loop."""
        step = self.step(w)
        return lambda x, state: step(linear(x, w["weight_ih"], w["bias_ih"]), state)

    def zeros(self, x):
        """The first state for x (T, B, *)."""
        return jnp.zeros((len(self.runs()), x.shape[1], self.proj_size or self.hidden_size), x.dtype)


class RNN(RNNBase):
    """The plain recurrent network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    gates = 1

    def __init__(
        self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0, bidirectional=False,
        *, rngs,
    ):
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, rngs=rngs)
        self.nonlinearity = nonlinearity

    def step(self, w):
        """One step with the parameters `w`."""
        return lambda gates, state: rnn_step(gates, state, w["weight_hh"], w["bias_hh"], self.nonlinearity)


class LSTM(RNNBase):
    """Long short-term memory; the state is the pair (h, c). With `proj_size` the hidden state is projected to that size."""

    gates = 4

    def step(self, w):
        """One step with the parameters `w`."""
        return lambda gates, state: lstm_step(gates, state, w["weight_hh"], w["bias_hh"], w["weight_hr"])

    def run(self, x, hx, mask):
        """As that of the base; the state may be a list."""
        return super().run(x, tuple(hx), mask)

    def zeros(self, x):
        """The first state for x (T, B, *)."""
        return super().zeros(x), jnp.zeros((len(self.runs()), x.shape[1], self.hidden_size), x.dtype)


class GRU(RNNBase):
    """The gated recurrent unit, with the hidden bias inside of the reset gate."""

    gates = 3

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, *, rngs):
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, rngs=rngs)

    def step(self, w):
        """One step with the parameters `w`."""
        return lambda gates, state: gru_step(gates, state, w["weight_hh"], w["bias_hh"])


class RNNCellBase(nnx.Module):
    """One step of a recurrent layer: (B, input_size) or (input_size,), and the state of hidden_size, zero by default."""

    def __init__(self, input_size, hidden_size, bias=True, *, rngs):
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_ih = uniform_param(rngs, (self.gates * hidden_size, input_size), hidden_size)
        self.weight_hh = uniform_param(rngs, (self.gates * hidden_size, hidden_size), hidden_size)
        self.bias_ih = uniform_param(rngs, (self.gates * hidden_size,), hidden_size) if bias else nnx.data(None)
        self.bias_hh = uniform_param(rngs, (self.gates * hidden_size,), hidden_size) if bias else nnx.data(None)

    def zeros(self, input):
        """A state of zeros."""
        return jnp.zeros((*input.shape[:-1], self.hidden_size), input.dtype)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    gates = 1

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", *, rngs):
        super().__init__(input_size, hidden_size, bias, rngs=rngs)
        self.nonlinearity = nonlinearity

    def __call__(self, input, hx=None):
        gates = linear(input, self.weight_ih, self.bias_ih)
        return rnn_step(gates, self.zeros(input) if hx is None else hx, self.weight_hh, self.bias_hh, self.nonlinearity)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: gives (h, c)."""

    gates = 4

    def __call__(self, input, hx=None):
        gates = linear(input, self.weight_ih, self.bias_ih)
        return lstm_step(gates, (self.zeros(input),) * 2 if hx is None else hx, self.weight_hh, self.bias_hh)


class GRUCell(RNNCellBase):
    """One step of a GRU, with the hidden bias inside of the reset gate."""

    gates = 3

    def __call__(self, input, hx=None):
        gates = linear(input, self.weight_ih, self.bias_ih)
        return gru_step(gates, self.zeros(input) if hx is None else hx, self.weight_hh, self.bias_hh)
