"""A sample of the long tables of tests by default, all of them with --full. --record FILE writes down what was verified, and with which
releases."""

import zlib
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

LONG = ("test_rows.py::test_numbers", "test_every_choice_of_pieces_of_the_rules", "test_pins.py", "test_keras_", "test_layers_", "test_support_", "test_edges.py")
SHARE = 3  # one in so many
DEAR = {"test_edges.py::test_gradients": 9}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --full."""
    parser.addoption("--record", help="write what PyTorch's databases verified into this file")
    parser.addoption("--full", action="store_true", help="run every case of the long tables, not a sample of one in three")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out most parametrised cases of the long tables, the same ones in every run; what is named on the command line stays."""
    if config.getoption("--full") or config.getoption("keyword"):
        return
    left_out = [i for i in items if "[" in i.nodeid and any(name in i.nodeid for name in LONG) and zlib.crc32(i.nodeid.encode()) % next((n for name, n in DEAR.items() if name in i.nodeid), SHARE)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        chosen = set(map(id, left_out))
        items[:] = [i for i in items if id(i) not in chosen]


FOUND: Counter[tuple[str, str, str, str]] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Counts what test_databases found of each operator and layer."""
    if report.when == "call" and (report.passed or report.skipped):
        for name, value in report.user_properties:
            if name == "verified":
                kind, target, label, result = str(value).split()
                FOUND[kind, target, label, result] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the counts."""
    if path := session.config.getoption("--record"):
        from record_verified import write

        write(Path(path), {r: version(r) for r in ("torch", "jax", "flax", "keras")}, FOUND)
