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
- `kinks`: `state` and `inputs` that are small whole numbers, `events`, gradients of `parameters` and of
  inputs (`slopes`), `draws`.
- `steps`: `runs`, for each optimiser its `options`, the number of `steps`, `losses`, and `state` and `draws` afterwards.
- `notes`, `unseen` (parameters without effect), `files`: key -> file.

A leaf is `path`, `key` (float64 rounded to float32), `dtype` and `shape` of the original's, `own` (PyTorch's own error in
float32), `undecided` (mask).
"""

import contextlib
import json
import time
from pathlib import Path
from typing import Any

VERSION = 2


class OracleError(ValueError):
    """A folder that is no oracle, or one of another version."""


def write(folder: Path, content: dict[str, Any]) -> None:
    """Writes the JSON; the arrays are there already."""
    made = folder / "oracle.json.new"
    made.write_text(json.dumps(content), encoding="utf-8")
    made.replace(folder / "oracle.json")
    (folder / PART).unlink(missing_ok=True)


PART = "so-far.json"


def publish(folder: Path, content: dict[str, Any]) -> None:
    """What there is of an oracle that is being made, for a reader that follows."""
    made = folder / f"{PART}.new"
    made.write_text(json.dumps(content), encoding="utf-8")
    made.replace(folder / PART)


class Following(dict[str, Any]):
    """An oracle that is being made: a key that is not there yet is waited for, until the oracle is whole. Whoever made it says so if it
    never will be, and ends the process that waits."""

    def __init__(self, folder: Path) -> None:
        super().__init__(files={})
        self.folder = folder
        self.whole = False
        self.waited = 0.0
        self._seen: Any = None

    def __missing__(self, key: str) -> Any:
        start = time.perf_counter()
        while not self.whole and key not in self:
            time.sleep(0.02)
            self._look()
        self.waited += time.perf_counter() - start
        if key not in self:
            raise KeyError(key)
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """The value, once it is there, or the default, once it is known to be missing."""
        try:
            return self[key]
        except KeyError:
            return default

    def _look(self) -> None:
        self.whole = (self.folder / "oracle.json").exists()
        path = self.folder / ("oracle.json" if self.whole else PART)
        with contextlib.suppress(FileNotFoundError):
            state = path.stat()
            if (state.st_ino, state.st_mtime_ns) != self._seen:
                self._seen = (state.st_ino, state.st_mtime_ns)
                found = json.loads(path.read_text(encoding="utf-8"))
                self["files"].update(found.pop("files", {}))
                self.update(found)


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
