"""How a mesh of chips is written."""

import re

from migrate.tpu.chips import TopologyError

BATCH = ("data", "fsdp")  # axes that the batch is spread over
WEIGHTS = ("model", "fsdp")  # axes that parameters are spread over


def read_mesh(text: str) -> dict[str, int]:
    """Reads `data=16,model=16`."""
    axes: dict[str, int] = {}
    for part in text.split(","):
        m = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+)\s*", part)
        if m is None or not int(m[2]) or m[1] in axes:
            raise TopologyError(f"`{text}` is no mesh; write data=16,model=16")
        if m[1] not in (*BATCH, *WEIGHTS):
            raise TopologyError(f"`{text}`: no axis `{m[1]}`; data spreads the batch, model the parameters, fsdp both")
        axes[m[1]] = int(m[2])
    return axes
