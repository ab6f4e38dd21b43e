"""What is known to differ, of `mappings/known.toml`. Inputs for which the converted call raises and PyTorch's does not: rows name what concerns them,
each with a call that shows it.

```toml
[[known]]
name = "axis-of-a-number"                 # a row: known = { axis-of-a-number = "torch.sum(x, 0)" }
what = "an axis of a tensor without axes"
happens = "JAX raises ..."
instead = "reshape it first: `x.reshape(1)`"
inputs = { x = "f32[]" }                  # of the calls of all rows

[[corner]]                                # the values differ, or are what PyTorch's own kernel left there
what = "which of equal elements comes first"
edges = ["equal", "zeros"]                # of tests/test_edges.py, where nothing is asked of these rows
rows = ["torch.topk"]
```
"""
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from migrate.tables import FOLDER, TableError


@dataclass(frozen=True)
class Known:
    """A difference that raises: what is given, what happens, what to write instead; `inputs` of the calls that show it; `gradient`: only it raises."""

    name: str
    what: str
    happens: str
    instead: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    gradient: bool = False


@dataclass(frozen=True)
class Corner:
    """Values that are not PyTorch's, or that PyTorch leaves open: at which edges, in which rows."""

    what: str
    edges: list[str]
    rows: list[str]


@cache
def _file() -> Mapping[str, Any]:
    return tomllib.loads((FOLDER / "known.toml").read_text(encoding="utf-8"))


@cache
def known() -> Mapping[str, Known]:
    """All that raises, by name."""
    return {k.name: k for k in (Known(**raw) for raw in _file()["known"])}


@cache
def corners() -> Mapping[str, list[Corner]]:
    """What differs in value, by row."""
    found: dict[str, list[Corner]] = {}
    for corner in (Corner(**raw) for raw in _file()["corner"]):
        for name in corner.rows:
            found.setdefault(name, []).append(corner)
    return found


def difference(name: str, where: str) -> Known:
    """The one that a row names; raises TableError where there is none."""
    if name not in known():
        raise TableError(f"{where}: known: {name} is not in mappings/known.toml")
    return known()[name]
