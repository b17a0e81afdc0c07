"""Training examples similar to the forgotten items, by the rare words they share.

Words count by how rare they are among the measured questions; similarity is the cosine between the
sets of words. Examples are seen once, in order, and of each forgotten item only the best are kept.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

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
        questions: plain words of all evaluation items, to know which words are rare.
        per_item: examples to keep of each.
        least: similarity below which nothing is kept.
    """

    def __init__(
        self, targets: Sequence[bytes], questions: Sequence[bytes], *, per_item: int, least: float
    ) -> None:
        self._per_item = per_item
        total = len(questions)
        counts = Counter(word for text in questions for word in set(text.split()))
        for target in targets:
            counts.update(word for word in set(target.split()) if word not in counts)
        self._ids = {word: number for number, word in enumerate(counts)}
        known = np.array([*counts.values(), 0], dtype=np.float64)  # the last: in no question
        self._weights = np.log((1 + total) / (1 + known)) + 1
        if total >= MIN_COMMON:
            self._weights[known > COMMON * total] = 0.0
        self._targets = self._matrix(targets).T.tocsr()
        self._worst = np.full(len(targets), least)
        self._best: list[list[Neighbour]] = [[] for _ in targets]

    def __len__(self) -> int:
        return len(self._best)

    def _matrix(self, texts: Sequence[bytes]) -> csr_array:
        """A row of length 1 for each text, a column for each word of the questions."""
        get, unknown = self._ids.get, len(self._ids)
        ids: list[int] = []
        ends = [0]
        for text in texts:
            ids += map(get, dict.fromkeys(text.split()), repeat(unknown))
            ends.append(len(ids))
        columns = np.array(ids, dtype=np.int64)
        rows = np.repeat(np.arange(len(texts)), np.diff(ends))
        weights = self._weights[columns]
        sizes = np.sqrt(np.bincount(rows, weights * weights, minlength=len(texts)))
        sizes[sizes == 0] = 1.0
        kept = (columns < unknown) & (weights > 0)
        values = (weights / sizes[rows])[kept]
        shape = (len(texts), max(unknown, 1))
        return csr_array((values, (rows[kept], columns[kept])), shape=shape)

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
