"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from command_line import four_items, simulated_runs

settings.register_profile("default", deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A real local Spark session; Java must be there."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two simulated runs."""
    return simulated_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two tables of four items."""
    return four_items(tmp_path)
