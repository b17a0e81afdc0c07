"""Actions of alarms, and the choice of the kept checkpoint."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
import torch

from forgetmap.errors import UsageError
from forgetmap.train import KeptCheckpoint, WatchGroup
from forgetmap.train.actions import check_action, is_better, lower_learning_rate, save_best

pytestmark = pytest.mark.needs_torch


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=0.1)


def linear(own: torch.optim.Optimizer) -> Any:
    return torch.optim.lr_scheduler.LambdaLR(own, lambda step: 1 - step / 10)


def chained(own: torch.optim.Optimizer) -> Any:
    parts = [torch.optim.lr_scheduler.ConstantLR(own, 0.5, 2), linear(own)]
    return torch.optim.lr_scheduler.SequentialLR(own, parts, [2])


def cosine(own: torch.optim.Optimizer) -> Any:
    return torch.optim.lr_scheduler.CosineAnnealingLR(own, 10)


def rates(make: Any, *, lower_at: int | None) -> list[float]:
    own = optimizer()
    scheduler = make(own)
    found = []
    for step in range(8):
        if step == lower_at:
            lower_learning_rate(own, scheduler, 0.25)
        found.append(own.param_groups[0]["lr"])
        own.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("make", [linear, chained, cosine])
def test_a_lower_learning_rate_stays_lower_whatever_the_scheduler(make: Any) -> None:
    usual, lowered = rates(make, lower_at=None), rates(make, lower_at=3)
    assert lowered[:3] == usual[:3]
    assert lowered[3:] == pytest.approx([rate / 4 for rate in usual[3:]])


def test_a_lower_learning_rate_is_saved_with_the_scheduler() -> None:
    own = optimizer()
    scheduler = linear(own)
    lower_learning_rate(own, scheduler, 0.5)
    other = optimizer()
    resumed = linear(other)
    resumed.load_state_dict(scheduler.state_dict())
    other.step()
    resumed.step()
    assert other.param_groups[0]["lr"] == pytest.approx(0.05 * 0.9)


@pytest.mark.parametrize(("action", "factor"), [("shout", 0.5), ("lower-lr", 1.5)])
def test_an_action_that_makes_no_sense_is_refused(action: str, factor: float) -> None:
    with pytest.raises(UsageError, match=r"no action|does not lower"):
        check_action(action, factor)


def group(forgotten: float | None, accuracy: float = 0.5, *, alarm: bool = False) -> WatchGroup:
    return WatchGroup(
        items=10, missing=0, accuracy=accuracy, forgotten=forgotten, lost_at_least=0.0,
        gained=0.0, alarm=alarm,
    )  # fmt: skip


def kept(forgotten: float, accuracy: float = 0.5, *, alarm: bool = False) -> KeptCheckpoint:
    return KeptCheckpoint(step=1, forgotten=forgotten, accuracy=accuracy, alarm=alarm)


@pytest.mark.parametrize(
    ("look", "best", "expected"),
    [
        (group(0.01), kept(0.0), True),  # the latest within the margin
        (group(0.05), kept(0.01), False),  # beyond the margin
        (group(0.05), None, True),  # better than none
        (group(0.05), kept(0.08), True),  # none within the margin yet: the least
        (group(0.09), kept(0.08), False),
        (group(0.08, 0.6), kept(0.08, 0.5), True),  # of equals the more accurate
        (group(0.08, 0.4), kept(0.08, 0.5), False),
        (group(0.01, alarm=True), kept(0.0), False),  # an alarm stands
        # Neither is without an alarm: the one with the least forgetting.
        (group(0.01, alarm=True), kept(0.015, alarm=True), True),
        (group(0.018, alarm=True), kept(0.015, alarm=True), False),
        (group(None), None, False),  # no answers
    ],
)
def test_the_latest_look_within_the_margin_is_kept(
    look: WatchGroup, best: KeptCheckpoint | None, expected: bool
) -> None:
    assert is_better(look, best, 0.02) is expected


class Saved:
    """A model or tokenizer that writes a file, or cannot."""

    def __init__(self, name: str, text: str, *, full: bool = False) -> None:
        self.name, self.text, self.full = name, text, full

    def save_pretrained(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.name).write_text(self.text)
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")


def test_the_kept_checkpoint_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    tokenizer = Saved("tokenizer", "t")
    save_best(Saved("weights", "1"), tokenizer, tmp_path)
    save_best(Saved("weights", "2"), tokenizer, tmp_path)
    with pytest.raises(OSError, match="No space"):
        save_best(Saved("weights", "3", full=True), tokenizer, tmp_path)
    assert (tmp_path / "best" / "weights").read_text() == "2"
    assert [path.name for path in tmp_path.iterdir()] == ["best"]
