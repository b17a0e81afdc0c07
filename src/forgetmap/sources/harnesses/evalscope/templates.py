"""Words that EvalScope puts around a question, and the options below it."""

from __future__ import annotations

import re

# Words of the templates around a question. What is asked begins after the last beginning ...
_PATTERNS = {
    "Answer the following": r"Answer the following multiple choice question[^\n]*\n\n"
    r"(?:Question:\n)?",
    "回答下面的": "回答下面的[^\n]*\n\n问题\uff1a",
    "ANSWER:": r"^ANSWER:[^\n]*\n+",
    "答案\uff1a": "^答案\uff1a[^\n]*\n+",
    "Solve the following": r"Solve the following (?:math )?problem step by step\.[^\n]*\n\n",
    "Read the following": r"Read the following function signature and docstring,[^\n]*\n",
    "Answer the question:": r"\AAnswer the question:\n\n",
    "question:\n": r"^question:\n",
    "# Your Task\n": r"^# Your Task\n\n---\n",
}
BEGINNINGS = [(words, re.compile(text, re.MULTILINE)) for words, text in _PATTERNS.items()]
"""Patterns, each with words that stand in every text it fits."""
# ... and ends before one of these.
ENDINGS = (
    "\nPlease reason step by step",
    "\nRemember to put your answer",
    "\nThink step by step, then write a line",
    "\nOptions:",
    "\n选项\uff1a",
)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MARKS = [f"\n{letter}) " for letter in LETTERS]
_TARGETS = [frozenset({*LETTERS[:count], ",", " "}) for count in range(len(LETTERS) + 1)]
"""Characters of the target of a question with so many options."""


def split_question(query: str, target: str | None) -> tuple[str, list[str]]:
    """The question and its options; none where the target is no letter of them."""
    question, options = _without_template(query)
    if options and target and _TARGETS[len(options)].issuperset(target):
        return question, options
    return (_within(query) if options else question), []


def _without_template(text: str) -> tuple[str, list[str]]:
    """The bare question and its options, `A) ...` and so on at the end."""
    start = text.rfind(_MARKS[0])
    if start < 0:
        return _within(text), []
    at, options = start + len(_MARKS[0]), []
    for mark in _MARKS[1:]:
        end = text.find(mark, at)
        options.append(text[at : end if end >= 0 else len(text)].strip())
        if end < 0:
            break
        at = end + len(mark)
    return _within(text[:start] + "\n"), options


def _within(text: str) -> str:
    """What is asked, without the words of the template around it."""
    bare = text.strip()
    if "\n" not in bare:  # around it there is a line at least
        return bare
    likely = [pattern for words, pattern in BEGINNINGS if words in text]
    start = max((match.end() for pattern in likely for match in pattern.finditer(text)), default=0)
    ends = [end for end in map(text.rfind, ENDINGS) if end > start]
    return text[start : min(ends, default=len(text))].strip() or bare
