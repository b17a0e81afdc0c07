"""Logs as runs: selection, reading, cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import forgetmap as fm
from forgetmap.sources.open import open_run
from log_writers import inspect_sample, write_inspect


def test_two_models_of_one_file_are_two_runs_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of one model must not be taken for the other, by #NAME or by --run."""
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    ratings = {"base": [10, 10, 1, 1], "tuned": [10, 1, 10, 1]}
    rows = [
        {"question_id": place, "model": model, "judge": ["gpt-4", "single-v1"], "score": score,
         "turn": 1, "user_prompt": "?", "judgment": f"[[{score}]]", "tstamp": 1.0}
        for model, scores in ratings.items()
        for place, score in enumerate(scores)
    ]  # fmt: skip
    file = tmp_path / "gpt-4_single.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = fm.compare(f"{file}#base", f"{file}#tuned").result.total
    chosen = fm.compare(file, file, run=["base", "tuned"]).result.total
    for total in (named, chosen):
        assert (total.n11, total.n10, total.n01, total.n00) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("2026-01-31T10-20-30+00-00_sums_5bXxYhq.json", "provider/model"),
        ("base.json", "base"),
        ("2026-base.json", "2026-base"),
    ],
)
def test_a_log_with_a_time_as_its_name_is_called_after_its_model(
    file: str, name: str, tmp_path: Path
) -> None:
    log = write_inspect(tmp_path / file, [inspect_sample(1, "C")])
    assert open_run(log).name == name
