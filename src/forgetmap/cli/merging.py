"""What the commands that merge share: options, progress, and doing it."""

from __future__ import annotations

import re
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from forgetmap.cli.asking import stoppable
from forgetmap.cli.options import Command, overwrite_option, with_options

if TYPE_CHECKING:
    from forgetmap.merge import MergeStep, Recipe

DTYPES = ["float64", "float32", "float16", "bfloat16"]
EVERY = 15.0
"""Seconds between lines where there is no terminal."""
GO_ON = "Stopped. Run the same command to go on where it was."
UNITS = {
    "": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
}
MODEL_HELP = "A model is a folder with safetensors, a hub id, or BASE+ADAPTER."


class SizeType(click.ParamType[int]):
    """`5GB` as a number of bytes."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the size."""
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]I?B|)\s*", str(value).upper())
        if found is None or float(found[1]) <= 0:
            self.fail(f"{value!r} is not a size, such as 5GB or 500MB", param, ctx)
        return max(int(float(found[1]) * UNITS[found[2]]), 1)


def writing_options(command: Command) -> Command:
    """Where the result goes and how it is written."""
    options = [
        click.option(
            "--out", type=click.Path(path_type=Path), required=True, help="The folder to write."
        ),
        click.option("--shard-size", type=SizeType(), default="5GB", show_default=True,
                     help="Largest file of weights."),
        click.option("--threads", type=click.IntRange(1),
                     help="How many tensors are worked on at once.  [default: cores + 1]"),
        overwrite_option,
    ]  # fmt: skip
    return with_options(command, options)


def model_options(command: Command) -> Command:
    """What the result is like, beyond the method."""
    options = [
        click.option("--dtype", type=click.Choice(DTYPES),
                     help="Of the weights.  [default: that of the first model]"),
        click.option("--seed", type=int, default=0, show_default=True,
                     help="For methods that draw."),
        click.option("--vocabulary", type=click.Choice(["error", "smallest", "base", "union"]),
                     default="error", show_default=True,
                     help="What to do where models have different tokens."),
        click.option("--tokenizer", metavar="MODEL",
                     help="The model whose tokenizer is taken.  [default: the first]"),
        click.option("--chat-template", metavar="TEMPLATE",
                     help="`auto`, `chatml`, a model, a file, or the template itself.  "
                     "[default: that of the tokenizer]"),
    ]  # fmt: skip
    return with_options(command, options)


def do_merge(
    recipe: Recipe, *, out: Path, shard_size: int, threads: int | None, overwrite: bool
) -> None:
    """Merge, show how far it is, and say where the result lies."""
    from forgetmap.merge import apply_recipe  # heavy

    with stoppable(GO_ON), MergeShown(out.name) as shown:
        apply_recipe(
            recipe, out,
            shard_bytes=shard_size, threads=threads, overwrite=overwrite, report=shown.step,
        )  # fmt: skip
    click.echo(f"Written to {out}")


class MergeShown:
    """How far a merge is: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, name: str) -> None:
        from rich.console import Console  # heavy
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._name = name
        self._task = self._bar.add_task(name, total=None)
        self._said = time.monotonic()
        self._took_over = False

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

    def step(self, step: MergeStep) -> None:
        """Show how far it is."""
        if step.kept and not self._took_over:
            self._took_over = True
            self._bar.reset(self._task, completed=step.kept, total=step.total)
            share = step.kept / step.total
            self._console.print(f"{self._name}: {share:.0%} is there from an earlier attempt")
        self._bar.update(self._task, completed=step.done, total=step.total)
        if self._console.is_terminal or step.done == step.total:
            return
        if time.monotonic() - self._said > EVERY:
            self._said = time.monotonic()
            speed = (step.done - step.kept) / max(step.seconds, 1e-9)
            left = (step.total - step.done) / speed if speed else float("inf")
            click.echo(
                f"{self._name}: {step.done / 1e9:,.1f} of {step.total / 1e9:,.1f} GB, "
                f"{speed / 1e6:,.0f} MB/s, about {left:,.0f} s left",
                err=True,
            )
