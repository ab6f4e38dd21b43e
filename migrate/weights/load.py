"""Loads a PyTorch state dict into a live Flax NNX or Keras model.

The frameworks are imported by the part that needs them: whoever has a model of one has imported it already.
"""
import sys
from collections.abc import Mapping
from typing import Any

from migrate.weights.loaded import Loaded

__all__ = ["Loaded", "load_state_dict"]


def load_state_dict(model: Any, state_dict: Mapping[str, Any], *, keep_dtype: bool = True) -> Loaded:
    """Puts every tensor of `state_dict` where it belongs in `model`, and says what became of each.

    `state_dict` maps PyTorch's names to torch tensors or numpy arrays. The model keeps the dtype of its own leaves,
    unless `keep_dtype` is False: then the checkpoint's is taken. A shape that does not fit raises ValueError.
    """
    if _is_keras(model):
        from migrate.weights import keras as target
    else:
        from migrate.weights import flax as target  # type: ignore[no-redef]
    loaded: Loaded = target.load_state_dict(model, state_dict, keep_dtype=keep_dtype)
    return loaded


def _is_keras(model: Any) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(model, keras.Layer)
