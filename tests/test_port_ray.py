"""The Ray engine gives what the local one gives, also where a worker dies on the way."""

import os

import pytest
from port_common import BLOCKS, NET, output

from migrate.port import Options, port
from migrate.port.pool import Processes

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.filterwarnings("ignore::FutureWarning"), pytest.mark.filterwarnings("ignore::ResourceWarning")]


def silent(what, done, total):
    """Nobody looks."""


@pytest.fixture
def packages(request):
    """How many packages: a few, or fifty with --full."""
    return 50 if request.config.getoption("--full") else 4


def test_ray_gives_the_same_and_a_dead_workers_tasks_are_done_again(tmp_path, packages, monkeypatch):
    from migrate.port.cluster import Ray

    for n in range(packages):
        folder = tmp_path / f"p/package_{n}"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "net.py").write_text(NET.format(package=f"package_{n}", extra=str(n)))
        (folder / "blocks.py").write_text(BLOCKS)
    engine = Processes(1)
    port(tmp_path / "p", tmp_path / "local", Options(), engine, silent)
    engine.close()
    died = tmp_path / "died"
    monkeypatch.setenv("MIGRATE_TEST_DIE_ONCE", f"package_1/net.py={died}")
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    environment = dict(os.environ)
    cluster = Ray(2)
    try:
        done = port(tmp_path / "p", tmp_path / "ray", Options(), cluster, silent)
    finally:
        cluster.close()
        os.environ.update(environment)
    assert died.exists(), "a worker was killed"
    assert len(done.plan.parts) >= packages
    assert output(tmp_path / "local") == output(tmp_path / "ray")
