"""Options shared by several commands, one module per subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from forgetmap.errors import OutputError, UsageError

Command = Callable[..., Any]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace an earlier result of the same name."
)


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Add options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def split_names(text: str | None) -> list[str]:
    """Split a list of names such as `mmlu:*, piqa:main`."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def refuse_overwriting_inputs(out: Path, inputs: Sequence[str]) -> None:
    """Refuse an output path that is an input: --overwrite would replace it."""
    folder = out.resolve()
    for path in map(Path, inputs):
        if path.resolve().is_relative_to(folder):
            what = "is" if path.resolve() == folder else f"contains {path}, which is"
            raise UsageError(
                f"the output {out} {what} an input of this command",
                hint="choose another path for the output.",
            )


def refuse_existing(out: Path, inputs: Sequence[str], *, overwrite: bool) -> None:
    """Refuse to replace an input or, without --overwrite, an existing file.

    Raises:
        OutputError: the path already exists.
    """
    refuse_overwriting_inputs(out, inputs)
    if out.exists() and not overwrite:
        raise OutputError(
            f"{out} already exists", hint="choose another --out, or add --overwrite to replace it."
        )
