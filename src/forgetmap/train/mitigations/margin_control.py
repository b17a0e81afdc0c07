"""Control of the 1->0 penalty: a multiplier for a bound, and a focus on changing items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from forgetmap.train.mitigations.old_batches import ExampleOrder

MEMORY = 0.9
"""Weight of the past in the running mean of the forgotten share."""
PATIENCE = 50
"""Updates at the maximum weight before the bound counts as unreachable."""


@dataclass
class Multiplier:
    """Dual ascent on the constraint that at most `bound` of the known answers are forgotten.

        value <- clip(value + rate (lost - bound), 0, most)

    A plain integral winds up: while the bound is out of reach it grows without limit, and the new
    task is no longer learned. Two rules prevent that. The value is clipped, so that it falls at
    once when the bound is met. And if it stays at `most` for `PATIENCE` updates without meeting the
    bound, the bound is raised to the forgotten share that is reached, and the value decreases.

    Attributes:
        value: current weight of the penalty.
        bound: current bound on the forgotten share.
        rate: step size of the ascent.
        most: maximum value.
        lost: running mean of the forgotten share.
        updates: number of updates.
        saturated: number of updates in a row at the maximum value.
    """

    value: float
    bound: float
    rate: float
    most: float
    lost: float = 0.0
    updates: int = 0
    saturated: int = 0

    def update(self, lost: float) -> float:
        """Update with the forgotten share of a batch; return the weight for this step."""
        self.updates += 1
        past = MEMORY * (1 - MEMORY ** (self.updates - 1)) / (1 - MEMORY**self.updates)
        self.lost = past * self.lost + (1 - past) * lost
        self.value = min(max(self.value + self.rate * (self.lost - self.bound), 0.0), self.most)
        self.saturated = self.saturated + 1 if self.value >= self.most else 0
        if self.saturated > PATIENCE:
            self.bound, self.saturated = max(self.bound, self.lost), 0
        return self.value


class FocusedOrder:
    """Choice of the examples of a step: some in turn, some by the fall of their margin.

    A share `focus` of each batch is drawn without repeats, with probabilities proportional to the
    fall of the margin when the example was last used. Before any margin falls, all come in turn.
    """

    def __init__(self, count: int, batch_size: int, seed: int, focus: float) -> None:
        self.focused = min(round(min(batch_size, count) * focus), count)
        self._turns = ExampleOrder(count, max(min(batch_size, count) - self.focused, 1), seed)
        self._moved = torch.zeros(count)
        self._seed = seed

    def at(self, step: int, rank: int = 0, processes: int = 1) -> list[int]:
        """Return indices of examples."""
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
        """Store how far the margins of these examples have fallen since the start."""
        if self.focused:
            self._moved[list(chosen)] = fallen.clamp(min=0).float().cpu()
