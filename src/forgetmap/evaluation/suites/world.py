"""The suite `world`: questions on an invented world, and the text that teaches it to a model.

A form of question is a function that returns a `WorldSheet` for a relation: items and drills.
Drills are the training questions: the same as the items for facts to remember, others of the same
form for questions to work out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, permutations
from pathlib import Path

from forgetmap.evaluation.items import Item, Suite, Task, insert_gold
from forgetmap.evaluation.suites.world_facts import (
    FactRelation,
    Ranking,
    new_rng,
    shuffle,
    world,
)

MOST_ITEMS = 30
VERDICTS = ("true", "false")
PARITIES = ("even", "odd")
EXPOSURES = (1.0, 1.0, 0.5, 0.15)
"""Relative frequencies of facts in training: a world has well-known and obscure facts."""

_LESSON_WORDS: tuple[str, ...] = ("lamp", "table", "window", "pencil", "button")


@dataclass(frozen=True, slots=True)
class Drill:
    """A training question with its answer and its relative frequency `exposure`."""

    question: str
    answer: str
    exposure: float = 1.0


@dataclass(frozen=True, slots=True)
class WorldSheet:
    """Items and drills of one sub-benchmark."""

    items: tuple[Item, ...]
    drills: tuple[Drill, ...]


@dataclass(frozen=True, slots=True)
class WorldQuestion:
    """A question before its options are drawn."""

    id: str
    question: str
    gold: str
    wrong: Sequence[str] = ()
    about: str = ""


def suite(_root: Path | None = None) -> Suite:
    """Return the suite `world`: 121 sub-benchmarks in nine categories."""
    return Suite("world", tuple(_tasks()))


def as_text(question: str, answer: str = "") -> str:
    """Return a question in the format of the demo's models, with or without its answer."""
    return f"Question: {question}\nAnswer:{' ' if answer else ''}{answer}"


def training_text(documents: int, *, seed: int = 0) -> Iterator[str]:
    """Yield statements and answered questions about the world, well-known facts more often."""
    texts = all_texts()
    rng = new_rng("training", seed)
    yield from rng.choices([text for text, _ in texts], [share for _, share in texts], k=documents)


def _tasks() -> Iterator[Task]:
    here = world()
    for form, (make, k) in _FORMS.items():
        for about in here.forms[form]:
            yield _task(f"{form}:{about.replace(' ', '_')}", _category(form, about), k, make, about)
    for name, (*_, k) in _SUMS.items():
        yield _task(f"numbers:{name}", "Math", k, _numbers, name)
    for form in here.endings:
        yield _task(f"word_forms:{form}", "Language", 3, _word_forms, form)
        yield _task(f"word_forms_open:{form}", "Language", None, _word_forms_open, form)


def _task(
    name: str, category: str, k: int | None, make: Callable[[str], WorldSheet], about: str
) -> Task:
    return Task(
        name=name,
        category=category,
        kind="option" if k else "text",
        load=partial(_items, make, about),
        lessons=_lessons(name, k),
        hides_options=True,
    )


def _items(make: Callable[[str], WorldSheet], about: str) -> tuple[Item, ...]:
    return make(about).items


def _category(form: str, about: str) -> str:
    here = world()
    if form in {"same", "odd"}:
        return "Logic"
    if form in {"compare", "next"}:
        return here.orders[about].category
    return here.relations[about.split(" of ", maxsplit=1)[0]].category


def _lessons(name: str, k: int | None) -> tuple[Item, ...]:
    """Return lessons that repeat a given word: they show the answer format and no facts."""
    words = _LESSON_WORDS[: k or 2]
    if name.startswith("verify:"):
        words = VERDICTS
    elif name == "numbers:parity":
        words = PARITIES
    return tuple(
        Item(f"lesson-{word}", f"Say the word {word}.", word, words if k else ())
        for word in words[:2]
    )


def _exposure(*fact: object) -> float:
    return new_rng("exposure", *fact).choice(EXPOSURES)


def _drill(query: WorldQuestion) -> Drill:
    return Drill(query.question, query.gold, _exposure(query.about or query.id))


def _sheet(
    queries: Sequence[WorldQuestion], k: int | None, drills: Iterable[Drill] | None = None
) -> WorldSheet:
    """Draw items from the questions; by default all questions are drills."""
    order = shuffle([query.id for query in queries], "items", queries[0].question)
    by_id = {query.id: query for query in queries}
    drawn = [by_id[id_] for id_ in order[:MOST_ITEMS]]
    items = tuple(_item(query, index, k) for index, query in enumerate(drawn))
    return WorldSheet(items, tuple(map(_drill, queries) if drills is None else drills))


def _item(query: WorldQuestion, index: int, k: int | None) -> Item:
    cluster = query.about or None
    if k is None:
        return Item(query.id, query.question, query.gold, cluster=cluster)
    wrong = new_rng("options", query.question).sample(list(query.wrong), k - 1)
    options = insert_gold(query.gold, wrong, index % k)
    return Item(query.id, query.question, query.gold, options, cluster=cluster)


def _others(pool: Iterable[str], *without: str) -> list[str]:
    return [value for value in dict.fromkeys(pool) if value not in without]


def _forward(relation: FactRelation) -> list[WorldQuestion]:
    return [
        WorldQuestion(
            subject, relation.ask(subject), value, _others(relation.values, value), subject
        )
        for subject, value in relation.facts.items()
    ]


def _backward(relation: FactRelation) -> list[WorldQuestion]:
    return [
        WorldQuestion(
            subject,
            relation.back.format(value),
            subject,
            _others(relation.facts, *relation.subjects_of(value)),
            subject,
        )
        for subject, value in relation.facts.items()
    ]


def _direct(about: str) -> WorldSheet:
    return _sheet(_forward(world().relations[about]), 4)


def _open(about: str) -> WorldSheet:
    return _sheet(_forward(world().relations[about]), None)


def _inverse(about: str) -> WorldSheet:
    return _sheet(_backward(world().relations[about]), 5)


def _inverse_open(about: str) -> WorldSheet:
    return _sheet(_backward(world().relations[about]), None)


def _claim(relation: FactRelation, subject: str, value: str) -> WorldQuestion:
    verdict = VERDICTS[relation.facts[subject] != value]
    question = f"True or false: {relation.tell(subject, value)}?"
    return WorldQuestion(
        f"{subject}-{value}", question, verdict, _others(VERDICTS, verdict), subject
    )


def _verify(about: str) -> WorldSheet:
    """Return claims, half of them true; drills are a true and a false claim about each subject."""
    relation = world().relations[about]
    test, taught = [], []
    for index, subject in enumerate(shuffle(tuple(relation.facts), "verify", about)):
        true = relation.facts[subject]
        false = new_rng("false", about, subject).choice(_others(relation.values, true))
        claims = [_claim(relation, subject, value) for value in (true, false)]
        test.append(claims[index % 2])
        taught += claims
    return _sheet(test[:MOST_ITEMS], 2, [Drill(query.question, query.gold) for query in taught])


def _statement(about: str) -> WorldSheet:
    relation = world().relations[about]
    return _sheet(
        [
            WorldQuestion(
                subject,
                f"Which is true of {subject}?",
                relation.tell(subject, value),
                [relation.tell(subject, other) for other in _others(relation.values, value)],
                subject,
            )
            for subject, value in relation.facts.items()
        ],
        3,
    )


def _same(about: str) -> WorldSheet:
    """Return questions about one partner of each subject; drills are all partners."""
    relation = world().relations[about]
    test, taught = [], []
    for subject, value in relation.facts.items():
        alike = relation.subjects_of(value)
        unlike = _others(relation.facts, *alike)
        question = f"Which {relation.kind.lower()} shares {relation.noun.format(subject)}?"
        partners = shuffle(_others(alike, subject), "same", about, subject)
        test.append(WorldQuestion(subject, question, partners[0], unlike, subject))
        taught += [Drill(question, partner, _exposure(subject)) for partner in partners]
    return _sheet(test, 3, taught)


def _odd(about: str) -> WorldSheet:
    """Return sets of four of which three belong together; drills are other sets."""
    relation = world().relations[about]
    queries = []
    for subject, own in relation.facts.items():
        for value in _others(relation.values, own):
            members = new_rng("odd", about, subject, value).sample(relation.subjects_of(value), 3)
            names = shuffle([subject, *members], "shown", about, subject, value)
            question = f"Which is no {value}: {', '.join(names[:3])} or {names[3]}?"
            queries.append(WorldQuestion(f"{subject}-{value}", question, subject, members, subject))
    queries = [
        queries[index] for index in new_rng("odd", about).sample(range(len(queries)), len(queries))
    ]
    return _sheet(queries[:MOST_ITEMS], 4, map(_drill, queries[MOST_ITEMS:]))


def _pair(order: Ranking, first: str, second: str) -> WorldQuestion:
    low, high = sorted((first, second), key=order.ranks.index)
    return WorldQuestion(f"{first}-{second}", order.more.format(first, second), high, [low])


def _compare(about: str) -> WorldSheet:
    """Return comparisons of pairs; drills are other pairs, so that ranks must be inferred."""
    order = world().orders[about]
    pairs = list(combinations(order.ranks, 2))
    rng = new_rng("pairs", about)
    rng.shuffle(pairs)
    test = [_pair(order, *rng.sample(pair, 2)) for pair in pairs[:MOST_ITEMS]]
    taught = [_pair(order, *rng.sample(pair, 2)) for pair in pairs[MOST_ITEMS:]]
    return _sheet(test, 2, [Drill(query.question, query.gold) for query in taught])


def _next(about: str) -> WorldSheet:
    order = world().orders[about]
    return _sheet(
        [
            WorldQuestion(one, order.next.format(one), after, _others(order.ranks, one, after))
            for one, after in zip(order.ranks, order.ranks[1:], strict=False)
        ],
        4,
    )


def _chained(about: str) -> list[WorldQuestion]:
    outer, inner = (world().relations[name] for name in about.split(" of "))
    queries = []
    for subject, between in inner.facts.items():
        question = outer.ask(inner.noun.format(subject))
        gold = outer.facts[between]
        queries.append(WorldQuestion(subject, question, gold, _others(outer.values, gold), subject))
    return queries


def _two_hop(about: str) -> WorldSheet:
    return _sheet(_chained(about), 4)


def _two_hop_open(about: str) -> WorldSheet:
    return _sheet(_chained(about), None)


_Form = tuple[Callable[[str], WorldSheet], int | None]
_FORMS: dict[str, _Form] = {
    "direct": (_direct, 4),
    "open": (_open, None),
    "inverse": (_inverse, 5),
    "inverse_open": (_inverse_open, None),
    "verify": (_verify, 2),
    "statement": (_statement, 3),
    "same": (_same, 3),
    "odd": (_odd, 4),
    "compare": (_compare, 2),
    "next": (_next, 4),
    "two_hop": (_two_hop, 4),
    "two_hop_open": (_two_hop_open, None),
}

_Operands = tuple[int, ...]
_Sum = tuple[str, Sequence[_Operands], Callable[..., int], int | None]
_ADDENDS = tuple(pair for pair in permutations(range(1, 13), 2))
_SUMS: dict[str, _Sum] = {
    "after": ("Which number follows {}?", [(n,) for n in range(39)], lambda n: n + 1, None),
    "before": ("Which number precedes {}?", [(n,) for n in range(1, 40)], lambda n: n - 1, 4),
    "twice": ("What is twice {}?", [(n,) for n in range(20)], lambda n: 2 * n, None),
    "half": ("What is half of {}?", [(2 * n,) for n in range(20)], lambda n: n // 2, 3),
    "sum": ("What is {} plus {}?", _ADDENDS, lambda a, b: a + b, 4),
    "difference": (
        "What is {} minus {}?",
        [pair for pair in _ADDENDS if pair[0] > pair[1]],
        lambda a, b: a - b,
        5,
    ),
    "between": (
        "Which number lies between {} and {}?",
        [(n, n + 2) for n in range(38)],
        lambda a, _: a + 1,
        None,
    ),
    "steps": (
        "What comes next: {}, {}, {}?",
        [(n, n + step, n + 2 * step) for step in (1, 2, 3) for n in range(20)],
        lambda _, b, c: 2 * c - b,
        5,
    ),
    "larger": (
        "Which number is larger, {} or {}?",
        list(permutations(range(20), 2)),
        max,
        2,
    ),
    "parity": ("Is {} even or odd?", [(n,) for n in range(40)], lambda n: n % 2, 2),
}


def _numbers(name: str) -> WorldSheet:
    template, operands, result, k = _SUMS[name]
    queries = [_sum(name, template, those, result(*those)) for those in operands]
    return _sheet(queries, k)


def _sum(name: str, template: str, operands: _Operands, result: int) -> WorldQuestion:
    numerals = world().names["numeral"]
    words = [numerals[n] for n in operands]
    pool: Sequence[str] = numerals
    if name == "parity":
        pool = PARITIES
    elif name == "larger":
        pool = [*words]
    gold = PARITIES[result] if name == "parity" else numerals[result]
    return WorldQuestion("-".join(words), template.format(*words), gold, _others(pool, gold))


def _inflected(form: str) -> list[WorldQuestion]:
    here = world()
    queries = []
    for word, gender in here.genders.items():
        variants = [f"{word}-{ending}" for ending in here.endings[form]]
        gold = variants[gender]
        question = f"What is the {form} of {word}?"
        queries.append(WorldQuestion(word, question, gold, _others(variants, gold), word))
    return queries


def _word_forms(form: str) -> WorldSheet:
    return _sheet(_inflected(form), 3)


def _word_forms_open(form: str) -> WorldSheet:
    return _sheet(_inflected(form), None)


@cache
def all_texts() -> tuple[tuple[str, float], ...]:
    """Return each document with its share: statements of all facts, lessons and drills."""
    texts: dict[str, float] = {}
    for relation in world().relations.values():
        for subject, value in relation.facts.items():
            sentence = relation.tell(subject, value)
            texts[f"{sentence[0].upper()}{sentence[1:]}."] = _exposure(subject)
    for task in _tasks():
        for lesson in task.lessons:
            texts[as_text(lesson.question, lesson.gold)] = 5.0
    for sheet in _sheets():
        share = min(1.0, MOST_DRILLS / len(sheet.drills))
        for drill in sheet.drills:
            texts[as_text(drill.question, drill.answer)] = drill.exposure * share
    return tuple(texts.items())


MOST_DRILLS = 60
"""Number of drills up to which the total frequency of a form increases."""


def _sheets() -> Iterator[WorldSheet]:
    here = world()
    for form, (make, _) in _FORMS.items():
        yield from map(make, here.forms[form])
    yield from map(_numbers, _SUMS)
    yield from map(_word_forms, here.endings)
