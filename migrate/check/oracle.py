"""The oracle: a folder with `oracle.json` and safetensors files that holds all that the JAX side needs to know of the original. No
pickle, no torch.

`oracle.json`, version 2:

- `model`, `source`, `torch`: what was built, of which file, by which release; `pair`: the expression gives (model, inputs);
  `function`: it gives no module.
- `state`: name -> key, dtype, shape, parameter. `modules`: name -> class, file, line, leaf.
- `runs`: name, `inputs` (encoded args and kwargs), `outputs`, `draws`; the first also `events`: `at` enter or exit, `module`,
  `call`, `leaves`, and at the
  first entry `arguments`.
- `probes`: submodules on their own, on scaled inputs: `module`, `scale`, `outputs`; `override` names the state that goes with each scale.
- `gradients`: `parameters`, `inputs` of the sum of the outputs times fixed numbers. `train`: `outputs`, `state`, `draws` of one
  pass in train mode.
- `steps`: `runs`, for each optimiser its `options`, the number of `steps`, `losses`, and `state` and `draws` afterwards.
- `notes`, `unseen` (parameters without effect), `files`: key -> file.

A leaf is `path`, `key` (float64 rounded to float32), `dtype` and `shape` of the original's, `own` (PyTorch's own error in
float32), `undecided` (mask).
"""

import json
from pathlib import Path
from typing import Any

VERSION = 2


class OracleError(ValueError):
    """A folder that is no oracle, or one of another version."""


def write(folder: Path, content: dict[str, Any]) -> None:
    """Writes the JSON; the arrays are there already."""
    (folder / "oracle.json").write_text(json.dumps(content), encoding="utf-8")


def read(folder: Path) -> dict[str, Any]:
    """Reads the JSON. Raises OracleError."""
    try:
        content = json.loads((folder / "oracle.json").read_text(encoding="utf-8"))
    except OSError as e:
        raise OracleError(f"{folder}: no oracle here ({e.strerror})") from None
    except ValueError:
        raise OracleError(f"{folder}: oracle.json is damaged") from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise OracleError(f"{folder}: not an oracle of version {VERSION}; make it again with `migrate oracle`")
    return content


def cotangent(index: int, shape: tuple[int, ...]) -> Any:
    """What output leaf `index` is multiplied with before all is summed up to the number whose gradient is taken."""
    import numpy as np

    return np.asarray(np.random.RandomState([11, index]).standard_normal(shape), dtype=np.float32)
