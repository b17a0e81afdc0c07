"""Entities and facts of the invented world of the suite `world`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any

_ONSETS = (
    "b",
    "br",
    "d",
    "dr",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "z",
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "au")
_CODAS = ("", "l", "m", "n", "r", "sk", "th", "x")
_REAL_WORDS = {"laser", "radar", "rita", "regan", "roto", "fuse", "pome", "turin"}


@dataclass(frozen=True, slots=True)
class FactRelation:
    """One value per subject, such as the capital of each land.

    Attributes:
        name: such as `capital`.
        category: group in which its questions are reported.
        kind: kind of the subjects.
        asks: `Who` or `What`.
        noun: names the value of a subject, such as `the capital of {}`.
        back: question for the subject of a value.
        values: possible values.
        facts: subject -> value.
    """

    name: str
    category: str
    kind: str
    asks: str
    noun: str
    back: str
    values: tuple[str, ...]
    facts: dict[str, str]

    def ask(self, subject: str) -> str:
        """Return the question for the value of a subject."""
        return f"{self.asks} is {self.noun.format(subject)}?"

    def tell(self, subject: str, value: str) -> str:
        """Return a statement, true or not."""
        return f"{self.noun.format(subject)} is {value}"

    def subjects_of(self, value: str) -> list[str]:
        """Return all subjects with this value."""
        return [subject for subject, its in self.facts.items() if its == value]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Things in an order, such as people by age; `more` and `next` are questions about it."""

    name: str
    category: str
    more: str
    next: str
    ranks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class World:
    """All facts of the world.

    Attributes:
        names: entities by kind.
        relations: relations by name.
        orders: rankings by name.
        genders: gender of each word of the language: 0, 1 or 2.
        endings: ending of each gender, by form of the word.
        forms: relations or rankings of each form of question.
    """

    names: dict[str, tuple[str, ...]]
    relations: dict[str, FactRelation]
    orders: dict[str, Ranking]
    genders: dict[str, int]
    endings: dict[str, tuple[str, ...]]
    forms: dict[str, tuple[str, ...]]


@cache
def world() -> World:
    """Return the world; it is the same in every process."""
    plan = tomllib.loads(files(__package__).joinpath("data/world.toml").read_text("utf-8"))
    names = _invent_names(plan["kinds"], used=_plain_words(plan["lists"]))
    values = names | {name: tuple(words) for name, words in plan["lists"].items()}
    return World(
        names=names,
        relations={row["name"]: _draw_relation(row, values) for row in plan["relation"]},
        orders={row["name"]: _draw_order(row, names) for row in plan["order"]},
        genders={word: index % 3 for index, word in enumerate(names["word"])},
        endings={form: tuple(endings) for form, endings in plan["words"].items()},
        forms={form: tuple(about) for form, about in plan["forms"].items()},
    )


def new_rng(*parts: object) -> Random:
    """Return a random generator that is determined by the parts."""
    return Random("/".join(map(str, ("world", *parts))))  # noqa: S311 - nothing secret


def shuffle(pool: Sequence[str], *parts: object) -> list[str]:
    """Return the pool in an order that is determined by the parts."""
    return new_rng(*parts).sample(list(pool), len(pool))


def _plain_words(lists: dict[str, list[str]]) -> set[str]:
    return _REAL_WORDS.union(*lists.values())


def _invent_names(kinds: dict[str, int], used: set[str]) -> dict[str, tuple[str, ...]]:
    rng = new_rng("names")
    names = {}
    for kind, count in kinds.items():
        chosen: list[str] = []
        while len(chosen) < count:
            name = _invent_name(rng)
            if name not in used:
                used.add(name)
                chosen.append(name.capitalize() if kind[0].isupper() else name)
        names[kind] = tuple(chosen)
    return names


def _invent_name(rng: Random) -> str:
    syllables = [rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(2)]
    return "".join(syllables) + rng.choice(_CODAS)


def _draw_relation(row: dict[str, Any], values: dict[str, tuple[str, ...]]) -> FactRelation:
    """Draw the values of a relation, each about equally often; at most once if they suffice."""
    subjects, pool = values[row["from"]], values[row["to"]]
    rounds = -(-len(subjects) // len(pool))
    drawn = [
        value for turn in range(rounds) for value in shuffle(pool, "relation", row["name"], turn)
    ]
    return FactRelation(
        name=row["name"],
        category=row["category"],
        kind=row["from"],
        asks="Who" if row["to"] == "Person" else "What",
        noun=row["noun"],
        back=row["back"],
        values=pool,
        facts=dict(zip(subjects, drawn, strict=False)),
    )


def _draw_order(row: dict[str, Any], names: dict[str, tuple[str, ...]]) -> Ranking:
    ranks = tuple(shuffle(names[row["of"]], "order", row["name"]))
    return Ranking(row["name"], row["category"], row["more"], row["next"], ranks)
