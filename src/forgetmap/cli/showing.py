"""What a report shows of items, and the forms it is written in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click

from forgetmap.cli.comparing import spare_inputs
from forgetmap.cli.options import Command, with_options
from forgetmap.errors import OutputError
from forgetmap.records import writable
from forgetmap.report import MOST_ITEMS, Format, Payload, as_markdown, write_figures, write_report

PICTURES = get_args(Format)


def showing_options(command: Command) -> Command:
    """Options of every command that writes a report; `shown` takes them out again."""
    options = [
        click.option("--title", help="Of the report; by default the names of the runs."),
        click.option(
            "--limit",
            type=click.IntRange(1),
            default=MOST_ITEMS,
            show_default=True,
            help="Most flipped items in the report; every task has its share.",
        ),
        click.option(
            "--no-text",
            is_flag=True,
            help="Leave out what was asked and said: names, scores and outcomes remain.",
        ),
        click.option(
            "--redact",
            multiple=True,
            metavar="REGEX",
            help="Blacken what matches in questions, options, answers, prompts, responses and "
            r"warnings, not in names of tasks and items; \S blackens all. Also hides folders. "
            "Repeatable.",
        ),
    ]
    return with_options(command, options)


def shown(options: dict[str, Any]) -> dict[str, Any]:
    """What to show, as `make_payload` takes it."""
    return {
        "texts": not options.pop("no_text"),
        "redact": options.pop("redact"),
        "limit": options.pop("limit"),
        "title": options.pop("title"),
        "made": datetime.now(UTC).date().isoformat(),
    }


def refuse_to_replace(place: Path, sources: tuple[str, ...], *, overwrite: bool) -> None:
    """Neither an input nor, unless asked for, an earlier result is replaced.

    Raises:
        OutputError: the place is taken.
    """
    spare_inputs(place, sources)
    if place.exists() and not overwrite:
        raise OutputError(
            f"{place} exists already", hint="choose another --out, or replace it with --overwrite."
        )


def _write_markdown(payload: Payload, path: Path) -> None:
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_markdown(payload), encoding="utf-8")


def _write_pictures(form: Format) -> Callable[[Payload, Path], object]:
    def write(payload: Payload, folder: Path) -> object:
        return write_figures(payload, folder, form)

    return write


WRITERS: dict[str, Callable[[Payload, Path], object]] = {
    "html": write_report,
    "markdown": _write_markdown,
    **{form: _write_pictures(form) for form in PICTURES},
}
