"""Answers that no rule can extract; a judge extracts them.

The judge only reads: if a rule can check the extracted answer, the judge is not asked whether it is
right. Answers that a rule can extract are not sent to the judge; those that the judge extracts
never count as being in the requested form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase

from forgetmap.records import Outcome
from forgetmap.scoring.extract.golds import final_texts
from forgetmap.scoring.grade import Grade, grade_answer, grade_failure
from forgetmap.scoring.llm_judge.prompts import (
    ask,
    passage,
    question,
    read_verdict,
    response_text,
    silence,
    unreadable,
)
from forgetmap.scoring.scorer import FORMS, Fields, JudgeQuestion, Scale, ScorerInput, both_forms
from forgetmap.scoring.scorers.answers import maths, option, options_of

_OPEN = frozenset({Outcome.NO_ANSWER, Outcome.MISREAD, Outcome.ERROR})
"""Outcomes of a rule that are sent to the judge."""

_WHICH = (
    "Decide which option the response settles on as its answer. Do not answer the question "
    "yourself. If it settles on none, on several, or declines, the verdict is NONE."
)
_SAME = (
    "Decide whether the final answer of the response is the right one: the same value or object, "
    "in whatever form it is written. Ignore the way to it. The verdict is YES or NO, or NONE if "
    "the response comes to no final answer."
)
_FORM = (
    "Give your reason in one sentence. Then end with a line that holds nothing but VERDICT, a "
    "colon and the verdict, for example:\nVERDICT: {example}"
)


class OptionJudgeScorer:
    """One of the options, extracted by a judge if the rule finds none."""

    name = "option_judge"
    version = 1
    fields: Mapping[str, Scale] = FORMS

    def questions(self, sample: ScorerInput) -> Sequence[JudgeQuestion]:
        """Ask for the chosen option, unless the rule finds it."""
        if not _is_open(sample, option.score(sample)):
            return ()
        letters = zip(ascii_uppercase, options_of(sample), strict=False)
        listing = "\n".join(f"{letter}. {text}" for letter, text in letters)
        return [_ask(sample, passage("Options", listing), _WHICH, example="B")]

    def settle(self, sample: ScorerInput, replies: Sequence[str | None]) -> Fields:
        """Return the grade by rule, of the response or of the letter that the judge extracted."""
        rule_fields = option.score(sample)
        if not _is_open(sample, rule_fields):
            return rule_fields
        (reply,) = replies
        letters = ascii_uppercase[: len(options_of(sample))]
        verdict = read_verdict(reply, {*letters, "NONE"})
        if verdict is None:
            return both_forms(unreadable(replies))
        if verdict == "NONE":
            return both_forms(grade_failure(Outcome.NO_ANSWER))
        read = replace(sample, response=f"Answer: {verdict}", finish_reason=None)
        return both_forms(replace(option.score(read)["acc"], strict=False))


class MathsJudgeScorer:
    """Mathematics, compared by a judge if the rule finds no answer or cannot compare it."""

    name = "maths_judge"
    version = 1
    fields: Mapping[str, Scale] = FORMS

    def questions(self, sample: ScorerInput) -> Sequence[JudgeQuestion]:
        """Ask whether the answer is right, unless the rule can decide."""
        if not _is_open(sample, maths.score(sample)):
            return ()
        right = passage("Right answer", "\nor ".join(final_texts(sample.gold)))
        return [_ask(sample, right, _SAME, example="NO")]

    def settle(self, sample: ScorerInput, replies: Sequence[str | None]) -> Fields:
        """Return the grade by rule, else that of the judge."""
        rule_fields = maths.score(sample)
        return (
            rule_fields
            if not _is_open(sample, rule_fields)
            else both_forms(_grade_verdict(rule_fields, replies))
        )


def _grade_verdict(rule_fields: Fields, replies: Sequence[str | None]) -> Grade:
    (reply,) = replies
    verdict = read_verdict(reply, {"YES", "NO", "NONE"})
    if verdict is None:
        return unreadable(replies)
    if verdict == "NONE":
        return grade_failure(Outcome.NO_ANSWER)
    return grade_answer(rule_fields["acc"].answer or "", right=verdict == "YES", strict=False)


def _is_open(sample: ScorerInput, rule_fields: Fields) -> bool:
    return silence(sample) is None and rule_fields["acc"].outcome in _OPEN


def _ask(sample: ScorerInput, against: str, task: str, *, example: str) -> JudgeQuestion:
    request = passage("Question", question(sample)) if sample.question else ""
    response = passage("Response", response_text(sample))
    return ask(request, against, response, task, _FORM.format(example=example))


option_judge = OptionJudgeScorer()
maths_judge = MathsJudgeScorer()
