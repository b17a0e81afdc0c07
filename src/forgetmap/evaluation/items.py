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
        id: unique within the task, and the same in every run.
        question: text of the question, without instruction, options or template.
        gold: right answer as text; with options, the text of the right one.
        options: options in display order; empty for an open-ended question.
        also_right: further right answers.
        cluster: group of dependent items, such as questions on one passage.
        tags: further groups of the item.
        reasoning: steps to the answer; only worked examples have it.
        request: full user turn, for tasks with scorers; by default the question.
        material: further inputs of scorers: `context`, `schema`, `tests`, ... (JSON values).
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
        category: group in which it is reported.
        kind: how an answer is extracted and graded.
        load: generates or reads the items; nothing is read before it is called.
        instruction: instruction in one sentence; the protocol adds the answer format.
        lessons: worked examples that show the answer format; never among the items.
        examples: worked examples of the task itself, for few-shot prompts; never among the items.
        hides_options: options are compared by their text and not shown in the question.
        version: increased whenever an item or its wording changes.
        scorers: names of the scorers of responses; items are then used as they are, without an
            answer format, and every field of a scorer is a metric.
        bare: a plain prompt is the question only, for models that were trained to continue it.
        follows: task that this one continues: its items are second turns of the items with the same
            ids.
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
        name: name of the suite.
        tasks: tasks in order.
        left_out: number of items per task that were left out because they exceed the context
            length.
        source: name or path with which `load_suite` loads it; None if it was made otherwise.
        columns: column map of its file, if one was given.
        chosen_by: ids of the runs by whose answers its items were chosen, None for a run without
            an id; empty if they were not chosen so.
    """

    name: str
    tasks: tuple[Task, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    source: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    chosen_by: tuple[str | None, ...] = ()


def insert_gold(gold: str, wrong: Sequence[str], index: int) -> tuple[str, ...]:
    """Insert the right option at an index, for suites that draw the index."""
    return (*wrong[:index], gold, *wrong[index:])


def order_by_hash(seed: str, options: Iterable[str]) -> tuple[str, ...]:
    """Return options in an order that depends only on the seed and their texts."""
    return tuple(sorted(options, key=lambda option: sha256(f"{seed}\n{option}".encode()).digest()))
