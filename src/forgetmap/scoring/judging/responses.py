"""Responses that need no judge, because nothing was said."""

from __future__ import annotations

from typing import Any

from forgetmap.errors import FieldError
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.failures import loops
from forgetmap.scoring.golds import unwrapped
from forgetmap.scoring.scorer import Answered
from forgetmap.scoring.thinking import without_thinking


def aloud(sample: Answered) -> str:
    """What was said after thinking."""
    return without_thinking(sample.response)[0].strip()


def silence(sample: Answered) -> Outcome | None:
    """Why there is nothing to judge; None if there is something."""
    said, thought_out = without_thinking(sample.response)
    if loops(sample.response):
        return Outcome.DEGENERATE
    if any(map(str.isalnum, said)):
        return None
    cut = sample.finish_reason == "length" or not thought_out
    return Outcome.TRUNCATED if cut else Outcome.NO_ANSWER


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
    text = "\n\n".join(_texts(unwrapped(value))).strip()
    if not text:
        raise _lacking(field, f"give `{field}` with the item, or leave the metric out.")
    return text


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in _texts(each)]
    return []


def _lacking(field: str, hint: str) -> FieldError:
    return FieldError(f"the item has no {field}", field=field, hint=hint)
