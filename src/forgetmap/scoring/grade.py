r"""The verdict on a response: find the answer, or say why there is none.

Order of decision:

1. Thinking sections go. Thinking that never ends used up its budget, like `finish_reason` length.
2. The last answer in the demanded form (`Answer: X` on a line of its own, `\boxed{X}`) counts,
   wherever it stands, and beats everything said otherwise. In a response that was cut off it counts
   only if it was complete: its line or box had ended, or it is a letter.
3. A response that ends in a loop is degenerate, one that was cut off is truncated.
4. A response that is nothing but the answer counts; then whatever it states elsewhere, such as
   "the answer is X", last line first. Two different answers are no answer.
5. Else it is a refusal, or no answer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

from forgetmap.errors import UsageError
from forgetmap.records import Outcome
from forgetmap.scoring.claims import Claim, marked, next_question, without_empty_mark
from forgetmap.scoring.failures import loops, refuses
from forgetmap.scoring.grades import AnswerKind, Judged, failed
from forgetmap.scoring.maths import MathsReader
from forgetmap.scoring.options import OptionReader
from forgetmap.scoring.quantities import NumberReader
from forgetmap.scoring.texts import TextReader
from forgetmap.scoring.thinking import said_aloud
from forgetmap.scoring.wording import plain


class Reader(Protocol):
    """Reads and judges answers of one kind to one question; several answers are a contradiction."""

    def named(self, phrase: str) -> list[Any]:
        """The answers a phrase gives that is said to be the answer."""

    def alone(self, text: str) -> list[Any]:
        """The answer, if the text is nothing else."""

    def stated(self, text: str) -> list[Any]:
        """The answers a text settles on."""

    def complete(self, phrase: str) -> bool:
        """Whether nothing can have been cut off."""

    def grade(self, answer: Any, phrase: str, *, strict: bool) -> Judged:
        """Right or wrong."""


def grade_response(
    response: str,
    *,
    gold: str,
    kind: AnswerKind,
    options: tuple[str, ...] = (),
    also_right: tuple[str, ...] = (),
    finish_reason: str | None = None,
) -> Judged:
    """Find the answer in a response and judge it.

    Args:
        response: all of it, thinking included. If the prompt ended in `Answer:`, put that in front:
            the response is the rest of that line.
        gold: the right answer as text; with options, the text of the right one.
        kind: how the answer is read.
        options: as shown, in order.
        also_right: further right answers.
        finish_reason: `length` if the response was cut off.

    Returns:
        The verdict. A response never raises an error.

    Raises:
        FieldError: the right answer cannot be one of this kind.
        UsageError: unknown kind, or math-verify is needed and not installed.
    """
    return verdict(response, _reader(kind, gold, options, also_right), finish_reason=finish_reason)


def verdict(response: str, reader: Reader, *, finish_reason: str | None = None) -> Judged:
    """Find the answer as this reader does and judge it; a response never raises an error."""
    aloud, cut = said_aloud(response, finish_reason)
    text = plain(aloud)
    claims = _claims(text, reader, cut=cut)
    wavering = any(answers != claims[-1][1] for _, answers in claims)
    if (wavering or not claims) and loops(response):
        return failed(Outcome.DEGENERATE)
    if claims:
        claim, answers = claims[-1]
        return _settle(reader, answers, claim.phrase, strict=claim.last)
    return _unmarked(without_empty_mark(text.strip()), reader, cut=cut)


def _claims(text: str, reader: Reader, *, cut: bool) -> list[tuple[Claim, list[Any]]]:
    """Claims in the demanded form that name an answer, up to a question the model makes up."""
    found = [
        (claim, answers)
        for claim in marked(text)
        if (claim.ended or not cut or reader.complete(claim.phrase))
        and (answers := reader.named(claim.phrase))
    ]
    end = next_question(text, found[0][0].start) if found else None
    return found if end is None else [each for each in found if each[0].start < end]


def _unmarked(text: str, reader: Reader, *, cut: bool) -> Judged:
    """No answer in the demanded form."""
    alone = reader.alone(text)
    if alone and (not cut or reader.complete(text)):
        return _settle(reader, alone, text, strict=True)
    if cut:
        return failed(Outcome.TRUNCATED)
    if stated := reader.stated(text):
        return _settle(reader, stated, strict=False)
    return failed(Outcome.REFUSED if refuses(text) else Outcome.NO_ANSWER)


def _settle(reader: Reader, answers: list[Any], phrase: str = "", *, strict: bool) -> Judged:
    if len(answers) > 1:
        return failed(Outcome.NO_ANSWER)
    return reader.grade(answers[0], phrase, strict=strict)


@lru_cache(maxsize=4096)
def _reader(
    kind: AnswerKind, gold: str, options: tuple[str, ...], also_right: tuple[str, ...]
) -> Reader:
    if kind == "option":
        return OptionReader(options, gold, also_right)
    if kind == "text":
        return TextReader(gold, also_right)
    if kind == "number":
        return NumberReader(gold, also_right)
    if kind == "maths":
        return MathsReader(gold, also_right)
    raise UsageError(
        f"unknown kind of answer: {kind!r}",
        hint="use one of option, text, number, maths.",
    )
