"""Content of the shipped studies, and caveats of their results."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import UsageError
from forgetmap.study import (
    TEMPLATES,
    StudySummary,
    parse_study,
    study_template,
    summarize_study,
    tell_summary,
)
from forgetmap.text import blocks_to_text


def summary_of(name: str) -> StudySummary:
    return summarize_study(parse_study(study_template(name), f"{name}.toml"))


def test_the_first_paper_has_31_pairs_in_five_groups_and_12_merges() -> None:
    summary = summary_of("post-forget")
    assert (summary.models, summary.pairs, summary.merges, summary.merge_pairs) == (36, 31, 12, 24)
    assert [(group.pairs, group.changed_style) for group in summary.groups] == [
        (5, 0), (9, 9), (5, 5), (5, 0), (7, 1),
    ]  # fmt: skip
    assert {one.name: len(one.sizes) for one in summary.series} == {
        "Qwen2.5-Coder": 4,
        "Qwen2.5-Instruct": 4,
        "Qwen2.5-Coder-Instruct": 4,
        "s1.1": 3,
        "OpenCodeReasoning": 2,
    }
    codes = {notice.code: notice.message for notice in summary.notices}
    assert "15 of 31 pairs" in codes["style_changes"]
    assert "share 14 models" in codes["shared_before"]


def test_captrack_has_its_released_models() -> None:
    summary = summary_of("captrack")
    assert (summary.models, summary.pairs, summary.merges) == (4, 4, 0)
    assert len(summary.missing_logs) == 4


def test_every_template_can_be_read_and_told() -> None:
    for name in TEMPLATES:
        assert summary_of(name).name in blocks_to_text(tell_summary(summary_of(name)), 100)
    with pytest.raises(UsageError, match="post-forget"):
        study_template("other")


def test_logs_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "there.csv").touch()
    text = """name = "x"
    [[model]]
    id = "a"
    logs = ["there.csv", "s3://bucket/away"]
    [[model]]
    id = "b"
    logs = ["gone.csv"]
    parent = "a"
    """
    summary = summarize_study(parse_study(text, str(tmp_path / "study.toml")))
    assert summary.missing_logs == ["gone.csv"]
