"""Libraries of the environment that build on PyTorch: code that imports them can't work unless they are converted as well."""
import importlib.machinery
import importlib.metadata
import re
import sys
from functools import cache
from pathlib import Path

FRAMEWORKS = frozenset({"torch", "lightning", "pytorch_lightning", "functorch", "torchgen", "jax", "flax", "keras", "tensorflow"})


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())


@cache
def folder_of(package: str) -> Path | None:
    """The folder above an installed top-level package that requires PyTorch; None for all others."""
    if package in FRAMEWORKS or package in sys.stdlib_module_names or not any(map(_requires_torch, _distributions().get(package, ()))):
        return None
    spec = importlib.machinery.PathFinder.find_spec(package)
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    if origin is None or origin.suffix != ".py":
        return None
    return origin.parents[1] if origin.name == "__init__.py" else origin.parent


@cache
def _requires_torch(distribution: str) -> bool:
    try:
        needs = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return False
    return any(re.match(r"torch(?![\w-])", need) and "extra ==" not in need for need in needs)
