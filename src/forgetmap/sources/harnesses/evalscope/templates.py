"""Prompt templates of EvalScope: extraction of the question and of the options below it."""

from __future__ import annotations

import re

# Template texts around a question, which begins after the last match of these patterns ...
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
"""Patterns, each with words that every matching text contains."""
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
"""Characters that the target may have, by the number of options."""


def split_question(query: str, target: str | None) -> tuple[str, list[str]]:
    """Return question and options; no options if the target is not one of their letters."""
    question, options = _without_template(query)
    if options and target and _TARGETS[len(options)].issuperset(target):
        return question, options
    return (_within(query) if options else question), []


def _without_template(text: str) -> tuple[str, list[str]]:
    """Return the question and its options, which are listed as `A) ...` at the end."""
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
    """Return the question without the text of the template around it."""
    bare = text.strip()
    if "\n" not in bare:  # templates add at least one line
        return bare
    likely = [pattern for words, pattern in BEGINNINGS if words in text]
    start = max((match.end() for pattern in likely for match in pattern.finditer(text)), default=0)
    ends = [end for end in map(text.rfind, ENDINGS) if end > start]
    return text[start : min(ends, default=len(text))].strip() or bare
