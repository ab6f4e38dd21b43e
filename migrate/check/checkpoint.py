"""Reads a checkpoint as a state dict of numpy-convertible tensors. Nothing in it is executed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

INSIDE = ("state_dict", "model_state_dict", "model", "module", "net", "params", "weights")


class CheckpointError(ValueError):
    """A checkpoint that can't be read, or one that wants to execute code."""


def read(path: Path, key: str = "") -> tuple[dict[str, Any], str]:
    """The state dict of a `.safetensors` file, a `torch.save` file or a `.index.json` of shards, and where it was inside the file
    ("" at the top).

    `key` names the entry that holds the state dict; without it the usual ones are tried.
    """
    if path.name.endswith(".json"):
        return _shards(path), ""
    content = _safetensors(path) if path.suffix == ".safetensors" else _pickle(path)
    place = ""
    if key:
        for part in key.split("."):
            if not isinstance(content, Mapping) or part not in content:
                raise CheckpointError(
                    f"no entry `{key}` in it"
                    + (f"; there are {', '.join(map(str, content))[:200]}" if isinstance(content, Mapping) else "")
                )
            content = content[part]
        place = key
    elif not _is_state(content):
        for name in INSIDE:
            if isinstance(content, Mapping) and _is_state(content.get(name)):
                content, place = content[name], name
                break
    if not _is_state(content):
        raise CheckpointError(
            "holds no state dict" + (f"; its entries are {', '.join(map(str, content))[:200]}" if isinstance(content, Mapping) else "")
        )
    state = {str(k): v for k, v in content.items() if hasattr(v, "shape")}
    if state and all(k.startswith("module.") for k in state):  # saved from a parallel wrapper
        state = {k.removeprefix("module."): v for k, v in state.items()}
    return state, place


def _is_state(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and any(hasattr(v, "shape") for v in value.values())
        and not any(isinstance(v, Mapping) for v in value.values())
    )


def _safetensors(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError

    try:
        try:
            from safetensors.torch import load_file  # it has bfloat16
        except ImportError:
            from safetensors.numpy import load_file
        return dict(load_file(path))
    except SafetensorError as e:
        raise CheckpointError(f"is no safetensors file: {e}") from None


def _pickle(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise CheckpointError("needs PyTorch to be read; install it, or save the weights as .safetensors") from None
    with path.open("rb") as f:
        head = f.read(4)
    if head[:2] not in (b"PK", b"\x80\x02") and head[:1] != b"\x80":
        raise CheckpointError("is not a file that torch.save wrote")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:
        text = " ".join(str(e).split())
        if "weights_only" in text or "Unsupported" in text:
            wanted = (
                text.partition("GLOBAL ")[2].partition(" ")[0]
                or text.partition("Unsupported global: ")[2].partition(" ")[2].partition(" ")[0]
            )
            raise CheckpointError(
                f"holds more than tensors{f' ({wanted})' if wanted else ''}, and loading it would execute code; "
                "save `model.state_dict()` instead"
            ) from None
        raise CheckpointError(f"can't be read: {text[:200]}") from None


def _shards(path: Path) -> dict[str, Any]:
    try:
        names = sorted(set(json.loads(path.read_text())["weight_map"].values()))
    except (ValueError, KeyError, AttributeError):
        raise CheckpointError("is no index of shards") from None
    state: dict[str, Any] = {}
    for name in names:
        shard = path.parent / name
        if not shard.is_file():
            raise CheckpointError(f"shard {name} is missing")
        state |= read(shard)[0]
    return state
