"""How the rows of public benchmarks become questions: one small reader per schema.

A reader returns None for a row whose right answer cannot be told; such a row is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from forgetmap.evaluation.suites.hub import HubRow

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Found:
    """What a row asks; the first of `gold` is the answer, the others also count as right."""

    question: str
    gold: tuple[str, ...]
    options: tuple[str, ...] = ()
    cluster: str | None = None


Reader = Callable[[HubRow], Found | None]


def fingerprint(*texts: str) -> str:
    """Twelve hexadecimal digits that stand for these texts."""
    return sha256("\x1f".join(texts).encode()).hexdigest()[:12]


def _picked(
    question: str, options: Sequence[str], places: Sequence[int], cluster: str | None = None
) -> Found | None:
    """The options at these places are right; none if a place does not exist."""
    texts = tuple(option.strip() for option in options)
    if len(texts) < 2 or not places or not all(0 <= place < len(texts) for place in places):
        return None
    gold = tuple(dict.fromkeys(texts[place] for place in places))
    return Found(question.strip(), gold, texts, cluster)


def _place(answer: Any) -> int:
    """Place of an answer given as a letter or a number from 0; -1 if it is neither."""
    text = str(answer).strip()
    if text.isdecimal():
        return int(text)
    return LETTERS.find(text) if len(text) == 1 else -1


def choices(row: HubRow) -> Found | None:
    """MMLU: `question`, `choices`, `answer` as a number or letter."""
    return _picked(row["question"], row["choices"], [_place(row["answer"])])


def labelled(row: HubRow) -> Found | None:
    """ARC, CommonsenseQA: `choices` with `text` and `label`, `answerKey` is one of the labels."""
    texts, labels = row["choices"]["text"], list(row["choices"]["label"])
    key = row["answerKey"]
    return _picked(row["question"], texts, [labels.index(key)] if key in labels else [])


def goal(row: HubRow) -> Found | None:
    """PIQA: `goal`, `sol1`, `sol2`, `label`."""
    return _picked(row["goal"], [row["sol1"], row["sol2"]], [_place(row["label"])])


def situation(row: HubRow) -> Found | None:
    """Social IQa: `context`, `question`, three answers, `label` from 1."""
    options = [row["answerA"], row["answerB"], row["answerC"]]
    question = f"{row['context'].strip()} {row['question']}"
    return _picked(question, options, [_place(row["label"]) - 1], fingerprint(row["context"]))


def ending(row: HubRow) -> Found | None:
    """HellaSwag: a beginning, four `endings`, `label` as text (empty in the test split)."""
    begun = f"{row['activity_label']}: {row['ctx_a']} {row['ctx_b'].capitalize()}"
    return _picked(begun, row["endings"], [_place(row["label"])], row.get("source_id"))


def story(row: HubRow) -> Found | None:
    """MCTest: `story`, `question`, `answer_options` A to D, `answer` as a letter."""
    options = [row["answer_options"][letter] for letter in "ABCD"]
    question = f"{row['story'].strip()}\n\n{row['question']}"
    return _picked(question, options, [_place(row["answer"])], fingerprint(row["story"]))


def narrative(row: HubRow) -> Found | None:
    """MuSR: `narrative`, `question`, `choices` as a list or as its Python text, `answer_index`."""
    given = row["choices"]
    options = ast.literal_eval(given) if isinstance(given, str) else given
    question = f"{row['narrative'].strip()}\n\n{row['question']}"
    return _picked(question, options, [_place(row["answer_index"])], fingerprint(row["narrative"]))


def expert(row: HubRow) -> Found | None:
    """GPQA: a correct answer and three incorrect ones, each in its own column."""
    wrong = [row[f"Incorrect Answer {number}"] for number in (1, 2, 3)]
    return _picked(row["Question"], [row["Correct Answer"], *wrong], [0])


def truthful(row: HubRow) -> Found | None:
    """TruthfulQA MC1: `mc1_targets` with `choices` and `labels`, of which one is 1."""
    targets = row["mc1_targets"]
    right = [place for place, label in enumerate(targets["labels"]) if label == 1]
    return _picked(row["question"], targets["choices"], right)


def several(row: HubRow) -> Found | None:
    """SaladBench MRQ: `question`, `choices`, `answers` as places from 0, one or more."""
    return _picked(row["question"], row["choices"], [_place(answer) for answer in row["answers"]])


def lettered(row: HubRow) -> Found | None:
    """BIG-Bench Hard with options in the text: `(A) ...` under `Options:`, `target` as `(A)`."""
    question, _, listed = row["input"].rpartition("\nOptions:\n")
    _, *parts = re.split(r"(?:^|\n)\(([A-Z])\)", listed)
    letters, options = parts[::2], parts[1::2]
    target = re.fullmatch(r"\(([A-Z])\)", row["target"].strip())
    if target is None or target[1] not in letters or "".join(letters) != LETTERS[: len(letters)]:
        return None
    return _picked(question, options, [letters.index(target[1])])


def named(*options: str) -> Reader:
    """BIG-Bench Hard with the same options everywhere, such as Yes and No."""

    def read(row: HubRow) -> Found | None:
        question = row["input"].removeprefix("Question: ").partition("\nOptions:\n")[0]
        places = [place for place, text in enumerate(options) if text == row["target"].strip()]
        return _picked(question, options, places)

    return read


def counted(row: HubRow) -> Found | None:
    """BIG-Bench Hard without options: the answer is a number."""
    target = row["target"].strip()
    return Found(row["input"].strip(), (target,)) if target.isdecimal() else None


READERS: dict[str, Reader] = {
    reader.__name__: reader
    for reader in (
        choices, labelled, goal, situation, ending, story, narrative, expert, truthful, several,
        lettered, counted,
    )
}  # fmt: skip
