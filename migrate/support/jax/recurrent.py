"""One step of PyTorch's recurrent cells, and their run over time. `gates` is the input's part, x W_ih' + b_ih."""
import jax
import jax.numpy as jnp

from migrate.support.jax.attention import linear


def rnn_step(gates, state, weight_hh, bias_hh=None, nonlinearity="tanh"):
    """(B, H) gates and state -> the new state."""
    activation = jax.nn.relu if nonlinearity == "relu" else jnp.tanh
    return activation(gates + linear(state, weight_hh, bias_hh))


def lstm_step(gates, state, weight_hh, bias_hh=None, weight_hr=None):
    """(B, 4 H) gates and (h, c) -> the new (h, c); `weight_hr` projects h."""
    hidden, cell = state
    i, f, g, o = jnp.split(gates + linear(hidden, weight_hh, bias_hh), 4, axis=-1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
    return (hidden if weight_hr is None else linear(hidden, weight_hr)), cell


def gru_step(gates, state, weight_hh, bias_hh=None):
    """(B, 3 H) gates and state -> the new state; the hidden bias of n is inside of the reset, as in cuDNN."""
    r, z, n = jnp.split(gates, 3, axis=-1)
    hr, hz, hn = jnp.split(linear(state, weight_hh, bias_hh), 3, axis=-1)
    z = jax.nn.sigmoid(z + hz)
    n = jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn)
    return (1 - z) * n + z * state


def scan_cell(step, inputs, state, mask=None, reverse=False):
    """Runs `step(input, state) -> state` over axis 0 of the inputs (T, B, *). Where `mask` (T, B) is false the state stays.

    Gives the outputs (T, B, H), zero where masked, and the last state. A state of several arrays puts out the first.
    """
    def body(state, given):
        x, kept = given
        new = step(x, state)
        if kept is not None:
            new = jax.tree.map(lambda a, b: jnp.where(kept[:, None], a, b), new, state)
        out = new[0] if isinstance(new, tuple) else new
        return new, out if kept is None else jnp.where(kept[:, None], out, 0)

    state, outputs = jax.lax.scan(body, state, (inputs, mask), reverse=reverse)
    return outputs, state
