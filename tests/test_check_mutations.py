"""The checker against generated mutants of a fixture: a few here, all of all fixtures with tests/mutation_run.py."""

import ast
from collections import Counter

from mutants import changes, left_out, of_rows, of_text
from mutation_run import run, survivors
from update_fixtures import FIXTURES


def texts(source):
    return [t for _, _, t in of_text(source, set(range(1, 99)))]


def test_each_change_is_one_change():
    source = "def f(x, eps=1e-05):\n    '''Doc 1.'''\n    a, b = g(x, axis=-1)\n    return a if x.ndim < 2 else a + b\n"
    found = texts(source)
    plain = ast.unparse(ast.parse(source))
    assert len(set(found)) == len(found) == 7 and plain not in found
    assert any("b, a = g" in t for t in found) and any("x.ndim <= 2" in t for t in found) and any("g(x)" in t for t in found)
    assert all("Doc 1." in t and "eps=1e-05" in t for t in found)
    assert [ast.unparse(n) for n, _ in changes(ast.parse("(1, 0)", mode="eval").body)] == ["(0, 1)"]


def test_rows_and_calls_have_mutants():
    source = (FIXTURES / "gpt" / "torch.py").read_text()
    assert len(list(of_rows(source))) > 3
    code = (FIXTURES / "gpt" / "nnx.py").read_text()
    assert any("no gradient" in what for what, _, _ in left_out(code, set(range(1, 999))))


def test_a_sample_is_caught():
    rows = run(["gpt"], 5, seed=3, show=lambda *a, **k: None)
    outcomes = Counter(r["outcome"] for r in rows)
    assert not {"survived", "misplaced"} & set(outcomes), rows
    assert outcomes["caught"] >= 3


def test_survivors_have_reasons():
    assert all(len(s["reason"]) > 20 and s["what"] for s in survivors())
