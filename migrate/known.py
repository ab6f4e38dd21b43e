"""Inputs for which the converted call raises and PyTorch's does not: `mappings/known.toml`. Rows name what concerns them, each with a call that shows it.

```toml
[[known]]
name = "axis-of-a-number"                 # a row: known = { axis-of-a-number = "torch.sum(x, 0)" }
what = "an axis of a tensor without axes"
happens = "JAX raises ..."
instead = "reshape it first: `x.reshape(1)`"
inputs = { x = "f32[]" }                  # of the calls of all rows
```
"""
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

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


@cache
def known() -> Mapping[str, Known]:
    """All of them, by name."""
    text = (FOLDER / "known.toml").read_text(encoding="utf-8")
    found = [Known(**raw) for raw in tomllib.loads(text)["known"]]
    return {k.name: k for k in found}


def difference(name: str, where: str) -> Known:
    """The one that a row names; raises TableError where there is none."""
    if name not in known():
        raise TableError(f"{where}: known: {name} is not in mappings/known.toml")
    return known()[name]
