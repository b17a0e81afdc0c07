"""Items, tasks and suites, and the seeded order of options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from forgetmap.scoring import AnswerKind


@dataclass(frozen=True, slots=True)
class Item:
    """One question.

    Attributes:
        id: unique within its task, and the same in every run.
        question: what is asked, without instruction, options or template.
        gold: the right answer as text; with options, the text of the right one.
        options: as shown, in order; none for an open-ended question.
        also_right: further answers that count as right.
        cluster: group of dependent items, such as the questions on one passage.
        tags: further groups it belongs to.
        reasoning: how the answer is found; only worked examples have it.
        request: the user's turn word by word, where the task has scorers; the question without it.
        material: what scorers need besides: `context`, `schema`, `tests`, ... (JSON values).
    """

    id: str
    question: str
    gold: str
    options: tuple[str, ...] = ()
    also_right: tuple[str, ...] = ()
    cluster: str | None = None
    tags: tuple[str, ...] = ()
    reasoning: str = ""
    request: str = ""
    material: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """One sub-benchmark.

    Attributes:
        name: unique within its suite, such as `mmlu:sociology`.
        category: the group it is reported in.
        kind: how an answer is read and judged.
        load: makes or reads the items; nothing is read before it is called.
        instruction: what to do, in a sentence; the form of the answer is added by the protocol.
        lessons: worked examples that teach the form of an answer; never among the items.
        examples: worked examples of the task itself, for few-shot prompts; never among the items.
        hides_options: options are weighed by their text and not shown in the question.
        version: rises whenever an item or its wording changes.
        scorers: who scores the responses, by name; then items are asked as they are, without a
            demanded form, and every field of a scorer is a metric.
        bare: a plain prompt is the question and nothing else, for models trained to go on from it.
        follows: the task whose answers this one continues: its items are the second turns of the
            items with the same ids.
    """

    name: str
    category: str | None
    kind: AnswerKind
    load: Callable[[], Sequence[Item]]
    instruction: str = ""
    lessons: tuple[Item, ...] = ()
    examples: tuple[Item, ...] = ()
    hides_options: bool = False
    version: str = "1"
    scorers: tuple[str, ...] = ()
    bare: bool = False
    follows: str | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """Tasks that are run together.

    Attributes:
        name: of the suite.
        tasks: in the order they are asked.
        left_out: items of each task that were left out because they do not fit into a context.
    """

    name: str
    tasks: tuple[Task, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


def insert_gold(gold: str, wrong: Sequence[str], index: int) -> tuple[str, ...]:
    """The right option at an index among the wrong ones, for suites that draw the index."""
    return (*wrong[:index], gold, *wrong[index:])


def order_by_hash(seed: str, options: Iterable[str]) -> tuple[str, ...]:
    """Options in an order that depends on the seed and their texts, not on how they are stored."""
    return tuple(sorted(options, key=lambda option: sha256(f"{seed}\n{option}".encode()).digest()))
