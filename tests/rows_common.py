"""Runs a row's case: converts its call, and runs both sides."""
import re
import types
import zlib
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

import migrate
from migrate.tables import Row, standard

HEADER = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nimport einops\nfrom einops.layers.torch import Rearrange, Reduce\n\n\n"
SPEC = re.compile(r"([a-z]+)(\d*)\[([\d, ]*)\]\s*(?:in\s*(-?[\d.]+)\.\.(-?[\d.]+)|((?:[<>]=?-?[\d.]*)*))")
NAMES = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
OWN = frozenset({"call", "jax", "flax", "keras", "note", "grad", "rtol", "random", "why", "target"})


@dataclass(frozen=True)
class Case:
    """One case of a row."""

    row: Row
    number: int
    call: str
    inputs: tuple[tuple[str, str], ...]
    expected: dict[str, str]

    @property
    def smooth(self) -> bool:
        """Whether its gradient is asked for: the row's note or corner says why not."""
        return str(self.row.cases[self.number].get("grad")) != "no"

    @property
    def label(self) -> str:
        """A name for the test."""
        return f"{self.row.torch}-{self.number}"


def cases() -> list[Case]:
    """All cases of all rows."""
    found = []
    for row in standard().rows:
        for i, c in enumerate(row.cases):
            inputs = tuple((k, str(v)) for k, v in c.items() if k not in OWN)
            found.append(Case(row, i, c["call"], inputs, {t: c[t] for t in ("jax", "flax", "keras") if t in c}))
    return found


def values(spec: str, seed: int) -> np.ndarray[Any, Any]:
    """An array for "f32[2,3]", "i64[4]<5", "f32[3] in 0.5..2", "f32[2]>0<1", "bool[3]"."""
    m = SPEC.fullmatch(spec.strip())
    assert m, f"unreadable input {spec!r}"
    shape = tuple(int(d) for d in m[3].split(",") if d.strip())
    low, high = (float(m[4]), float(m[5])) if m[4] else bounds(m[6] or "")
    rng = np.random.default_rng(seed)
    kind = m[1]
    if kind in ("b", "bool"):
        return rng.random(shape) < 0.5
    if kind in ("i", "u"):
        lowest = int(low) if low is not None else 0
        return rng.integers(lowest, int(high) if high is not None else lowest + 5, shape).astype(f"{NAMES[kind]}{m[2]}")
    made = rng.normal(size=shape)
    if low is not None and high is not None:
        made = rng.uniform(low + 1e-3, high - 1e-3, shape)
    elif low is not None:
        made = low + 0.05 + np.abs(made)
    if kind == "c":
        return (made + 1j * rng.normal(size=shape)).astype(f"complex{m[2]}")
    return made.astype("float32" if m[2] in ("", "16") else f"float{m[2]}")


def bounds(text: str) -> tuple[float | None, float | None]:
    """The limits of ">0<1"; a bare sign is a limit of 1."""
    low = re.search(r">=?(-?[\d.]*)", text)
    high = re.search(r"<=?(-?[\d.]*)", text)
    return (float(low[1] or -1) if low else None), (float(high[1] or 1) if high else None)


def source(case: Case) -> str:
    """The case as a file: a function of its inputs, or a module that holds the layer."""
    names = ", ".join(n for n, _ in case.inputs)
    if case.row.kind == "layer" and (split := _layer_call(case.call)):
        made, given = split
        return (
            f"{HEADER}class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = {made}\n\n"
            f"    def forward(self{', ' if names else ''}{names}):\n        return self.layer({given})\n"
        )
    return f"{HEADER}def f({names}):\n    return {case.call}\n"


def _layer_call(call: str) -> tuple[str, str] | None:
    """("nn.Linear(4, 3)", "x") of "nn.Linear(4, 3)(x)"."""
    import ast

    node = ast.parse(call, mode="eval").body
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Call):
        return ast.unparse(node.func), ", ".join([*map(ast.unparse, node.args), *map(ast.unparse, node.keywords)])
    return None


def load(code: str, support: dict[str, str]) -> dict[str, Any]:
    """Executes converted code with its support module."""
    import sys

    for path, text in support.items():
        module = types.ModuleType(path.removesuffix(".py"))
        exec(compile(text, path, "exec"), module.__dict__)
        sys.modules[module.__name__] = module
    space: dict[str, Any] = {"__name__": "converted"}
    exec(compile(code, "converted.py", "exec"), space)
    return space


def arrays(case: Case) -> dict[str, np.ndarray[Any, Any]]:
    """The inputs of a case; the same in every run."""
    return {n: values(s, zlib.crc32(f"{case.label}{n}".encode())) for n, s in case.inputs}


def flat(out: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of a result, in order."""
    if out is None or isinstance(out, (str, np.dtype, type)):
        return []
    if isinstance(out, torch.Tensor):
        t = out.detach()
        t = t.to_dense() if t.is_sparse else t
        return [np.asarray((t.float() if t.dtype in (torch.bfloat16, torch.float16) else t).resolve_conj().resolve_neg().numpy())]
    if isinstance(out, dict):
        return [a for v in out.values() for a in flat(v)]
    if isinstance(out, (list, tuple)):
        return [a for v in out for a in flat(v)]
    if isinstance(out, (jax.Array, np.ndarray, np.generic, bool, int, float, complex)):
        return [np.asarray(out)]
    return []


def weighted(outs: list[Any], cos: Any, array: Any) -> Any:
    """A sum of all results in which every value counts differently."""
    return sum((o * array(cos(np.arange(o.size if hasattr(o, "size") and not callable(o.size) else o.numel()))).reshape(o.shape)).sum() for o in outs)


def torch_gradients(run: Any, inputs: dict[str, np.ndarray[Any, Any]]) -> tuple[list[int], dict[str, np.ndarray[Any, Any]]] | None:
    """Which results are differentiable, and the gradients by each floating input in float64; None where there are none."""
    tensors = {k: torch.tensor(v).double().requires_grad_() if v.dtype.kind == "f" else torch.tensor(v) for k, v in inputs.items()}
    wanted = {k: t for k, t in tensors.items() if t.requires_grad}
    try:
        out = run(*tensors.values())
        outs = list(_tensors(out))
        smooth = [i for i, o in enumerate(outs) if o.is_floating_point() and o.requires_grad and o.numel()]
        if not smooth or not wanted:
            return None
        loss = weighted([outs[i] for i in smooth], np.cos, lambda a: torch.tensor(a))
        grads = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return None
    return smooth, {k: np.zeros(inputs[k].shape) if g is None else g.numpy() for k, g in zip(wanted, grads, strict=True)}


def _tensors(out: Any) -> list[torch.Tensor]:
    if isinstance(out, torch.Tensor):
        return [out]
    return [t for o in out for t in _tensors(o)] if isinstance(out, (list, tuple)) else []


def jax_gradients(run: Any, inputs: dict[str, np.ndarray[Any, Any]], smooth: list[int]) -> dict[str, np.ndarray[Any, Any]]:
    """The same by JAX."""
    arrays_ = {k: jnp.asarray(v) for k, v in inputs.items()}
    names = [k for k, v in inputs.items() if v.dtype.kind == "f"]

    def loss(floats: dict[str, jax.Array]) -> Any:
        outs = [o for o in jax.tree.leaves(run(*(arrays_ | floats).values())) if isinstance(o, jax.Array)]
        return weighted([outs[i] for i in smooth], np.cos, lambda a: jnp.asarray(a, jnp.float32))

    return {k: np.asarray(g) for k, g in jax.grad(loss)({k: arrays_[k] for k in names}).items()}


def converted(case: Case, target: str = "flax") -> migrate.Conversion:
    """The case's file, converted."""
    return migrate.convert_source(source(case), target=target, filename="case.py")


def built(space: dict[str, Any], state: dict[str, Any]) -> Any:
    """A converted Net in eval mode with the weights of the original."""
    net = space["Net"](rngs=nnx.Rngs(0))
    net.eval()
    if state:
        found = migrate.load_state_dict(net, state)
        assert not found.missing and not found.unexpected, found
    return net
