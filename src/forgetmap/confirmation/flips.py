"""Which flips are asked again, and what that could prove; fixed before the first fresh answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from forgetmap.comparison import MIN_FLIPS, Comparison, first_flips, provable_loss
from forgetmap.errors import UsageError
from forgetmap.records import reading
from forgetmap.text import counted

Side = str
"""`before` or `after`."""


@dataclass(frozen=True, slots=True)
class Flip:
    """An item that flipped in the first answers.

    Attributes:
        task: its task.
        before: its id in the run before.
        after: its id in the run after.
        is_lost: whether it was right before and wrong after; else it was gained.
    """

    task: str
    before: str
    after: str
    is_lost: bool


@dataclass(frozen=True, slots=True)
class FlipPlan:
    """Items that are asked again.

    Attributes:
        items: what is asked, in an order that no answer decides.
        forgotten: number of items that were right before and wrong after in the first answers.
        gained: number of items that were wrong before and right after.
        repeats: fresh answers of each model to each item.
        seed: seed of the order and of the random part.
        provable: loss that is proven if all forgotten items hold; None if none can be.
    """

    items: tuple[Flip, ...]
    forgotten: int
    gained: int
    repeats: int
    seed: int
    provable: float | None

    @property
    def answers(self) -> int:
        """Number of fresh answers of both models together."""
        return 2 * len(self.items) * self.repeats

    def ids(self, side: Side) -> dict[str, list[str]]:
        """Return the ids of each task, as the run of this side has them."""
        tasks: dict[str, list[str]] = {}
        for item in self.items:
            tasks.setdefault(item.task, []).append(getattr(item, side))
        return dict(sorted(tasks.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return what is fixed before the first fresh answer, as JSON values."""
        items = [[item.task, item.before, item.after, item.is_lost] for item in self.items]
        return {
            "forgotten": self.forgotten,
            "gained": self.gained,
            "repeats": self.repeats,
            "seed": self.seed,
            "items": items,
        }


def choose_flips(
    comparison: Comparison,
    *,
    repeats: int = 1,
    limit: int | None = None,
    gains: bool = False,
    seed: int = 0,
) -> FlipPlan:
    """Choose the items that are asked again: all flips of the first answers, or a random part.

    Args:
        comparison: the first answers.
        repeats: fresh answers of each model to each item.
        limit: maximum number of forgotten items, and of gained ones.
        gains: also ask the items that became right.
        seed: seed of the order and of the random part.

    Raises:
        UsageError: there are too few flips to prove anything.
    """
    with reading(comparison.before, comparison.after):
        rows = first_flips(comparison.pairs).select("task", "item_before", "item_after", "flip")
        flips = [
            Flip(str(task), str(before), str(after), flip > 0)
            for task, before, after, flip in rows.collect().iter_rows()
        ]
    lost, gained = ([flip for flip in flips if flip.is_lost is way] for way in (True, False))
    asked = _ordered(lost, seed)[:limit]
    more = _ordered(gained, seed)[:limit] if gains else []
    if max(len(asked), len(more)) < MIN_FLIPS:
        what = counted(len(asked), "item")
        raise UsageError(
            f"{what} went from right to wrong, and fewer than {MIN_FLIPS} cannot prove a loss",
            hint="compare more items, or add --gains to confirm what was gained."
            if len(gained) >= MIN_FLIPS and not gains
            else "compare more items.",
        )
    grounds = comparison.grounds
    answers = grounds.evidence.total().kinds.answers()
    return FlipPlan(
        items=(*asked, *more),
        forgotten=len(lost),
        gained=len(gained),
        repeats=repeats,
        seed=seed,
        provable=provable_loss(answers, len(lost), len(asked), grounds.settings.alpha),
    )


def _ordered(flips: Iterable[Flip], seed: int) -> list[Flip]:
    """Sort by a hash, so that any part from the beginning is random."""

    def place(flip: Flip) -> bytes:
        return sha256(f"{seed}\x1f{flip.task}\x1f{flip.before}".encode()).digest()

    return sorted(flips, key=place)
