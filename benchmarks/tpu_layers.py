"""Compiles each layer of the tables, as Keras has it, and Keras's own layers that people fear, for TPU v5e: forward and backward. Needs libtpu.

usage: tpu_layers.py [--log FILE]       writes the table of docs/tpu.md; with a log it goes on where it was stopped
"""

# ruff: noqa: E402 (the environment comes first)
import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrate.tpu.run import ENVIRONMENT

os.environ.update(ENVIRONMENT)
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import jax
import jax.numpy as jnp
import keras
import rows_common

import migrate
from migrate.check.load import describe
from migrate.tpu.chips import parse
from migrate.tpu.measure import shapes
from migrate.tpu.prepare import Prepared, prepare

PAGE = HERE.parent / "docs" / "tpu.md"
TOPOLOGY = parse("v5e")
MODES = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")
PICTURE, IDS = jnp.zeros((2, 8, 8, 4)), jnp.zeros((2, 6), "int32")


# Layers of PyTorch's with other arguments than the tables' cases have, and the shape of their input.
MORE = {f"nn.Upsample(scale_factor={size}, mode={mode!r})": (2, 3, *shape) for size in (2, 1.7) for mode, shape in (
    ("nearest", (8, 8)), ("nearest-exact", (8, 8)), ("linear", (8,)), ("bilinear", (8, 8)), ("bicubic", (8, 8)), ("trilinear", (4, 4, 4)))}  # fmt: skip
MORE |= {f"nn.Upsample(size=(5, 11), mode={mode!r}, align_corners=True)": (2, 3, 8, 8) for mode in ("bilinear", "bicubic")}
MORE |= {f"nn.{name}": (2, 6) for name in ("Embedding(100, 16, sparse=True)", "Embedding(100, 16, padding_idx=0)", "EmbeddingBag(100, 16, mode='max')")}


def of_keras() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Keras's own layers, with inputs."""
    for mode in MODES:
        yield f"UpSampling2D(2, interpolation={mode!r})", keras.layers.UpSampling2D(2, interpolation=mode), (PICTURE,)
        yield f"Resizing(5, 11, interpolation={mode!r})", keras.layers.Resizing(5, 11, interpolation=mode), (PICTURE,)
    yield "UpSampling1D(3)", keras.layers.UpSampling1D(3), (jnp.zeros((2, 8, 4)),)
    yield "UpSampling3D(2)", keras.layers.UpSampling3D(2), (jnp.zeros((2, 4, 4, 4, 4)),)
    yield "Embedding(100, 16)", keras.layers.Embedding(100, 16), (IDS,)
    yield "Embedding(100, 16, mask_zero=True)", keras.layers.Embedding(100, 16, mask_zero=True), (IDS,)
    yield "CategoryEncoding(10, output_mode='multi_hot')", keras.layers.CategoryEncoding(10, output_mode="multi_hot"), (IDS,)


def of_tables() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Each case of the tables that makes a layer."""
    for call, shape in MORE.items():
        body = f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = {call}\n\n"
        converted = migrate.convert_source(f"{rows_common.HEADER}{body}    def forward(self, x):\n        return self.layer(x)\n", target="keras")
        space = rows_common.load(converted.code, dict(converted.support))
        yield f"{call}(x)", space["Net"], (jnp.zeros(shape, "int32" if "Embedding" in call else "float32"),)
    for case in rows_common.cases():
        made = rows_common.source(case)
        if case.row.kind != "layer" or "class Net" not in made:
            continue
        converted = migrate.convert_source(made, target="keras")
        if any(d.severity == "error" for d in converted.diagnostics):
            continue
        space = rows_common.load(converted.code, dict(converted.support))
        yield case.call, space["Net"], tuple(jnp.asarray(v) for v in rows_common.arrays(case).values())


def outcome(layer: Any, given: tuple[Any, ...]) -> str:
    """ "" where it compiles, with its gradients; else why not."""
    try:
        layer = layer() if isinstance(layer, type) else layer
        layer(*given)
        forward = prepare(layer, (given, {}), "keras", train=False)
    except Exception as e:
        return f"does not run: {describe(e)}"

    def both(weights: Any, arrays: list[Any]) -> Any:
        floats = [i for i, a in enumerate(arrays) if jnp.issubdtype(a.dtype, jnp.floating)]

        def total(params: Any, some: list[Any]) -> Any:
            whole = list(arrays)
            for i, a in zip(floats, some, strict=True):
                whole[i] = a
            out = [v for v in forward.function((params, weights[1]), whole) if hasattr(v, "dtype") and jnp.issubdtype(v.dtype, jnp.inexact)]
            return sum((jnp.sum(jnp.abs(v) ** 2) for v in out), start=jnp.zeros(())), out

        return jax.grad(total, argnums=(0, 1), has_aux=True)(weights[0], [arrays[i] for i in floats])

    weights, inputs, _ = shapes(Prepared(both, forward.weights, forward.inputs), TOPOLOGY, {})
    try:
        traced = jax.jit(both).trace(weights, inputs)
    except Exception as e:
        return f"does not trace: {describe(e).partition(' The error occurred while tracing')[0]}"
    try:
        traced.lower(lowering_platforms=("tpu",)).compile()
    except Exception as e:
        return f"does not compile: {describe(e)}"
    return ""


def write(rows: dict[str, str], own: set[str]) -> None:
    """The table, between its marks."""
    lines = [f"Of {len(rows) - len(own & set(rows))} layers of the tables, with their arguments, {sum(not r for n, r in rows.items() if n not in own)} compile."]
    lines += [f"Of {len(own)} of Keras's own, {sum(not rows[n] for n in own)} compile: {', '.join(f'`{n}`' for n in sorted(own) if not rows[n])}.", ""]
    failed = {n: r for n, r in rows.items() if r}
    if failed:
        lines += ["| layer | |", "|---|---|", *(f"| `{n.replace('|', ' ')}` | {r.replace('|', ' ')[:160]} |" for n, r in sorted(failed.items()))]
    before, _, rest = PAGE.read_text().partition("<!-- layers -->\n")
    PAGE.write_text(before + "<!-- layers -->\n" + "\n".join(lines) + "\n<!-- end -->" + rest.partition("<!-- end -->")[2])


def main() -> None:
    """Compiles all, and writes what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    rows: dict[str, str] = {}
    if options.log and options.log.exists():
        rows = {r["layer"]: r["why"] for r in map(json.loads, options.log.read_text().splitlines())}
    own = set()
    for group in (of_keras(), of_tables()):
        for name, layer, given in group:
            own |= {name} if not isinstance(layer, type) else set()
            if name in rows:
                continue
            start = time.perf_counter()
            rows[name] = outcome(layer, given)
            print(f"{name}: {rows[name] or 'compiles'} ({time.perf_counter() - start:.1f} s)", flush=True)
            if options.log:
                with options.log.open("a") as f:
                    f.write(json.dumps({"layer": name, "why": rows[name]}) + "\n")
    write(rows, own)


if __name__ == "__main__":
    main()
