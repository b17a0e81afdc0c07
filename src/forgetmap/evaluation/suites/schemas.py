"""Readers of public benchmarks: one function per schema turns a row into a question.

A reader returns None for a row without a known right answer; such a row is left out.
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
class BenchmarkRow:
    """The question of a row; the first of `gold` is the answer, the others also count as right."""

    question: str
    gold: tuple[str, ...]
    options: tuple[str, ...] = ()
    cluster: str | None = None


Reader = Callable[[HubRow], BenchmarkRow | None]


def fingerprint(*texts: str) -> str:
    """Return twelve hexadecimal digits of a hash of the texts."""
    return sha256("\x1f".join(texts).encode()).hexdigest()[:12]


def _multiple_choice(
    question: str, options: Sequence[str], indices: Sequence[int], cluster: str | None = None
) -> BenchmarkRow | None:
    """Return a question whose options at `indices` are right; None if an index is invalid."""
    texts = tuple(option.strip() for option in options)
    if len(texts) < 2 or not indices or not all(0 <= index < len(texts) for index in indices):
        return None
    gold = tuple(dict.fromkeys(texts[index] for index in indices))
    return BenchmarkRow(question.strip(), gold, texts, cluster)


def _index(answer: Any) -> int:
    """Return the index of an answer given as a letter or a number from 0; -1 if it is neither."""
    text = str(answer).strip()
    if text.isdecimal():
        return int(text)
    return LETTERS.find(text) if len(text) == 1 else -1


def choices(row: HubRow) -> BenchmarkRow | None:
    """MMLU: `question`, `choices`, `answer` as a number or letter."""
    return _multiple_choice(row["question"], row["choices"], [_index(row["answer"])])


def labelled(row: HubRow) -> BenchmarkRow | None:
    """ARC, CommonsenseQA: `choices` with `text` and `label`, `answerKey` is one of the labels."""
    texts, labels = row["choices"]["text"], list(row["choices"]["label"])
    key = row["answerKey"]
    return _multiple_choice(row["question"], texts, [labels.index(key)] if key in labels else [])


def goal(row: HubRow) -> BenchmarkRow | None:
    """PIQA: `goal`, `sol1`, `sol2`, `label`."""
    return _multiple_choice(row["goal"], [row["sol1"], row["sol2"]], [_index(row["label"])])


def situation(row: HubRow) -> BenchmarkRow | None:
    """Social IQa: `context`, `question`, three answers, `label` from 1."""
    options = [row["answerA"], row["answerB"], row["answerC"]]
    question = f"{row['context'].strip()} {row['question']}"
    return _multiple_choice(
        question, options, [_index(row["label"]) - 1], fingerprint(row["context"])
    )


def ending(row: HubRow) -> BenchmarkRow | None:
    """HellaSwag: a beginning, four `endings`, `label` as text (empty in the test split)."""
    question = f"{row['activity_label']}: {row['ctx_a']} {row['ctx_b'].capitalize()}"
    return _multiple_choice(question, row["endings"], [_index(row["label"])], row.get("source_id"))


def story(row: HubRow) -> BenchmarkRow | None:
    """MCTest: `story`, `question`, `answer_options` A to D, `answer` as a letter."""
    options = [row["answer_options"][letter] for letter in "ABCD"]
    question = f"{row['story'].strip()}\n\n{row['question']}"
    return _multiple_choice(question, options, [_index(row["answer"])], fingerprint(row["story"]))


def narrative(row: HubRow) -> BenchmarkRow | None:
    """MuSR: `narrative`, `question`, `choices` as a list or as its Python text, `answer_index`."""
    choices_text = row["choices"]
    options = ast.literal_eval(choices_text) if isinstance(choices_text, str) else choices_text
    question = f"{row['narrative'].strip()}\n\n{row['question']}"
    return _multiple_choice(
        question, options, [_index(row["answer_index"])], fingerprint(row["narrative"])
    )


def expert(row: HubRow) -> BenchmarkRow | None:
    """GPQA: a correct answer and three incorrect ones, each in its own column."""
    wrong = [row[f"Incorrect Answer {number}"] for number in (1, 2, 3)]
    return _multiple_choice(row["Question"], [row["Correct Answer"], *wrong], [0])


def truthful(row: HubRow) -> BenchmarkRow | None:
    """TruthfulQA MC1: `mc1_targets` with `choices` and `labels`, of which one is 1."""
    targets = row["mc1_targets"]
    right = [index for index, label in enumerate(targets["labels"]) if label == 1]
    return _multiple_choice(row["question"], targets["choices"], right)


def several(row: HubRow) -> BenchmarkRow | None:
    """SaladBench MRQ: `question`, `choices`, `answers` as indices from 0, one or more."""
    return _multiple_choice(
        row["question"], row["choices"], [_index(answer) for answer in row["answers"]]
    )


def lettered(row: HubRow) -> BenchmarkRow | None:
    """BIG-Bench Hard with options in the text: `(A) ...` under `Options:`, `target` as `(A)`."""
    question, _, listed = row["input"].rpartition("\nOptions:\n")
    _, *parts = re.split(r"(?:^|\n)\(([A-Z])\)", listed)
    letters, options = parts[::2], parts[1::2]
    target = re.fullmatch(r"\(([A-Z])\)", row["target"].strip())
    if target is None or target[1] not in letters or "".join(letters) != LETTERS[: len(letters)]:
        return None
    return _multiple_choice(question, options, [letters.index(target[1])])


def named(*options: str) -> Reader:
    """BIG-Bench Hard with the same options everywhere, such as Yes and No."""

    def read(row: HubRow) -> BenchmarkRow | None:
        question = row["input"].removeprefix("Question: ").partition("\nOptions:\n")[0]
        indices = [index for index, text in enumerate(options) if text == row["target"].strip()]
        return _multiple_choice(question, options, indices)

    return read


def counted(row: HubRow) -> BenchmarkRow | None:
    """BIG-Bench Hard without options: the answer is a number."""
    target = row["target"].strip()
    return BenchmarkRow(row["input"].strip(), (target,)) if target.isdecimal() else None


READERS: dict[str, Reader] = {
    reader.__name__: reader
    for reader in (
        choices, labelled, goal, situation, ending, story, narrative, expert, truthful, several,
        lettered, counted,
    )
}  # fmt: skip
