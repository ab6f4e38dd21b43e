"""Shapes, indexing, scattering and sorting of the support code against PyTorch: values, gradients, under jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate.support.jax import indexing, scatter, shapes, sorting

RANDOM = np.random.default_rng(0)


def floats(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def to_torch(a):
    return torch.from_numpy(a.copy()).requires_grad_(a.dtype == np.float32)


def arrays(found):
    """The arrays of a result, as numpy."""
    if isinstance(found, torch.Tensor):
        return [found.detach().numpy()]
    return [a for f in found for a in arrays(f)] if isinstance(found, (tuple, list)) else [np.asarray(found)]


def agree(ours, theirs, *args, jit=True, grad=True):
    """`ours` gives what `theirs` gives, and the same gradients by every float32 array of `args`."""
    tensors = [to_torch(a) for a in args]
    want = theirs(*tensors)
    leaves = [o for o in ([want] if isinstance(want, torch.Tensor) else want) if grad and o.requires_grad]
    weights = [floats(*o.shape) for o in leaves]
    given = [jnp.asarray(a) for a in args]

    def both(*given):
        found = ours(*given)
        outs = [o for o in jax.tree.leaves(found) if o.dtype == jnp.float32]
        return sum((o * w).sum() for o, w in zip(outs, weights, strict=False)) if weights else 0.0, found

    slots = tuple(i for i, a in enumerate(args) if a.dtype == np.float32) if leaves else ()
    run = jax.value_and_grad(both, slots, has_aux=True) if slots else lambda *given: (both(*given), ())
    (_, got), got_grads = (jax.jit(run) if jit else run)(*given)
    assert len(arrays(got)) == len(arrays(want))
    for g, w in zip(arrays(got), arrays(want), strict=True):
        assert g.shape == w.shape
        assert g.dtype.kind == w.dtype.kind
        np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-6)
    if not slots:
        return
    inputs = [t for t in tensors if t.requires_grad]
    total = sum((o * torch.from_numpy(np.asarray(w))).sum() for o, w in zip(leaves, weights, strict=True))
    want_grads = torch.autograd.grad(total, inputs, allow_unused=True)
    for g, w in zip(got_grads, want_grads, strict=True):
        np.testing.assert_allclose(g, np.zeros(g.shape) if w is None else w.numpy(), rtol=1e-5, atol=1e-5)


X = floats(4, 6, 5)
IDS = np.array([[0, 2, 1, 1, 3], [3, 3, 0, 2, 2]])  # into 4 rows, with repeats

SHAPES = {
    "squeeze": (lambda x: shapes.squeeze(x, 1), lambda x: x.squeeze(1), floats(3, 1, 2)),
    "squeeze leaves a size of 3 alone": (lambda x: shapes.squeeze(x, 0), lambda x: x.squeeze(0), floats(3, 1, 2)),
    "squeeze several": (lambda x: shapes.squeeze(x, (0, -1, 1)), lambda x: x.squeeze((0, -1, 1)), floats(3, 1, 1)),
    "squeeze a number": (lambda x: shapes.squeeze(x, -1), lambda x: x.squeeze(-1), floats()),
    "expand": (lambda x: shapes.expand(x, 2, -1, 4), lambda x: x.expand(2, -1, 4), floats(3, 1)),
    "expand by a tuple": (lambda x: shapes.expand(x, (2, 3)), lambda x: x.expand((2, 3)), floats(3)),
    "sum_to_size": (lambda x: shapes.sum_to_size(x, 6, 1), lambda x: x.sum_to_size(6, 1), X),
    "flatten the middle": (lambda x: shapes.flatten(x, 0, 1), lambda x: x.flatten(0, 1), X),
    "flatten an empty batch": (lambda x: shapes.flatten(x, 1), lambda x: x.flatten(1), floats(0, 2, 3)),
    "flatten a number": (lambda x: shapes.flatten(x), lambda x: x.flatten(), floats()),
    "unflatten": (lambda x: shapes.unflatten(x, -2, (3, -1)), lambda x: x.unflatten(-2, (3, -1)), X),
    "unflatten what is empty": (lambda x: shapes.unflatten(x, 0, (2, 2)), lambda x: x.unflatten(0, (2, 2)), floats(4, 0)),
    "split unevenly": (lambda x: shapes.split(x, 4, dim=1), lambda x: x.split(4, dim=1), X),
    "split by a list": (lambda x: shapes.split(x, [1, 2, 3], 1), lambda x: x.split([1, 2, 3], 1), X),
    "chunk evenly": (lambda x: shapes.chunk(x, 3, dim=1), lambda x: x.chunk(3, dim=1), X),
    "chunk unevenly": (lambda x: shapes.chunk(x, 3), lambda x: x.chunk(3), X),
    "chunk into fewer": (lambda x: shapes.chunk(x, 4, -1), lambda x: x.chunk(4, -1), X),
    "unfold": (lambda x: shapes.unfold_dimension(x, 1, 3, 2), lambda x: x.unfold(1, 3, 2), X),
    "unfold a number": (lambda x: shapes.unfold_dimension(x, 0, 1, 1), lambda x: x.unfold(0, 1, 1), floats()),
    "as_strided": (lambda x: shapes.as_strided(x, (2, 3), (7, 2), 1), lambda x: x.as_strided((2, 3), (7, 2), 1), X),
    "diag_embed": (lambda x: shapes.diag_embed(x, 1, 0, 2), lambda x: torch.diag_embed(x, 1, 0, 2), X),
    "diag_embed below": (lambda x: shapes.diag_embed(x, -2), lambda x: torch.diag_embed(x, -2), X),
    "cartesian_prod": (shapes.cartesian_prod, torch.cartesian_prod, floats(2), floats(3)),
    "combinations": (lambda x: shapes.combinations(x, 3), lambda x: torch.combinations(x, 3), floats(5)),
    "combinations with replacement": (
        lambda x: shapes.combinations(x, with_replacement=True),
        lambda x: torch.combinations(x, with_replacement=True),
        floats(3),
    ),
    "no combinations": (lambda x: shapes.combinations(x, 4), lambda x: torch.combinations(x, 4), floats(2)),
}
INDEXING = {
    "gather": (lambda x, i: indexing.gather(x, 0, i), lambda x, i: x.gather(0, i), floats(4, 5), IDS),
    "gather fewer columns": (lambda x, i: indexing.gather(x, 1, i), lambda x, i: x.gather(1, i), floats(4, 5), IDS[:, :3]),
    "gather one row is not broadcast": (lambda x, i: indexing.gather(x, -1, i), lambda x, i: x.gather(-1, i), floats(4, 5), IDS[:1]),
    "gather from a number": (lambda x, i: indexing.gather(x, 0, i), lambda x, i: x.gather(0, i), floats(), np.array([0])),
    "gather a number from a number": (lambda x, i: indexing.gather(x, 0, i), lambda x, i: x.gather(0, i), floats(), np.array(0)),
    "gather nothing": (lambda x, i: indexing.gather(x, 0, i), lambda x, i: x.gather(0, i), floats(5), np.zeros((2, 0), int)),
    "masked_scatter": (indexing.masked_scatter, torch.masked_scatter, floats(3, 4), floats(4) > 0, floats(3, 4)),
    "nonzero_static": (
        lambda x: indexing.nonzero_static(x, size=4),
        lambda x: torch.nonzero_static(x, size=4),
        np.eye(3, dtype=np.float32),
    ),
}
FLOW = floats(2, 5)
SCATTER = {
    "scatter": (lambda x, i, s: scatter.scatter(x, 0, i, s), lambda x, i, s: x.scatter(0, i, s), floats(4, 5), IDS[:1, :3], FLOW[:1, :3]),
    "scatter the leading part": (
        lambda x, i: scatter.scatter(x, 0, i, jnp.asarray(FLOW)),
        lambda x, i: x.scatter(0, i, torch.from_numpy(FLOW)),
        floats(4, 5),
        IDS[:1, :3],
    ),
    "scatter a number": (lambda x, i: scatter.scatter(x, 0, i, 2.0), lambda x, i: x.scatter(0, i, 2.0), floats(4, 5), IDS),
    "scatter into a number": (
        lambda x, i, s: scatter.scatter(x, 0, i, s),
        lambda x, i, s: x.scatter(0, i, s),
        floats(),
        np.array(0),
        floats(),
    ),
    "scatter_add": (lambda x, i, s: scatter.scatter_add(x, 0, i, s), lambda x, i, s: x.scatter_add(0, i, s), floats(4, 5), IDS, FLOW),
    "scatter_add columns": (
        lambda x, i, s: scatter.scatter_add(x, -1, i, s),
        lambda x, i, s: x.scatter_add(-1, i, s),
        floats(4, 5),
        IDS[:, :3],
        FLOW[:, :3],
    ),
    "index_add": (
        lambda x, s: scatter.index_add(x, 1, jnp.array([0, 0, 3]), s, alpha=2),
        lambda x, s: x.index_add(1, torch.tensor([0, 0, 3]), s, alpha=2),
        X,
        X[:, :3],
    ),
    "index_copy": (
        lambda x, s: scatter.index_copy(x, -1, jnp.array([4, 0]), s),
        lambda x, s: x.index_copy(-1, torch.tensor([4, 0]), s),
        X,
        X[..., :2],
    ),
    "index_fill": (lambda x: scatter.index_fill(x, 1, jnp.array([4, 0]), 3.0), lambda x: x.index_fill(1, torch.tensor([4, 0]), 3.0), X),
    "put": (lambda x, i, s: scatter.put(x, i, s), lambda x, i, s: x.put(i, s), floats(3, 3), np.array([1, 8, 3]), floats(3)),
    "put adds": (
        lambda x, i, s: scatter.put(x, i, s, True),
        lambda x, i, s: x.put(i, s, True),
        floats(3, 3),
        np.array([1, 8, 1]),
        floats(3),
    ),
    "select_scatter": (lambda x, s: scatter.select_scatter(x, s, 1, -2), lambda x, s: x.select_scatter(s, 1, -2), X, X[:, 0] + 1),
    "slice_scatter": (lambda x, s: scatter.slice_scatter(x, s, 1, 1, 5, 2), lambda x, s: x.slice_scatter(s, 1, 1, 5, 2), X, X[:, :2] + 1),
    "diagonal_scatter": (lambda x, s: scatter.diagonal_scatter(x, s, -1), lambda x, s: x.diagonal_scatter(s, -1), floats(4, 6), floats(3)),
    "diagonal_scatter of others": (
        lambda x, s: scatter.diagonal_scatter(x, s, 2, 2, 0),
        lambda x, s: x.diagonal_scatter(s, 2, 2, 0),
        X,
        floats(6, 2),
    ),
    "as_strided_scatter": (
        # the gradient that PyTorch gives `input` is that of the elements that were overwritten
        lambda s: scatter.as_strided_scatter(jnp.eye(4), s, (2, 2), (5, 2), 1),
        lambda s: torch.eye(4).as_strided_scatter(s, (2, 2), (5, 2), 1),
        floats(2, 2),
    ),
}
SORTING = {
    "sort": (sorting.sort, torch.sort, X),
    "sort down, first dimension": (lambda x: sorting.sort(x, 0, descending=True), lambda x: torch.sort(x, dim=0, descending=True), X),
    "sort ties down": (
        lambda x: sorting.sort(x, descending=True),
        lambda x: torch.sort(x, stable=True, descending=True),
        np.array([1, 2, 1, 2, 3], np.float32),
    ),
    "sort nan": (sorting.sort, torch.sort, np.array([1, np.nan, -np.inf, np.inf, -0.0], np.float32)),
    "sort nan down": (
        lambda x: sorting.sort(x, descending=True),
        lambda x: x.sort(descending=True),
        np.array([1, np.nan, -np.inf, np.inf], np.float32),
    ),
    "topk": (lambda x: sorting.topk(x, 2, 1), lambda x: x.topk(2, 1), X),
    "topk smallest": (lambda x: sorting.topk(x, 2, dim=0, largest=False), lambda x: x.topk(2, dim=0, largest=False), X),
    "topk nan": (lambda x: sorting.topk(x, 2), lambda x: x.topk(2), np.array([1, np.nan, 5, 2], np.float32)),
    "topk of bytes": (lambda x: sorting.topk(x, 2, largest=False), lambda x: x.topk(2, largest=False), np.array([1, 0, 5, 255], np.uint8)),
    "searchsorted": (sorting.searchsorted, torch.searchsorted, np.sort(floats(8)), floats(2, 3)),
    "searchsorted, rows": (
        lambda r, v: sorting.searchsorted(r, v, right=True),
        lambda r, v: torch.searchsorted(r, v, right=True),
        np.array([[0, 1, 1, 2], [1, 2, 3, 4]]),
        np.array([[1, 2, 0], [4, 0, 1]]),
    ),
}


CASES = SHAPES | INDEXING | SCATTER | SORTING


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name):
    ours, theirs, *args = CASES[name]
    if any(isinstance(a, np.ndarray) and a.size and np.isnan(a.astype(float)).any() for a in args):
        agree(ours, theirs, *args, grad=False)
    else:
        agree(ours, theirs, *args)


def test_sort_names_its_results():
    assert sorting.sort(jnp.array([2.0, 1.0])).indices.tolist() == [1, 0]
    assert sorting.topk(jnp.array([2.0, 1.0]), 1).values.tolist() == [2.0]


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("kind", ["any", "ties", "zeros"])
def test_scatter_reduce(reduce, include_self, kind):
    x, s = floats(4, 5), floats(2, 5)
    if kind == "ties":
        x, s = np.round(x), np.round(s)
    if kind == "zeros":
        x[IDS[0, 0], 0], s[0, 1], s[:, 2] = 0, 0, 0
    for dim, ids in ((0, IDS), (1, IDS[:, :3]), (-1, np.zeros((2, 5), int))):
        agree(
            lambda x, s, i, d=dim: scatter.scatter_reduce(x, d, i, s, reduce, include_self=include_self),
            lambda x, s, i, d=dim: x.scatter_reduce(d, i, s, reduce, include_self=include_self),
            x,
            np.ascontiguousarray(s[:, : ids.shape[1]]),
            ids,
        )


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
def test_scatter_reduce_integers(reduce, include_self):
    x, s = RANDOM.integers(-3, 4, (4, 5)), RANDOM.integers(-3, 4, (2, 5))
    agree(
        lambda x, s, i: scatter.scatter_reduce(x, 0, i, s, reduce, include_self=include_self),
        lambda x, s, i: x.scatter_reduce(0, i, s, reduce, include_self=include_self),
        x,
        s,
        IDS,
    )


def test_scatter_reduce_under_vmap():
    x, s = jnp.asarray(floats(3, 4, 5)), jnp.asarray(floats(3, 2, 5))
    f = lambda x, s: scatter.scatter_reduce(x, 0, jnp.asarray(IDS), s, "amax")
    got = jax.vmap(jax.grad(lambda x, s: f(x, s).sum()))(x, s)
    np.testing.assert_array_equal(got, np.stack([jax.grad(lambda x, s: f(x, s).sum())(a, b) for a, b in zip(x, s, strict=True)]))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce(reduce, include_self):
    for dim, x, s in ((1, X, floats(4, 3, 5)), (0, floats(4), floats(3))):
        agree(
            lambda x, s, i, d=dim: scatter.index_reduce(x, d, i, s, reduce, include_self=include_self),
            lambda x, s, i, d=dim: x.index_reduce(d, i, s, reduce, include_self=include_self),
            x,
            s,
            np.array([2, 0, 2]),
        )


@pytest.mark.parametrize("shapes_of", [((3, 4), (3, 4)), ((3, 4), (4,)), ((4,), (3, 4)), ((), (2,))])
def test_masked_select(shapes_of):
    x, mask = floats(*shapes_of[0]), floats(*shapes_of[1]) > 0
    mask = np.asarray(mask)
    tensor, chosen = to_torch(x), torch.from_numpy(mask)
    want = tensor.masked_select(chosen)
    np.testing.assert_array_equal(indexing.masked_select(jnp.asarray(x), mask), want.detach().numpy())
    (want_grad,) = torch.autograd.grad((want**2).sum(), tensor)
    np.testing.assert_allclose(jax.grad(lambda x: (indexing.masked_select(x, mask) ** 2).sum())(jnp.asarray(x)), want_grad.numpy())


@pytest.mark.parametrize("dim", [None, 0, 1, -1, "number"])
def test_unique_consecutive(dim):
    x = np.array([[1, 1, 2], [1, 1, 2], [3, 3, 2], [1, 1, 2]], np.float32)
    if dim == "number":
        x, dim = np.asarray(x[0, 0]), None
    agree(
        lambda x: sorting.unique_consecutive(x, return_inverse=True, return_counts=True, dim=dim),
        lambda x: torch.unique_consecutive(x.detach(), return_inverse=True, return_counts=True, dim=dim),
        x,
        jit=False,
        grad=False,
    )


def test_split_refuses_sizes_that_do_not_add_up():
    with pytest.raises(ValueError, match="do not add up to 5"):
        shapes.split(jnp.zeros(5), [2, 2])
