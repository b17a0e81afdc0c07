"""Options of commands that write a report, and its formats."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from forgetmap.cli.options import Command, with_options
from forgetmap.report import MAX_ITEMS, Format

if TYPE_CHECKING:
    from forgetmap.report import Payload

FIGURE_FORMATS = get_args(Format)
REPORT_FORMATS = ("html", "markdown", *FIGURE_FORMATS)


def report_options(command: Command) -> Command:
    """Add options for the contents of a report; `pop_payload_options` reads them."""
    options = [
        click.option("--title", help="Title of the report [default: the names of the runs]."),
        click.option(
            "--limit",
            type=click.IntRange(1),
            default=MAX_ITEMS,
            show_default=True,
            help="Maximum number of changed items in the report; every task gets its share.",
        ),
        click.option(
            "--no-text",
            is_flag=True,
            help="Leave out questions, answers and responses; keep names, scores and outcomes.",
        ),
        click.option(
            "--redact",
            multiple=True,
            metavar="REGEX",
            help="Redact text that matches this pattern in questions, options, answers, prompts, "
            r"responses and warnings, but not in names of tasks and items; \S redacts everything. "
            "Also hides folder names. Repeatable.",
        ),
    ]
    return with_options(command, options)


def pop_payload_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for `make_payload`."""
    return {
        "texts": not options.pop("no_text"),
        "redact": options.pop("redact"),
        "limit": options.pop("limit"),
        "title": options.pop("title"),
        "made": datetime.now(UTC).date().isoformat(),
    }


def write_payload(payload: Payload, path: Path, form: str) -> None:
    """Write a report as a page, as Markdown or as a folder of figures."""
    from forgetmap.records import writable
    from forgetmap.report import as_markdown, write_figures, write_report

    if form == "html":
        write_report(payload, path)
    elif form == "markdown":
        with writable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(as_markdown(payload), encoding="utf-8")
    else:
        write_figures(payload, path, form)  # type: ignore[arg-type]  # one of FIGURE_FORMATS
