"""Entries of the benchmark: layers, beside the framework's own."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras
from flax import nnx
from speed_common import ENTRIES, RNGS, Entry, floats, image, layer_pair, whole

import migrate.support.flax.conv as conv
import migrate.support.flax.embedding as embedding
import migrate.support.flax.instancenorm as instancenorm
import migrate.support.flax.linear as linear
import migrate.support.flax.norms as norms
import migrate.support.flax.recurrent as recurrent
import migrate.support.flax.transformer as transformer
import migrate.support.keras.attention as keras_attention
import migrate.support.keras.conv as keras_conv
import migrate.support.keras.linear as keras_linear
import migrate.support.keras.norms as keras_norms
import migrate.support.keras.recurrent as keras_recurrent


def flax(name: str, ours: Callable[[], nnx.Module], theirs: Callable[[], nnx.Module], make: Callable[[], Any], arrange: Callable[[Any], Any] = lambda f: f) -> None:
    """Registers two layers of Flax."""
    ENTRIES[f"flax {name}"] = lambda: layer_pair(ours(), theirs(), make(), arrange=arrange)


def channels_last(f: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
    """A layer of channels-last images as one of channels-first ones."""
    return lambda x: jnp.moveaxis(f(jnp.moveaxis(x, 1, -1)), -1, 1)


def frozen(layer: Any, *args: Any) -> Callable[..., Any]:
    """A layer of Keras as a function of its inputs, its variables being constants."""
    layer(*args)
    return lambda *a: layer(*a)


def of_keras(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], make: Callable[[], Any], arrange: Callable[[Any], Any] = lambda f: f) -> None:
    """Registers two layers of Keras."""

    def build() -> Entry:
        x = make()
        other = theirs()
        arranged = arrange(other)
        arranged(x)
        return frozen(ours(), x), lambda a: arranged(a), (x,)

    ENTRIES[f"keras {name}"] = build


WORDS = lambda: whole(1000, 16, 64)
TOKENS = lambda: floats(8, 100, 64)
STEPS = lambda: floats(50, 16, 64)
CELLS = lambda: floats(256, 64)

flax("Linear", lambda: linear.Linear(64, 128, rngs=RNGS), lambda: nnx.Linear(64, 128, rngs=RNGS), TOKENS)
flax("Embedding", lambda: embedding.Embedding(1000, 64, rngs=RNGS), lambda: nnx.Embed(1000, 64, rngs=RNGS), WORDS)
flax("LayerNorm", lambda: norms.LayerNorm(64, rngs=RNGS), lambda: nnx.LayerNorm(64, rngs=RNGS), TOKENS)
flax("RMSNorm", lambda: norms.RMSNorm(64, rngs=RNGS), lambda: nnx.RMSNorm(64, rngs=RNGS), TOKENS)
flax("GroupNorm", lambda: norms.GroupNorm(4, 32, rngs=RNGS), lambda: nnx.GroupNorm(32, num_groups=4, rngs=RNGS), image, channels_last)
flax("InstanceNorm2d", lambda: instancenorm.InstanceNorm2d(32, affine=True, rngs=RNGS), lambda: nnx.InstanceNorm(32, rngs=RNGS), image, channels_last)
flax("Conv1d", lambda: conv.Conv1d(32, 32, 3, padding=1, rngs=RNGS), lambda: nnx.Conv(32, 32, (3,), padding=1, rngs=RNGS), lambda: floats(8, 32, 500), channels_last)
flax("Conv3d", lambda: conv.Conv3d(8, 8, 3, padding=1, rngs=RNGS), lambda: nnx.Conv(8, 8, (3, 3, 3), padding=1, rngs=RNGS), lambda: floats(2, 8, 16, 16, 16),
    channels_last)
flax(
    "ConvTranspose2d", lambda: conv.ConvTranspose2d(32, 16, 4, 2, 1, rngs=RNGS), lambda: nnx.ConvTranspose(32, 16, (4, 4), strides=(2, 2), padding="SAME", rngs=RNGS),
    lambda: floats(4, 32, 28, 28), channels_last,
)


class SimpleSteps(nnx.Module):
    """Flax's simple cell over time."""

    def __init__(self) -> None:
        self.rnn = nnx.RNN(nnx.SimpleCell(64, 64, rngs=RNGS), time_major=True)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.rnn(x, initial_carry=jnp.zeros((16, 64)))


class OneStep(nnx.Module):
    """A cell of Flax, from zeros."""

    def __init__(self, cell: nnx.Module, pair: bool = False) -> None:
        self.cell, self.pair = cell, pair

    def __call__(self, x: jax.Array) -> jax.Array:
        zeros = jnp.zeros((256, 64))
        return self.cell((zeros, zeros) if self.pair else zeros, x)[0]


flax("RNN", lambda: recurrent.RNN(64, 64, rngs=RNGS), SimpleSteps, STEPS)
flax("LSTMCell", lambda: recurrent.LSTMCell(64, 64, rngs=RNGS), lambda: OneStep(nnx.OptimizedLSTMCell(64, 64, rngs=RNGS), True), CELLS)
flax("GRUCell", lambda: recurrent.GRUCell(64, 64, rngs=RNGS), lambda: OneStep(nnx.GRUCell(64, 64, rngs=RNGS)), CELLS)
flax("RNNCell", lambda: recurrent.RNNCell(64, 64, rngs=RNGS), lambda: OneStep(nnx.SimpleCell(64, 64, rngs=RNGS)), CELLS)


class Decoder(nnx.Module):
    """A decoder layer of Flax's parts."""

    def __init__(self) -> None:
        self.own, self.cross = (nnx.MultiHeadAttention(4, 64, decode=False, rngs=RNGS) for _ in range(2))
        self.norms = nnx.List([nnx.LayerNorm(64, rngs=RNGS) for _ in range(3)])
        self.up, self.down = nnx.Linear(64, 256, rngs=RNGS), nnx.Linear(256, 64, rngs=RNGS)

    def __call__(self, x: jax.Array) -> jax.Array:
        one, two, three = self.norms
        y = one(x + self.own(x))
        y = two(y + self.cross(y, x))
        return three(y + self.down(jax.nn.relu(self.up(y))))


class DecoderOfItself(nnx.Module):
    """Ours, on its own input."""

    def __init__(self) -> None:
        self.layer = transformer.TransformerDecoderLayer(64, 4, 256, batch_first=True, rngs=RNGS)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.layer(x, x)


flax("TransformerDecoderLayer", DecoderOfItself, Decoder, TOKENS)

of_keras("Linear", lambda: keras_linear.Linear(64, 128), lambda: keras.layers.Dense(128), TOKENS)
of_keras("Embedding", lambda: keras_linear.Embedding(1000, 64), lambda: keras.layers.Embedding(1000, 64), WORDS)
of_keras("LayerNorm", lambda: keras_norms.LayerNorm(64), lambda: keras.layers.LayerNormalization(), TOKENS)
of_keras("RMSNorm", lambda: keras_norms.RMSNorm(64), lambda: keras.layers.RMSNormalization(), TOKENS)
of_keras("GroupNorm", lambda: keras_norms.GroupNorm(4, 32), lambda: keras.layers.GroupNormalization(4, axis=1), image)
of_keras("InstanceNorm2d", lambda: keras_norms.InstanceNorm2d(32, affine=True), lambda: keras.layers.GroupNormalization(-1, axis=1), image)
of_keras("BatchNorm2d", lambda: keras_norms.BatchNorm2d(32).eval(), lambda: keras.layers.BatchNormalization(axis=1), image)
of_keras("Conv2d", lambda: keras_conv.Conv2d(32, 32, 3, padding=1), lambda: keras.layers.Conv2D(32, 3, padding="same"), image, channels_last)
of_keras("Conv1d", lambda: keras_conv.Conv1d(32, 32, 3, padding=1), lambda: keras.layers.Conv1D(32, 3, padding="same"), lambda: floats(8, 32, 500), channels_last)
of_keras(
    "ConvTranspose2d", lambda: keras_conv.ConvTranspose2d(32, 16, 4, 2, 1), lambda: keras.layers.Conv2DTranspose(16, 4, 2, padding="same"),
    lambda: floats(4, 32, 28, 28), channels_last,
)


def by_time(f: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
    """A layer of (batch, time, ...) as one of (time, batch, ...)."""
    return lambda x: f(x.swapaxes(0, 1)).swapaxes(0, 1)


of_keras("LSTM", lambda: keras_recurrent.LSTM(64, 64), lambda: keras.layers.LSTM(64, return_sequences=True), STEPS, by_time)
of_keras("GRU", lambda: keras_recurrent.GRU(64, 64), lambda: keras.layers.GRU(64, return_sequences=True), STEPS, by_time)
of_keras("RNN", lambda: keras_recurrent.RNN(64, 64), lambda: keras.layers.SimpleRNN(64, return_sequences=True), STEPS, by_time)


def from_zeros(count: int) -> Callable[[Any], Callable[[jax.Array], Any]]:
    """A cell of Keras on states of zeros."""
    return lambda cell: lambda x: cell(x, [jnp.zeros((256, 64))] * count)[0]


of_keras("LSTMCell", lambda: keras_recurrent.LSTMCell(64, 64), lambda: keras.layers.LSTMCell(64), CELLS, from_zeros(2))
of_keras("GRUCell", lambda: keras_recurrent.GRUCell(64, 64), lambda: keras.layers.GRUCell(64), CELLS, from_zeros(1))
of_keras("RNNCell", lambda: keras_recurrent.RNNCell(64, 64), lambda: keras.layers.SimpleRNNCell(64), CELLS, from_zeros(1))


def of_itself(attend: Any) -> Callable[[jax.Array], Any]:
    """Self-attention."""
    return lambda x: attend(x, x)


class Attention(keras.layers.Layer):
    """Ours, on one input."""

    def __init__(self) -> None:
        super().__init__()
        self.attend = keras_attention.MultiheadAttention(64, 4, batch_first=True)

    def call(self, x: Any) -> Any:
        return self.attend(x, x, x, need_weights=False)[0]


of_keras("MultiheadAttention", Attention, lambda: keras.layers.MultiHeadAttention(4, 16, flash_attention=False), TOKENS, of_itself)


class Encoder(keras.layers.Layer):
    """An encoder layer of Keras's parts."""

    def __init__(self) -> None:
        super().__init__()
        self.attend = keras.layers.MultiHeadAttention(4, 16, flash_attention=False)
        self.one, self.two = keras.layers.LayerNormalization(), keras.layers.LayerNormalization()
        self.up, self.down = keras.layers.Dense(256, activation="relu"), keras.layers.Dense(64)

    def call(self, x: Any) -> Any:
        x = self.one(x + self.attend(x, x))
        return self.two(x + self.down(self.up(x)))


of_keras("TransformerEncoderLayer", lambda: keras_attention.TransformerEncoderLayer(64, 4, 256, batch_first=True).eval(), Encoder, TOKENS)
