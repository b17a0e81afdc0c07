"""promptfoo: providers as models, prompts as tasks, repeated tests, errors, totals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import UsageError
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run
from log_writers import opened


def result(test: int, *, success: object, provider: str = "p:a", **other: Any) -> dict[str, Any]:
    return {
        "provider": {"id": provider},
        "prompt": {"raw": f"Say {test}", "label": "Say {{n}}"},
        "vars": {"n": test},
        "testIdx": test,
        "testCase": {"vars": {"n": test}},
        "success": success,
        "score": float(success is True),
        "namedScores": {},
        "response": {"output": "x"},
        "gradingResult": {"pass": success},
        "failureReason": 0 if success else 1,
    } | other


def write(path: Path, results: list[Any], **stats: int) -> Path:
    top = {"evalId": "e", "results": {"version": 3, "results": results, "stats": stats}}
    path.write_text(json.dumps(top))
    return path


def test_providers_are_models(tmp_path: Path) -> None:
    results = [result(n, success=p == "p:a", provider=p) for n in (0, 1) for p in ("p:a", "p:b")]
    path = write(tmp_path / "x.json", results, successes=2)
    with pytest.raises(UsageError, match="2 models: p:a, p:b"):
        opened(path)
    run = open_run(path, reading=Reading(cached=False, run="p:b"))
    rows = run.scores.collect()
    assert rows.filter(rows["metric"] == "pass")["score"].to_list() == [0.0, 0.0]
    assert run.notices == ()


def test_an_error_is_missing_and_a_failed_assertion_is_wrong(tmp_path: Path) -> None:
    broken = result(1, success=False, error="500", failureReason=2)
    failed = result(2, success=False, error="Expected output to contain")
    run = opened(write(tmp_path / "x.json", [result(0, success=True), broken, failed]))
    rows = run.scores.collect()
    passed = rows.filter(rows["metric"] == "pass").select("item", "score").iter_rows()
    assert dict(passed) == {"0": 1.0, "1": None, "2": 0.0}


def test_stated_successes_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", [result(0, success=True)], successes=3)
    (notice,) = opened(path).notices
    assert "stats.successes 3, but these records give 1" in notice


def test_what_is_no_result_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", [result(0, success=True), "text", result(1, success="yes")])
    fields = [problem.field for problem in opened(path).problems]
    assert fields == ["results.results.1", "success"]
