"""Walks the equations of a jaxpr, those of inner ones too."""

from collections.abc import Iterator
from typing import Any


def equations(jaxpr: Any) -> Iterator[Any]:
    """Each equation, then those of the jaxprs among its parameters."""
    for e in jaxpr.eqns:
        yield e
        for inner in inner_jaxprs(e.params):
            yield from equations(inner)


def inner_jaxprs(params: Any) -> Iterator[Any]:
    """The jaxprs among an equation's parameters, open."""
    for value in params.values():
        for v in value if isinstance(value, list | tuple) else (value,):
            if hasattr(v, "eqns"):
                yield v
            elif hasattr(v, "jaxpr") and hasattr(v.jaxpr, "eqns"):
                yield v.jaxpr
