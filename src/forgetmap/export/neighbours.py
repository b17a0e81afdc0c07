"""The training examples that are most like what was forgotten, by the rare words they share.

Words count by how rare they are among the measured questions; similarity is the cosine between the
sets of words. Examples are seen once, in order, and of each forgotten item only the best are kept.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

COMMON = 0.2
"""Words in more than this share of the questions say nothing about them."""
MIN_COMMON = 50
"""Questions from which on that can be told."""
DIGITS = 9


@dataclass(frozen=True, slots=True, order=True)
class Neighbour:
    """An example that is like a forgotten item.

    Attributes:
        similarity: 1 is the same words.
        turn: minus its number, so that of two that are as similar the first is better.
    """

    similarity: float
    turn: int

    @property
    def number(self) -> int:
        """Of the example, in the order of the pool."""
        return -self.turn


class NeighbourSearch:
    """Keeps the best examples of each target.

    Args:
        targets: plain words of each forgotten item.
        questions: plain words of all measured items, to know which words are rare.
        per_item: examples to keep of each.
        least: similarity below which nothing is kept.
    """

    def __init__(
        self, targets: Sequence[bytes], questions: Sequence[bytes], *, per_item: int, least: float
    ) -> None:
        self._per_item = per_item
        counts = Counter(word for text in questions for word in set(text.split()))
        total = len(questions)
        most = COMMON * total if total >= MIN_COMMON else total
        self._rarest = math.log(1 + total) + 1
        self._weights = {
            word: 0.0 if count > most else math.log((1 + total) / (1 + count)) + 1
            for word, count in counts.items()
        }
        self._ids: dict[bytes, int] = {}
        for target in targets:
            for word in target.split():
                if self._weight(word):
                    self._ids.setdefault(word, len(self._ids))
        self._targets = self._matrix(targets).T.tocsr()
        self._worst = np.full(len(targets), least)
        self._best: list[list[Neighbour]] = [[] for _ in targets]

    def __len__(self) -> int:
        return len(self._best)

    def _weight(self, word: bytes) -> float:
        return self._weights.get(word, self._rarest)

    def _matrix(self, texts: Sequence[bytes]) -> csr_array:
        """A row of length 1 for each text, in the words of the targets."""
        columns: list[int] = []
        values: list[float] = []
        ends = [0]
        for text in texts:
            weights = {word: self._weight(word) for word in dict.fromkeys(text.split())}
            size = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
            for word, weight in weights.items():
                if word in self._ids:
                    columns.append(self._ids[word])
                    values.append(weight / size)
            ends.append(len(columns))
        return csr_array((values, columns, ends), shape=(len(texts), max(len(self._ids), 1)))

    def add(self, texts: Sequence[bytes], numbers: Sequence[int]) -> None:
        """See further examples: their plain words, and their numbers in the pool."""
        product = (self._matrix(texts) @ self._targets).tocoo()
        similarities = np.round(product.data, DIGITS)
        better = similarities > self._worst[product.col]
        rows, targets = product.row[better].tolist(), product.col[better].tolist()
        found = zip(rows, targets, similarities[better].tolist(), strict=True)
        for row, target, similarity in sorted(found):
            self._keep(Neighbour(similarity, -numbers[row]), target)

    def _keep(self, neighbour: Neighbour, target: int) -> None:
        best = self._best[target]
        if len(best) < self._per_item:
            heapq.heappush(best, neighbour)
        else:
            heapq.heappushpop(best, neighbour)
        if len(best) == self._per_item:
            self._worst[target] = max(self._worst[target], best[0].similarity)

    @property
    def kept(self) -> set[int]:
        """Numbers of all examples that are among the best of some target."""
        return {neighbour.number for best in self._best for neighbour in best}

    def best(self) -> list[list[Neighbour]]:
        """The best examples of each target, best first."""
        return [sorted(best, reverse=True) for best in self._best]
