"""Resources of a Ray actor; no cluster is started."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from forgetmap.evaluation.backends.ray_cluster import Share, share_of


@pytest.mark.parametrize(
    ("gpus", "actors", "models", "expected"),
    [
        (0, None, 1, (2, Share(4.0, 0.0))),
        (0, None, 2, (2, Share(2.0, 0.0))),
        (4, None, 1, (4, Share(2.0, 1.0))),
        (4, None, 2, (2, Share(2.0, 1.0))),
        (1, None, 2, (1, Share(4.0, 0.5))),
        (0, 4, 2, (4, Share(1.0, 0.0))),
    ],
)
def test_models_at_once_share_the_cluster(
    gpus: int, actors: int | None, models: int, expected: tuple[int, Share]
) -> None:
    node = {"Alive": True, "Resources": {"CPU": 8.0, "GPU": float(gpus)}}
    ray = SimpleNamespace(nodes=lambda: [node])
    assert share_of(ray, actors, on_gpu=True, models_at_once=models) == expected
