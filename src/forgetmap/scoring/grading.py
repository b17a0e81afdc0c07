r"""Grading of a response: extract the answer, or state why there is none.

Order of decision:

1. Thinking sections are removed. Unfinished thinking counts as truncated, as does `finish_reason`
   length.
2. The last answer in the requested form (`Answer: X` on a line of its own, `\boxed{X}`) counts,
   wherever it is, and takes precedence over all other answers. In a truncated response it counts
   only if it is complete: its line or box has ended, or it is a letter.
3. A response that ends in a loop is degenerate, one that was cut off is truncated.
4. A response that is only the answer counts; then an answer stated elsewhere, such as "the answer
   is X", last line first. Two different answers are no answer.
5. Otherwise it is a refusal, or no answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, Protocol

from forgetmap.errors import UsageError
from forgetmap.records import Outcome
from forgetmap.scoring.extract.claims import (
    AnswerClaim,
    find_marked_claims,
    next_question,
    without_empty_mark,
)
from forgetmap.scoring.extract.failures import is_loop, is_refusal
from forgetmap.scoring.extract.maths import MathsReader
from forgetmap.scoring.extract.numbers import NumberReader
from forgetmap.scoring.extract.options import OptionReader, right_options
from forgetmap.scoring.extract.text import TextReader
from forgetmap.scoring.extract.thinking import visible_text
from forgetmap.scoring.extract.wording import simplify
from forgetmap.scoring.grade import AnswerKind, Grade, grade_answer, grade_failure, grade_missing


class AnswerReader(Protocol):
    """Reader of the answers of one kind to one question; several answers are a contradiction."""

    def read_claim(self, phrase: str) -> list[Any]:
        """Return the answers in a phrase that is marked as the answer."""

    def read_bare(self, text: str) -> list[Any]:
        """Return the answer, if the text is only the answer."""

    def read_statement(self, text: str) -> list[Any]:
        """Return the answers that a text states."""

    def is_complete(self, phrase: str) -> bool:
        """Whether an answer is complete, even if the response was truncated."""

    def grade(self, answer: Any, phrase: str, *, strict: bool) -> Grade:
        """Grade an answer."""


def grade_response(
    response: str,
    *,
    gold: str,
    kind: AnswerKind,
    options: tuple[str, ...] = (),
    also_right: tuple[str, ...] = (),
    finish_reason: str | None = None,
) -> Grade:
    """Extract the answer from a response and grade it.

    Args:
        response: the complete response, with thinking. If the prompt ended in `Answer:`, prepend
            that, since the response is the rest of that line.
        gold: the right answer as text; with options, the text of the right option.
        kind: kind of the answer.
        options: options as shown, in order.
        also_right: further right answers.
        finish_reason: `length` if the response was truncated.

    Returns:
        The grade. No response raises an error.

    Raises:
        FieldError: the right answer is not of this kind.
        UsageError: the kind is unknown, or math-verify is needed and not installed.
    """
    return find_and_grade(
        response, _reader(kind, gold, options, also_right), finish_reason=finish_reason
    )


def find_and_grade(
    response: str, reader: AnswerReader, *, finish_reason: str | None = None
) -> Grade:
    """Extract the answer with this reader and grade it; no response raises an error."""
    visible, cut = visible_text(response, finish_reason)
    text = simplify(visible)
    claims = _claims(text, reader, cut=cut)
    wavering = any(answers != claims[-1][1] for _, answers in claims)
    if (wavering or not claims) and is_loop(response):
        return grade_failure(Outcome.DEGENERATE)
    if claims:
        claim, answers = claims[-1]
        return _settle(reader, answers, claim.phrase, strict=claim.last)
    return _unmarked(without_empty_mark(text.strip()), reader, cut=cut)


def _claims(text: str, reader: AnswerReader, *, cut: bool) -> list[tuple[AnswerClaim, list[Any]]]:
    """Return claims in the requested form with an answer, up to a question the model invents."""
    claims = [
        (claim, answers)
        for claim in find_marked_claims(text)
        if (claim.ended or not cut or reader.is_complete(claim.phrase))
        and (answers := reader.read_claim(claim.phrase))
    ]
    end = next_question(text, claims[0][0].start) if claims else None
    return claims if end is None else [pair for pair in claims if pair[0].start < end]


def _unmarked(text: str, reader: AnswerReader, *, cut: bool) -> Grade:
    """Grade a response without an answer in the requested form."""
    alone = reader.read_bare(text)
    if alone and (not cut or reader.is_complete(text)):
        return _settle(reader, alone, text, strict=True)
    if cut:
        return grade_failure(Outcome.TRUNCATED)
    if stated := reader.read_statement(text):
        return _settle(reader, stated, strict=False)
    return grade_failure(Outcome.REFUSED if is_refusal(text) else Outcome.NO_ANSWER)


def _settle(reader: AnswerReader, answers: list[Any], phrase: str = "", *, strict: bool) -> Grade:
    if len(answers) > 1:
        return grade_failure(Outcome.NO_ANSWER)
    return reader.grade(answers[0], phrase, strict=strict)


@lru_cache(maxsize=4096)
def _reader(
    kind: AnswerKind, gold: str, options: tuple[str, ...], also_right: tuple[str, ...]
) -> AnswerReader:
    if kind == "option":
        return OptionReader(options, gold, also_right)
    if kind == "text":
        return TextReader(gold, also_right)
    if kind == "number":
        return NumberReader(gold, also_right)
    if kind == "maths":
        return MathsReader(gold, also_right)
    raise UsageError(
        f"unknown kind of answer: {kind!r}", hint="use one of option, text, number, maths."
    )


Normalise = Literal["none", "tokens", "chars"]
"""Length to divide log-likelihoods by, so that long options are not at a disadvantage."""


def grade_likelihoods(
    logprobs: Sequence[float],
    tokens: Sequence[int],
    options: Sequence[str],
    *,
    gold: str,
    also_right: Sequence[str] = (),
    normalise: Normalise = "none",
) -> Grade:
    """Grade the most likely option.

    If different options are equally likely, none is chosen: taking the first one would be a
    preference for a letter that the model does not have.

    Args:
        logprobs: sum of the log-probabilities of each option.
        tokens: number of tokens of each option.
        options: options as shown, in order.
        gold: text of the right option.
        also_right: texts of further right options.
        normalise: divide by nothing, by tokens, or by characters of the option.

    Returns:
        The grade; missing if a log-probability is not a number.
    """
    right = right_options(tuple(options), gold, tuple(also_right))
    if not len(logprobs) == len(tokens) == len(options):
        raise UsageError(
            f"{len(logprobs)} log-likelihoods and {len(tokens)} lengths for {len(options)} options",
            hint="pass one of each per option, in the order of the options.",
        )
    if any(math.isnan(value) or value == math.inf for value in logprobs):
        return grade_missing("a log-likelihood is not a finite number")
    if normalise == "tokens" and min(tokens) < 1:
        return grade_missing("an option has no tokens")
    lengths = _lengths(tokens, options, normalise)
    values = [value / length for value, length in zip(logprobs, lengths, strict=True)]
    best = max(values)
    best_options = [index for index, value in enumerate(values) if value == best]
    if len({options[index] for index in best_options}) > 1:
        return grade_failure(Outcome.NO_ANSWER)
    choice = options[best_options[0]]
    return grade_answer(choice, right=best_options[0] in right, choice=choice)


def _lengths(tokens: Sequence[int], options: Sequence[str], by: Normalise) -> list[int]:
    if by == "tokens":
        return list(tokens)
    if by == "chars":
        return [max(len(option), 1) for option in options]
    return [1] * len(options)
