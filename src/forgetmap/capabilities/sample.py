"""The suite `capabilities`: a few items of our own for every capability and every scorer.

Its taxonomy is `sample`. Every item has a reference, a response with the best value; long texts are
generated from a seed.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from forgetmap.capabilities.suite import tasks_of
from forgetmap.capabilities.taxonomy import load_taxonomy
from forgetmap.evaluation import Item, Suite

LONG_TEXTS = "long_texts"
SENTENCES = 60
SEED = 20_261_116
_WHO = ("The baker", "A fisherman", "Old Marta", "The teacher", "A traveller", "The clerk",
        "A child", "The miller", "The gardener", "A musician")  # fmt: skip
_DOES = ("waited for", "drew", "forgot", "carried", "described", "dreamt of", "repaired", "sold",
         "found", "painted")  # fmt: skip
_WHAT = ("a wooden ladder", "the narrow bridge", "a basket of pears", "the harbour lamp",
         "an empty cart", "the village clock", "a bundle of letters", "the garden gate",
         "a copper kettle", "the long bench")  # fmt: skip
_WHEN = ("before the rain came", "on a quiet Sunday", "while the bells rang", "at the first light",
         "after the market", "without a word", "for the third time")  # fmt: skip
_COLOURS = ("blue", "green", "yellow", "grey", "white", "brown")
_ASKED = (1, 1, 1, 1, 2, 2, 3, 3)


@dataclass(frozen=True, slots=True)
class Reference:
    """An item with the response that gets the best value.

    Attributes:
        item: the item.
        response: the best response.
        first_response: for a second turn, the response to the first.
    """

    item: Item
    response: str
    first_response: str | None = None


def capabilities_suite(_: Path | None = None) -> Suite:
    """Return all tasks of the sample; no other data are needed."""
    return Suite("capabilities", tasks_of(load_taxonomy("sample"), _items))


def _items(task: str) -> list[Item]:
    return [reference.item for reference in references()[task]]


@cache
def references() -> Mapping[str, Sequence[Reference]]:
    """Return all items by task, each with its reference."""
    data = files("forgetmap.capabilities").joinpath("data", "sample.jsonl")
    by_task: dict[str, list[Reference]] = defaultdict(list)
    for line in data.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        by_task[row["task"]].append(
            Reference(_item(row), row["reference"], row.get("first_reference"))
        )
    by_task[LONG_TEXTS] = [_long_text(number, count) for number, count in enumerate(_ASKED)]
    return by_task


def _item(row: Mapping[str, Any]) -> Item:
    """Build an item; a right answer that is not a text becomes part of its material."""
    gold, material = row.get("gold", ""), row.get("material", {})
    if not isinstance(gold, str):
        material = {**material, "gold": gold}
    return Item(
        id=row["id"],
        question=row["question"],
        gold=_first(gold),
        options=tuple(row.get("options", ())),
        request=row.get("request", ""),
        material=material,
    )


def _first(gold: Any) -> str:
    """Return a right answer to show, and to distinguish items by."""
    return str(gold[0]) if isinstance(gold, list) else gold if isinstance(gold, str) else ""


def _long_text(number: int, count: int) -> Reference:
    """Return a text with codes of lockers hidden in small talk; some of them are asked for."""
    dice = random.Random(SEED + number)  # noqa: S311  # not for secrets
    colours = dice.sample(_COLOURS, 4)
    codes = [str(dice.randrange(1_000_000, 10_000_000)) for _ in colours]
    talk = [_idle(dice) for _ in range(SENTENCES)]
    for colour, code in zip(colours, codes, strict=True):
        talk.insert(dice.randrange(len(talk) + 1), f"The code of the {colour} locker is {code}.")
    lockers = " and ".join(f"the {colour} locker" for colour in colours[:count])
    question = f"What is the code of {lockers}?"
    request = f"{' '.join(talk)}\n\n{question} Reply with nothing but {_numbers(count)}."
    gold = codes[:count]
    item = Item(f"t{number + 1}", question, gold[0], request=request, material={"gold": gold})
    return Reference(item, ", ".join(gold))


def _numbers(count: int) -> str:
    return "the number" if count == 1 else "the numbers, separated by commas"


def _idle(dice: random.Random) -> str:
    person, does, what, when = (dice.choice(words) for words in (_WHO, _DOES, _WHAT, _WHEN))
    return f"{person} {does} {what} {when}."
