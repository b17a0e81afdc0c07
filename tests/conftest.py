"""Fixtures for all tests."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from command_line import four_items, simulated_runs
from effort import LONG

if "PYTEST_XDIST_WORKER" in os.environ:
    # Every core has a worker already; a library reads this when it is loaded.
    for library in ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(library, "1")

settings.register_profile("default", deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") and not LONG else "default")

NEEDS = re.compile(r"^pytestmark = .*\bneeds_\w+", re.MULTILINE)
HEAVY = {"torch", "transformers", "pyspark", "ray", "playwright"}
LONG_FILES = (
    "test_command_blocks.py",
    "test_ray_engine.py", "test_snapshots.py", "test_spark.py", "test_merge_sweep.py",
    "test_installations.py", "test_serve.py", "test_properties.py", "test_backends.py",
    "test_harness_drivers.py", "test_server_faults.py", "test_estimators_everywhere.py",
    "test_page.py", "test_merge_killed.py", "test_doctor.py", "test_cli_capability_run.py",
    "test_adaptive.py", "test_cli.py", "test_served_page.py", "test_capability_suites.py",
    "test_hostile_logs.py", "test_adaptive_map.py", "test_cli_terminal.py", "test_decode.py",
    "test_watch.py", "test_site.py", "test_probing.py",
)  # fmt: skip
"""Started first: with two workers, a long file that comes last leaves one of them idle."""
GARBAGE = (20_000, 20, 20)
"""Objects before the collector looks for garbage: at the usual 700 it took a twentieth of the time,
nearly all of it in modules that tests had loaded."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--light`: the loop of `make unit`."""
    parser.addoption(
        "--light",
        action="store_true",
        help="Only files without torch, Spark, Ray or a browser; importing one of them fails.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """With `--light`, a test that is not marked and imports something heavy fails.

    Modules and tests stay until the end: while they are collected, nothing is garbage.
    """
    gc.disable()
    if config.getoption("--light"):
        sys.meta_path.insert(0, NothingHeavy())


class NothingHeavy(MetaPathFinder):
    """Refuses the packages that make a test slow to start."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname.partition(".")[0] in HEAVY:
            raise ModuleNotFoundError(f"{fullname} in `make unit`: mark the file with needs_...")


def is_need(mark: pytest.Mark) -> bool:
    """Whether a mark says that a test needs something heavy."""
    return mark.name.startswith("needs_")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--light`, files that are marked are not even imported."""
    if not config.getoption("--light") or collection_path.suffix != ".py":
        return None
    return bool(NEEDS.search(collection_path.read_text(encoding="utf-8"))) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first, in their order; the rest as collected. With `--light`, nothing marked."""
    if config.getoption("--light"):
        items[:] = [item for item in items if not any(map(is_need, item.iter_markers()))]
    last = len(LONG_FILES)
    rank = {name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: rank.get(item.path.name, last))


def pytest_collection_finish() -> None:
    """From here on the garbage collector passes over the millions of objects of all modules."""
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    gc.enable()


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A master and two workers, each a process; Java must be there."""
    from spark_cluster import running_cluster

    with running_cluster(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark(spark_cluster: Any) -> Iterator[Any]:
    """A real Spark session on two executors."""
    session = spark_cluster.session()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two simulated runs and a rerun of each."""
    return simulated_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two tables of four items."""
    return four_items(tmp_path)
