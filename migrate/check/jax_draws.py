"""Makes `jax.random` give the draws that both sides share."""

import contextlib
import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from migrate.check.draws import Draws

OTHER = (
    "categorical",
    "gumbel",
    "beta",
    "gamma",
    "poisson",
    "laplace",
    "choice",
    "multivariate_normal",
    "cauchy",
    "orthogonal",
    "dirichlet",
    "t",
)


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(s) for s in shape)


class Quick(Draws):
    """Numbers that are soon replaced: a few thousand, over and over."""

    def next(self, kind: str, shape: tuple[int, ...]) -> Any:
        """See Draws."""
        few = super().next(kind, (min(4096, math.prod(shape)),))
        return np.resize(few.astype(np.float32), shape)


@contextlib.contextmanager
def quick_start() -> Iterator[None]:
    """Inside, initial values come from numpy: they are about to be replaced, and compiling each initialiser takes long."""
    import jax._src.nn.initializers as initializers  # where the module is elsewhere, building is slow but right

    with shared(Quick()):
        proxy = SimpleNamespace(**{n: getattr(jax.random, n) for n in dir(jax.random) if not n.startswith("_")})
        with mock.patch.object(initializers, "random", proxy, create=True):
            yield


@contextlib.contextmanager
def shared(draws: Draws) -> Iterator[None]:
    """Inside, the functions of `jax.random` take their numbers from `draws`; keys are accepted and ignored."""
    uniform_real, bits = jax.random.uniform, jax.random.bits

    def uniform(key: Any, shape: Any = (), dtype: Any = float, minval: Any = 0.0, maxval: Any = 1.0, **_: Any) -> Any:
        u = jnp.asarray(draws.next("uniform", _shape(shape)), jnp.result_type(dtype))
        return minval + (maxval - minval) * u

    def normal(key: Any, shape: Any = (), dtype: Any = float, **_: Any) -> Any:
        return jnp.asarray(draws.next("normal", _shape(shape)), jnp.result_type(dtype))

    def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, **_: Any) -> Any:
        return jnp.asarray(draws.next("uniform", _shape(jnp.shape(p) if shape is None else shape)), jnp.float32) < p

    def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = int, **_: Any) -> Any:
        u = draws.next("uniform", _shape(shape))
        return jnp.asarray(jnp.floor(minval + jnp.asarray(u) * (maxval - minval)), jnp.result_type(dtype))

    def permutation(key: Any, x: Any, axis: int = 0, **_: Any) -> Any:
        n = x if isinstance(x, int) else x.shape[axis]
        order = jnp.asarray(np.argsort(draws.next("uniform", (n,)), kind="stable"))
        return order if isinstance(x, int) else jnp.take(x, order, axis)

    def exponential(key: Any, shape: Any = (), dtype: Any = float, **_: Any) -> Any:
        return jnp.asarray(-np.log1p(-draws.next("uniform", _shape(shape))), jnp.result_type(dtype))

    def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = float, **_: Any) -> Any:
        z = draws.next("normal", _shape(jnp.broadcast_shapes(jnp.shape(lower), jnp.shape(upper)) if shape is None else shape))
        draws.log[-1][0] = "other: truncated_normal"
        return jnp.asarray(np.clip(z, lower, upper), jnp.result_type(dtype))

    def other(name: str) -> Any:
        real = getattr(jax.random, name)

        def logged(*args: Any, **kwargs: Any) -> Any:
            draws.next(f"other: {name}", ())
            with mock.patch.multiple(jax.random, uniform=uniform_real, bits=bits):
                return real(*args, **kwargs)

        return logged

    ours: dict[str, Any] = {
        "uniform": uniform,
        "normal": normal,
        "bernoulli": bernoulli,
        "randint": randint,
        "permutation": permutation,
        "exponential": exponential,
    }
    ours |= {"truncated_normal": truncated_normal} | {n: other(n) for n in OTHER if hasattr(jax.random, n)}
    with mock.patch.multiple(jax.random, **ours):
        yield
