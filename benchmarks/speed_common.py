"""What the entries of the benchmark of the support code have in common: the register, and inputs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

Entry = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]
ENTRIES: dict[str, Callable[[], Entry]] = {}
RNGS = nnx.Rngs(0)


def floats(*shape: int, seed: int = 0) -> jax.Array:
    """Normal numbers."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def whole(high: int, *shape: int, seed: int = 0) -> jax.Array:
    """Whole numbers below `high`."""
    return jnp.asarray(np.random.default_rng(seed).integers(0, high, shape))


def entry(name: str) -> Callable[[Callable[[], Entry]], Callable[[], Entry]]:
    """Registers what a function returns: ours, theirs, the arguments of both."""

    def register(make: Callable[[], Entry]) -> Callable[[], Entry]:
        ENTRIES[name] = make
        return make

    return register


def simple(name: str, ours: Callable[..., Any], theirs: Callable[..., Any], *make: Callable[[], Any]) -> None:
    """Registers a pair of functions of the same arguments."""
    ENTRIES[name] = lambda: (ours, theirs, tuple(m() for m in make))


def image() -> jax.Array:
    """(N, C, H, W)."""
    return floats(8, 32, 56, 56)


def last(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of channels-last images as one of channels-first ones."""
    return lambda x, *rest: jnp.moveaxis(f(jnp.moveaxis(x, 1, -1), *rest), -1, 1)


def layer_pair(ours: nnx.Module, theirs: nnx.Module, *args: Any, arrange: Callable[[Any], Any] = lambda f: f) -> Entry:
    """Two layers as functions of their inputs."""
    ours.eval()
    theirs.eval()
    (graph, state), (other_graph, other_state) = nnx.split(ours), nnx.split(theirs)

    def run_ours(mine: Any, other: Any, *a: Any) -> Any:
        return nnx.merge(graph, mine)(*a)

    def run_theirs(mine: Any, other: Any, *a: Any) -> Any:
        return arrange(nnx.merge(other_graph, other))(*a)

    return run_ours, run_theirs, (state, other_state, *args)
