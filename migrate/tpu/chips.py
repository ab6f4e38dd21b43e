"""The TPU generations: what one device of each has, and how a topology is written."""

import math
import re
from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True)
class Chip:
    """One device of a generation, as JAX counts devices. `hbm` is what the compiler gives a program of it; the peaks are Google's."""

    name: str
    topology: str  # the smallest that the compiler takes
    hbm: float  # bytes
    flops: float  # bfloat16 operations a second
    bandwidth: float  # bytes of HBM a second
    config: str = ""  # the compiler's chip configuration, where the default one is not what JAX uses


CHIPS = {
    c.name: c
    for c in (
        Chip("v4", "v4:2x2x1", 30.75 * GIB, 275e12, 1228e9, "megacore"),  # two cores that work as one device
        Chip("v5e", "v5e:2x2", 15.75 * GIB, 197e12, 819e9),
        Chip("v5p", "v5p:2x2x1", 95.74 * GIB, 459e12, 2765e9),
        Chip("v6e", "v6e:2x2", 31.25 * GIB, 918e12, 1640e9),
        Chip("tpu7x", "tpu7x:2x2x1", 94.75 * GIB, 1153.5e12, 3690e9),  # a chip is two devices
    )
}
MOST = 256  # chips; larger topologies compile too, but nobody has looked at what they say


class TopologyError(ValueError):
    """A topology or mesh that there is not."""


@dataclass(frozen=True)
class Topology:
    """So many chips of a generation."""

    chip: Chip
    name: str
    chips: int


def parse(text: str) -> Topology:
    """Reads `v5e:2x2`, or the name of a generation for its smallest topology."""
    generation, _, shape = text.strip().partition(":")
    if generation not in CHIPS:
        raise TopologyError(f"`{text}`: no TPU generation `{generation}`; there are {', '.join(CHIPS)}")
    chip = CHIPS[generation]
    shape = shape or chip.topology.partition(":")[2]
    rank = chip.topology.count("x", chip.topology.index(":")) + 1
    if not re.fullmatch(r"\d+(x\d+)*", shape) or shape.count("x") + 1 != rank:
        raise TopologyError(f"`{text}`: a topology of {generation} reads {chip.topology}")
    chips = math.prod(int(n) for n in shape.split("x"))
    if chips > MOST:
        raise TopologyError(f"`{text}`: {chips} chips; at most {MOST}")
    return Topology(chip, f"{generation}:{shape}", chips)


def seconds(chip: Chip, flops: float, size: float) -> float:
    """The least time that so many operations and bytes take: whichever of the two is the bottleneck."""
    return max(flops / chip.flops, size / chip.bandwidth)
