"""PyTorch's own test databases of operators and modules, as source text: each sample becomes a file that calls the operator as a user
would."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
# Not for users, or a result that is drawn, or that several right answers have.
PRIVATE = ("_", "ops.", "torch.ops.", "jiterator", "masked.", "hash_tensor", "chalf", "sparse.")
DRAWN = frozenset(
    (
        "bernoulli multinomial normal rand_like randn_like randint_like randint randn rand randperm uniform cauchy exponential "
        "geometric log_normal svd_lowrank pca_lowrank empty empty_like empty_strided empty_permuted new_empty new_empty_strided "
        "resize_ resize_as_ nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout "
        "nn.functional.feature_alpha_dropout nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d "
        "nn.functional.rrelu nn.functional.gumbel_softmax linalg.eig linalg.eigh svd linalg.svd "
    ).split()
)
FIRST_TWO_SWAPPED = frozenset({"nn.functional.embedding"})  # the database passes the table first
ATTRIBUTES = frozenset({"T", "H", "mT", "mH"})
DTYPES = (torch.float32, torch.int64, torch.bool)


class Unwritable(Exception):
    """A sample that has no text."""


@dataclass(frozen=True)
class Sample:
    """A file with a function `f`, or a module `Net`, and its inputs."""

    name: str
    number: int
    source: str
    tensors: tuple[torch.Tensor, ...]

    @property
    def label(self) -> str:
        """A name for the test."""
        return f"{self.name}-{self.number}"


def text(value: Any, tensors: list[torch.Tensor]) -> str:
    """A value as source; tensors become parameters."""
    match value:
        case torch.Tensor():
            if value.layout != torch.strided:
                raise Unwritable("sparse")
            tensors.append(value)
            return f"t{len(tensors) - 1}"
        case float() if value != value or value in (float("inf"), float("-inf")):
            return f'float("{value}")'
        case None | bool() | int() | float() | complex() | str():
            return repr(value)
        case torch.dtype() | torch.memory_format():
            return str(value)
        case slice():
            return f"slice({value.start}, {value.stop}, {value.step})"
        case list():
            return f"[{', '.join(text(v, tensors) for v in value)}]"
        case tuple():
            return f"({''.join(text(v, tensors) + ', ' for v in value)})"
    if value is Ellipsis:
        return "..."
    if getattr(value, "__module__", "") == "torch.nn.functional" and callable(value):
        return f"F.{value.__name__}"
    if hasattr(value, "item"):  # a number of NumPy's
        return repr(value.item())
    raise Unwritable(type(value).__name__)


def operator_text(op: Any, sample: Any) -> tuple[str, list[torch.Tensor]]:
    """The call of an operator's sample."""
    tensors: list[torch.Tensor] = []
    args = [sample.input, *sample.args]
    if op.name in FIRST_TWO_SWAPPED:
        args[:2] = args[1::-1]
    if op.name == "einsum":
        args = [sample.args[0], *sample.input]
    if op.name == "special.polygamma":
        args[:2] = args[1::-1]
    written = [text(a, tensors) for a in args]
    named = [f"{k}={text(v, tensors)}" for k, v in sample.kwargs.items() if k not in ("device", "layout", "pin_memory")]
    dunder = op.name.startswith("__")
    if op.name in ATTRIBUTES:
        call = f"{written[0]}.{op.name}"
    elif dunder or op.name in ("where", "polygamma") or not _public(op.name):
        if not isinstance(args[0], torch.Tensor) or not hasattr(torch.Tensor, op.name):
            raise Unwritable("no public name")
        call = f"{written[0]}.{op.name}({', '.join(written[1:] + named)})"
    else:
        call = f"torch.{op.name}({', '.join(written + named)})".replace("torch.nn.functional.", "F.")
    params = ", ".join(f"t{i}: torch.Tensor" for i in range(len(tensors)))
    return f"{HEADER}def f({params}):\n    return {call}\n", tensors


def _public(name: str) -> bool:
    at: Any = torch
    for part in name.split("."):
        at = getattr(at, part, None)
    return callable(at)


def operators(most: int, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[Sample]:
    """Samples of operators, at most so many of each."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        dtype = next((d for d in DTYPES if d in op.dtypes), None)
        if op.name in DRAWN or dtype is None or op.name.startswith(PRIVATE) and not op.name.startswith("__"):
            continue
        name = op.name + (f"/{op.variant_test_name}" if op.variant_test_name else "")
        if not wanted(name):
            continue
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
        for number, sample in enumerate(samples[:: max(1, len(samples) // most)][:most]):
            try:
                source, tensors = operator_text(op, sample)
            except Unwritable:
                continue
            if not sample.kwargs.get("dropout_p"):
                yield Sample(name, number, source, tuple(tensors))


def layers(most: int, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[Sample]:
    """Samples of layers: a module that holds one, at most so many of each."""
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        if getattr(torch.nn, info.module_cls.__name__, None) is not info.module_cls or not wanted(info.name):
            continue
        torch.manual_seed(0)
        inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=False)
        for number, sample in enumerate(inputs[:most]):
            if sample.forward_input is None:
                continue
            held: list[torch.Tensor] = []
            tensors: list[torch.Tensor] = []
            made, given = sample.constructor_input, sample.forward_input
            try:
                sizes = [
                    *(text(a, held) for a in made.args),
                    *(f"{k}={text(v, held)}" for k, v in made.kwargs.items() if k not in ("device", "dtype")),
                ]
                call = [*(text(a, tensors) for a in given.args), *(f"{k}={text(v, tensors)}" for k, v in given.kwargs.items())]
            except Unwritable:
                continue
            if held:
                continue
            params = "".join(f", t{i}" for i in range(len(tensors)))
            body = f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = nn.{info.module_cls.__name__}({', '.join(sizes)})\n\n"
            yield Sample(
                info.name,
                number,
                f"{HEADER}{body}    def forward(self{params}):\n        return self.layer({', '.join(call)})\n",
                tuple(tensors),
            )
