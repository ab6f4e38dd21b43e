"""Dropout layers: active in training, each with a random stream of its own."""
from migrate.support.jax.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from migrate.support.keras.module import Module, Rngs


class Dropout(Module):
    """Zeroes values with probability p and scales the others by 1 / (1 - p)."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        self.p = p
        self.rngs = Rngs()

    def call(self, input):
        return dropout(input, self.p, self.training, rngs=self.rngs)


class Dropout1d(Dropout):
    """Zeroes whole channels of (N, C, L) or (C, L)."""

    def call(self, input):
        return dropout1d(input, self.p, self.training, rngs=self.rngs)


class Dropout2d(Dropout):
    """Zeroes whole channels of (N, C, H, W)."""

    def call(self, input):
        return dropout2d(input, self.p, self.training, rngs=self.rngs)


class Dropout3d(Dropout):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    def call(self, input):
        return dropout3d(input, self.p, self.training, rngs=self.rngs)


class AlphaDropout(Dropout):
    """Dropout for SELU networks, value by value."""

    def call(self, input):
        return alpha_dropout(input, self.p, self.training, rngs=self.rngs)


class FeatureAlphaDropout(Dropout):
    """Dropout for SELU networks, whole channels of (N, C, *)."""

    def call(self, input):
        return feature_alpha_dropout(input, self.p, self.training, rngs=self.rngs)
