"""How far a long job is: bars on a terminal, a line now and then elsewhere."""

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

INTERVAL_S = 15.0
"""Seconds between lines where there is no terminal."""
EXIT_INTERRUPTED = 130


class JobProgress:
    """Shows jobs one after the other, counted in items or in bytes."""

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
        """How far a run of a model is."""
        if step.damaged and name not in self._tasks:
            lines = counted(step.damaged, "line")
            self._console.print(
                f"{name}: {lines} of the journal damaged; what was lost is asked again, and the "
                "damaged file is kept beside it"
            )
        speed = step.tokens / step.seconds if step.seconds else 0.0
        failures = f", {step.failed:,} failed" if step.failed else ""
        amount = f"{step.done:,} of {step.total:,} answers"
        rate = f"{speed:,.0f} tokens/s{failures}"
        left = (step.total - step.done) * step.seconds / max(step.done, 1)
        self._show(name, (step.done, step.total), amount, rate, left)

    def show_bytes(self, name: str, step: MergeStep) -> None:
        """How far a merge is."""
        if step.kept and name not in self._tasks:
            share = step.kept / step.total
            self._console.print(f"{name}: {share:.0%} is there from an earlier attempt")
        speed = (step.done - step.kept) / max(step.seconds, 1e-9)
        unit, size = ("GB", 1e9) if step.total >= 1e9 else ("MB", 1e6)
        amount = f"{step.done / size:,.1f} of {step.total / size:,.1f} {unit}"
        left = (step.total - step.done) / speed if speed else float("inf")
        self._show(name, (step.done, step.total), amount, f"{speed / 1e6:,.0f} MB/s", left)

    def show_items(self, name: str, done: int, total: int, unit: str) -> None:
        """How many of a short list are done; nothing is printed without a terminal."""
        if self._console.is_terminal:
            self._show(name, (done, total), f"{done:,} of {total:,} {unit}", "", 0.0)

    def show_steps(self, name: str, done: int, total: int, rate: str) -> None:
        """How many steps of a training are done."""
        left = (total - done) * (time.monotonic() - self._began) / max(done, 1)
        self._show(name, (done, total), f"{done:,} of {total:,} steps", rate, left)

    def show_runs(self, name: str, done: int, total: int, latest: str, left: float) -> None:
        """How many trainings are done, and which was the latest."""
        self._show(name, (done, total), f"{done:,} of {total:,} runs", latest, left)

    def _show(self, name: str, count: tuple[int, int], amount: str, rate: str, left: float) -> None:
        done, total = count
        if name not in self._tasks:
            # What an earlier attempt did must not count as the speed of this one.
            self._tasks[name] = self._bar.add_task(
                name, total=total, completed=done, amount=amount, rate=rate
            )
        self._bar.update(self._tasks[name], completed=done, amount=amount, rate=rate)
        if self._console.is_terminal:
            return
        if done == total or time.monotonic() - self._last_line > INTERVAL_S:
            self._last_line = time.monotonic()
            click.echo(f"{name}: {amount}, {rate}, about {left:,.0f} s left", err=True)


@contextmanager
def stoppable(
    message: str = "Stopped; every answer so far is kept. Run the same command to go on.",
) -> Iterator[None]:
    """Ctrl-C, or being asked to end, keeps what was done and says how to go on."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\n{message}", err=True)
        raise SystemExit(EXIT_INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)
