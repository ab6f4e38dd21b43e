"""Compiles a prepared model for one topology, and says what came of it."""

import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jax

from migrate.check.load import describe, locate
from migrate.tpu import hlo, shard
from migrate.tpu.chips import Topology, TopologyError, seconds
from migrate.tpu.prepare import Prepared

_NEEDED = (
    re.compile(r"Used ([\d.]+[KMGT]?) of ([\d.]+[KMGT]?) hbm"),
    re.compile(r"total memory required for .*? \(([\d.]+[KMGT]?)\) exceeds available HBM"),
)
UNITS = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
MOST = 8  # lines listed


def devices(topology: Topology) -> Any:
    """The devices to compile for."""
    from jax.experimental import topologies

    options = {"chip_config_name": topology.chip.config} if topology.chip.config else {}
    try:
        return topologies.get_topology_desc(platform="tpu", topology_name=topology.name, **options).devices
    except Exception as e:
        raise TopologyError(f"`{topology.name}`: {' '.join(str(e).split())[:200]}") from None


def shapes(prepared: Prepared, topology: Topology, mesh: dict[str, int]) -> tuple[Any, Any, int]:
    """Weights and inputs as shapes on the devices of a topology, and over how many of them."""
    found = devices(topology)
    if not mesh:
        one = jax.sharding.SingleDeviceSharding(found[0])
        weights, inputs = (shard.place(t, lambda _: one) for t in (prepared.weights, prepared.inputs))
        return weights, inputs, 1
    grid = shard.make_mesh(found, mesh)
    weights = shard.place(prepared.weights, lambda shape: shard.of_weight(grid, shape))
    return weights, shard.place(prepared.inputs, lambda shape: shard.of_input(grid, shape)), grid.size


def measure(prepared: Prepared, topology: Topology, mesh: dict[str, int], folders: tuple[str, ...]) -> dict[str, Any]:
    """One row of the report; `status` is "compiles", "does not fit", "does not compile" or "does not trace"."""
    weights, inputs, count = shapes(prepared, topology, mesh)
    row: dict[str, Any] = {"topology": topology.name, "chip": topology.chip.name, "devices": count, "available": topology.chip.hbm}
    start = time.perf_counter()
    try:
        traced = jax.jit(prepared.function).trace(weights, inputs)
    except Exception as e:
        file, line = locate(e, [Path(f) for f in folders])
        message = describe(e).partition(" The error occurred while tracing")[0]  # what follows is of files that are not the user's
        return row | {"status": "does not trace", "message": message, "file": file, "line": line, "error": type(e).__name__}
    row["callbacks"] = callbacks(traced.jaxpr.jaxpr)
    try:
        compiled = traced.lower(lowering_platforms=("tpu",)).compile()
    except Exception as e:
        return row | _failure(e)
    row["compile_seconds"] = round(time.perf_counter() - start, 2)
    return row | {"status": "compiles", "message": ""} | numbers(compiled, topology, folders)


def _failure(error: Exception) -> dict[str, Any]:
    text = " ".join(str(error).split())
    if "RESOURCE_EXHAUSTED" not in text and "Ran out of memory" not in text:
        return {"status": "does not compile", "message": describe(error)}
    needed = next((m[1] for p in _NEEDED if (m := p.search(text))), "")
    number = float(needed.rstrip("KMGT")) * UNITS.get(needed[-1], 1.0) if needed else 0.0
    return {"status": "does not fit", "needed": number, "message": text.partition(". ")[0][:300]}


def numbers(compiled: Any, topology: Topology, folders: tuple[str, ...]) -> dict[str, Any]:
    """What the compiler says of a program, for each device."""
    cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
    program = hlo.parse(compiled.as_text(), folders)
    flops, size = float(cost.get("flops", 0.0)), float(cost.get("bytes accessed", 0.0))
    estimate = float(cost.get("optimal_seconds", -1.0))
    held = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes - memory.alias_size_in_bytes
    return {
        "flops": flops,
        "bytes": size,
        "seconds": estimate if estimate > 0 else None,  # negative where the cost of some operation is unknown
        "least": seconds(topology.chip, flops, size),
        "needed": float(held + memory.generated_code_size_in_bytes),
        "arguments": memory.argument_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
        "operations": operations(program),
        "moving": moving(program),
        "collectives": collectives(program),
    } | padding(program)


def collectives(program: hlo.Program) -> dict[str, int]:
    """How often chips exchange what."""
    found: Counter[str] = Counter()
    for i, times in program.executed():
        if i.opcode.startswith(hlo.COLLECTIVES) and not i.opcode.endswith("-done"):
            found[i.opcode.removesuffix("-start")] += times
    return dict(found)


def operations(program: hlo.Program) -> list[dict[str, Any]]:
    """The lines that cost most, by the compiler's estimate of cycles."""
    cycles: Counter[tuple[str, int]] = Counter()
    kinds: dict[tuple[str, int], Counter[str]] = {}
    for i, times in program.executed():
        if i.cycles:
            cycles[i.place] += i.cycles * times
            kinds.setdefault(i.place, Counter())[i.operator.rsplit("/", 1)[-1] or i.opcode] += i.cycles * times
    total = sum(cycles.values())
    return [
        {"file": place[0], "line": place[1], "share": n / total, "operator": kinds[place].most_common(1)[0][0]}
        for place, n in cycles.most_common(MOST)
    ]


def moving(program: hlo.Program) -> float:
    """The share of estimated cycles that only move data."""
    total = moved = 0
    for i, times in program.executed():
        total += i.cycles * times
        moved += i.cycles * times if i.opcode in hlo.MOVES or i.operator.endswith(("/transpose", "/copy")) else 0
    return moved / total if total else 0.0


def padding(program: hlo.Program) -> dict[str, Any]:
    """Bytes of all values that lie in HBM, as they are and with the padding of their tiles; the values that waste most."""
    real = padded = 0.0
    worst: dict[str, dict[str, Any]] = {}
    for i in program.computations.get(program.entry, ()):
        if i.opcode in ("tuple", "get-tuple-element", "bitcast", "while", "conditional", "copy-start", "copy-done"):
            continue  # these name what others hold
        for a in i.arrays:
            shape = f"{a.dtype}{list(a.shape)}"
            real, padded = real + a.size, padded + a.padded
            if a.padded > a.size:
                entry = {"shape": shape, "operator": i.operator, "waste": a.padded - a.size}
                entry |= {
                    "times": a.padded / a.size if a.size else 1.0,
                    "file": i.place[0],
                    "line": i.place[1],
                    "weight": i.opcode == "parameter",
                }
                kept = worst.setdefault(shape, entry)
                kept["count"] = kept.get("count", 0) + 1
    most = sorted(worst.values(), key=lambda e: -e["waste"] * e["count"])[:MOST]
    return {"real": real, "padded": padded, "wasteful": most}


def callbacks(jaxpr: Any) -> list[str]:
    """Primitives that leave the device for Python."""
    from migrate.check.jaxprs import equations

    names = {e.primitive.name for e in equations(jaxpr)}
    return sorted(n for n in names if "callback" in n or n in ("debug_print", "infeed", "outfeed"))
