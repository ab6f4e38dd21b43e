"""Runs a converted model under jit, with all that its submodules were given and gave among the results; eagerly where it can't be traced.

One compilation of the whole is much quicker than one for each operator, and shows at the same time that the model works under jit.
"""

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from migrate.check import leaves
from migrate.check.draws import Draws
from migrate.check.jax_draws import shared
from migrate.check.jax_record import Seen, recording, values_of
from migrate.check.load import describe

Leaves = list[tuple[str, Any]]


@dataclass
class Outcome:
    """What a run gave: the leaves of the outputs, what was seen of the submodules, the random draws."""

    outputs: Leaves = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    log: list[Any] = field(default_factory=list)


class Runner:
    """Runs one model; `untraceable` says why it can't be traced, where that is so."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.untraceable = ""
        self.frames: Sequence[traceback.FrameSummary] = ()  # of the exception
        self._compiled: dict[Any, tuple[Callable[..., Any], dict[str, Any]]] = {}

    def run(self, arguments: Any, record: bool) -> Outcome:
        """The model on (args, kwargs)."""

        def body(model: Any, values: Any) -> Outcome:
            draws = Draws()
            seen: list[Seen] = []
            args, kwargs = values
            with shared(draws), recording(self.model.modules(model) if record else {}, seen.append):
                output = self.model.call(model, args, kwargs)
            return Outcome(values_of(output), seen, draws.log)

        outcome: Outcome = self.each("run", record, body, arguments)
        return outcome

    def rounded(self, arguments: Any, skipped: set[str]) -> Outcome:
        """The model with the operands of its products rounded to bfloat16, as a TPU has them at the default precision."""
        from migrate.tpu.rounding import rounded

        arrays, rebuild = split(arguments)
        info: dict[str, Any] = {}

        def flat(model: Any, given: Any) -> list[Any]:
            args, kwargs = rebuild(given)
            seen: list[Seen] = []
            with shared(Draws()), recording(self.model.modules(model), seen.append):
                output = self.model.call(model, args, kwargs)
            found, info["rebuild"] = split(Outcome(values_of(output), seen))
            return found

        function, weights = self.model.functional(flat)
        given = jax.jit(rounded(function, skipped))(weights, arrays)
        outcome: Outcome = info["rebuild"](given)
        return outcome

    def alone(self, probes: list[tuple[str, Any]]) -> list[Leaves | str]:
        """Submodules on their own, each on its (args, kwargs): the leaves of what each gave, or why it failed."""

        def body(model: Any, values: Any) -> list[Leaves | str]:
            modules = self.model.modules(model)
            found: list[Leaves | str] = []
            for (name, _), (args, kwargs) in zip(probes, values, strict=True):
                try:
                    with shared(Draws()):
                        found.append(values_of(self.model.call(modules[name], args, kwargs)))
                except Exception as e:
                    found.append(describe(e))
            return found

        key = tuple(name for name, _ in probes)
        found: list[Leaves | str] = self.each(
            "alone", key, body, [a for _, a in probes], retry=lambda r: any(isinstance(f, str) for f in r)
        )
        return found

    def each(
        self, kind: str, extra: Any, body: Callable[[Any, Any], Any], values: Any, retry: Callable[[Any], bool] = lambda r: False
    ) -> Any:
        """`body(model, values)` under jit, or eagerly where that fails or `retry` wants it so."""
        if not self.untraceable:
            kept = self.model.kept()
            try:
                result = self._traced((kind, extra), body, values)
                if not retry(result):
                    return result
                self.model.restore(kept)
            except Exception as e:
                result = body(self.model.model, values)  # what fails here as well is no matter of tracing
                self.untraceable, self.frames = describe(e), traceback.extract_tb(e.__traceback__)
                return result
        return body(self.model.model, values)

    def _traced(self, key: Any, body: Callable[[Any, Any], Any], values: Any) -> Any:
        arrays, rebuild = split(values)
        key = (*key, self.model.mode, tuple((a.shape, str(a.dtype)) for a in arrays))
        if key not in self._compiled:
            info: dict[str, Any] = {}

            def flat(model: Any, given: Any) -> list[Any]:
                found, info["rebuild"] = split(body(model, rebuild(given)))
                once = {id(a): a for a in found}  # what one submodule gives is what the next is given
                place = {i: n for n, i in enumerate(once)}
                info["places"] = [place[id(a)] for a in found]
                return list(once.values())

            self._compiled[key] = (self.model.traced(flat), info)
        call, info = self._compiled[key]
        given = call(arrays)
        return info["rebuild"]([given[i] for i in info["places"]])


def split(value: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """The arrays of a nested value, and a function that puts others in their places."""
    if isinstance(value, Outcome):
        inner, again = split((value.outputs, value.seen, value.log))
        return inner, lambda new: Outcome(*again(new))
    if isinstance(value, jax.Array | jax.ShapeDtypeStruct) or leaves.is_array(value):
        return [value], lambda new: new[0]
    if isinstance(value, dict):
        parts = {k: split(v) for k, v in value.items()}
    elif isinstance(value, list | tuple):
        parts = dict(enumerate(map(split, value)))
    else:
        return [], lambda new: value
    arrays = [a for found, _ in parts.values() for a in found]

    def rebuild(new: Any) -> Any:
        at, made = 0, {}
        for k, (found, again) in parts.items():
            made[k] = again(new[at : at + len(found)])
            at += len(found)
        return made if isinstance(value, dict) else type(value)(made.values())

    return arrays, rebuild
