"""Spreads a model over a mesh of chips: inputs by their batch, parameters by their largest dimension."""

import math
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from migrate.tpu.chips import TopologyError
from migrate.tpu.meshes import BATCH, WEIGHTS

SMALL = 1 << 14  # elements; spreading less costs more than it saves


def make_mesh(devices: Any, axes: dict[str, int]) -> Mesh:
    """A mesh of the first devices."""
    wanted = math.prod(axes.values())
    if wanted > len(devices):
        raise TopologyError(f"a mesh of {wanted} devices, but the topology has {len(devices)}; name a larger one with --topology")
    return Mesh(np.asarray(devices[:wanted]).reshape(tuple(axes.values())), tuple(axes))


def of_input(mesh: Mesh, shape: tuple[int, ...]) -> NamedSharding:
    """The batch over the axes for it, where its size allows."""
    names = tuple(a for a in BATCH if a in mesh.shape)
    ways = math.prod(mesh.shape[a] for a in names)
    return NamedSharding(mesh, PartitionSpec(names) if names and shape and shape[0] % ways == 0 else PartitionSpec())


def of_weight(mesh: Mesh, shape: tuple[int, ...]) -> NamedSharding:
    """Each axis for weights takes the largest dimension that it divides and that no other axis took, the last of equal ones."""
    spec: list[str | None] = [None] * len(shape)
    if math.prod(shape) >= SMALL:
        for axis in (a for a in WEIGHTS if a in mesh.shape):
            free = [d for d in range(len(shape)) if spec[d] is None and shape[d] % mesh.shape[axis] == 0]
            if free:
                spec[max(free, key=lambda d: (shape[d], d))] = axis
    return NamedSharding(mesh, PartitionSpec(*spec))


def place(tree: Any, rule: Any) -> Any:
    """The shapes of `tree` with the sharding that `rule` gives for each."""

    def one(leaf: Any) -> Any:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=rule(tuple(leaf.shape)))

    return jax.tree.map(one, tree)
