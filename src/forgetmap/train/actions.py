"""Actions after an alarm, and the choice of the checkpoint to keep."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from forgetmap._disk import exchange, sync_tree
from forgetmap.errors import UsageError
from forgetmap.train.history import KeptCheckpoint, WatchGroup

OnAlarm = Literal["log", "stop", "lower-lr"]
BEST = "best"


def check_action(on_alarm: str, lr_factor: float) -> None:
    """Refuse an unknown action or a factor that does not lower the learning rate.

    Raises:
        UsageError: the action is unknown, or the factor is out of range.
    """
    if on_alarm not in get_args(OnAlarm):
        raise UsageError(
            f"there is no action {on_alarm!r}",
            hint=f"choose from {', '.join(get_args(OnAlarm))}.",
        )
    if not 0 < lr_factor < 1:
        raise UsageError(
            f"a factor of {lr_factor:g} does not lower the learning rate",
            hint="use a number between 0 and 1, such as 0.5.",
        )


def lower_learning_rate(optimizer: Any, scheduler: Any, factor: float) -> None:
    """Multiply the learning rate, now and in the later values of the scheduler.

    Schedulers compute each rate from `base_lrs` or from the previous rate, so both are scaled; they
    are saved with a checkpoint, so a resumed training has them.
    """
    for group in optimizer.param_groups:
        group["lr"] *= factor
        if "initial_lr" in group:
            group["initial_lr"] *= factor
    for one in _all_schedulers(scheduler):
        if hasattr(one, "base_lrs"):
            one.base_lrs = [rate * factor for rate in one.base_lrs]
        if hasattr(one, "_last_lr"):
            one._last_lr = [rate * factor for rate in one._last_lr]  # noqa: SLF001


def _all_schedulers(scheduler: Any) -> list[Any]:
    """Return a scheduler with its parts; accelerate and SequentialLR wrap others."""
    if scheduler is None:
        return []
    inner = getattr(scheduler, "scheduler", None)
    parts: Sequence[Any] = getattr(scheduler, "_schedulers", ())
    if inner is not None:
        parts = [*parts, inner]
    return [scheduler, *(one for part in parts for one in _all_schedulers(part))]


def is_better(total: WatchGroup, best: KeptCheckpoint | None, margin: float) -> bool:
    """Whether the checkpoint of a look replaces the one that is kept.

    Kept is the latest look with measured forgetting of at most the margin and no alarm. If there is
    none, it is the look with the least forgetting; ties go to the more accurate, then to the later
    one.
    """
    if total.forgotten is None or total.accuracy is None:
        return False
    if total.forgotten <= margin and not total.alarm:
        return True
    if best is None:
        return True
    if best.forgotten <= margin and not best.alarm:
        return False
    return (total.forgotten, -total.accuracy) <= (best.forgotten, -best.accuracy)


def save_best(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write model (or only its adapter) and tokenizer atomically.

    The previous checkpoint is removed only after the new one is on the disk.
    """
    best, partial = folder / BEST, folder / f".{BEST}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        model.save_pretrained(partial)
        if hasattr(tokenizer, "save_pretrained"):
            tokenizer.save_pretrained(partial)
        sync_tree(partial)
        if best.exists() and not exchange(partial, best):
            shutil.rmtree(best)
        if not best.exists():
            partial.rename(best)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
