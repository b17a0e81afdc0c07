"""Claims of papers, compared with their own values."""

from __future__ import annotations

import pytest

from forgetmap.study import published_findings, tell_published
from forgetmap.study.result import StudyFinding
from forgetmap.text import blocks_to_text


@pytest.fixture(scope="module")
def findings() -> dict[str, StudyFinding]:
    result = published_findings()
    every = [one for paper in result.papers for one in (*paper.findings, *paper.further)]
    assert len({one.id for one in every}) == len(every)
    return {one.id: one for one in every}


def test_larger_models_forget_less_cannot_be_told(findings: dict[str, StudyFinding]) -> None:
    size = findings["size"]
    assert size.answer == "cannot tell"
    assert "Qwen2.5-Coder (6.8, 7.6, 8.0, 6.4)" in size.sentence
    estimate = size.evidence[0].estimate
    limits = [estimate.value, estimate.low, estimate.high]
    assert limits == pytest.approx([-0.0082, -0.0190, 0.0026], abs=1e-4)
    assert any("8 of 17 pairs change the prompt style" in one for one in size.confounds)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("pretraining", "cannot tell"),
        ("instruction-tuning", "yes"),
        ("reasoning-from-base", "cannot tell"),
        ("little-data", "cannot tell"),
        ("much-data", "yes"),
        ("merging", "yes"),
        ("data", "cannot tell"),
        ("categories", "yes"),
        ("catastrophic:instruction tuning", "yes"),
        ("algorithms", "cannot tell"),
        ("recovery", "no"),
        ("drift-size", "cannot tell"),
    ],
)
def test_answers(findings: dict[str, StudyFinding], name: str, answer: str) -> None:
    assert findings[name].answer == answer


def test_only_what_the_paper_claims_is_called_its_claim() -> None:
    paper = published_findings().papers[0]
    claims = {one.id for one in paper.findings}
    further = {one.id: one for one in paper.further}
    assert {"size", "merging", "reasoning-transfer"} <= claims
    assert {"categories", "data", "domains"} <= further.keys()
    assert (
        further["domains"]
        .confounds[0]
        .startswith("the domains of 17 of these 17 pairs are assumed")
    )


def test_categories_follow_the_prompt(findings: dict[str, StudyFinding]) -> None:
    everything, changed, same = (one.estimate for one in findings["categories"].evidence)
    assert changed.value is not None
    assert same.value is not None
    assert changed.value > 5 * same.value
    assert same.low is not None
    assert same.low < 0
    assert everything.low is not None
    assert everything.low > 0


def test_everything_is_told() -> None:
    text = blocks_to_text(tell_published(published_findings()), 100)
    for words in ("SUPPORTED", "CONTRADICTED", "CANNOT TELL", "15 of 31 pairs", "2510.17776"):
        assert words in text
