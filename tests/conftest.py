"""A sample of the long tables of tests by default, all of them with --full."""
import zlib

import pytest

LONG = ("test_rows.py::test_numbers", "test_keras_", "test_layers_", "test_support_")
SHARE = 3  # one in so many


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --full."""
    parser.addoption("--full", action="store_true", help="run every case of the long tables, not a sample of one in three")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out most parametrised cases of the long tables, the same ones in every run; what is named on the command line stays."""
    if config.getoption("--full") or config.getoption("keyword"):
        return
    left_out = [i for i in items if "[" in i.nodeid and any(name in i.nodeid for name in LONG) and zlib.crc32(i.nodeid.encode()) % SHARE]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        chosen = set(map(id, left_out))
        items[:] = [i for i in items if id(i) not in chosen]
