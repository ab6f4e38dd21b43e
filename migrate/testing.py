"""For users' own test suites: the proof that a converted model is still the original.

from migrate.testing import assert_equivalent

def test_net():
    assert_equivalent(TorchNet(), FlaxNet(rngs=nnx.Rngs(0)), (torch.randn(2, 3, 32, 32),))
"""

import copy
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from migrate.check.verdict import USUAL, Verdict, from_result

LIVE = USUAL[3:]  # a live model has been built already


def compare(
    original: Any,
    converted: Any,
    inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    *,
    stages: Iterable[str] = LIVE,
    perturb: bool = True,
) -> Verdict:
    """Compares two live models on `inputs` (torch tensors or numpy arrays) and `kwargs`, and returns the verdict.

    The original is copied. `perturb` moves the copy's weights off values that hide faults (zeros, ones) before they are loaded
    into `converted`, whose own
    weights come back afterwards.
    """
    import torch

    from migrate.check import jax_side, oracle
    from migrate.check.torch_side import of_model
    from migrate.check.torch_tasks import FunctionModule

    model = copy.deepcopy(original)
    if not isinstance(model, torch.nn.Module):
        model = FunctionModule(model)
    args = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
    values = _tensors((args, dict(kwargs or {})))
    asked = tuple(s for s in LIVE if s in set(stages) | {"loads", "shapes"})
    target = "keras" if any(c.__module__.startswith("keras.") for c in type(converted).__mro__) else "flax"
    keep = _Kept(converted, target)
    with tempfile.TemporaryDirectory(prefix="migrate-check-") as scratch:
        folder = Path(scratch)
        content = of_model(model, lambda: copy.deepcopy(original), values, folder, asked, change=perturb)
        content |= {"model": type(original).__name__, "source": "", "pair": False}
        oracle.write(folder, content)
        run = jax_side.Run({"stages": asked, "out": str(folder), "roots": [], "target": target})
        try:
            jax_side.compare(run, converted, content, folder)
        finally:
            keep.back()
    return from_result(run.result, content, 0.0, target, asked)


def assert_equivalent(original: Any, converted: Any, inputs: Any, kwargs: Mapping[str, Any] | None = None, **options: Any) -> None:
    """Fails, with the table of submodules, unless the two models agree. Options are those of `compare`."""
    __tracebackhide__ = True
    verdict = compare(original, converted, inputs, kwargs, **options)
    if not verdict.ok:
        raise AssertionError(f"{verdict.message}\n{_table(verdict)}")


def _table(verdict: Verdict) -> str:
    from io import StringIO

    from rich.console import Console

    from migrate.report.check_table import print_verdict

    sink = StringIO()
    print_verdict(Console(file=sink, width=150, no_color=True), verdict)
    return sink.getvalue()


def _tensors(values: Any) -> Any:
    import numpy as np
    import torch

    from migrate.check.leaves import rebuild

    return rebuild(values, lambda v: v if isinstance(v, torch.Tensor) else torch.from_numpy(np.array(v)))


class _Kept:
    """The values and the mode of a converted model, to be brought back."""

    def __init__(self, model: Any, target: str) -> None:
        self.model = model
        self.target = target
        if target == "keras":
            self.values: Any = [v.numpy() for v in model.variables]
        else:
            from flax import nnx

            self.values = [(v, v.get_value()) for _, v in nnx.iter_graph(model) if isinstance(v, nnx.Variable)]
            self.modes = [
                (m, k, vars(m)[k])
                for _, m in nnx.iter_graph(model)
                for k in ("deterministic", "use_running_average", "training")
                if k in getattr(m, "__dict__", {})
            ]

    def back(self) -> None:
        """Brings them back."""
        if self.target == "keras":
            for variable, value in zip(self.model.variables, self.values, strict=False):
                variable.assign(value)
            return
        for variable, value in self.values:
            variable.set_value(value)
        for module, key, value in self.modes:
            setattr(module, key, value)
