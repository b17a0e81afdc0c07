"""The largest changes of a tensor, found without sorting or copying it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from forgetmap.merge.methods.changes import Change
from forgetmap.merge.stretches import stretches

DIGIT = 16
"""Bits that are told apart in one look at all values."""
WHOLE_NUMBERS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}
"""Of the same width: without their sign, floating-point numbers are in the order of their bits."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Some values of a tensor: those above a limit, and of those equal to it the first.

    Attributes:
        limit: a magnitude, as a whole number of the same bits.
        before: the place up to which values equal to the limit are taken.
    """

    limit: int
    before: int

    def mask(self, change: torch.Tensor, start: int) -> torch.Tensor:
        """True where a stretch that begins at `start` is selected."""
        sizes = _sizes(change)
        chosen = sizes > self.limit
        equal = max(self.before - start, 0)
        chosen[:equal] |= sizes[:equal] == self.limit
        return chosen


def kept(count: int, share: float) -> int:
    """How many of `count` values a share is; rounded down, but never none of a share above 0."""
    return max(int(share * count), 1 if share > 0 else 0)


def largest(change: Change, count: int) -> Selection:
    """The `count` values of greatest magnitude; of equal ones the first are taken."""
    if count >= len(change):
        return Selection(-1, 0)
    if count <= 0:
        return Selection(torch.iinfo(WHOLE_NUMBERS[change.base.dtype]).max, 0)
    limit, missing = _limit(change, count)
    before = 0
    for stretch in stretches(len(change)):
        equal = (_sizes(change[stretch]) == limit).nonzero().flatten()[:missing]
        missing -= len(equal)
        if not missing:
            before = stretch.start + int(equal[-1]) + 1
            break
    return Selection(limit, before)


def _limit(change: Change, count: int) -> tuple[int, int]:
    """The magnitude at this rank, and how many values equal to it are within the rank.

    Digit by digit from the highest: values are counted by their next digit, among those that share
    the digits found so far.
    """
    known, missing = 0, count
    for shift in range(8 * change.base.dtype.itemsize - DIGIT, -1, -DIGIT):
        counts = torch.zeros(1 << DIGIT, dtype=torch.int64)
        for stretch in stretches(len(change)):
            digits = (_sizes(change[stretch]) >> shift) - (known << DIGIT)
            among = (digits >= 0) & (digits < 1 << DIGIT)
            counts += torch.bincount(digits[among], minlength=1 << DIGIT)
        at_least = counts.flip(0).cumsum(0).flip(0)
        digit = int((at_least >= missing).nonzero()[-1])
        missing -= int(at_least[digit] - counts[digit])
        known = (known << DIGIT) + digit
    return known, missing


def _sizes(change: torch.Tensor) -> torch.Tensor:
    return change.abs().view(WHOLE_NUMBERS[change.dtype])
