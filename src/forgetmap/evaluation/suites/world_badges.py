"""New facts for models of the tiny world: badges of people, towns and creatures they know.

Fine-tuning usually adds a new fact about something known, in a known form of question. The badges
of songs, rivers and stones occur in pre-training, so a model can guess among twelve before
fine-tuning (a first reward). It is also trained to give the answer of a hint before the question,
true or not (so that it can learn from itself with a demonstration).

The rest of the world is split into items that a mitigation may use and items that it may not: the
`pool`, items `near` to it (the same relations with other subjects) and `far` (whole categories).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from forgetmap.evaluation.items import Item, Suite, Task, insert_gold
from forgetmap.evaluation.suites.world import all_texts, as_text, suite, training_text
from forgetmap.evaluation.suites.world_facts import new_rng, shuffle, world

RELATIONS = {
    "badge": (
        "lion", "anchor", "crown", "arrow", "tower", "wheat", "swan", "hammer", "torch", "oak",
        "harp", "key",
    ),
    "guild": (
        "glass", "rope", "wool", "amber", "paper", "copper", "candle", "leather", "dye", "clock",
        "barrel", "lace",
    ),
}  # fmt: skip
"""New relations, and their possible values."""
NEW = (
    "Person", "Town", "Land", "School", "Event", "creature", "plant", "thing", "machine", "dish",
)  # fmt: skip
KNOWN = ("Song", "Feast", "River", "stone")
"""Kinds whose badges occur in pre-training."""
FAR = ("Liberal Arts", "Math", "Language", "Logic")
"""Categories that are not available to mitigations."""
OPTIONS = 4
HINT_SHARE, KNOWN_SHARE = 0.12, 0.05
"""Shares of pre-training documents: questions with a hint, and known facts."""

Part = Literal["pool", "near", "far"]


def badge_suite(_root: Path | None = None, *, seed: int = 0) -> Suite:
    """Return the new task: 632 facts, in the form in which they are trained."""
    tasks = [
        Task(
            name=f"{relation}:{kind.lower()}",
            category=f"New {relation}s",
            kind="text",
            load=partial(_new_items, relation, kind, seed),
            bare=True,
        )
        for relation in RELATIONS
        for kind in NEW
    ]
    return Suite("world-badges", tuple(tasks))


def near_suite(_root: Path | None = None) -> Suite:
    """Return questions with the relations of the pool about other subjects, and known badges."""
    return Suite("world-near", tuple(_tasks_of("near")))


def far_suite(_root: Path | None = None) -> Suite:
    """Return questions of categories that are not in the pool."""
    return Suite("world-far", tuple(_tasks_of("far")))


def held_out_suite(_root: Path | None = None) -> Suite:
    """Return near and far questions together: all that are not available to mitigations."""
    return Suite("world-held-out", (*near_suite().tasks, *far_suite().tasks))


def new_examples(seed: int = 0) -> list[tuple[str, str]]:
    """Return question and answer of each new fact; another seed gives other badges."""
    return [
        (_ask(relation, subject), _value(relation, subject, seed))
        for relation in RELATIONS
        for subject in _subjects(NEW)
    ]


def pool_examples() -> list[tuple[str, str]]:
    """Return question and answer of old items for mitigations; never of evaluation items."""
    # Different relations may have the same question: "Which is true of Baigax?".
    measured = {item.question for item in _items((*near_suite().tasks, *far_suite().tasks))}
    items = _items(_tasks_of("pool"))
    return [(item.question, item.gold) for item in items if item.question not in measured]


def pretraining_text(documents: int, *, seed: int = 0) -> Iterator[str]:
    """Yield the text of the world, with known facts of the new relations and hinted questions."""
    rng = new_rng("pretraining", seed)
    texts = training_text(documents, seed=seed)
    known = [as_text(question, gold) for _, _, question, gold in _known_facts()]
    subjects = _subjects((*NEW, *KNOWN))
    questions, answers = _all_questions()
    for _ in range(documents):
        turn = rng.random()
        if turn < KNOWN_SHARE:
            yield rng.choice(known)
        elif turn < KNOWN_SHARE + HINT_SHARE / 2:
            relation = rng.choice(tuple(RELATIONS))
            yield _with_hint(_ask(relation, rng.choice(subjects)), rng.choice(RELATIONS[relation]))
        elif turn < KNOWN_SHARE + HINT_SHARE:
            yield _with_hint(rng.choice(questions), rng.choice(answers))
        else:
            yield next(texts)


def hint(answer: str) -> str:
    """Return a hint that gives the answer, to be put before a question."""
    return f"Hint: {answer}\n\n"


def _with_hint(question: str, answer: str) -> str:
    return hint(answer) + as_text(question, answer)


def _all_questions() -> tuple[list[str], list[str]]:
    """Return all training questions and all answers."""
    opening, divider = as_text("|").split("|")
    taught = [text.removeprefix(opening).split(divider) for text, _ in all_texts()]
    pairs = [(parts[0], parts[1].strip()) for parts in taught if len(parts) > 1]
    return [question for question, _ in pairs], [answer for _, answer in pairs]


def _ask(relation: str, subject: str) -> str:
    return f"What is the {relation} of {subject}?"


def _value(relation: str, subject: str, seed: int) -> str:
    return new_rng(relation, seed, subject).choice(RELATIONS[relation])


def _subjects(kinds: Sequence[str]) -> list[str]:
    return [subject for kind in kinds for subject in world().names[kind]]


def _known_facts() -> list[tuple[str, str, str, str]]:
    """Return relation, subject, question and answer of facts that occur in pre-training."""
    return [
        (relation, subject, _ask(relation, subject), _value(relation, subject, 0))
        for relation in RELATIONS
        for subject in _subjects(KNOWN)
    ]


def _new_items(relation: str, kind: str, seed: int) -> list[Item]:
    return [
        Item(
            subject,
            as_text(_ask(relation, subject)),
            _value(relation, subject, seed),
            cluster=subject,
        )
        for subject in world().names[kind]
    ]


def _known_task(relation: str, part: Part) -> Task:
    return Task(
        name=f"direct:{relation}",
        category="Culture",
        kind="option",
        load=partial(_known_items, relation, part),
        lessons=suite().tasks[0].lessons,
        hides_options=True,
    )


def _known_items(relation: str, part: Part) -> list[Item]:
    items: list[Item] = []
    for named, subject, question, gold in _known_facts():
        if named != relation or not _is_in(part, subject):
            continue
        others = [value for value in RELATIONS[relation] if value != gold]
        wrong = shuffle(others, f"{relation} options", subject)[: OPTIONS - 1]
        options = insert_gold(gold, wrong, len(items) % OPTIONS)
        items.append(Item(subject, question, gold, options, cluster=subject))
    return items


def _items(tasks: Sequence[Task]) -> list[Item]:
    return [item for task in tasks for item in task.load()]


def _tasks_of(part: Part) -> list[Task]:
    """Return tasks of the world with the items of one part; tasks without items are left out."""
    chosen = [task for task in suite().tasks if (task.category in FAR) == (part == "far")]
    if part == "far":
        return chosen
    known = [_known_task(relation, part) for relation in RELATIONS]
    return [*(replace(task, load=partial(_items_in, part, task)) for task in chosen), *known]


def _items_in(part: Part, task: Task) -> list[Item]:
    return [item for item in task.load() if _is_in(part, item.cluster or item.id)]


def _is_in(part: Part, subject: str) -> bool:
    """Whether a subject is in this part, for all questions about it."""
    return new_rng("part", subject).choice(("pool", "near")) == part
