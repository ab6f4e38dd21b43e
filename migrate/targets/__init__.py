"""The frameworks that code is converted to, by name."""
from migrate.targets.keras import KERAS
from migrate.targets.nnx import FLAX

TARGETS = {"flax": FLAX, "keras": KERAS}
__all__ = ["TARGETS"]
