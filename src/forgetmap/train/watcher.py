"""The watcher in the first process: looks, decides, writes the history."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap.errors import ModelError, OutputError, UsageError
from forgetmap.records import TrainingInfo
from forgetmap.train.actions import is_better, save_best
from forgetmap.train.alarm import TOTAL, KlMeans, judge_look
from forgetmap.train.faults import LOOK_FAULTS, save_faults
from forgetmap.train.history import (
    WATCH_FILE,
    GapKind,
    KeptCheckpoint,
    WatchAlarm,
    WatchGap,
    WatchHistory,
    WatchLook,
    read_history,
    write_history,
)
from forgetmap.train.live_probe import (
    LiveProbe,
    RightOrWrong,
    keep_items,
    move_away,
    read_scores,
    run_name,
)
from forgetmap.train.options import WatchSettings
from forgetmap.train.probe_items import count_items, part_of_suite, suite_of_keys, watched_items
from forgetmap.train.reports import LOGGER, look_line, look_values, print_line
from forgetmap.train.schedule import LEAST_ITEMS


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of a training."""

    step: int
    max_steps: int
    epoch: float | None
    learning_rate: float | None
    loss: float | None

    @property
    def info(self) -> TrainingInfo:
        """The state as recorded in a run folder."""
        return TrainingInfo(
            step=self.step, epoch=self.epoch, learning_rate=self.learning_rate, loss=self.loss
        )


@dataclass(frozen=True, slots=True)
class WatchDecision:
    """Instructions for every process after the first one has looked, or not.

    Attributes:
        next_step: step of the next call.
        values: values to log.
        stop: whether to end the training.
        lr_factor: factor for the learning rate, if it is to be lowered.
    """

    next_step: int
    values: dict[str, float] | None = None
    stop: bool = False
    lr_factor: float | None = None


class Watcher:
    """Watches one training.

    Args:
        settings: options of the watch.
        folder: folder of the history.
        model: the live module.
        tokenizer: tokenizer of the model.

    Attributes:
        history: the history so far.
    """

    def __init__(self, settings: WatchSettings, folder: Path, model: Any, tokenizer: Any) -> None:
        self.folder = folder
        self._settings, self._model, self._tokenizer = settings, model, tokenizer
        self._schedule = settings.schedule()
        self._probe = LiveProbe(
            model, tokenizer, settings.suite, settings.settings, folder, seed=settings.seed
        )
        self._start: RightOrWrong = {}
        self._previous: RightOrWrong | None = None
        self._is_planned = settings.every is not None
        self._lowered_at: float | None = None
        self._counted = 0.0
        self._is_written = True
        items = count_items(settings.suite)
        self.history = WatchHistory(
            suite=settings.suite.name,
            asked=self._probe.asked,
            tokens=self._probe.tokens,
            rule=settings.rule,
            items=items,
            items_of_suite=items,
        )

    def begin(self, moment: Moment) -> WatchDecision:
        """Look at the start model, or resume the history of an interrupted training.

        Raises:
            OutputError: the folder has the history of another training, or none to resume.
            UsageError: suite, settings or tokenizer differ from the earlier part.
            ModelError: the probe fails on the start model.
        """
        earlier = self._earlier(moment)
        self._change(max_steps=moment.max_steps)
        if earlier is not None:
            self._resume(earlier, moment)
            return WatchDecision(self._schedule.first_check(moment.step))
        self._schedule.begin(moment.max_steps)
        try:
            self._probe.warm_up()
            values = self._look(moment)
        except LOOK_FAULTS as error:
            if isinstance(error, OutputError | UsageError | ModelError):
                raise
            raise ModelError(
                f"the probe failed at the start of training: {type(error).__name__}: {error}",
                hint="try it outside of training: fm.evaluate(model, suite, out, tokenizer=...).",
            ) from error
        if not any(score is not None for score in self._start.values()):
            raise UsageError(
                "no item of the probe has a score at the start of training",
                hint="choose items that need no judge or sandbox; find the reason with "
                f"forgetmap records show {self.folder / run_name(moment.step)}.",
            )
        return WatchDecision(self._schedule.first_check(moment.step), values)

    def look_if_due(self, moment: Moment) -> WatchDecision:
        """Look if the budget allows it, else plan again; record errors instead of raising them."""
        if not self._is_planned:
            self._plan_items(moment)
        if self._schedule.allows(moment.step):
            return self._try_look(moment)
        if moment.step >= moment.max_steps:
            self._miss_last(moment)
        return WatchDecision(self._schedule.plan(moment.step))

    def look_at_end(self, moment: Moment) -> WatchDecision:
        """Look at a training that ended before its last step."""
        self._schedule.max_steps = moment.step
        if self._schedule.allows(moment.step):
            return self._try_look(moment)
        self._miss_last(moment)
        return WatchDecision(moment.step)

    def miss(self, step: int, kind: GapKind, message: str) -> None:
        """Record that something is missing; repetitions are recorded once."""
        gap = WatchGap(step=step, kind=kind, message=message)
        last = self.history.gaps[-1:]
        if not last or (last[0].kind, last[0].message) != (kind, message):
            self._change(gaps=[*self.history.gaps, gap])
            self._is_written = False
        self.write_rest()

    def write_rest(self) -> None:
        """Write changes that could not be written before, for example because the disk was full."""
        if not self._is_written:
            self._write()

    def count(self, seconds: float) -> None:
        """Add the duration of a call, including logging."""
        rest = seconds - self._counted
        self._schedule.count(rest)
        if self._counted and len(self.history.looks) > 1:
            self._schedule.costs[-1] += rest
        self._counted = 0.0

    def _earlier(self, moment: Moment) -> WatchHistory | None:
        """Return the history of an earlier part of this training."""
        if not (self.folder / WATCH_FILE).exists():
            if moment.step:
                raise OutputError(
                    f"{self.folder} contains no history, but training resumes at step "
                    f"{moment.step}, so what the model knew at the start is unknown",
                    hint="pass the previous folder as out=, or start at step 0.",
                )
            return None
        earlier = read_history(self.folder)
        if not moment.step:
            # Only the start was recorded: the attempt ended before its first step.
            if len(earlier.looks) > 1 and not self._settings.overwrite:
                raise OutputError(
                    f"{self.folder} contains the history of another training",
                    hint="resume that training (resume_from_checkpoint=), choose another out=, "
                    "or pass overwrite=True.",
                )
            self._clear(earlier)
            return None
        for name, own, other in (
            ("other items or prompts", self._probe.asked, earlier.asked),
            ("another tokenizer", self._probe.tokens, earlier.tokens),
        ):
            if own != other:
                raise UsageError(
                    f"the resumed training has {name} than recorded in {self.folder / WATCH_FILE}",
                    hint="resume with the original suite, settings and tokenizer, or choose "
                    "another out= and start at step 0.",
                )
        return earlier

    def _clear(self, earlier: WatchHistory) -> None:
        for look in earlier.looks:
            move_away(self.folder, look.run)

    def _resume(self, earlier: WatchHistory, moment: Moment) -> None:
        start = self.folder / run_name(0)
        if not start.is_dir():
            raise OutputError(
                f"{start} is missing, so what the model knew at the start is unknown",
                hint="restore it, or choose another out= and start at step 0.",
            )
        self._start = read_scores(start)
        self._probe.suite = suite_of_keys(self._settings.suite, self._start)
        if self._settings.kl:
            self._probe.recall_start()
        for look in earlier.curve:
            if look.step > moment.step:
                move_away(self.folder, look.run)
        looks = [
            look.model_copy(update={"abandoned": look.abandoned or look.step > moment.step})
            for look in earlier.looks
        ]
        best = earlier.best if earlier.best and earlier.best.step <= moment.step else None
        items = count_items(self._probe.suite)
        self._change(
            **{name: getattr(earlier, name) for name in ("alarms", "gaps", "kl_is_exact")},
            looks=looks, best=best, items=items,
        )  # fmt: skip
        curve = self.history.curve
        self._is_planned |= len(curve) > 1 or items < self.history.items_of_suite
        last = curve[-1]
        if last.step and (self.folder / last.run).is_dir():
            self._previous = read_scores(self.folder / last.run)
        trained = last.trained_seconds * moment.step / last.step if last.step else 0.0
        self._schedule.costs = [look.probe_seconds for look in curve[-3:]]
        self._schedule.first = curve[0].probe_seconds
        self._schedule.begin(
            moment.max_steps,
            trained=trained,
            probed=max(look.probed_seconds for look in looks),
        )
        lowered = [alarm for alarm in earlier.alarms if alarm.step <= moment.step]
        if lowered and self._settings.on_alarm == "lower-lr":
            at = {look.step: look.total.forgotten for look in curve}
            self._lowered_at = at.get(lowered[-1].step)
        self._write()

    def _plan_items(self, moment: Moment) -> None:
        """Leave out items if too few looks are affordable; once, after the first steps."""
        self._is_planned = True
        share = self._schedule.affordable_share(moment.step)
        items = max(LEAST_ITEMS, int(share * self.history.items_of_suite))
        if share >= 1 or items >= self.history.items_of_suite:
            return
        part = part_of_suite(self._settings.suite, items, self._settings.seed)
        try:
            keep_items(self.folder / run_name(0), part)
        except LOOK_FAULTS as error:
            self.miss(moment.step, "save", f"the probe keeps all items: {error}")
            return
        kept = count_items(part)
        self._probe.suite = part
        self._start = read_scores(self.folder / run_name(0))
        self._schedule.shrink(kept / self.history.items_of_suite)
        self._change(items=kept)
        self._write()
        self._say(
            f"step {moment.step}: the probe uses {kept} of {self.history.items_of_suite} items, "
            "so that the cost limit allows enough looks"
        )

    def _try_look(self, moment: Moment) -> WatchDecision:
        try:
            values = self._look(moment)
        except LOOK_FAULTS as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            LOGGER.warning("no look at step %d: %s", moment.step, message)
            self._probe.forget_attempt(moment.step)
            self._schedule.costs = self._schedule.costs or [0.0]
            self.miss(moment.step, "probe", message)
            return WatchDecision(max(self._schedule.plan(moment.step), moment.step + 1))
        look = self.history.looks[-1]
        stop, factor = self._answer_alarm(look)
        if self._settings.keep_best and moment.step:
            self._keep_if_best(look)
        self._write()
        return WatchDecision(self._schedule.plan(moment.step), values, stop, factor)

    def _look(self, moment: Moment) -> dict[str, float]:
        began = time.perf_counter()
        looks = self.history.looks
        parent = self.history.curve[-1].run if self.history.curve else None
        run = self._probe.answer(moment.info, parent)
        scores = read_scores(self.folder / run)
        if not looks:
            self._start = scores
            if self._settings.kl:
                self._probe.keep_start()
                self._change(kl_is_exact=self._probe.kl_is_exact)
        kl = self._kl(moment.step) if self._settings.kl and looks else {}
        groups = judge_look(
            len(looks), self._start, scores, watched_items(self._probe.suite),
            self._settings.alarm, earlier=self._previous, kl=kl,
        )  # fmt: skip
        if looks:
            self._previous = scores
        seconds = time.perf_counter() - began
        self._schedule.count_look(seconds)
        self._counted = seconds
        total = groups.pop(TOTAL)
        look = WatchLook(
            look=len(looks),
            step=moment.step,
            epoch=moment.epoch,
            learning_rate=moment.learning_rate,
            loss=moment.loss,
            run=run,
            total=total,
            categories=groups,
            probe_seconds=seconds,
            probed_seconds=self._schedule.probed,
            trained_seconds=self._schedule.trained,
        )
        self._change(looks=[*looks, look])
        if total.missing:
            self.miss(moment.step, "items", f"{total.missing} items got no answer at this step")
        self._write()
        self._say(look_line(look))
        return look_values(look)

    def _kl(self, step: int) -> dict[str, KlMeans]:
        """Return the KL of every group; a failure is recorded, and the look has no KL."""
        try:
            return self._probe.kl()
        except LOOK_FAULTS as error:
            LOGGER.warning("no KL at step %d: %s", step, error)
            self.miss(step, "probe", f"no KL: {type(error).__name__}: {error}")
            return {}

    def _answer_alarm(self, look: WatchLook) -> tuple[bool, float | None]:
        """Record an alarm; return whether to stop, and the factor for the learning rate."""
        groups = {TOTAL: look.total, **look.categories}
        names = [name for name, group in groups.items() if group.alarm]
        if not names:
            return False, None
        stop, factor, action = False, None, "none"
        forgotten = look.total.forgotten or 0.0
        if self._settings.on_alarm == "stop":
            stop, action = True, "training was stopped"
        elif self._settings.on_alarm == "lower-lr" and (
            self._lowered_at is None or forgotten > self._lowered_at
        ):
            self._lowered_at, factor = forgotten, self._settings.lr_factor
            action = f"the learning rate was multiplied by {factor:g}"
        alarm = WatchAlarm(step=look.step, look=look.look, groups=names, action=action)
        self._change(alarms=[*self.history.alarms, alarm])
        LOGGER.warning(
            "step %d: lost more than %g of %s (action: %s)",
            look.step, self._settings.alarm.margin, ", ".join(names), action,
        )  # fmt: skip
        return stop, factor

    def _keep_if_best(self, look: WatchLook) -> None:
        if not is_better(look.total, self.history.best, self._settings.alarm.margin):
            return
        try:
            save_best(self._model, self._tokenizer, self.folder)
        except save_faults() as error:
            LOGGER.warning("the checkpoint of step %d could not be kept: %s", look.step, error)
            self.miss(look.step, "save", f"the checkpoint could not be saved: {error}")
            return
        kept = KeptCheckpoint(
            step=look.step,
            forgotten=look.total.forgotten or 0.0,
            accuracy=look.total.accuracy or 0.0,
            alarm=look.total.alarm,
        )
        self._change(best=kept)

    def _miss_last(self, moment: Moment) -> None:
        message = (
            "no look at the last step, because the probe would exceed "
            f"{100 * (self._settings.cost or 0):g} % of the training time"
        )
        self._say(f"step {moment.step}: {message}")
        self.miss(moment.step, "budget", message)

    def _change(self, **fields: Any) -> None:
        self.history = self.history.model_copy(update=fields)

    def _write(self) -> None:
        """Write the history; if that fails, the next call writes it."""
        try:
            write_history(self.history, self.folder)
            self._is_written = True
        except OSError as error:
            self._is_written = False
            LOGGER.warning("%s could not be written: %s", self.folder / WATCH_FILE, error)

    def _say(self, line: str) -> None:
        if not self._settings.quiet:
            print_line(line)
