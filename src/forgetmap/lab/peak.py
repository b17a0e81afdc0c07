"""The early peak: the largest loss of near items during a training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from forgetmap.evaluation import Item, Suite, Task
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.training import ComputeCounter
from forgetmap.train import ForgettingCallback, WatchHistory

ITEMS = 150
EVERY = 20
"""Number of steps between looks."""
NO_ALARM = 0.99
"""Margin without alarms: forgetting is expected here."""


@dataclass(frozen=True)
class Peak:
    """The largest share of the known items that was forgotten at any look.

    Attributes:
        lost: forgotten / known.
        step: step of that look.
    """

    lost: float
    step: int


class PeakWatch(TrainerCallback):  # type: ignore[misc]
    """Watches near items during a training; its passes are not counted as compute."""

    def __init__(self, recipe: LabRecipe, counter: ComputeCounter, out: Path) -> None:
        self.counter = counter
        self.callback = ForgettingCallback(
            near_probe(recipe),
            every=EVERY,
            out=out,
            settings=recipe.settings,
            kl=False,
            quiet=True,
            margin=NO_ALARM,
        )

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Look at the start model."""
        with self.counter.paused():
            self.callback.on_train_begin(args, state, control, **given)

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Look if a look is due."""
        with self.counter.paused():
            self.callback.on_step_end(args, state, control, **given)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Look at the end."""
        with self.counter.paused():
            self.callback.on_train_end(args, state, control, **given)

    @property
    def peak(self) -> Peak | None:
        """The worst look so far."""
        return find_peak(self.callback.history)


def find_peak(history: WatchHistory) -> Peak | None:
    """Return the worst look; None if nothing was known at the start or there is no look."""
    if not history.curve or not history.curve[0].total.accuracy:
        return None
    known = history.curve[0].total.accuracy
    peaks = [
        Peak(look.total.forgotten / known, look.step)
        for look in history.curve[1:]
        if look.total.forgotten is not None
    ]
    return max(peaks, key=lambda peak: peak.lost, default=None)


def near_probe(recipe: LabRecipe, count: int = ITEMS) -> Suite:
    """Return a few near items, the same in every training."""
    items = [(task, item) for task in recipe.near.tasks for item in task.load()]
    items.sort(key=lambda pair: sha256(f"{pair[0].name}\n{pair[1].id}".encode()).digest())
    chosen: dict[str, tuple[Task, list[Item]]] = {}
    for task, item in items[:count]:
        chosen.setdefault(task.name, (task, []))[1].append(item)
    tasks = [_with_items(task, tuple(kept)) for task, kept in chosen.values()]
    return Suite(f"{recipe.near.name}-probe", tuple(tasks))


def _with_items(task: Task, items: tuple[Item, ...]) -> Task:
    return replace(task, load=partial(tuple, items))
