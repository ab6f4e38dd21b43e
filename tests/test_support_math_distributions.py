"""Distributions: log-probabilities, moments, divergences and their gradients against PyTorch; draws by their statistics."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from math_common import agree, floats

from migrate.support.jax import distributions, distributions_discrete, distributions_transforms

D = torch.distributions
A, B = np.abs(floats(3, 1)) + 1.2, np.abs(floats(4)) + 1.2
TABLE = np.abs(floats(3, 4)) + 0.2
TRIL = np.tril(floats(3, 3)) + 2 * np.eye(3, dtype=np.float32)
CASES = {  # parameters, a value
    "Normal": ((A, B), floats(3, 4)), "LogNormal": ((A, B), TABLE), "Laplace": ((A, B), floats(3, 4)), "Cauchy": ((A, B), floats(3, 4)),
    "Gumbel": ((A, B), floats(3, 4)), "HalfNormal": ((A,), TABLE), "Uniform": ((-A, B), floats(3, 4) / 9), "Exponential": ((A,), TABLE),
    "Gamma": ((A, B), TABLE), "Beta": ((A, B), TABLE / 9), "Dirichlet": ((TABLE,), np.full((3, 4), 0.25, np.float32)),
    "StudentT": ((B + 2, A, B), floats(3, 4)), "Bernoulli": ((TABLE / 9,), (TABLE > 0.9).astype(np.float32)),
    "Geometric": ((TABLE / 9,), np.round(TABLE)), "Poisson": ((TABLE,), np.round(TABLE)),
    "Categorical": ((TABLE,), np.array([0, 3, 1])), "OneHotCategorical": ((TABLE,), np.eye(4, dtype=np.float32)[[0, 3, 1]]),
}


def make(name):
    theirs = getattr(D, name)
    ours = getattr(distributions, name, None) or getattr(distributions_discrete, name)
    return ours, lambda *a: theirs(*a, validate_args=False)


def facts(make, value):
    """All that is the same in both libraries, as a function of the parameters."""
    def collect(*parameters):
        d = make(*parameters)
        found = [d.log_prob(value(d))]
        for what in ("mean", "variance", "stddev"):
            if type(d).__name__ != "Categorical":
                found.append(getattr(d, what))
        return found + ([d.entropy()] if type(d).__name__ != "Poisson" and type(d).__name__ != "StudentT" else [])
    return collect


@pytest.mark.parametrize("name", CASES)
def test_facts(name):
    parameters, value = CASES[name]
    ours, theirs = make(name)
    agree(facts(ours, lambda d: jnp.asarray(value)), facts(theirs, lambda d: torch.from_numpy(value)), *parameters, rtol=1e-4)


@pytest.mark.parametrize("name", ["Bernoulli", "Geometric", "Categorical", "OneHotCategorical"])
def test_by_logits(name):
    value = CASES[name][1]
    ours, theirs = (getattr(m, name) for m in (distributions_discrete, D))
    mine = facts(lambda l: ours(logits=l), lambda d: jnp.asarray(value))
    agree(mine, facts(lambda l: theirs(logits=l, validate_args=False), lambda d: torch.from_numpy(value)), floats(3, 4), rtol=1e-4)


@pytest.mark.parametrize("name", [n for n in CASES if n != "StudentT"])
def test_kl_divergence(name):
    parameters = CASES[name][0]
    others = [p * np.float32(0.9) if name != "Uniform" else p * np.float32(1.1) for p in parameters]
    ours, theirs = make(name)
    n = len(parameters)
    mine = lambda *a: distributions_discrete.kl_divergence(ours(*a[:n]), ours(*a[n:]))
    agree(mine, lambda *a: D.kl_divergence(theirs(*a[:n]), theirs(*a[n:])), *parameters, *others, rtol=1e-4)


PAIRS = sorted((a.__name__, b.__name__) for a, b in D.kl._KL_REGISTRY if a is not b and {a.__name__, b.__name__} <= set(CASES) and a.__name__ != "Poisson")


@pytest.mark.parametrize(("pair", "wide"), [(p, w) for p in PAIRS for w in (False, True) if "Uniform" in p or not w])
def test_kl_divergence_of_two_kinds(pair, wide):
    """Uniform distributions on both sides of 0, or above it; wide ones hold what has bounds."""
    low, high = (A * np.float32(0.01), B / 20) if pair[0] == "Uniform" and wide else (-A, B)
    parameters, others = ((low, high) if n == "Uniform" else CASES[n][0] for n in pair)
    (p, theirs_p), (q, theirs_q) = map(make, pair)
    n = len(parameters)
    mine = lambda *a: distributions_discrete.kl_divergence(p(*a[:n]), q(*a[n:]))
    # PyTorch gives infinity in the shape of the first one
    wanted = lambda *a: D.kl_divergence(theirs_p(*a[:n]), theirs_q(*a[n:])).broadcast_to(3, 4)
    agree(mine, wanted, *parameters, *others, grad=pair == ("Gamma", "Normal"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pair", ["Normal StudentT", "Dirichlet Normal", "Poisson Normal", "Categorical Poisson", "Poisson Bernoulli", "Laplace Laplace2"])
def test_divergence_without_a_closed_form_is_refused(pair):
    a, b = (make(n.strip("2"))[0](*CASES[n.strip("2")][0]) for n in pair.split())
    if pair.endswith("2"):
        b = distributions_discrete.Independent(b, 1)
    with pytest.raises(NotImplementedError, match="no divergence of"):
        distributions_discrete.kl_divergence(a, b)


@pytest.mark.parametrize("name", CASES)
def test_draws(name):
    """Means and variances of many draws; the gradient reaches the parameters where PyTorch's does."""
    parameters = CASES[name][0]
    ours, theirs = make(name)
    d = ours(*map(jnp.asarray, parameters), rngs=nnx.Rngs(0))
    t = theirs(*map(torch.from_numpy, parameters))
    draws = d.sample((4000,))
    assert draws.shape == tuple(t.sample((4000,)).shape)
    assert d.has_rsample == t.has_rsample
    assert d.batch_shape == tuple(t.batch_shape) and d.event_shape == tuple(t.event_shape)
    assert np.asarray(draws).dtype.kind == t.sample().numpy().dtype.kind
    if name not in ("Cauchy", "Categorical"):
        scale = np.asarray(t.stddev) + 0.01
        assert (np.abs(np.asarray(draws.mean(0)) - t.mean.numpy()) / scale < 0.12).all()
    assert not (d.sample() == d.sample()).all()


def test_rsample_has_gradients():
    def total(loc, scale):
        return distributions.Normal(loc, scale, rngs=nnx.Rngs(0)).rsample((5,)).sum()

    assert np.asarray(jax.grad(total)(jnp.zeros(3), jnp.ones(3))).tolist() == [5, 5, 5]
    assert np.asarray(jax.grad(lambda l: distributions.Normal(l, 1.0, rngs=nnx.Rngs(0)).sample().sum())(jnp.zeros(3))).tolist() == [0, 0, 0]


@pytest.mark.parametrize("form", ["scale_tril", "covariance_matrix", "precision_matrix"])
def test_multivariate_normal(form):
    matrix = TRIL if form == "scale_tril" else TRIL @ TRIL.T

    def collect(library):
        def run(loc, m, value):
            d = library.MultivariateNormal(loc, **{form: m})
            return [d.log_prob(value), d.entropy(), d.mean, d.variance, d.covariance_matrix]
        return run

    agree(collect(distributions_discrete), collect(D), floats(2, 3), matrix, floats(5, 2, 3), grad=False, rtol=1e-4, atol=1e-4)


def test_multivariate_normal_divergence_and_draws():
    def divergence(library):
        normal = library.MultivariateNormal
        return lambda a, s, b, t: library.kl_divergence(normal(a, scale_tril=s), normal(b, scale_tril=t))

    agree(divergence(distributions_discrete), divergence(D), floats(2, 3), TRIL, floats(3), TRIL.copy() * 1.5, grad=False, rtol=1e-4)
    draws = distributions_discrete.MultivariateNormal(jnp.ones(3), scale_tril=jnp.asarray(TRIL), rngs=nnx.Rngs(0)).sample((20000,))
    np.testing.assert_allclose(np.cov(np.asarray(draws).T), TRIL @ TRIL.T, atol=0.5)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_independent(n):
    def collect(library, normal):
        def run(a, b, value):
            d, e = library.Independent(normal(a, b), n), library.Independent(normal(b, a), n)
            return [d.log_prob(value), d.entropy(), d.mean, d.variance, library.kl_divergence(d, e)]
        return run

    agree(collect(distributions_discrete, distributions.Normal), collect(D, D.Normal), A, B, floats(3, 4), rtol=1e-4)
    theirs = D.Independent(D.Normal(torch.ones(3, 4), 1), n)
    assert distributions_discrete.Independent(distributions.Normal(A, B), n).event_shape == tuple(theirs.event_shape)


def test_mixture():
    def collect(library, normal):
        def run(logits, a, b, value):
            d = library.MixtureSameFamily(library.Categorical(logits=logits), normal(a, b))
            return [d.log_prob(value), d.mean, d.variance]
        return run

    agree(collect(distributions_discrete, distributions.Normal), collect(D, D.Normal), floats(3, 4), A, B, floats(3), rtol=1e-4)
    mixture = distributions_discrete.MixtureSameFamily(
        distributions_discrete.Categorical(jnp.array([0.5, 0.5])), distributions.Normal(jnp.array([-9.0, 9.0]), 0.1), rngs=nnx.Rngs(0)
    )
    draws = np.asarray(mixture.sample((1000,)))
    assert draws.shape == (1000,) and 0.4 < (draws > 0).mean() < 0.6 and (np.abs(np.abs(draws) - 9) < 1).all()


TRANSFORMS = {  # what the transforms are made of a module of PyTorch or of ours, by the parameters
    "tanh": lambda m, a, b: [m.TanhTransform(cache_size=1)], "sigmoid": lambda m, a, b: [m.AffineTransform(0.5, -2), m.SigmoidTransform()],
    "softplus": lambda m, a, b: m.SoftplusTransform(), "exp": lambda m, a, b: [m.ExpTransform(), m.AffineTransform(a, b)],
    "wide": lambda m, a, b: [m.AffineTransform(a, b, event_dim=1)], "number": lambda m, a, b: [m.AffineTransform(0.5, 3.0, event_dim=1)],
    "narrow": lambda m, a, b: [m.AffineTransform(0.5, b[0], event_dim=1)], "turned": lambda m, a, b: [m.AffineTransform(a, -b)],
}
BATCH, DRAWN = np.abs(floats(3, 4)) + 1.2, floats(3, 4)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformed(name):
    """Densities, shares and values of what transforms make of a normal distribution."""
    def found(library, transforms, normal, own):
        def collect(a, b, loc):
            d = library.TransformedDistribution(normal(loc), TRANSFORMS[name](transforms, a, b))
            x = own(DRAWN)
            y = x
            for t in d.transforms:
                y = t(y)
            shares = [d.cdf(y), d.icdf(own(BATCH) / 9)] if not d.event_shape else []
            return [y, d.log_prob(y), *shares, *(t.inv(y) for t in d.transforms[-1:])]
        return collect

    ours = found(distributions_transforms, distributions_transforms, lambda loc: distributions.Normal(loc, 1.5), jnp.asarray)
    theirs = found(D, D.transforms, lambda loc: D.Normal(loc, 1.5, validate_args=False), torch.from_numpy)
    agree(ours, theirs, A, B, BATCH, rtol=1e-4)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_shapes_of_transformed(name):
    ours = distributions_transforms.TransformedDistribution(distributions.Normal(jnp.asarray(BATCH), 1.0, rngs=nnx.Rngs(0)), TRANSFORMS[name](distributions_transforms, jnp.asarray(A), jnp.asarray(B)))
    theirs = D.TransformedDistribution(D.Normal(torch.from_numpy(BATCH), 1.0), TRANSFORMS[name](D.transforms, torch.from_numpy(A), torch.from_numpy(B)))
    assert (ours.batch_shape, ours.event_shape, ours.sample((2,)).shape) == (tuple(theirs.batch_shape), tuple(theirs.event_shape), tuple(theirs.sample((2,)).shape))


def test_transformed_far_out():
    """A draw that tanh takes to 1 keeps its density where the transform remembers it; gradients flow through rsample alone."""
    def density(loc, draw):
        d = distributions_transforms.TransformedDistribution(distributions.Normal(loc, 0.1, rngs=nnx.Rngs(0)), [distributions_transforms.TanhTransform(cache_size=1)])
        return d.log_prob(getattr(d, draw)())

    far = jnp.full((3,), 20.0)
    assert jnp.isfinite(density(far, "sample")).all() and jnp.isfinite(jax.jit(density, static_argnums=1)(far, "rsample")).all()
    drawn = lambda loc, draw: getattr(distributions_transforms.TransformedDistribution(distributions.Normal(loc, 0.1, rngs=nnx.Rngs(0)), distributions_transforms.TanhTransform()), draw)()
    assert jax.grad(drawn)(0.1, "sample") == 0 and jax.grad(drawn)(0.1, "rsample") > 0


def test_transform_that_makes_events_wider():
    with pytest.raises(ValueError, match="give the base distribution the shape"):
        distributions_transforms.TransformedDistribution(distributions.Normal(0.0, 1.0), [distributions_transforms.AffineTransform(0.0, jnp.ones(3), event_dim=1)])
