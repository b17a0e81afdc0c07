"""Options of what a command prints and writes, and the checks before it writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from forgetmap.errors import OutputError, UsageError

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace an earlier result of the same name."
)


def refuse_overwriting_inputs(out: Path, inputs: Sequence[str]) -> None:
    """Refuse to write where the results come from: --overwrite would replace them."""
    for path in map(Path, inputs):
        if path.resolve().is_relative_to(out.resolve()):
            raise UsageError(f"--out {out} holds {path}", hint="choose another folder for --out.")


def refuse_existing(out: Path, inputs: Sequence[str], *, overwrite: bool) -> None:
    """Replace neither an input nor, without --overwrite, an earlier result.

    Raises:
        OutputError: there is something at this path already.
    """
    refuse_overwriting_inputs(out, inputs)
    if out.exists() and not overwrite:
        raise OutputError(
            f"{out} exists already", hint="choose another --out, or replace it with --overwrite."
        )
