"""SWE-bench: lists of a report, reports of instances, counts, broken ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forgetmap as fm
from log_writers import opened


def write(path: Path, resolved: list[Any], unresolved: list[Any], **other: Any) -> Path:
    report = {
        "total_instances": 300,
        "resolved_instances": len(resolved),
        "completed_ids": [*resolved, *unresolved],
        "resolved_ids": resolved,
        "unresolved_ids": unresolved,
    }
    path.write_text(json.dumps(report | other))
    return path


def test_errors_and_empty_patches_are_not_resolved(tmp_path: Path) -> None:
    before = write(tmp_path / "org__bee.r1.json", ["a-1", "a-2"], ["b-1"], error_ids=["b-2"])
    after = write(tmp_path / "org__bee.r2.json", ["a-1", "b-1"], [], empty_patch_ids=["a-2", "b-2"])
    total = fm.compare(before, after, cached=False).result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (1, 1, 1, 1)
    run = opened(before)
    assert (run.info.model.name, run.info.run_id, run.notices) == ("org/bee", "r1", ())


def test_stated_count_is_checked(tmp_path: Path) -> None:
    (notice,) = opened(write(tmp_path / "x.json", ["a-1"], [], resolved_instances=5)).notices
    assert "resolved_instances 5, but these records give 1" in notice
