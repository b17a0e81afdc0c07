"""How far a long run is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from forgetmap.evaluation import Step

EVERY = 15.0
"""Seconds between lines where there is no terminal."""


class Shown:
    """Shows the steps of one run after the other."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} answers"),
            TextColumn("{task.fields[speed]:,.0f} tokens/s"),
            TextColumn("{task.fields[failed]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[str, Any] = {}
        self._said = time.monotonic()

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

    def step(self, name: str, step: Step) -> None:
        """One answer more."""
        speed = step.tokens / step.seconds if step.seconds else 0.0
        failed = f"{step.failed:,} failed" if step.failed else ""
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=step.total, speed=0.0, failed="")
        self._bar.update(self._tasks[name], completed=step.done, speed=speed, failed=failed)
        if self._console.is_terminal:
            return
        if step.done == step.total or time.monotonic() - self._said > EVERY:
            self._said = time.monotonic()
            left = (step.total - step.done) * step.seconds / max(step.done, 1)
            click.echo(
                f"{name}: {step.done:,} of {step.total:,} answers, {speed:,.0f} tokens/s, "
                f"about {left:,.0f} s left{', ' + failed if failed else ''}",
                err=True,
            )
