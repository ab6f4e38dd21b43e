"""Every definition of the support code is run by the benchmark, or has a reason why not."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import speed_coverage


def test_every_definition_is_run_or_has_a_reason():
    assert not [name for name, why in speed_coverage.uncovered().items() if not why]


def test_no_reason_is_stale():
    """Each is of something that is there and that no entry runs."""
    defined = speed_coverage.definitions()
    assert set(speed_coverage.FILES) <= {module for module, _ in defined}
    left = speed_coverage.uncovered()
    for text in speed_coverage.REASONS.values():
        for part in text.split(";"):
            module, _, names = part.strip().partition(":")
            assert [n for n in names.split() if (module, n) not in left] == [], module


def test_a_definition_without_either_is_found(monkeypatch):
    monkeypatch.setitem(speed_coverage.REASONS, "neither framework has one", "")
    assert ("flax.losses", "AdaptiveLogSoftmaxWithLoss") in {name for name, why in speed_coverage.uncovered().items() if not why}
