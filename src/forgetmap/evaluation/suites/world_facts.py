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
    """One value for each subject, such as the capital of each land.

    Attributes:
        name: such as `capital`.
        category: the group its questions are reported in.
        kind: what the subjects are.
        asks: `Who` or `What`.
        noun: names the value of a subject, such as `the capital of {}`.
        back: asks for the subject of a value.
        values: what a value may be.
        facts: the value of each subject.
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
        """The question after the value of a subject."""
        return f"{self.asks} is {self.noun.format(subject)}?"

    def tell(self, subject: str, value: str) -> str:
        """A sentence, true or not."""
        return f"{self.noun.format(subject)} is {value}"

    def subjects_of(self, value: str) -> list[str]:
        """All that have this value."""
        return [subject for subject, its in self.facts.items() if its == value]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Things in a line, such as people by age; `more` and `next` ask about their places."""

    name: str
    category: str
    more: str
    next: str
    ranks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class World:
    """Everything that is true.

    Attributes:
        names: what there is, by kind.
        relations: by name.
        orders: by name.
        genders: of each word of the language: 0, 1 or 2.
        endings: the ending each gender takes, by form of the word.
        forms: what each form of question is asked about.
    """

    names: dict[str, tuple[str, ...]]
    relations: dict[str, FactRelation]
    orders: dict[str, Ranking]
    genders: dict[str, int]
    endings: dict[str, tuple[str, ...]]
    forms: dict[str, tuple[str, ...]]


@cache
def world() -> World:
    """The world: the same in every process."""
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
    """A source of chance of its own for whatever the parts name."""
    return Random("/".join(map(str, ("world", *parts))))  # noqa: S311 - nothing secret


def shuffle(pool: Sequence[str], *parts: object) -> list[str]:
    """The pool in an order fixed by the parts."""
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
    """Every value is used about equally often; where there are enough, each at most once."""
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
