"""EvalPlus: base and plus tests, repeats, models in file names, broken solutions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from log_writers import opened

STATUS = {"p": "pass", "f": "fail", "t": "timeout"}


def write(path: Path, problems: dict[str, list[str]], **other: Any) -> Path:
    """Problems with the status under base and plus tests of each solution, such as `pf`."""
    evaluated = {
        f"HumanEval/{name}": [
            {"solution": "...", "base_status": STATUS[s[0]], "plus_status": STATUS[s[1]]}
            for s in solutions
        ]
        for name, solutions in problems.items()
    }
    path.write_text(
        json.dumps({"date": "2026-01-01 10:00", "hash": "0", "eval": evaluated} | other)
    )
    return path


def cells(before: Path, after: Path, **options: Any) -> tuple[float, ...]:
    total = fm.compare(before, after, cached=False, **options).result.total
    return total.n11, total.n10, total.n01, total.n00


def test_plus_is_compared_unless_base_is_asked_for(tmp_path: Path) -> None:
    before = write(tmp_path / "a.json", {"0": ["pp"], "1": ["pp"], "2": ["pf"], "3": ["tt"]})
    after = write(tmp_path / "b.json", {"0": ["pp"], "1": ["pf"], "2": ["pp"], "3": ["ff"]})
    assert cells(before, after) == (1, 1, 1, 1)
    assert cells(before, after, metric="pass@1/base") == (3, 0, 0, 1)


def test_plus_counts_only_where_base_passes(tmp_path: Path) -> None:
    run = opened(write(tmp_path / "a.json", {"0": ["fp"]}))
    rows = run.scores.collect().select("scorer", "score").iter_rows()
    assert dict(rows) == {"base": 0.0, "plus": 0.0}


def test_model_temperature_and_repeats(tmp_path: Path) -> None:
    name = "org--bee-1b_vllm_temp_0.8_eval_results.json"
    run = opened(write(tmp_path / name, {"0": ["pp", "ff"], "1": ["pp", "pp"]}))
    assert run.info.model.name == "org/bee-1b"
    assert run.info.decoding == {"temperature": 0.8}
    assert sorted(run.scores.collect()["repeat"].unique().to_list()) == [0, 1]


@pytest.mark.parametrize(("stated", "notices"), [(0.5, 0), (0.75, 1)])
def test_stated_pass_at_1_is_checked(tmp_path: Path, stated: float, notices: int) -> None:
    total = {"base": {"pass@1": 0.5}, "plus": {"pass@1": stated}}
    run = opened(write(tmp_path / "a.json", {"0": ["pp"], "1": ["ff"]}, pass_at_k=total))
    assert len(run.notices) == notices
    assert all(
        "pass_at_k.plus 0.75, but these records give 0.5" in notice for notice in run.notices
    )


def test_a_solution_without_status_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"0": ["pp"]})
    content = json.loads(path.read_text())
    content["eval"]["HumanEval/1"] = [{"solution": "...", "base_status": 7}]
    content["eval"]["HumanEval/2"] = []
    path.write_text(json.dumps(content))
    fields = [problem.field for problem in opened(path).problems]
    assert fields == ["base_status", "eval.HumanEval/2"]
