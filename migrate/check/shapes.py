"""Shapes that a model's own words and layers suggest for its inputs."""

import re
from collections.abc import Iterator
from typing import Any

import torch.nn as nn

from migrate.check.spec import Spec

BATCH, STEPS, SIDES = 2, 12, (32, 64, 224, 48, 28)
# Letters that stand for sizes in comments: (B, C, H, W), [batch, seq_len, dim].
LETTERS = {
    "b": BATCH, "n": BATCH, "bs": BATCH, "batch": BATCH, "batch_size": BATCH, "t": STEPS, "l": STEPS, "s": STEPS, "seq": STEPS,
    "seq_len": STEPS,
    "length": STEPS,
    "h": 32, "w": 32, "height": 32, "width": 32, "d": 16, "z": 16, "depth": 16,
}  # fmt: skip
_SHAPE = r"[\[(]\s*([A-Za-z_]\w*|\d+)\s*(?:,|\s+x\s+|\*)\s*((?:[A-Za-z_]\w*|\d+)(?:\s*(?:,|\s+x\s+|\*)\s*(?:[A-Za-z_]\w*|\d+))*)\s*[\])]"


def from_text(words: str, name: str) -> Iterator[Spec]:
    """Shapes written beside the name of an argument: `x: (B, 3, H, W)`, `# x [batch, seq]`."""
    for line in words.splitlines():
        if not re.search(rf"\b{re.escape(name)}\b", line.lower()):
            continue
        for m in re.finditer(_SHAPE, line):
            parts = [p.strip().lower() for p in re.split(r",|\s+x\s+|\*", f"{m[1]},{m[2]}")]
            if parts[0] in ("b", "n", "bs", "batch", "batch_size", "l", "t", "seq_len", "s"):
                channels = 3 if len(parts) == 4 else 16
                yield Spec("", "float32", tuple(int(p) if p.isdigit() else LETTERS.get(p, channels) for p in parts))


def from_layers(model: Any, most: int = 4) -> Iterator[Spec]:
    """What the first layers that tell take, in the order in which they were made."""
    told = 0
    for m in model.modules():
        found = list(_takes(m))
        yield from found
        told += bool(found)
        if told == most:
            return


def _takes(m: Any) -> Iterator[Spec]:
    if isinstance(m, nn.Conv2d | nn.ConvTranspose2d):
        yield from (Spec("", "float32", (BATCH, m.in_channels, s, s)) for s in SIDES)
    elif isinstance(m, nn.Conv1d | nn.ConvTranspose1d):
        yield from (Spec("", "float32", (BATCH, m.in_channels, s)) for s in (64, 256, 1024))
        if m.in_channels == 1:  # its axis may be added inside
            yield from (Spec("", "float32", (BATCH, s)) for s in (256, 1024))
    elif isinstance(m, nn.Conv3d | nn.ConvTranspose3d):
        yield from (Spec("", "float32", (BATCH, m.in_channels, s, s, s)) for s in (16, 32))
    elif isinstance(m, nn.Linear):
        yield from (Spec("", "float32", s) for s in ((BATCH, m.in_features), (BATCH, STEPS, m.in_features)))
        if (side := round((m.in_features / 3) ** 0.5)) ** 2 * 3 == m.in_features:  # a flattened picture
            yield Spec("", "float32", (BATCH, 3, side, side))
        if (side := round(m.in_features**0.5)) ** 2 == m.in_features and side > 4:
            yield Spec("", "float32", (BATCH, 1, side, side))
    elif isinstance(m, nn.Embedding):
        yield from (Spec("", "int64", s, 0.0, float(m.num_embeddings)) for s in ((BATCH, STEPS), (BATCH,)))
    elif isinstance(m, nn.RNNBase):
        yield Spec("", "float32", (BATCH, STEPS, m.input_size) if m.batch_first else (STEPS, BATCH, m.input_size))
    elif isinstance(m, nn.MultiheadAttention):
        yield Spec("", "float32", (BATCH, STEPS, m.embed_dim) if m.batch_first else (STEPS, BATCH, m.embed_dim))
    elif isinstance(m, nn.LayerNorm):
        yield Spec("", "float32", (BATCH, STEPS, *m.normalized_shape))
    elif isinstance(m, nn.BatchNorm2d | nn.GroupNorm | nn.InstanceNorm2d):
        yield Spec("", "float32", (BATCH, getattr(m, "num_features", None) or m.num_channels, 32, 32))
    elif isinstance(m, nn.BatchNorm1d):
        yield from (Spec("", "float32", s) for s in ((BATCH, m.num_features), (BATCH, m.num_features, STEPS)))
