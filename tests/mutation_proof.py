"""What the compiler is given for a converted model: two models with the same programs compute the same, whatever their texts."""

import hashlib
from pathlib import Path

import jax
from flax import nnx

from migrate.check import jax_side, oracle
from migrate.check.draws import Draws
from migrate.check.flax_model import FlaxModel
from migrate.check.gradient import split_inputs, weighted
from migrate.check.jax_draws import shared
from migrate.check.jax_record import recording, values_of
from migrate.check.jax_tasks import Tasks
from migrate.check.load import load


def programs(job):
    """A digest of all that a check of this job compares: the weights as loaded, and on each set of inputs the outputs and what the submodules give, the
    gradients, a pass in training mode with the running statistics after it. None where it does not run."""
    content = oracle.read(Path(job["oracle"]))
    try:
        module = load(Path(job["converted"]), [])
        model = FlaxModel(jax_side.construct(module, content, None, "flax"))
        tasks = Tasks(model, content, Path(job["oracle"]), {"compared": 0})
        tasks.loads()
        texts = {"weights": _weights(model)}
        for run in content["runs"]:
            if run["name"] != "small":  # the same shapes as those of the first
                texts[run["name"]] = _forward(model, tasks.decode(run["inputs"]))
        given = tasks.decode(content["runs"][0]["inputs"])
        texts["gradients"] = _gradients(model, given)
        model.set_training(True)
        return texts | {"train": _forward(model, given)}
    except Exception:
        return None


def _weights(model):
    digest = hashlib.sha256()
    for path, value in sorted((str(p), v.get_value()) for p, v in nnx.to_flat_state(nnx.state(model.model)) if hasattr(v, "get_value")):
        digest.update(f"{path}{getattr(value, 'shape', '')}{getattr(value, 'dtype', '')}".encode())
        if getattr(value, "dtype", None) is not None and not jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            digest.update(jax.device_get(value).tobytes())
    return digest.hexdigest()


def _digest(function, *args):
    return hashlib.sha256(jax.jit(function).lower(*args).as_text().encode()).hexdigest()


def _forward(model, given):
    graph, state = nnx.split(model.model)
    flat, _, rebuild = split_inputs(given)
    plain = []

    def body(state, floats):
        again = nnx.merge(graph, state, copy=True)
        args, kwargs = rebuild(floats)
        seen, draws = [], Draws()
        with shared(draws), recording(model.modules(again), seen.append):
            found = values_of(again(*args, **kwargs))
        arrays = [[v for _, v in leaves] for leaves in (found, *(s[3] for s in seen))]
        plain.append(str([(p, None if hasattr(v, "dtype") else v) for p, v in found] + draws.log + [s[:3] for s in seen]))
        return jax.tree.map(lambda v: v if hasattr(v, "dtype") else 0, arrays), nnx.split(again)[1]

    text = _digest(body, state, [v for v in flat if isinstance(v, jax.Array) and jax.numpy.issubdtype(v.dtype, jax.numpy.floating)])
    return text + plain[0]


def _gradients(model, given):
    graph, params, rest = nnx.split(model.model, nnx.Param, ...)
    flat, where, rebuild = split_inputs(given)

    def loss(params, floats):
        args, kwargs = rebuild(floats)
        with shared(Draws()):
            return weighted(nnx.merge(graph, params, rest, copy=True)(*args, **kwargs))

    return _digest(jax.grad(loss, argnums=(0, 1), allow_int=True), params, [flat[i] for i in where])
