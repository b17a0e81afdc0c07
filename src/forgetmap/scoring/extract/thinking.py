"""Thinking sections, which are removed before the answer is extracted."""

from __future__ import annotations

import re

_TAG = re.compile(
    r"<(?P<close>/)?(?:think|thinking|reasoning)>|<\|(?:begin|(?P<end>end))_of_thought\|>",
    re.IGNORECASE,
)


def visible_text(response: str, finish_reason: str | None) -> tuple[str, bool]:
    """Return the response without thinking, and whether the response or thinking was truncated."""
    text, thought_out = without_thinking(response)
    return text, finish_reason == "length" or not thought_out


def without_thinking(response: str) -> tuple[str, bool]:
    """Return the response without thinking, and whether the thinking is complete.

    A closing tag without an opening one ends thinking that began in the prompt: everything before
    it is removed. If that leaves nothing, but a section was closed before, the tag is ignored.
    """
    if "<" not in response:
        return response, True
    parts: list[str] = []
    before_stray: list[str] = []
    thinking = ever_closed = False
    position = 0
    for tag in _TAG.finditer(response):
        closes = bool(tag["close"] or tag["end"])
        if not thinking:
            parts.append(response[position : tag.start()])
        if closes and not thinking:
            before_stray, parts = (parts if ever_closed else []), []
        ever_closed |= closes and thinking
        thinking = not closes
        position = tag.end()
    if not thinking:
        parts.append(response[position:])
    text = "".join(parts)
    return (text if text.strip() else "".join(before_stray) or text), not thinking
