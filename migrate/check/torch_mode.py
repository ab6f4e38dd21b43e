"""Modes that PyTorch runs under while it is recorded: shared random draws, and everything floating in float64."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from migrate.check.draws import Draws
from migrate.check.torch_rounding import Rounding

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
# ATen operators that draw; what fills their result is in `_fill`.
RANDOM = {
    "rand",
    "rand_like",
    "randn",
    "randn_like",
    "randint",
    "randint_like",
    "randperm",
    "bernoulli",
    "bernoulli_",
    "uniform_",
    "normal_",
    "normal",
    "exponential_",
    "native_dropout",
    "multinomial",
    "poisson",
    "random_",
    "geometric_",
    "cauchy_",
    "log_normal_",
    "binomial",
    "standard_gamma",
}


class Mode(TorchDispatchMode):  # type: ignore[misc]
    """Replaces random draws by those of `draws`, and, with `double`, every floating dtype that code asks for by float64; `rounding`: results
    are then rounded as in float32."""

    def __init__(self, draws: Draws, double: bool, rounding: Rounding | None = None, written: set[int] | None = None) -> None:
        super().__init__()
        self.written: set[int] = set() if written is None else written  # storages; what is written through `data` counts no version
        self.draws = draws
        self.double = double
        self.rounding = rounding
        self.narrow = False  # whether something was computed in float32 all the same

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See TorchDispatchMode."""
        kwargs = dict(kwargs or {})
        if self.double and kwargs.get("dtype") in FLOATS:
            kwargs["dtype"] = torch.float64
        name = func.overloadpacket.__name__
        if name.endswith("_backward"):
            args = tuple(map(_tidy, args))
        if name not in RANDOM:
            if self.rounding is not None:
                args = self.rounding.given(func, args)
            out = func(*args, **kwargs)
            if self.rounding is not None:
                self.rounding.results(func, out)
            if name[-1] == "_" and args and isinstance(args[0], torch.Tensor):
                self.written.add(args[0].untyped_storage().data_ptr())
            self.narrow = self.narrow or (self.double and isinstance(out, torch.Tensor) and out.dtype is torch.float32)
            return out
        if name == "native_dropout":
            x, p, training = args[0], args[1], args[2]
            if not training:
                return func(*args, **kwargs)
            kept = self._uniform(x) < 1 - p
            return x * kept / (1 - p), kept
        out = func(*args, **kwargs)
        if not isinstance(out, torch.Tensor):
            return out
        self.written.add(out.untyped_storage().data_ptr())
        return out.copy_(self._fill(name, out, args, kwargs))

    def _uniform(self, like: Any) -> Any:
        return torch.from_numpy(self.draws.next("uniform", tuple(like.shape)))

    def _normal(self, like: Any) -> Any:
        return torch.from_numpy(self.draws.next("normal", tuple(like.shape)))

    def _fill(self, name: str, out: Any, args: Any, kwargs: Any) -> Any:
        def argument(position: int, key: str, default: Any) -> Any:
            return args[position] if len(args) > position else kwargs.get(key, default)

        if name in ("rand", "rand_like"):
            return self._uniform(out)
        if name in ("randn", "randn_like"):
            return self._normal(out)
        if name == "uniform_":
            low, high = argument(1, "from", 0.0), argument(2, "to", 1.0)
            return low + (high - low) * self._uniform(out)
        if name == "normal_":
            return argument(1, "mean", 0.0) + argument(2, "std", 1.0) * self._normal(out)
        if name == "normal":
            return argument(0, "mean", 0.0) + argument(1, "std", 1.0) * self._normal(out)
        if name == "bernoulli":
            return self._uniform(out) < args[0]
        if name == "bernoulli_":
            return self._uniform(out) < argument(1, "p", 0.5)
        if name == "exponential_":
            return -torch.log1p(-self._uniform(out)) / argument(1, "lambd", 1.0)
        if name == "randperm":
            return torch.argsort(self._uniform(out))
        if name in ("randint", "randint_like"):
            numbers = [a for a in args if isinstance(a, int)]
            low, high = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
            return torch.floor(low + self._uniform(out) * (high - low))
        self.draws.next(f"other: {name}", tuple(out.shape))  # the other side can't follow from here
        return out


def _tidy(value: Any) -> Any:
    """A tensor with one item along an axis may have any stride there; the backward pass of PyTorch's batch norm on a CPU reads such gradients wrongly."""
    return value.contiguous() if isinstance(value, torch.Tensor) and 1 in value.shape and not value.is_contiguous() else value


@contextlib.contextmanager
def mode(draws: Draws, double: bool, rounding: Rounding | None = None, written: set[int] | None = None) -> Iterator[Mode]:
    """Runs PyTorch with shared draws; with `double`, in float64 all through, while `torch.finfo` still tells of float32."""
    finfo, default = torch.finfo, torch.get_default_dtype()
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it skips submodules
    try:
        if double:
            torch.set_default_dtype(torch.float64)
            torch.finfo = lambda dtype=None: finfo(torch.float32 if dtype in (None, torch.float64) else dtype)
        with Mode(draws, double, rounding, written) as running:
            yield running
    finally:
        torch.finfo = finfo
        torch.set_default_dtype(default)
        torch.backends.mha.set_fastpath_enabled(fast)
