"""Short answers with several valid names, also inside a sentence.

`alias` searches the whole response for a right name, `short_answer` only the stated answer. In
both, a name counts only as whole words, not if it is negated or doubted, and not as one of several
alternatives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from forgetmap.records import Outcome
from forgetmap.scoring.extract.claims import (
    find_marked_claims,
    find_spoken_claims,
    is_hedged,
    last_line,
)
from forgetmap.scoring.extract.golds import passage_of, right_texts
from forgetmap.scoring.extract.text import readings
from forgetmap.scoring.extract.thinking import without_thinking
from forgetmap.scoring.extract.wording import (
    Word,
    find_mentions,
    fold,
    occurs,
    simplify,
    split_words,
)
from forgetmap.scoring.extract.yes_no import YesNoReader
from forgetmap.scoring.grade import Grade, grade_answer, grade_failure
from forgetmap.scoring.grading import find_and_grade, grade_response
from forgetmap.scoring.scorer import FORMS, RIGHT_OR_WRONG, Fields, Scale, ScorerInput, both_forms

_YES_OR_NO = {"yes": True, "no": False, "true": True, "false": False}
_EITHER = re.compile(r"\s(?:or|oder|ou|или)\s|/|或者?|または|หรือ")
_COMMA = re.compile(r"[,،、]|\s(?:and|und|et|y|и)\s")
_ITEM = re.compile(r"^[ \t]*(?:[-*•+]|\d{1,2}[.)])[ \t]+(.+)$", re.MULTILINE)
_SENTENCE_EDGE = re.compile("[.!?](?=\\s)|[\n。।\u06d4؟]")
_CLAUSE_REACH = 300
_MAX_MENTIONS = 20
_MIN_LIST_RIVALS = 4
_MAX_WORDS_BESIDE = 2
_UNDECIDED = frozenset({Outcome.INCORRECT, Outcome.NO_ANSWER, Outcome.REFUSED, Outcome.TRUNCATED})


class AliasScorer:
    """One of several right names, anywhere in the response."""

    name = "alias"
    version = 1
    fields: Mapping[str, Scale] = FORMS

    def score(self, sample: ScorerInput) -> Fields:
        """Return `acc`, for a right name anywhere, and `acc_strict`, for an answer that is one."""
        names = right_texts(sample.gold)
        return both_forms(_grade_names(sample, names, anywhere=True))


class ShortAnswerScorer:
    """A right name in the stated answer, and whether the text supports the answer."""

    name = "short_answer"
    version = 1
    fields: Mapping[str, Scale] = {**FORMS, "evidence": RIGHT_OR_WRONG}

    def score(self, sample: ScorerInput) -> Fields:
        """Return the values; `evidence` only with a text, and not for yes or no."""
        names = right_texts(sample.gold)
        truths = {_YES_OR_NO.get(name.strip().casefold()) for name in names}
        if len(truths) == 1 and (right := truths.pop()) is not None:
            reader = YesNoReader(right=right)
            return both_forms(
                find_and_grade(sample.response, reader, finish_reason=sample.finish_reason)
            )
        grade = _grade_names(sample, names, anywhere=False)
        passage = passage_of(sample.material, sample.gold)
        return {**both_forms(grade), **({"evidence": _evidence(grade, passage)} if passage else {})}


def _evidence(grade: Grade, passage: str) -> Grade:
    if grade.answer is None:
        return grade_failure(grade.outcome)
    text = fold(passage)
    right = any(occurs(reading, text) for reading in readings(grade.answer))
    return grade_answer(grade.answer, right=right, strict=grade.strict)


def _grade_names(sample: ScorerInput, names: tuple[str, ...], *, anywhere: bool) -> Grade:
    """Grade the answer itself, else search for a right name in the response."""
    grade = grade_response(
        sample.response,
        gold=names[0],
        kind="text",
        also_right=names[1:],
        finish_reason=sample.finish_reason,
    )
    if grade.outcome not in _UNDECIDED:
        return grade
    text = simplify(without_thinking(sample.response)[0])
    for passages in _passages(text, anywhere=anywhere):
        matches = [_find_name(names, passage) for passage in passages]
        if matches and all(matches):
            return grade_answer(str(matches[-1]), right=True, strict=False)
        if matches:
            break
    return grade


def _passages(text: str, *, anywhere: bool) -> Iterator[list[str]]:
    """Yield passages to search: the last marked claim, all spoken ones, the last line or all."""
    if claims := find_marked_claims(text):
        yield [claims[-1].phrase]
    yield list(find_spoken_claims(text))
    yield [text] if anywhere else [last_line(text)]


def _find_name(names: Sequence[str], passage: str) -> str | None:
    """Return the first right name that is neither negated nor one of several alternatives."""
    text = fold(passage)
    text_words = split_words(text)
    for name in names:
        for first, last in islice(find_mentions(name, text_words), _MAX_MENTIONS):
            start, end = text_words[first].start, text_words[last].end
            if not is_hedged(text, start) and not _among_others(names, text, start, end):
                return (passage if len(passage) == len(text) else text)[start:end]
    return None


def _among_others(names: Sequence[str], text: str, start: int, end: int) -> bool:
    """Whether the name is one of several alternatives, others of which are not right."""
    before = text[max(0, start - _CLAUSE_REACH) : start]
    edges = [edge.end() for edge in _SENTENCE_EDGE.finditer(before)]
    head = before[edges[-1] :] if edges else before
    tail = _SENTENCE_EDGE.split(text[end : end + _CLAUSE_REACH], maxsplit=1)[0]
    name = text[start:end]
    alternative = _alternative(names, head + name + tail, len(head), len(head) + len(name))
    return alternative or _is_in_list(names, text, name)


def _alternative(names: Sequence[str], clause: str, start: int, end: int) -> bool:
    """Whether the clause is `Paris or Rome`, or a long enumeration with Paris."""
    for separator, least in ((_EITHER, 1), (_COMMA, _MIN_LIST_RIVALS)):
        cuts = [cut.span() for cut in separator.finditer(clause)]
        if any(start < right and left < end for left, right in cuts):
            continue
        rivals = sum(_is_rival(names, part) for part in separator.split(clause))
        beside = len(split_words(_part_at(clause, cuts, start))) - len(
            split_words(clause[start:end])
        )
        if rivals >= least and beside <= _MAX_WORDS_BESIDE:
            return True
    return False


def _part_at(clause: str, cuts: Sequence[tuple[int, int]], position: int) -> str:
    begin = max((right for _, right in cuts if right <= position), default=0)
    end = min((left for left, _ in cuts if left >= position), default=len(clause))
    return clause[begin:end]


def _is_rival(names: Sequence[str], part: str) -> bool:
    """Whether a part is a few words without a right name."""
    part_words: list[Word] = split_words(part)
    short = 0 < len(part_words) <= _MAX_WORDS_BESIDE + 1
    return short and not any(next(find_mentions(name, part_words), None) for name in names)


def _is_in_list(names: Sequence[str], text: str, name: str) -> bool:
    """Whether the name is an item of a list with other items."""
    items = [item[1].strip(" *_.") for item in _ITEM.finditer(text)]
    return name in items and sum(_is_rival(names, item) for item in items) >= _MAX_WORDS_BESIDE


alias = AliasScorer()
short_answer = ShortAnswerScorer()
