"""TPU numerics on any device: a function run with the operands of its products rounded to bfloat16, sums kept in float32.

That is what a TPU does to float32 products at JAX's default precision. The function's jaxpr is interpreted: products round, rules for
what holds inner jaxprs (loops, branches, jit, custom derivatives, checkpoint) enter them, and everything else is done as it is. To see what
becomes of gradients, interpret the function that computes them.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core

PRODUCTS = ("dot_general", "conv_general_dilated", "ragged_dot_general")
# Primitives that only call what they hold; the name of the parameter that holds it.
CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}


def rounded(function: Callable[..., Any], skipped: set[str] | None = None) -> Callable[..., Any]:
    """`function` with bfloat16 products. `skipped` collects the names of primitives that hold code which was not entered."""

    def run(*args: Any) -> Any:
        with jax.default_matmul_precision("default"):
            closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        flat = jax.tree.leaves(args)
        out = _Interpreter(set() if skipped is None else skipped).run(closed, flat)
        return jax.tree.unflatten(jax.tree.structure(shape), out)

    return run


def bfloat16(x: Any) -> Any:
    """The nearest bfloat16, still in its own dtype; XLA may not optimise it away."""
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)


class _Interpreter:
    def __init__(self, skipped: set[str]) -> None:
        self.skipped = skipped

    def run(self, closed: Any, args: list[Any]) -> list[Any]:
        """The outputs of a closed jaxpr."""
        return self._eval(closed.jaxpr, closed.consts, args)

    def _eval(self, jaxpr: Any, consts: Any, args: list[Any]) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, args, strict=True))

        def read(v: Any) -> Any:
            return v.val if isinstance(v, core.Literal) else values[v]

        for e in jaxpr.eqns:
            out = self._one(e, [read(v) for v in e.invars])
            values.update(zip(e.outvars, out if e.primitive.multiple_results else [out], strict=True))
        return [read(v) for v in jaxpr.outvars]

    def _one(self, e: Any, args: list[Any]) -> Any:
        name = e.primitive.name
        if name in PRODUCTS and _default(e.params.get("precision")):
            args = [_operand(a) for a in args[:2]] + args[2:]
            return self._bind(e, args, precision=(jax.lax.Precision.HIGHEST,) * 2)
        if name in CALLS:
            return self._inner(e.params[CALLS[name]], args)
        rule = getattr(self, f"_{name}", None)
        if rule is not None:
            return rule(e.params, args)
        from migrate.check.jaxprs import inner_jaxprs

        if any(i.eqns for i in inner_jaxprs(e.params)) and not name.startswith(("reduce", "scatter", "sort", "cum", "argm")):
            self.skipped.add(name)
        return self._bind(e, args)

    def _bind(self, e: Any, args: list[Any], **changed: Any) -> Any:
        found = e.primitive.get_bind_params(e.params)
        functions, params = found if isinstance(found, tuple) else ((), found)  # a pair in earlier releases of JAX
        with e.ctx.manager:
            return e.primitive.bind(*functions, *args, **(params | changed))

    def _inner(self, jaxpr: Any, args: list[Any]) -> list[Any]:
        return self.run(jaxpr, args) if hasattr(jaxpr, "consts") else self._eval(jaxpr, (), args)

    def _scan(self, p: dict[str, Any], args: list[Any]) -> list[Any]:
        consts, carries = p["num_consts"], p["num_carry"]
        fixed, start, xs = args[:consts], args[consts : consts + carries], args[consts + carries :]

        def body(carry: Any, x: Any) -> Any:
            out = self.run(p["jaxpr"], [*fixed, *carry, *x])
            return out[:carries], out[carries:]

        carry, ys = jax.lax.scan(body, start, xs, length=p["length"], reverse=p["reverse"], unroll=p["unroll"])
        return [*carry, *ys]

    def _while(self, p: dict[str, Any], args: list[Any]) -> list[Any]:
        a, b = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]

        def go_on(values: Any) -> Any:
            return self.run(p["cond_jaxpr"], [*args[:a], *values])[0]

        out: list[Any] = jax.lax.while_loop(go_on, lambda values: self.run(p["body_jaxpr"], [*args[a:b], *values]), args[b:])
        return out

    def _cond(self, p: dict[str, Any], args: list[Any]) -> list[Any]:
        branches = [lambda *values, b=b: self.run(b, list(values)) for b in p["branches"]]
        out: list[Any] = jax.lax.switch(args[0], branches, *args[1:])
        return out


def _default(precision: Any) -> bool:
    """Whether a product was left at the default precision; who asked for more gets more on a TPU too."""
    given = precision if isinstance(precision, tuple) else (precision,)
    return all(p in (None, jax.lax.Precision.DEFAULT) for p in given)


def _operand(x: Any) -> Any:
    return bfloat16(x) if str(x.dtype) == "float32" else x
