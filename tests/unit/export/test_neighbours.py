"""The best examples for each item, checked against a loop over all examples."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from disguises import sentence
from forgetmap.export.neighbours import NeighbourSearch
from forgetmap.export.plain_text import plain_words


def cosine(one: bytes, other: bytes, weights: dict[bytes, float], rarest: float) -> float:
    """The similarity, by the book."""
    first, second = set(one.split()), set(other.split())

    def size(words: set[bytes]) -> float:
        return math.sqrt(sum(weights.get(word, rarest) ** 2 for word in words))

    shared = sum(weights.get(word, rarest) ** 2 for word in first & second)
    return shared / (size(first) * size(second))


@pytest.mark.parametrize("batch", [7, 400])
def test_the_best_are_found_whatever_the_batches(batch: int) -> None:
    dice = random.Random(4)
    targets = [plain_words(sentence(dice, 9)) for _ in range(12)]
    pool = [plain_words(sentence(dice, dice.randint(3, 30)) + f" rare{n}") for n in range(400)]
    counts = Counter(word for text in targets for word in set(text.split()))
    weights = {word: math.log(13 / (1 + count)) + 1 for word, count in counts.items()}
    search = NeighbourSearch(targets, targets, per_item=3, least=0.05)
    for start in range(0, len(pool), batch):
        search.add(pool[start : start + batch], range(start, start + batch))
    for target, best in zip(targets, search.best(), strict=True):
        exact = [cosine(target, text, weights, math.log(13) + 1) for text in pool]
        expected = sorted(range(len(pool)), key=lambda n: (-round(exact[n], 9), n))[:3]
        assert [neighbour.number for neighbour in best] == expected
        assert [n.similarity for n in best] == pytest.approx([exact[n] for n in expected])
    assert search.kept == {n.number for best in search.best() for n in best}


def test_nothing_is_kept_that_is_not_alike() -> None:
    search = NeighbourSearch([b"red fox"], [b"red fox"], per_item=3, least=0.5)
    search.add([b"red fox", b"red lamp in a far room of the house", b"blue sky"], [0, 1, 2])
    assert [neighbour.number for neighbour in search.best()[0]] == [0]


def test_words_of_every_question_do_not_count() -> None:
    questions = [b"what is the river %d" % n for n in range(60)]
    search = NeighbourSearch([questions[7]], questions, per_item=5, least=0.0)
    search.add([b"what is the answer", b"house 7"], [0, 1])
    assert [neighbour.number for neighbour in search.best()[0]] == [1]


def test_an_item_without_words_has_no_neighbours() -> None:
    search = NeighbourSearch([b""], [b""], per_item=2, least=0.0)
    search.add([b"anything"], [0])
    assert search.best() == [[]]
