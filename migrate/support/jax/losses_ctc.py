"""Connectionist temporal classification."""
import jax
import jax.numpy as jnp
import numpy as np

from migrate.support.jax.losses import reduce_loss


def ctc_alphas(log_probs, labels, skip, input_lengths):
    """Log-probabilities (N, 2 * S + 1) of all beginnings of the labels, blanks between them, after each sample's last step."""
    start = jnp.where(jnp.arange(labels.shape[1]) < 2, jnp.take_along_axis(log_probs[0], labels, axis=1), -jnp.inf)

    def step(alpha, now):
        at, t = now
        shifted = [jnp.pad(alpha, ((0, 0), (n, 0)), constant_values=-jnp.inf)[:, : alpha.shape[1]] for n in (1, 2)]
        paths = jnp.stack([alpha, shifted[0], jnp.where(skip, shifted[1], -jnp.inf)])
        # an impossible beginning stays impossible, without a nan in its derivative
        possible = jnp.any(paths > -jnp.inf, axis=0)
        total = jnp.where(possible, jax.nn.logsumexp(jnp.where(possible, paths, 0), axis=0), -jnp.inf)
        grown = total + jnp.take_along_axis(at, labels, axis=1)
        return jnp.where((t < input_lengths)[:, None], grown, alpha), None

    return jax.lax.scan(step, start, (log_probs[1:], jnp.arange(1, log_probs.shape[0])))[0]


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Connectionist temporal classification of (T, N, C) or (T, C); targets (N, S), or all in one row."""
    batched = log_probs.ndim == 3
    log_probs = log_probs if batched else log_probs[:, None]
    input_lengths, target_lengths = (jnp.reshape(jnp.asarray(v), -1) for v in (input_lengths, target_lengths))
    if jnp.ndim(targets) == 1 and batched:  # one after the other
        first = jnp.cumsum(target_lengths) - target_lengths
        targets = jnp.pad(targets, (0, targets.size))[first[:, None] + np.arange(targets.size)]
    targets = jnp.atleast_2d(targets)
    labels = jnp.full((targets.shape[0], 2 * targets.shape[1] + 1), blank).at[:, 1::2].set(targets)
    skip = (labels != blank) & (labels != jnp.roll(labels, 2, axis=1))
    alphas = ctc_alphas(log_probs, labels, skip, input_lengths)
    ends = jnp.stack([2 * target_lengths, jnp.maximum(2 * target_lengths - 1, 0)], axis=1)
    last = jnp.take_along_axis(alphas, ends, axis=1)
    last = jnp.where((target_lengths == 0)[:, None] & (np.arange(2) == 1), -jnp.inf, last)
    possible = jnp.any(last > -jnp.inf, axis=1)
    loss = -jax.nn.logsumexp(jnp.where(possible[:, None], last, 0), axis=1)
    # PyTorch's derivative is the one for normalised log_probs, which adds the probabilities
    used = jnp.arange(log_probs.shape[0])[:, None] < input_lengths
    mass = (jnp.exp(log_probs).sum(-1) * used).sum(0)
    loss = loss + mass - jax.lax.stop_gradient(mass)
    loss = jnp.where(possible, loss, 0.0 if zero_infinity else jnp.inf)
    if reduction == "mean":
        loss = loss / jnp.maximum(target_lengths, 1)
    return reduce_loss(loss if batched else loss[0], reduction)
