"""Progress of long jobs: bars on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from forgetmap.text import counted

if TYPE_CHECKING:
    from forgetmap.evaluation import Step
    from forgetmap.merge import MergeStep
    from forgetmap.study import RunUpdate

INTERVAL_S = 15.0
"""Seconds between lines without a terminal."""
EXIT_INTERRUPTED = 130


class JobProgress:
    """Shows jobs one after the other, counted in items or bytes."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[str, Any] = {}
        self._began = self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def show_answers(self, name: str, step: Step) -> None:
        """Show the progress of the run of a model."""
        if step.damaged and name not in self._tasks:
            lines = counted(step.damaged, "line")
            self._console.print(
                f"{name}: {lines} of the journal damaged; the lost answers are evaluated again, "
                "and the damaged file is kept next to it"
            )
        speed = step.tokens / step.seconds if step.seconds else 0.0
        failures = f", {step.failed:,} failed" if step.failed else ""
        amount = f"{step.done:,} of {step.total:,} answers"
        rate = f"{speed:,.0f} tokens/s{failures}"
        left = (step.total - step.done) * step.seconds / max(step.done, 1)
        self._show(name, (step.done, step.total), amount, rate, left)

    def show_bytes(self, name: str, step: MergeStep) -> None:
        """Show the progress of a merge."""
        if step.kept and name not in self._tasks:
            share = step.kept / step.total
            self._console.print(f"{name}: {share:.0%} done in an earlier attempt")
        speed = (step.done - step.kept) / max(step.seconds, 1e-9)
        unit, size = ("GB", 1e9) if step.total >= 1e9 else ("MB", 1e6)
        amount = f"{step.done / size:,.1f} of {step.total / size:,.1f} {unit}"
        left = (step.total - step.done) / speed if speed else float("inf")
        self._show(name, (step.done, step.total), amount, f"{speed / 1e6:,.0f} MB/s", left)

    def show_items(self, name: str, done: int, total: int, unit: str) -> None:
        """Show the progress of a short list; prints nothing without a terminal."""
        if self._console.is_terminal:
            self._show(name, (done, total), f"{done:,} of {total:,} {unit}", "", 0.0)

    def show_steps(self, name: str, done: int, total: int, rate: str) -> None:
        """Show the progress of a training."""
        left = (total - done) * (time.monotonic() - self._began) / max(done, 1)
        self._show(name, (done, total), f"{done:,} of {total:,} steps", rate, left)

    def show_runs(self, name: str, done: int, total: int, latest: str, left: float) -> None:
        """Show the number of finished trainings, and the latest one."""
        self._show(name, (done, total), f"{done:,} of {total:,} runs", latest, left)

    def _show(self, name: str, count: tuple[int, int], amount: str, rate: str, left: float) -> None:
        done, total = count
        if name not in self._tasks:
            # Results of an earlier attempt must not count for the speed of this one.
            self._tasks[name] = self._bar.add_task(
                name, total=total, completed=done, amount=amount, rate=rate
            )
        self._bar.update(self._tasks[name], completed=done, amount=amount, rate=rate)
        if self._console.is_terminal:
            return
        if done == total or time.monotonic() - self._last_line > INTERVAL_S:
            self._last_line = time.monotonic()
            click.echo(f"{name}: {amount}, {rate}, about {left:,.0f} s left", err=True)


class StudyProgress(JobProgress):
    """Shows a whole study: a line for the total, and one per running model.

    Args:
        total: number of models.
        done: number of models that were finished before.
    """

    def __init__(self, total: int, done: int) -> None:
        super().__init__()
        self._total, self._done, self._failed = total, done, 0
        self._answers: dict[str, int] = {}

    def show_update(self, update: RunUpdate) -> None:
        """Show that a model started, is done, or failed."""
        if update.effort is None and update.error is None:
            self._show_total()
            return
        self._remove(update.model)
        if update.error is not None:
            self._failed += 1
            reason = getattr(update.error, "located", str(update.error))
            self._print(f"{update.model} failed: {reason}")
        elif update.effort is not None:
            self._done += 1
            effort = update.effort
            if not effort.answers:  # nothing was left to answer
                self._print(f"{update.model}: all answers already present")
                return
            speed = effort.tokens / effort.seconds if effort.seconds else 0.0
            answers = counted(effort.answers, "answer")
            self._print(f"{update.model}: {answers} in {effort.seconds:,.0f} s, {speed:,.0f} "
                        "tokens/s")  # fmt: skip
        self._show_total()

    def show_answers(self, name: str, step: Step) -> None:
        """Show the progress of the run of a model, and of the study."""
        self._answers[name] = step.done
        super().show_answers(name, step)
        self._show_total()

    def _show_total(self) -> None:
        failures = f", {self._failed} failed" if self._failed else ""
        amount = f"{self._done:,} of {self._total:,} models{failures}"
        rate = f"{sum(self._answers.values()):,} answers"
        if self._console.is_terminal:
            self._show("study", (self._done, self._total), amount, rate, 0.0)

    def _print(self, line: str) -> None:
        end = f" ({self._done} of {self._total} models)"
        self._console.print(f"{line}{end}", markup=False, highlight=False)

    def _remove(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            self._bar.remove_task(task)


@contextmanager
def stoppable(
    message: str = "Stopped. All answers so far are kept; run the same command to resume.",
) -> Iterator[None]:
    """On Ctrl-C or SIGTERM, keep the results so far and print how to resume."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\n{message}", err=True)
        raise SystemExit(EXIT_INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)
