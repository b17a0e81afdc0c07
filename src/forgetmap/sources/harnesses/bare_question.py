"""What is asked, taken out of a rendered query: without instruction, examples, options and cue.

Harnesses wrap the same question differently; bare, it is the same text for all of them. Each query
is looked at for itself, so that no other item has a say in what an item is.
"""

from __future__ import annotations

import re
from string import ascii_uppercase

_CUE = re.compile(
    r"(?:^|\n)\s*(?:answer|reasoning|solution|a)\s*:\s*(?:let's think step by step\.?)?\s*\Z",
    re.IGNORECASE,
)
_MARKER = re.compile(r"^[ \t]*(?:Question|Q):[ \t]*", re.MULTILINE)
_ANSWERED = re.compile(r"^[ \t]*(?:Answer|Reasoning|A):[ \t]*\S", re.MULTILINE)
_ORDER = "$LETTER"
"""Stands in instructions for the letter that a response is to end with."""
_TOPIC = re.compile(r"\AThe following are multiple choice questions \(with answers\)[^\n]*\n+")
_QUOTE = re.compile(r"\"(?=\s*(?:\n[ \t]*A\) |\Z))")
_OPTION = re.compile(r"[ \t]*\(?(?P<letter>[A-Z])[).:][ \t]+(?P<text>\S.*)")
_LISTING = re.compile(r"\n[ \t]*(?:answer )?(?:options|choices)[ \t]*:[ \t]*\Z", re.IGNORECASE)


def bare_question(query: str, instruction: str | None) -> tuple[str, list[str]]:
    """The question of a query, and the options that it lists; none if it lists no options.

    Args:
        query: what the model was given, as far as it is about this item.
        instruction: what stands before every item, where the harness says so.
    """
    text = query.strip()
    lead = (instruction or "").strip()
    if lead and lead != text and text.startswith(lead):
        text = text[len(lead) :]
    text = _CUE.sub("", text)
    stem, options = _split_options(_without_head(text))
    return _LISTING.sub("", stem.rstrip()).strip(), options


def _without_head(text: str) -> str:
    """What follows instruction and worked examples; a passage belongs to the question and stays."""
    text = _TOPIC.sub("", text.lstrip())
    markers = list(_MARKER.finditer(text))
    head = text[: markers[-1].start()] if markers else ""
    if markers and (not head.strip() or _ANSWERED.search(head)):
        return text[markers[-1].end() :]
    if _ORDER not in text:
        return text
    if _ORDER in head:
        body = text[markers[-1].end() :]
        return _QUOTE.sub("", body[1:], count=1) if body.startswith('"') else body
    return text[text.index(_ORDER) :].partition("\n\n")[2] or text


def _split_options(text: str) -> tuple[str, list[str]]:
    """The last list of options from A on, and what stands before it."""
    lines = text.split("\n")
    found = [_OPTION.match(line) for line in lines]
    starts = [place for place, option in enumerate(found) if option and option["letter"] == "A"]
    if not starts:
        return text, []
    options: list[str] = []
    for line, option in zip(lines[starts[-1] :], found[starts[-1] :], strict=True):
        if option and option["letter"] == ascii_uppercase[len(options) :][:1]:
            options.append(option["text"])
        elif not line.strip():
            continue
        elif len(options) > 1 and not options[-1].endswith("\n"):
            options[-1] += f"\n{line}"
        else:
            return text, []
    if len(options) < 2:  # one is no choice
        return text, []
    return "\n".join(lines[: starts[-1]]), [option.strip() for option in options]
