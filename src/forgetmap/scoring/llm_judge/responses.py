"""Responses that need no judge, because nothing was said."""

from __future__ import annotations

from typing import Any

from forgetmap.errors import FieldError
from forgetmap.records import Outcome
from forgetmap.scoring.evidence import texts_in
from forgetmap.scoring.failures import loops, why_nothing
from forgetmap.scoring.golds import unwrapped
from forgetmap.scoring.scorer import Answered
from forgetmap.scoring.thinking import said_aloud, without_thinking


def aloud(sample: Answered) -> str:
    """What was said after thinking."""
    return without_thinking(sample.response)[0].strip()


def silence(sample: Answered) -> Outcome | None:
    """Why there is nothing to judge; None if there is something."""
    said, cut = said_aloud(sample.response, sample.finish_reason)
    if loops(sample.response):
        return Outcome.DEGENERATE
    return None if any(map(str.isalnum, said)) else why_nothing(said, cut=cut)


def question(sample: Answered) -> str:
    """All that was asked, in order.

    Raises:
        FieldError: nothing was.
    """
    text = "\n\n".join(turns(sample)).strip()
    if not text:
        raise _lacking("question", "keep the prompts with the responses: a judge must see them.")
    return text


def turns(sample: Answered) -> tuple[str, ...]:
    """What the user said in each turn."""
    given = sample.material.get("turns") or sample.question
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def text_of(value: Any, field: str) -> str:
    """A text, from one or several or from an object that holds it.

    Raises:
        FieldError: there is none.
    """
    text = "\n\n".join(texts_in(unwrapped(value))).strip()
    if not text:
        raise _lacking(field, f"give `{field}` with the item, or leave the metric out.")
    return text


def _lacking(field: str, hint: str) -> FieldError:
    return FieldError(f"the item has no {field}", field=field, hint=hint)
