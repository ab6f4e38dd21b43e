"""Makes a PyTorch model show faults. A fresh model hides many: a bias that is zero, a scale that is one, weights too small to
matter, running
statistics that change nothing. Values are moved off such places, in proportion, before anything is recorded."""

import math
from collections.abc import Callable
from typing import Any

import torch

from migrate.check.spool import Spool

SPREAD = 0.15  # of a constant's size


def perturb(model: Any, run: Callable[[], Any], seed: int = 0) -> str:
    """Changes parameters and running statistics in place; `run` calls the model on its inputs. Returns a note, "" when all went well.

    Where the outcome is no longer finite, the values come back as they were.
    """
    generator = torch.Generator().manual_seed(seed)
    spool = Spool()
    before = {k: spool.keep(v) for k, v in model.state_dict(keep_vars=True).items() if isinstance(v, torch.Tensor)}
    with torch.no_grad():
        try:
            finite_before = _finite(run())
            for p in model.parameters():
                _parameter(p, generator)
            _statistics(model, run, generator)
            if _finite(run()) or not finite_before:
                return ""
            reason = "the outputs were not finite any more"
        except Exception as e:
            reason = f"{type(e).__name__}: {e}"
        for name, value in model.state_dict(keep_vars=True).items():
            if name in before:
                kept = before[name]
                value.copy_(kept if isinstance(kept, torch.Tensor) else torch.from_numpy(kept.read()))
    return f"weights were left at their initial values ({reason}); some faults may stay hidden"


def _parameter(p: Any, generator: Any) -> None:
    if not p.is_floating_point() or not p.numel():
        return
    noise = torch.randn(p.shape, generator=generator).to(p.dtype)
    fan_in = p.numel() // p.shape[0] if p.ndim > 1 and p.shape[0] > 1 else 1
    usual = 1 / math.sqrt(fan_in) if fan_in > 1 else 0.1
    largest = float(p.abs().max())
    if not math.isfinite(largest):
        p.copy_(usual * noise)
    elif p.numel() == 1 or float(p.min()) == float(p.max()):
        constant = float(p.flatten()[0])
        width = max(SPREAD * abs(constant), usual if abs(constant) < 0.02 else 0.0)
        p.copy_(constant + width * noise)
    elif float(p.std()) < usual / 2:
        p.mul_(usual / float(p.std()))


def _statistics(model: Any, run: Callable[[], Any], generator: Any) -> None:
    """Sets running means and variances near those of what comes in, layer by layer as the data passes."""

    def near(module: Any, args: Any) -> None:
        x = args[0].detach()
        if x.ndim < 2 or not x.numel():
            return
        others = [d for d in range(x.ndim) if d != 1]
        mean, var = x.float().mean(others), x.float().var(others, unbiased=False)
        a, b = (torch.randn(mean.shape, generator=generator) for _ in range(2))
        var = var * torch.exp(0.25 * a) + 1e-3
        module.running_mean.copy_(mean + 0.25 * var.sqrt() * b)
        module.running_var.copy_(var)

    tracked = [
        m
        for m in model.modules()
        if isinstance(getattr(m, "running_mean", None), torch.Tensor) and isinstance(getattr(m, "running_var", None), torch.Tensor)
    ]
    handles = [m.register_forward_pre_hook(near) for m in tracked]
    try:
        if handles:
            run()
    finally:
        for h in handles:
            h.remove()


def _finite(value: Any) -> bool:
    from migrate.check.leaves import walk

    return all(
        bool(torch.isfinite(v).all()) for _, v in walk(value) if isinstance(v, torch.Tensor) and (v.is_floating_point() or v.is_complex())
    )
