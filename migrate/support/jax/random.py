"""Random draws; each takes a key."""
import jax
import jax.numpy as jnp


def normal_like(key, input, dtype=None):
    """Standard normal numbers in the shape of input."""
    return jax.random.normal(key, input.shape, dtype or input.dtype)


def uniform_like(key, input, low=0.0, high=1.0, dtype=None):
    """Uniform numbers from [low, high) in the shape of input."""
    return jax.random.uniform(key, input.shape, dtype or input.dtype, low, high)


def draw_like(draw, key, input):
    """`draw(key, shape, dtype)` in the shape of input."""
    return draw(key, input.shape, input.dtype)


def randint_like(key, input, low, high):
    """Whole numbers from [low, high) in the shape and dtype of input."""
    return jax.random.randint(key, input.shape, low, high).astype(input.dtype)


def bernoulli_like(key, p, input):
    """1 with probability p, else 0, in the shape and dtype of input."""
    return jax.random.bernoulli(key, p, input.shape).astype(input.dtype)


def geometric_like(key, p, input):
    """Trials up to the first success, in the shape and dtype of input."""
    return jax.random.geometric(key, p, input.shape).astype(input.dtype)


def normal_around(key, mean, std):
    """Normal numbers with each a mean and a standard deviation of its own."""
    mean, std = jnp.broadcast_arrays(mean, std)
    return mean + std * jax.random.normal(key, mean.shape, mean.dtype)


def bernoulli(key, input):
    """1 with probability input, else 0, in input's dtype."""
    return jax.random.bernoulli(key, input).astype(input.dtype)


def multinomial(key, input, num_samples, replacement=False):
    """Indices drawn with probability proportional to input: (..., categories) -> (..., num_samples)."""
    logits = jnp.log(input)[..., None, :]
    if replacement:
        return jax.random.categorical(key, logits, shape=(*input.shape[:-1], num_samples))
    noise = jax.random.gumbel(key, input.shape)
    return jax.lax.top_k(logits[..., 0, :] + noise, num_samples)[1]
