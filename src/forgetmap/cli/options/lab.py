"""Options of the lab commands: the recipe, the output folder, the progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import Command, json_option, with_options
from forgetmap.cli.progress import JobProgress, stoppable
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.lab import LabRecipe, Pretraining

TINY = "tiny"
STOPPED = "Stopped. All finished runs are kept; run the same command to resume."


def require_training() -> None:
    """Check for the packages of training before anything is read."""
    from forgetmap._lazy import require

    require("torch", "The lab", extra="train")
    require("transformers", "The lab", extra="train")
    # Its progress bars, one per loaded or saved model, would garble ours.
    logging = import_module("transformers.utils.logging")
    logging.disable_progress_bar()
    logging.set_verbosity_error()


def lab_options(files: str) -> Callable[[Command], Command]:
    """Add the recipe, the start model and the folder of a lab command.

    Args:
        files: further files in that folder, for the help.
    """
    options = [
        click.argument("recipe"),
        click.option("--out", type=click.Path(path_type=Path), required=True,
                     help=f"Folder for all runs and {files}. Finished runs are kept."),
        click.option("--start", type=click.Path(path_type=Path),
                     help=(
                         "Start model of the recipe tiny, as written by `forgetmap lab start` "
                         "[default: created once and kept in the cache]."
                     )),
        click.option("--seeds", type=int, default=3, show_default=True,
                     help="Number of repetitions, each with different new facts; 2 or more."),
        json_option,
    ]  # fmt: skip
    return lambda command: with_options(command, options)


def open_recipe(name: str, start: Path | None, *, make: bool = True) -> LabRecipe:
    """Return a recipe by name or from a file; create the start model of the tiny one if needed.

    Args:
        name: `tiny`, or the path of a recipe in TOML.
        start: start model of the tiny world.
        make: pre-train the start model if it is missing.
    """
    from forgetmap.lab import read_recipe, tiny_recipe

    if name == TINY:
        return tiny_recipe(start or _find_start(make=make))
    if start is not None:
        raise UsageError(
            "--start works only with the recipe tiny",
            hint="set the model in the recipe: start = ...",
        )
    return read_recipe(name)


def _find_start(*, make: bool) -> Path:
    from forgetmap.lab import kept_start

    folder = kept_start()
    if make and not folder.exists():
        click.echo(
            f"No start model yet. Pre-training one and keeping it in {folder} (about two minutes "
            "on two cores).",
            err=True,
        )
        pretrain(folder)
    return folder


def pretrain(out: Path, plan: Pretraining | None = None) -> None:
    """Create a start model, and show the progress."""
    from forgetmap.lab import Pretraining, write_start

    plan = plan or Pretraining()
    with (
        stoppable("Stopped; nothing was written."),
        JobProgress() as progress,
    ):
        write_start(
            out,
            plan,
            lambda step, loss: progress.show_steps(
                "pre-training", step, plan.steps, f"loss {loss:.3f}"
            ),
        )


class RunProgress:
    """Shows the number of finished runs.

    Args:
        progress: where it is shown.
        total: number of runs.
        workers: number of concurrent runs.
    """

    def __init__(self, progress: JobProgress, total: int, workers: int = 1) -> None:
        self.progress, self.total, self.workers = progress, total, workers
        self.done = 0
        self.seconds = 0.0
        self._latest = time.monotonic()
        self.show("")

    def show(self, name: str, seconds: float | None = None) -> None:
        """Count a finished run; without a name, show the start.

        Args:
            name: name of the run.
            seconds: its duration; by default since the previous run.
        """
        now = time.monotonic()
        self.done += bool(name)
        self.seconds += now - self._latest if seconds is None else seconds
        self._latest = now
        mean = self.seconds / max(self.done, 1)
        left = mean * (self.total - self.done) / self.workers
        self.progress.show_runs("runs", self.done, self.total, name, left)

    def show_arm(self, run: Any) -> None:
        """Count a training run of the lab."""
        self.show(run.folder, run.seconds)
