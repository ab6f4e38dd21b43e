"""What to do about what the compiler said."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

GIB = 1 << 30
DYNAMIC = (
    "NonConcreteBooleanIndexError",
    "ConcretizationTypeError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TracerArrayConversionError",
)


def advise(row: dict[str, Any], narrow: dict[str, Any] | None, mesh: dict[str, int]) -> Iterator[str]:
    """Advice for one row; `narrow` is the same model compiled in bfloat16, where it was."""
    if row["status"] == "does not trace":
        if row.get("error") in DYNAMIC:
            yield (
                "a shape or a branch depends on values, which a compiled program can't have: use jnp.where, a mask, "
                "jnp.nonzero(..., size=n) or jax.lax.cond there"
            )
        return
    if row["callbacks"]:
        yield f"{', '.join(row['callbacks'])}: the program leaves the chip for Python each time; take it out of the model"
    if row["status"] == "does not fit":
        yield from _too_large(row, narrow, mesh)
    if row["status"] != "compiles":
        return
    if narrow is not None and narrow["status"] == "compiles":
        yield _narrow(row, narrow)
    yield from _padding(row)
    if row["moving"] > 0.1:
        yield f"{row['moving']:.0%} of the estimated cycles only move data (copies, transposes): keep one order of axes through the model"
    if row["seconds"] and row["flops"] and row["least"] / row["seconds"] < 0.25:
        yield "less than a quarter of the time is needed for arithmetic or memory: the operations are too small; use a larger batch"


def _narrow(row: dict[str, Any], narrow: dict[str, Any]) -> str:
    memory = f"{narrow['needed'] / GIB:.2f} instead of {row['needed'] / GIB:.2f} GiB"
    a, b = row["seconds"], narrow["seconds"]
    time = f" and {b / a:.2f} of the time" if a and b else f" and {narrow['bytes'] / max(row['bytes'], 1):.2f} of the bytes moved"
    return f"in bfloat16 (--dtype bfloat16) it takes {memory}{time}, by the same compiler"


def _too_large(row: dict[str, Any], narrow: dict[str, Any] | None, mesh: dict[str, int]) -> Iterator[str]:
    if narrow is not None and narrow["status"] == "compiles":
        yield f"in bfloat16 (--dtype bfloat16) it fits: {narrow['needed'] / GIB:.2f} GiB"
    if not mesh:
        yield "a smaller batch, jax.checkpoint around the blocks when training, or more chips: --mesh fsdp=4 or --mesh data=2,model=2"
    else:
        yield "more chips for the parameters: a larger `model` or `fsdp` axis in --mesh, with a topology that has them"


def _padding(row: dict[str, Any]) -> Iterator[str]:
    waste = row["padded"] - row["real"]
    if row["padded"] and waste / row["padded"] > 0.1:
        yield (
            f"{waste / row['padded']:.0%} of what lies in memory is padding: values are kept in tiles of 8 x 128 "
            "(16 x 128 in bfloat16), so sizes that are multiples of those waste nothing"
        )
    for w in row["wasteful"][:3]:
        if w["waste"] * w["count"] > 0.05 * row["padded"]:
            place = f" ({Path(w['file']).name}:{w['line']})" if w["file"] else ""
            what = f"weight {w['operator']}" if w["weight"] else w["operator"].rsplit("/", 1)[-1]
            yield f"{what} {w['shape']}{place} takes {w['times']:.1f} times its size"
