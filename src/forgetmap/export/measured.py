"""Evaluation items of both runs with question, options and right answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from forgetmap.records import Frame, Run, parse_options, reading

Key = tuple[str, str]
"""Task and item."""
ABC = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class MeasuredItem:
    """One evaluation item; fields that are not recorded are empty.

    Attributes:
        task: its task.
        item: its id.
        question: the question, or else the whole prompt.
        options: as shown, in order.
        gold: the right answer.
        question_hash: hash of the question, if it is recorded.
        is_bare: the question itself is recorded, not only a prompt with its template.
    """

    task: str
    item: str
    question: str = ""
    options: tuple[str, ...] = ()
    gold: str = ""
    question_hash: int | None = None
    is_bare: bool = True

    @property
    def key(self) -> Key:
        """Task and item."""
        return self.task, self.item

    @property
    def has_text(self) -> bool:
        """Whether there is a text to compare with."""
        return bool(self.question or self.options)

    def as_asked(self) -> str:
        """Return the question with its options below, each after its letter."""
        lines = [f"{letter}. {text}" for letter, text in zip(ABC, self.options, strict=False)]
        return "\n".join([self.question, *lines])

    def answer(self) -> str:
        """Return the right answer as a model should give it."""
        if self.gold in self.options[: len(ABC)]:
            return f"{ABC[self.options.index(self.gold)]}. {self.gold}"
        return self.gold


def read_measured(runs: Iterable[Run]) -> list[MeasuredItem]:
    """Read every item of these runs once, with its text if any run recorded it."""
    items: dict[tuple[object, ...], MeasuredItem] = {}
    for run in runs:
        for item in items_of(run).values():
            items.setdefault((item.task, item.question, item.options, item.gold, item.item), item)
    known = {item.key for item in items.values() if item.has_text}
    return [item for item in items.values() if item.has_text or item.key not in known]


def items_of(run: Run) -> dict[Key, MeasuredItem]:
    """Return the items of a run."""
    with reading(run):
        scores = _by_item(run.scores, ("gold", "question_hash"))
        texts = {} if run.texts is None else _by_item(run.texts, ("question", "options", "prompt"))
    return {key: _item(key, row, texts.get(key, {})) for key, row in scores.items()}


def _by_item(frame: Frame, columns: Sequence[str]) -> dict[Key, dict[str, Any]]:
    present = [name for name in columns if name in frame.collect_schema().names()]
    rows = frame.select("task", "item", *present).collect().rows(named=True)
    first: dict[Key, dict[str, Any]] = {}
    for row in rows:
        first.setdefault((row["task"], str(row["item"])), row)
    return first


def _item(key: Key, scores: dict[str, Any], texts: dict[str, Any]) -> MeasuredItem:
    question, hashed = _text(texts.get("question")), scores.get("question_hash")
    return MeasuredItem(
        *key,
        question=question or _prompt(_text(texts.get("prompt"))),
        options=_options(texts.get("options")),
        gold=_text(scores.get("gold")),
        question_hash=int(hashed) if isinstance(hashed, int) else None,
        is_bare=bool(question),
    )


def _text(value: object) -> str:
    """Return the value if it is a text, else an empty one; pandas writes null as NaN."""
    return value if isinstance(value, str) else ""


def _options(value: Any) -> tuple[str, ...]:
    if value is None or isinstance(value, float):
        return ()
    try:
        return tuple(parse_options(value if isinstance(value, str) else list(value)) or ())
    except ValueError:
        return ()


def _prompt(prompt: str) -> str:
    """Return the text of a prompt; a chat is recorded as JSON."""
    if not prompt.startswith("["):
        return prompt
    try:
        messages = json.loads(prompt)
    except (ValueError, RecursionError):
        return prompt
    contents = [part.get("content") for part in messages if isinstance(part, dict)]
    return "\n".join(text for text in contents if isinstance(text, str)) or prompt
