"""More items than fit into memory, a machine that joins and one that leaves: same records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from forgetmap.evaluation.api import open_model
from forgetmap.evaluation.backends.base import LoadOptions, ModelSource
from forgetmap.evaluation.backends.ray import ActorSpec, RayActors, RayBackend
from forgetmap.evaluation.run import Step, run_model
from forgetmap.evaluation.settings import Settings
from long_answers import DigestBackend, SmallActor, long_suite
from written_runs import records

pytestmark = pytest.mark.slow

ITEMS, LETTERS = 400, 500_000
SPARE = 100 << 20
"""Bytes that an actor may take: half of what the items have."""
ROWS = 20
SUPPORT = str(Path(__file__).parents[1] / "support")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A head without processors and one machine."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    store = 150 << 20
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": store, "include_dashboard": False},
    )
    cluster.add_node(num_cpus=1, object_store_memory=store)
    ray.init(
        address=cluster.address,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": SUPPORT}},
    )
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def answered(backend: Any, out: Path, report: Any = None) -> list[dict[str, Any]]:
    _, who = open_model(backend, name="run")
    settings = Settings(max_new_tokens=8)
    run_model(backend, long_suite(ITEMS, LETTERS), out, who, settings, on_progress=report)
    return records(out)


def test_items_beyond_the_memory_of_workers_that_come_and_go(
    cluster: Cluster, tmp_path: Path
) -> None:
    first = next(node for node in cluster.list_all_nodes() if not node.is_head())
    role = ray.remote(num_cpus=1, max_restarts=0)(SmallActor)
    spec = ActorSpec(
        lambda: role.remote(SPARE, 0.3),
        lambda actor: actor.load.remote(ModelSource("digest"), LoadOptions()),
    )
    backend = RayBackend(RayActors(ray, spec, 2), ROWS)
    moves: list[str] = []

    def move(step: Step) -> None:
        if not moves and step.done > ITEMS // 5:
            moves.append("joined")
            cluster.add_node(num_cpus=1, object_store_memory=150 << 20)
        elif moves == ["joined"] and step.done > ITEMS // 2:
            moves.append("left")
            cluster.remove_node(first)

    found = answered(backend, tmp_path / "ray", move)
    assert moves == ["joined", "left"]
    assert found == answered(DigestBackend(), tmp_path / "local")
    assert {row["outcome"] for row in found} != {"error"}
