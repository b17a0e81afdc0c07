"""Options and progress of commands that read the logs of a harness."""

from __future__ import annotations

import click
from rich.status import Status

from forgetmap.cli.options import Command, with_options
from forgetmap.sources import Progress


def log_options(command: Command) -> Command:
    """How to read the logs of a harness."""
    options = [
        click.option(
            "--run",
            multiple=True,
            help="Part of a model, time stamp or file name, where logs hold several runs.",
        ),
        click.option("--strict", is_flag=True, help="Fail at the first row that cannot be used."),
        click.option(
            "--cache/--no-cache",
            "cached",
            default=True,
            show_default=True,
            help="Use what was read from the same logs before.",
        ),
    ]
    return with_options(command, options)


def reading_progress(status: Status) -> Progress:
    """Says in the status line how far it is."""
    return lambda words: status.update(f"{words} ...")
