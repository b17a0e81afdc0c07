"""Groundedness: whether a response is supported by its source and complete.

A response is split into statements, each of which is judged separately. A response without
statements gets the worst value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from forgetmap.records import Outcome
from forgetmap.scoring.extract.failures import is_refusal, why_nothing
from forgetmap.scoring.extract.prose import line_sentences
from forgetmap.scoring.grade import Grade, grade_failure, grade_share
from forgetmap.scoring.llm_judge.prompts import (
    ask_each,
    batches,
    passage,
    read_yes_or_no,
    response_text,
    silence,
    text_of,
    unreadable,
)
from forgetmap.scoring.scorer import SHARE, Fields, JudgeQuestion, Scale, ScorerInput

_SUPPORTED = (
    "Decide for each statement whether the {source} supports it: all it says must stand there or "
    "follow from it directly. That something is true, likely, or not contradicted is not enough. "
    "In doubt, say no."
)
_MADE = (
    "Decide for each point, which comes from a reference answer, whether the response makes it, in "
    "whatever words. A point made in part or only hinted at is not made. In doubt, say no."
)


class FaithfulnessScorer:
    """Share of a response's statements that its source supports."""

    name = "faithfulness"
    version = 1
    fields: Mapping[str, Scale] = {"faithfulness": SHARE}

    def questions(self, sample: ScorerInput) -> Sequence[JudgeQuestion]:
        """Ask whether `context` supports each statement."""
        source = passage("Source", text_of(sample.material.get("context"), "context"))
        task = _SUPPORTED.format(source="source")
        return ask_each(source, task, "statement", _claims_of(sample))

    def settle(self, sample: ScorerInput, replies: Sequence[str | None]) -> Fields:
        """Return the share; 0 if there are no statements."""
        claims = _claims_of(sample)
        return {"faithfulness": _share(claims, replies) if claims else grade_failure(_why(sample))}


class CoverageScorer:
    """Share of the reference's points in the response, and of its statements in the reference."""

    name = "coverage"
    version = 1
    fields: Mapping[str, Scale] = {"coverage": SHARE, "within": SHARE}

    def questions(self, sample: ScorerInput) -> Sequence[JudgeQuestion]:
        """Ask about each point of the reference, then about each statement of the response."""
        reference, claims = text_of(sample.gold, "gold"), _claims_of(sample)
        if not claims:
            return ()
        task = _SUPPORTED.format(source="reference")
        return (
            *ask_each(
                passage("Response", response_text(sample)), _MADE, "point", _points(reference)
            ),
            *ask_each(passage("Reference", reference), task, "statement", claims),
        )

    def settle(self, sample: ScorerInput, replies: Sequence[str | None]) -> Fields:
        """Return the shares; both are 0 if there are no statements."""
        claims = _claims_of(sample)
        if not claims:
            why = grade_failure(_why(sample))
            return {"coverage": why, "within": why}
        points = _points(text_of(sample.gold, "gold"))
        first = len(batches(points))
        return {
            "coverage": _share(points, replies[:first]),
            "within": _share(claims, replies[first:]),
        }


def _claims_of(sample: ScorerInput) -> tuple[str, ...]:
    """Return the statements of the response; none for a refusal."""
    text = response_text(sample)
    return () if silence(sample) or is_refusal(text) else statements(text)


def _points(reference: str) -> tuple[str, ...]:
    return statements(reference) or (reference,)


def _why(sample: ScorerInput) -> Outcome:
    return silence(sample) or why_nothing(response_text(sample), cut=False)


def _share(claims: Sequence[str], replies: Sequence[str | None]) -> Grade:
    """Return the share of all statements; missing if a batch was not judged."""
    yes = 0
    for batch, reply in zip(batches(claims), replies, strict=True):
        answers = read_yes_or_no(reply, len(batch))
        if answers is None:
            return unreadable([reply])
        yes += sum(answers)
    return grade_share(yes / len(claims), f"{yes} of {len(claims)}")


faithfulness = FaithfulnessScorer()
coverage = CoverageScorer()


MAX_STATEMENTS = 100
"""Upper limit on statements of a text; further ones are not judged."""

_BLOCK = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t].*|[-=|:+ \t]+)$", re.MULTILINE)
_LIST_MARK = re.compile(r"^[ \t>]*(?:[-*+•]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])[ \t]+", re.MULTILINE)
_EMPHASIS = re.compile(r"\*\*|__|`")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:['\u2019.-][^\W_]+)*")
_MIN_WORDS = 3
_NO_CLAIM = frozenset("?:\uff1f\u061f\uff1a")
"""Endings of questions and announcements."""


def statements(text: str) -> tuple[str, ...]:
    """Return sentences that can be true or false: no questions, headings, code or fragments."""
    prose = _EMPHASIS.sub("", _LIST_MARK.sub("", _HEADING.sub("", _BLOCK.sub("", text))))
    parts = (" ".join(sentence.split()) for sentence in line_sentences(prose))
    return tuple(dict.fromkeys(part for part in parts if _is_claim(part)))[:MAX_STATEMENTS]


def _is_claim(sentence: str) -> bool:
    ending = sentence.rstrip("\"')]*_ ")[-1:]
    return ending not in _NO_CLAIM and len(_WORD.findall(sentence)) >= _MIN_WORDS
