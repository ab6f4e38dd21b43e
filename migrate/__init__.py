"""Rewrites PyTorch modules into Flax NNX or Keras on JAX, carries the weights over and checks that the numbers agree."""
from typing import TYPE_CHECKING, Any

from migrate.diagnostics import Diagnostic
from migrate.pipeline import Conversion, convert_source

if TYPE_CHECKING:
    from migrate.check.run import check
    from migrate.project import Project, convert_path
    from migrate.weights.load import Loaded, load_state_dict

__all__ = ["Conversion", "Diagnostic", "Loaded", "Project", "check", "convert_path", "convert_source", "load_state_dict"]
_LAZY = {
    "convert_path": "migrate.project", "Project": "migrate.project", "load_state_dict": "migrate.weights.load", "Loaded": "migrate.weights.load",
    "check": "migrate.check.run",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'migrate' has no attribute {name!r}")
