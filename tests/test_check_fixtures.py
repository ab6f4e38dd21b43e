"""The golden output of fixtures/: as text, and as numbers, gradients and statistics against PyTorch."""

import sys

import pytest
from update_fixtures import CASES, FIXTURES, TARGETS, golden

import migrate
from migrate.check import jax_side
from migrate.check.run import make_oracle
from migrate.check.verdict import USUAL, from_result


def test_there_are_enough():
    assert len(CASES) >= 12
    for case in CASES:
        assert len((FIXTURES / case / "torch.py").read_text().splitlines()) > 80


@pytest.mark.parametrize("case", CASES)
def test_text(case):
    """`make fixtures` writes what is expected here."""
    for name, text in golden(case).items():
        assert text == (FIXTURES / case / name).read_text(), f"fixtures/{case}/{name} is not what the conversion gives"


@pytest.mark.parametrize("case", CASES)
def test_numbers(case, tmp_path, monkeypatch):
    """What lies in the folder equals the original, in values, gradients and train mode, for both targets."""
    content = make_oracle(FIXTURES / case / "torch.py", tmp_path / "oracle")
    source = (FIXTURES / case / "torch.py").read_text()
    wrong = {}
    for target, name in TARGETS.items():
        folder = tmp_path / target
        folder.mkdir()
        (folder / f"{case}_{target}.py").write_text((FIXTURES / case / name).read_text())
        for path, text in migrate.convert_source(source, target=target).support.items():
            (folder / path).write_text(text)
        with monkeypatch.context() as m:
            m.setattr(sys, "path", list(sys.path))
            m.setattr(sys, "argv", list(sys.argv))
            m.delitem(sys.modules, "torch_support", raising=False)
            job = {
                "converted": str(folder / f"{case}_{target}.py"),
                "roots": [],
                "oracle": str(tmp_path / "oracle"),
                "out": str(folder),
                "target": target,
                "stages": list(USUAL),
            }
            verdict = from_result(jax_side.check(job), content, 0.0, target, USUAL)
        if not verdict.ok:
            wrong[target] = f"{verdict.message} {verdict.first or ''}"
        assert verdict.compared > 20 or not verdict.ok
    assert not wrong, wrong
