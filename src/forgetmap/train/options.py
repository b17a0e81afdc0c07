"""Options of `watch`, checked before the training begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from forgetmap.comparison import MARGIN
from forgetmap.errors import UsageError
from forgetmap.evaluation import Settings, Suite
from forgetmap.train.actions import OnAlarm, check_action
from forgetmap.train.alarm import AlarmRule
from forgetmap.train.history import WatchRule
from forgetmap.train.probe_items import watched_suite
from forgetmap.train.schedule import LookSchedule

COST, ALPHA, LR_FACTOR = 0.05, 0.025, 0.5


class WatchOptions(TypedDict, total=False):
    """Options of `fm.watch`."""

    cost: float
    every: int | None
    out: str | Path | None
    settings: Settings | None
    margin: float
    noise_floor: float | None
    alpha: float
    on_alarm: OnAlarm
    lr_factor: float
    keep_best: bool
    kl: bool
    tokenizer: Any
    seed: int
    overwrite: bool
    quiet: bool


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """Options with all defaults filled in, and the items."""

    suite: Suite
    settings: Settings
    cost: float | None
    every: int | None
    out: Path | None
    alarm: AlarmRule
    on_alarm: OnAlarm
    lr_factor: float
    keep_best: bool
    kl: bool
    tokenizer: Any
    seed: int
    overwrite: bool
    quiet: bool

    def schedule(self) -> LookSchedule:
        """Schedule of looks."""
        return LookSchedule(cost=self.cost, every=self.every)

    @property
    def rule(self) -> WatchRule:
        """Options as stored in the history."""
        return WatchRule(
            cost=self.cost,
            every=self.every,
            margin=self.alarm.margin,
            noise_floor=self.alarm.noise_floor,
            alpha=self.alarm.alpha,
            on_alarm=self.on_alarm,
            keep_best=self.keep_best,
        )


def make_watch_settings(suite: str | Path | Suite, options: WatchOptions) -> WatchSettings:
    """Check the options and read the items.

    Raises:
        FieldError: an item has no right answer.
        UsageError: an option is invalid.
    """
    unknown = set(options) - set(WatchOptions.__annotations__)
    if unknown:
        raise UsageError(
            f"there is no option {min(unknown)!r}",
            hint=f"choose from {', '.join(WatchOptions.__annotations__)}.",
        )
    every = options.get("every")
    settings = options.get("settings") or Settings()
    out = options.get("out")
    watch_settings = WatchSettings(
        suite=watched_suite(suite, settings),
        settings=settings,
        cost=None if every is not None else options.get("cost", COST),
        every=every,
        out=None if out is None else Path(out),
        alarm=_alarm_rule(options),
        on_alarm=options.get("on_alarm", "log"),
        lr_factor=options.get("lr_factor", LR_FACTOR),
        keep_best=options.get("keep_best", False),
        kl=options.get("kl", True),
        tokenizer=options.get("tokenizer"),
        seed=options.get("seed", 0),
        overwrite=options.get("overwrite", False),
        quiet=options.get("quiet", False),
    )
    watch_settings.schedule()
    check_action(watch_settings.on_alarm, watch_settings.lr_factor)
    return watch_settings


def _alarm_rule(options: WatchOptions) -> AlarmRule:
    rule = AlarmRule(
        margin=options.get("margin", MARGIN),
        alpha=options.get("alpha", ALPHA),
        noise_floor=options.get("noise_floor"),
    )
    for name, value, least in (
        ("margin", rule.margin, 0.0),
        ("noise_floor", rule.noise_floor or 0.0, 0.0),
        ("alpha", rule.alpha, 1e-9),
    ):
        if not least <= value < 1:
            raise UsageError(
                f"{name} is {value:g}", hint="use a share between 0 and 1, such as 0.02 or 0.05."
            )
    return rule
