"""What a text claims, sentence by sentence."""

from __future__ import annotations

import re

from forgetmap.scoring.sentences import sentences

MOST = 100
"""Statements of one text; what comes after is not judged."""

_BLOCK = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t].*|[-=|:+ \t]+)$", re.MULTILINE)
_LIST_MARK = re.compile(r"^[ \t>]*(?:[-*+•]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])[ \t]+", re.MULTILINE)
_EMPHASIS = re.compile(r"\*\*|__|`")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:['\u2019.-][^\W_]+)*")
_LEAST_WORDS = 3
_NO_CLAIM = frozenset("?:\uff1f\u061f\uff1a")
"""What ends a question or announces something."""


def statements(text: str) -> tuple[str, ...]:
    """Sentences that can be true or false: no questions, headings, code, or scraps."""
    prose = _EMPHASIS.sub("", _LIST_MARK.sub("", _HEADING.sub("", _BLOCK.sub("", text))))
    found = (" ".join(sentence.split()) for sentence in sentences(prose))
    return tuple(dict.fromkeys(each for each in found if _claims(each)))[:MOST]


def _claims(sentence: str) -> bool:
    ending = sentence.rstrip("\"')]*_ ")[-1:]
    return ending not in _NO_CLAIM and len(_WORD.findall(sentence)) >= _LEAST_WORDS
