"""Control of the 1->0 penalty: a multiplier for a bound, and a focus on changing items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from forgetmap.train.mitigations.old_batches import ExampleOrder

MEMORY = 0.9
"""Share of the past in the running mean of what is lost."""
PATIENCE = 50
"""Updates at the highest weight before a bound counts as out of reach."""


@dataclass
class Multiplier:
    """Dual ascent on: at most `bound` of the known answers are lost.

        value <- clip(value + rate (lost - bound), 0, most)

    A plain integral winds up: while the bound is out of reach it grows without end, and the new
    task stops being learnt. Two things prevent that. The value is clipped, so that it falls at once
    when the bound is met. And where it has been at `most` for `PATIENCE` updates without meeting
    the bound, the bound is out of reach: it is raised to what is reached, and the value comes down.

    Attributes:
        value: the weight of the penalty now.
        bound: the share that may be lost now.
        rate: of the ascent.
        most: the highest value.
        lost: running mean of the share that is lost.
        updates: so far.
        saturated: updates in a row at the highest value.
    """

    value: float
    bound: float
    rate: float
    most: float
    lost: float = 0.0
    updates: int = 0
    saturated: int = 0

    def update(self, lost: float) -> float:
        """Take in what a batch lost; the weight for this step."""
        self.updates += 1
        past = MEMORY * (1 - MEMORY ** (self.updates - 1)) / (1 - MEMORY**self.updates)
        self.lost = past * self.lost + (1 - past) * lost
        self.value = min(max(self.value + self.rate * (self.lost - self.bound), 0.0), self.most)
        self.saturated = self.saturated + 1 if self.value >= self.most else 0
        if self.saturated > PATIENCE:
            self.bound, self.saturated = max(self.bound, self.lost), 0
        return self.value


class FocusedOrder:
    """Examples of a step: some in turn, as everywhere, and some by how far they moved.

    `focus` of each batch are drawn, without repeats, with chances that are proportional to how far
    the margin had fallen when the example was last seen. Before anything fell all come in turn.
    """

    def __init__(self, count: int, batch_size: int, seed: int, focus: float) -> None:
        self.focused = min(round(min(batch_size, count) * focus), count)
        self._turns = ExampleOrder(count, max(min(batch_size, count) - self.focused, 1), seed)
        self._moved = torch.zeros(count)
        self._seed = seed

    def at(self, step: int, rank: int = 0, processes: int = 1) -> list[int]:
        """Positions in the list of examples."""
        chosen = self._turns.at(step, rank, processes)
        chances = self._moved.clone()
        chances[chosen] = 0.0
        drawn = min(self.focused, int((chances > 0).sum()))
        if not drawn:
            return chosen
        seed = (self._seed * 1_000_003 + step) * processes + rank
        generator = torch.Generator().manual_seed(seed)
        return chosen + torch.multinomial(chances, drawn, generator=generator).tolist()

    def learn(self, chosen: Sequence[int], fallen: torch.Tensor) -> None:
        """How far the margins of these examples have fallen since the start."""
        if self.focused:
            self._moved[list(chosen)] = fallen.clamp(min=0).float().cpu()
