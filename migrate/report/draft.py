"""A row to fill in, for an operator or layer that no row describes. PyTorch, where it is installed, is asked for the signature in a
process of its own."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from migrate.tables import parameters

LEFT_OUT = frozenset({"out", "device", "dtype", "layout", "pin_memory", "requires_grad", "generator", "memory_format", "inplace"})
CHILD = """
import inspect, json, sys
import torch
thing = torch
for part in sys.argv[1].split(".")[1:]:
    thing = getattr(thing, part, None)
*_, parent, last = sys.argv[1].split(".")
own = parent in ("linalg", "special", "fft")  # its operators are called after it, and are no methods
def signature(f):
    try:
        return str(inspect.signature(f, eval_str=False))
    except (TypeError, ValueError):
        return ""
found = {"known": thing is not None, "version": torch.__version__, "doc": (getattr(thing, "__doc__", "") or "").strip(),
         "method": not own and hasattr(torch.Tensor, last),
         "attribute": thing is not None and not callable(thing)}
if isinstance(thing, type) and issubclass(thing, torch.nn.Module):
    found |= {"layer": True, "signature": signature(thing.__init__), "call": signature(thing.forward)}
else:
    found |= {"layer": False, "signature": signature(thing) if callable(thing) else "", "call": "",
              "schemas": [str(s) for s in torch._C._jit_get_schemas_for_operator("aten::" + (f"{parent}_{last}" if own else last))]}
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Asked:
    """What PyTorch says of a name."""

    known: bool = False
    version: str = ""
    doc: str = ""
    method: bool = False
    attribute: bool = False
    layer: bool = False
    signature: str = ""
    call: str = ""
    schemas: Sequence[str] = ()


def ask(name: str) -> Asked | None:
    """What the installed PyTorch says of a dotted name; None where there is no PyTorch."""
    done = subprocess.run([sys.executable, "-c", CHILD, name], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Asked(**found)


def draft(name: str, asked: Asked | None) -> str:
    """The row's text."""
    last = name.rpartition(".")[2]
    signature = _signature(asked, last) if asked is not None else ""
    lines = [f"# from PyTorch {asked.version}" if asked is not None else "# PyTorch is not installed here: look the signature up"]
    if asked is not None and asked.layer:
        return "\n".join([*lines, *_layer(name, last, signature, _cleaned(asked.call) or "(input)")]) + "\n"
    lines += ["[[op]]", f'torch = "{name}"']
    if asked is None or asked.method:
        lines.append(f'methods = ["{last}"]')
    if asked is not None and asked.attribute:
        lines.append('kind = "attribute"')
    signature = signature or "(input)"
    names = [p.name for p in parameters(signature) if p.kind != "keywords"]
    required = [p.name for p in parameters(signature) if p.default is None and p.kind == "positional"]
    call = f"{name}({', '.join('x' if i == 0 else '...' for i, _ in enumerate(required))})"
    lines += [
        f'signature = "{signature}"',
        f'returns = "{_returns(asked)}"  # the kind of the result: "same" is the dtype of the first argument',
    ]
    template = ", ".join([*(n for n in names if n in required), *(f"{n}={n}" for n in names if n not in required)])
    inner = name.removeprefix("torch.") if name.startswith(("torch.linalg.", "torch.fft.")) else last
    like = f"jax.scipy.special.{last}" if name.startswith("torch.special.") else f"jnp.{inner}"
    lines += ["  [[op.jax]]", f'  to = "{like}({template})"  # to be checked: names, defaults, ties, NaN, empty, dtypes']
    lines += ["  [[op.case]]", f'  call = "{call}"', '  x = "f32[2, 3]"', f'  jax = "{like}(x)"']
    return "\n".join(lines) + "\n"


def _layer(name: str, last: str, signature: str, call: str) -> list[str]:
    sizes = [p.name for p in parameters(signature) if p.default is None]
    made = f"nn.{last}({', '.join('3' for _ in sizes)})"
    return [
        "[[layer]]",
        f'torch = "{name}"',
        f'signature = "{signature}"',
        f'call = "{call}"',
        'returns = "tensor"',
        f'support = "{last}"  # a class with these arguments in support/flax and support/keras',
        "  [[layer.case]]",
        f'  call = "{made}(x)"',
        '  x = "f32[2, 3]"',
        f'  flax = "{last}({", ".join("3" for _ in sizes)}, rngs=rngs)"',
    ]


def _signature(asked: Asked, last: str) -> str:
    return _cleaned(asked.signature) or _documented(asked.doc, last) or _schema(asked.schemas)


def _documented(doc: str, last: str) -> str:
    """ "cummax(input, dim, *, out=None) -> (Tensor, LongTensor)" of a builtin's documentation."""
    first = doc.split("\n\n")[0].replace("\n", " ")
    m = re.match(rf"{re.escape(last)}(\(.*\))\s*(->.*)?$", first)
    return _cleaned(m[1]) if m else ""


def _schema(schemas: Sequence[str]) -> str:
    """The parameters of an operator's schema, `self` as `input`."""
    for schema in schemas:
        names = []
        for part in schema.partition("(")[2].partition(") ->")[0].split(", "):
            word = part.split()[-1] if part.strip() else ""
            names.append("*" if part.strip() == "*" else re.sub(r"^self\b", "input", word))
        if not any("out" in n.split("=")[0] for n in names):
            return _cleaned(f"({', '.join(n for n in names if n)})")
    return ""


def _cleaned(signature: str) -> str:
    """A signature without annotations, `self`, and what every row leaves out; "" where it is not Python."""
    try:
        a = ast.parse(f"def f{signature}: pass").body[0].args  # type: ignore[attr-defined]
    except SyntaxError:
        return ""
    plain, defaults = a.posonlyargs + a.args, list(a.defaults)
    pairs = list(zip(plain, [None] * (len(plain) - len(defaults)) + defaults, strict=True))
    parts = [_parameter(p, d) for p, d in pairs if p.arg != "self" and p.arg not in LEFT_OUT]
    keywords = [_parameter(p, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if p.arg not in LEFT_OUT]
    if a.vararg:
        parts.append(f"*{a.vararg.arg}")
    elif keywords:
        parts.append("*")
    return f"({', '.join([*parts, *keywords])})"


def _parameter(p: ast.arg, default: ast.expr | None) -> str:
    return p.arg if default is None else f"{p.arg}={ast.unparse(default)}"


def _returns(asked: Asked | None) -> str:
    result = asked.schemas[0].rpartition("->")[2].strip() if asked is not None and asked.schemas else ""
    return (
        "tensors"
        if result.startswith("(") or result.endswith("[]")
        else {"bool": "bool", "Scalar": "number", "int": "int"}.get(result, "same")
    )
