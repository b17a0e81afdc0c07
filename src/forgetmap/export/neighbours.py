"""Training examples similar to the forgotten items, by the rare words they share.

Words are weighted by their rarity among the evaluation items; similarity is the cosine between the
sets of words. Examples are read once, in order, and only the best of each forgotten item are kept.
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
"""Words in more than this share of the questions are ignored."""
MIN_COMMON = 50
"""Minimum number of questions for that."""
DIGITS = 9


@dataclass(frozen=True, slots=True, order=True)
class Neighbour:
    """A training example that is similar to a forgotten item.

    Attributes:
        similarity: 1 means the same words.
        turn: minus its number, so that the earlier one of two equally similar examples is better.
    """

    similarity: float
    turn: int

    @property
    def number(self) -> int:
        """Index of the example in the pool."""
        return -self.turn


class NeighbourSearch:
    """Keeps the best examples of each target.

    Args:
        targets: normalised words of each forgotten item.
        questions: normalised words of all evaluation items, for the rarity of words.
        per_item: maximum number of examples per target.
        least: minimum similarity.
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
        """Return a row of length 1 for each text, with a column for each word of the questions."""
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
        """Add further examples: their normalised words, and their indices in the pool."""
        product = (self._matrix(texts) @ self._targets).tocoo()
        similarities = np.round(product.data, DIGITS)
        better = similarities > self._worst[product.col]
        rows, targets = product.row[better].tolist(), product.col[better].tolist()
        candidates = zip(rows, targets, similarities[better].tolist(), strict=True)
        for row, target, similarity in sorted(candidates):
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
        """Indices of all examples that are among the best of some target."""
        return {neighbour.number for best in self._best for neighbour in best}

    def best(self) -> list[list[Neighbour]]:
        """Return the best examples of each target, best first."""
        return [sorted(best, reverse=True) for best in self._best]
