"""Scorers of answers that a rule can decide."""

from __future__ import annotations

from collections.abc import Mapping

from forgetmap.scoring.extract.golds import (
    final_texts,
    letters_up_to,
    option_texts,
    right_indices,
    truth,
)
from forgetmap.scoring.extract.thinking import without_thinking
from forgetmap.scoring.extract.wording import simplify, trim
from forgetmap.scoring.extract.yes_no import YesNoReader
from forgetmap.scoring.grade import AnswerKind
from forgetmap.scoring.grading import find_and_grade, grade_response
from forgetmap.scoring.scorer import FORMS, Fields, Scale, ScorerInput, both_forms


class OptionScorer:
    """One of the options: by letter, by number, or by its text."""

    name = "option"
    version = 1
    fields: Mapping[str, Scale] = FORMS

    def score(self, sample: ScorerInput) -> Fields:
        """Grade the chosen option; options whose texts are unknown are letters.

        `material` may have `choices` instead of options, `gold_index` (from 0) instead of the right
        answer, and `count_from`, the number of the first option if the right answer is a number
        [default: 1].
        """
        options = options_of(sample)
        indices = self._right_indices(sample, options)
        right = tuple(options[index] for index in indices)
        grade = grade_response(
            _lettered(sample, options),
            gold=right[0],
            kind="option",
            options=options,
            also_right=right[1:],
            finish_reason=sample.finish_reason,
        )
        return both_forms(grade)

    def _right_indices(self, sample: ScorerInput, options: tuple[str, ...]) -> tuple[int, ...]:
        index = sample.material.get("gold_index")
        if isinstance(index, int) and 0 <= index < len(options):
            return (index,)
        return right_indices(sample.gold, options, count_from=sample.material.get("count_from", 1))


def options_of(sample: ScorerInput) -> tuple[str, ...]:
    """Return the options as shown; letters if their texts are unknown."""
    choices = sample.options or sample.material.get("choices")
    return option_texts(choices) or letters_up_to(sample.gold)


def _lettered(sample: ScorerInput, options: tuple[str, ...]) -> str:
    """Return the response; if it is only the number of an option, the letter of that option."""
    text = trim(simplify(without_thinking(sample.response)[0]))
    if len(text) != 1 or not text.isdecimal():
        return sample.response
    index = int(text) - sample.material.get("count_from", 1)
    numbers_occur = any(char.isdecimal() for option in options for char in option)
    counted = str(sample.gold).strip().isdecimal() and text not in options
    if not 0 <= index < len(options) or (numbers_occur and not counted):
        return sample.response
    return "ABCDEFGHIJ"[index]


class OpenScorer:
    """An answer that is compared by value."""

    version = 1
    fields: Mapping[str, Scale] = FORMS

    def __init__(self, kind: AnswerKind) -> None:
        self.name: str = kind
        self._kind = kind

    def score(self, sample: ScorerInput) -> Fields:
        """Grade the answer; the right answer of a worked solution is its final answer."""
        gold, *others = final_texts(sample.gold)
        grade = grade_response(
            sample.response,
            gold=gold,
            kind=self._kind,
            also_right=tuple(others),
            finish_reason=sample.finish_reason,
        )
        return both_forms(grade)


class YesNoScorer:
    """Yes or no."""

    name = "yes_no"
    version = 1
    fields: Mapping[str, Scale] = FORMS

    def score(self, sample: ScorerInput) -> Fields:
        """Grade the answer."""
        reader = YesNoReader(right=truth(sample.gold))
        return both_forms(
            find_and_grade(sample.response, reader, finish_reason=sample.finish_reason)
        )


option = OptionScorer()
number = OpenScorer("number")
maths = OpenScorer("maths")
yes_no = YesNoScorer()
