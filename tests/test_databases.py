"""PyTorch's own test databases: the converted text must compute what PyTorch does, or be refused by name. A few samples by default, 8 of
each with --full.

`--record FILE` writes down how many samples of each operator and layer agreed, and the releases that ran; `make record` puts that where
the pages read it.
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from databases import layers, operators
from flax import nnx
from rows_common import flat, load

import migrate
from migrate.known import corners, difference
from migrate.tables import standard

# Raises where PyTorch does not, as the tables say.
LOUD = {
    n.removeprefix("torch."): ", ".join(difference(k, row.torch).what for k in row.known)
    for row in standard().rows
    if row.known
    for n in (row.torch, *row.also, *row.methods)
}
# Values that are not PyTorch's at some of its own samples.
OTHER = {name.removeprefix("torch."): c.what for name, found in corners().items() for c in found if "databases" in c.edges}


def pytest_generate_tests(metafunc):
    full = metafunc.config.getoption("--full") or metafunc.config.getoption("keyword")
    for name, samples, few in (("operator", operators, 12), ("layer", layers, 9)):
        if name in metafunc.fixturenames:
            found = samples(8) if full else samples(1, lambda label, few=few: zlib.crc32(label.encode()) % few == 0)
            metafunc.parametrize(name, list(found), ids=lambda s: s.label)


def close(want, got, exact=None):
    """Fails where results differ. `exact`: the same in float64, to see how far PyTorch's own float32 is from it."""
    assert len(want) == len(got)
    for i, (a, b) in enumerate(zip(want, got, strict=True)):
        b = b.astype(np.float32) if b.dtype.kind == "V" else b
        assert a.shape == b.shape and a.dtype.kind == b.dtype.kind, f"result {i}: {b.dtype}{b.shape} in place of {a.dtype}{a.shape}"
        if a.dtype.kind not in "fc" or not a.size:
            np.testing.assert_array_equal(b, a)
            continue
        finite = np.isfinite(a)
        size = np.abs(a[finite]).max(initial=0)
        own = 0.0
        if exact is not None and exact[i].shape == a.shape and exact[i].dtype.kind in "fc":
            own = np.abs(a[finite] - exact[i][finite]).max(initial=0)
        np.testing.assert_allclose(b, a, rtol=2e-4, atol=max(32 * own if np.isfinite(own) else 0, 5e-6 * size))


def converted(sample, target):
    """The converted file, run; None where it was refused by name."""
    made = migrate.convert_source(sample.source, target=target)
    try:
        return load(made.code, dict(made.support)), made
    except Exception:
        assert [d for d in made.diagnostics if d.severity == "error"], made.code
        return None, made


def result(run, made):
    """What a converted call gives; None where it fails and was refused by name."""
    try:
        return flat(run())
    except Exception:
        if [d for d in made.diagnostics if d.severity == "error"]:
            return None
        raise


def double(tensors):
    return [t.double() if t.dtype == torch.float32 else t.clone() for t in tensors]


def exact(run, tensors):
    try:
        return flat(run(*double(tensors)))
    except Exception:
        return None


@pytest.mark.parametrize("target", ["flax", "keras"])
def test_operator(operator, target, record_property):
    space = {}
    exec(operator.source, space)
    try:
        want = flat(space["f"](*[t.clone() for t in operator.tensors]))
    except Exception as e:
        pytest.skip(f"PyTorch: {type(e).__name__}: {e}")
    if operator.number and not any(a.size for a in want):
        pytest.skip("an empty result")
    made, conversion = converted(operator, target)
    try:
        got = result(lambda: made["f"](*[jnp.asarray(t.numpy()) for t in operator.tensors]), conversion) if made else None
    except Exception as e:
        record_property("verified", f"operators {target} {operator.name} fails")
        if reason := LOUD.get(operator.name.partition("/")[0]):
            pytest.xfail(f"{reason}: {e}")
        raise
    record_property("verified", f"operators {target} {operator.name} {'refused' if got is None else 'equal'}")
    if got is not None:
        try:
            close(want, got, exact(space["f"], operator.tensors))
        except AssertionError:
            if reason := OTHER.get(operator.name.partition("/")[0]):
                pytest.xfail(reason)
            assert [d for d in conversion.diagnostics if d.severity != "info"], conversion.code
            raise


@pytest.mark.parametrize("target", ["flax", "keras"])
def test_layer(layer, target, record_property):
    space = {}
    torch.manual_seed(0)
    exec(layer.source, space)
    net = space["Net"]().eval()
    with torch.no_grad():
        net(*[t.clone() for t in layer.tensors])  # lazy layers get their parameters
        for p in net.parameters():
            if p.is_floating_point():
                p.add_(torch.linspace(-0.05, 0.05, p.numel()).reshape(p.shape))
        want = flat(net(*[t.clone() for t in layer.tensors]))
    made, conversion = converted(layer, target)
    inputs = [jnp.asarray(t.numpy()) for t in layer.tensors]
    ours = made["Net"](rngs=nnx.Rngs(0)) if target == "flax" else made["Net"]()
    ours.eval()
    try:
        ours(*inputs)
    except Exception as e:
        if reason := LOUD.get(layer.name):
            pytest.xfail(f"{reason}: {e}")
        raise
    loaded = migrate.load_state_dict(ours, net.state_dict())
    assert not loaded.missing and not loaded.unexpected
    close(want, [np.asarray(a) for a in flat(jax.tree.leaves(ours(*inputs)))])
    record_property("verified", f"layers {target} {layer.name} equal")
