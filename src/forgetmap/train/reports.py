"""Output of a watched training: the loggers of the trainer, and the terminal."""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forgetmap.train.faults import reporter_faults
from forgetmap.train.history import WatchGroup, WatchLook

LOGGER = logging.getLogger("forgetmap.train")
SHOWN = {
    "forgetting": "forgotten",
    "backward_transfer": "gained",
    "lost_at_least": "lost_at_least",
    "probe_accuracy": "accuracy",
    "kl_to_start": "kl_to_start",
    "kl_from_start": "kl_from_start",
}
"""Prefix of a logged name -> field of a group."""


def look_values(look: WatchLook) -> dict[str, float]:
    """Return values to log: `forgetting/total`, `forgetting/CATEGORY`, `kl_to_start/...`."""
    groups: dict[str, WatchGroup] = {"total": look.total, **look.categories}
    values = {
        f"{shown}/{name}": float(value)
        for shown, field in SHOWN.items()
        for name, group in groups.items()
        if (value := getattr(group, field)) is not None
    }
    values["forgetting_alarm"] = float(any(group.alarm for group in groups.values()))
    if look.total.missing:
        values["forgetting_missing"] = float(look.total.missing)
    if look.cost is not None and look.step:
        values["probe_cost"] = look.cost
    return values


class Reporters:
    """The loggers of a trainer.

    `trainer.log` is not used: inside a callback it would replace the next line of the trainer, and
    trainers of TRL would log the means of their values too early.

    Args:
        handler: callback handler of the trainer; without it, loggers are created from `report_to`.
            They write to the same run, which Weights & Biases and others find by themselves, or to
            the same folder.
    """

    def __init__(self, handler: Any = None) -> None:
        self._handler = handler
        self._own: list[Any] | None = None

    def send(
        self, values: dict[str, float], args: Any, state: Any, control: Any, given: dict[str, Any]
    ) -> list[str]:
        """Send values to the loggers; return a message for each failure.

        Args:
            values: values by name.
            args: arguments of the trainer.
            state: state of the trainer; the values are added to its history.
            control: control of the trainer; loggers get a copy, so that they cannot change it.
            given: further arguments of callbacks, such as the model.
        """
        logs = dict(values)
        if state.epoch is not None:
            logs["epoch"] = state.epoch
        state.log_history.append({**logs, "step": state.global_step})
        problems = []
        for reporter in self._reporters(args, state):
            try:
                reporter.on_log(args, state, copy.copy(control), logs=dict(logs), **given)
            except reporter_faults() as error:
                problems.append(f"{type(reporter).__name__}: {type(error).__name__}: {error}")
        return problems

    def close(self) -> None:
        """Close the loggers that were created here."""
        for reporter in self._own or ():
            writer = getattr(reporter, "tb_writer", None)
            if writer is not None:
                writer.close()
        self._own = None

    def _reporters(self, args: Any, state: Any) -> Sequence[Any]:
        from transformers import PrinterCallback, ProgressCallback

        if self._handler is not None:
            # These two print all values, but a look has its own line.
            return [
                callback
                for callback in self._handler.callbacks
                if not isinstance(callback, PrinterCallback | ProgressCallback)
            ]
        if not state.is_world_process_zero:
            return ()
        if self._own is None:
            from transformers.integrations import get_reporting_integration_callbacks

            self._own = [kind() for kind in get_reporting_integration_callbacks(args.report_to)]
            for reporter in self._own:
                _join_tensorboard(reporter, Path(args.output_dir))
                if hasattr(reporter, "_trackio"):
                    # The logger of the trainer has started the run, and starting it again would
                    # leave an empty one; values go to the active run.
                    reporter._initialized = True  # noqa: SLF001
        return self._own


def _join_tensorboard(reporter: Any, folder: Path) -> None:
    """Write to the newest folder, which the logger of the trainer has created."""
    if getattr(reporter, "logging_dir", "") is not None:
        return
    folders = [path for path in (folder / "runs").glob("*") if path.is_dir()]
    latest = max(folders, key=lambda path: path.stat().st_mtime, default=folder / "runs")
    reporter.logging_dir = str(latest)


def look_line(look: WatchLook) -> str:
    """Return a look as one line of text."""
    total = look.total
    if total.forgotten is None or total.gained is None:
        return f"step {look.step}: none of {total.missing} items got an answer"
    if not look.step:
        return f"step 0: {_percent(total.accuracy or 0)} of {total.items} items right at the start"
    parts = [
        f"forgot {_percent(total.forgotten)} of {total.items} items",
        f"gained {_percent(total.gained)}",
        f"lost at least {_percent(total.lost_at_least)}",
    ]
    if total.kl_to_start is not None:
        parts.append(f"KL {total.kl_to_start:.2f}")
    if total.missing:
        parts.append(f"{total.missing} without an answer")
    if look.cost is not None:
        parts.append(f"probe {_percent(look.cost)} of the time")
    groups = {"total": total, **look.categories}
    alarms = [name for name, group in groups.items() if group.alarm]
    alarm = f" — ALARM: {', '.join(alarms)}" if alarms else ""
    return f"step {look.step}: {', '.join(parts)}{alarm}"


def print_line(line: str) -> None:
    """Print a line above the progress bars, if any are shown."""
    from rich.console import Console
    from tqdm import tqdm

    with tqdm.external_write_mode(file=sys.stderr):
        console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        console.print(line, style="bold red" if "ALARM" in line else None)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
