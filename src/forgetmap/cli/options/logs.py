"""Options of commands that read tables or logs of a harness."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import Command, with_options
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from rich.status import Status

    from forgetmap.sources import Reading


class ColumnsType(click.ParamType[dict[str, str]]):
    """`item=question_id,score=correct` as a mapping."""

    name = "FIELD=COLUMN,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        """Read the mapping."""
        if isinstance(value, dict):
            return value
        columns = {}
        for part in str(value).split(","):
            field, equals, column = part.partition("=")
            if not (field.strip() and equals and column.strip()):
                self.fail(f"{part!r} is not FIELD=COLUMN, such as item=question_id", param, ctx)
            columns[field.strip()] = column.strip()
        return columns


class RangeType(click.ParamType[tuple[float, float]]):
    """`1:10` or `percent` as the worst and the best score."""

    name = "WORST:BEST"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Read the scale."""
        from forgetmap.sources import parse_range

        del param, ctx
        return value if isinstance(value, tuple) else parse_range(str(value))


def table_options(command: Command) -> Command:
    """Add options for tables with other column names."""
    options = [
        click.option(
            "--columns",
            "column_map",
            type=ColumnsType(),
            default={},
            help=(
                "Columns of a table, or paths into them, such as "
                "item=question_id,score=scores.pass@1. rows=PATH selects the list in a JSON "
                "document, model=COLUMN the model of each row [default: recognised by name]."
            ),
        ),
        click.option(
            "--task", help="Name of the task, for logs or tables that contain a single task."
        ),
        click.option(
            "--range",
            "score_range",
            type=RangeType(),
            help=(
                "Scale of scores outside 0 to 1, such as 1:10, 2:1 if 1 is best, or percent. "
                "Scores are rescaled to 0 to 1."
            ),
        ),
        click.option(
            "--mapping",
            type=click.Path(path_type=Path, dir_okay=False, exists=True),
            help=(
                "Mapping file written by `forgetmap records map` [default: FILE.map.toml next "
                "to the table]."
            ),
        ),
    ]
    return with_options(command, options)


def log_options(command: Command) -> Command:
    """Add options for logs of a harness."""
    options = [
        click.option(
            "--run",
            multiple=True,
            help=(
                "Run to use from logs with several runs: part of a model name, time stamp or file "
                "name. Once for all sources, or once per source."
            ),
        ),
        click.option(
            "--strict",
            is_flag=True,
            help=(
                "Stop at the first unusable row, and warn about the worst case of missing results "
                "[default: skip the row and report it]."
            ),
        ),
        click.option(
            "--cache/--no-cache",
            "cached",
            default=True,
            show_default=True,
            help="Use cached data of logs that were read before.",
        ),
        click.option(
            "--scores",
            type=click.Choice(["log", "own"]),
            help=(
                "Scores to use: those of the log, or our own grading of each response [default: "
                "those of the log, or our own if it has none]."
            ),
        ),
    ]
    return with_options(command, options)


def engine_options(command: Command) -> Command:
    """Add options of the engine that reads and joins."""
    options = [
        click.option(
            "--engine",
            type=click.Choice(["duckdb", "spark"]),
            default="duckdb",
            show_default=True,
            help="What reads and joins: DuckDB here, or a Spark cluster, which also takes Delta "
            "(delta:PATH), tables of its catalogue by name, and s3a://, gs:// and abfss://.",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="Address of the Spark cluster, such as spark://HOST:7077, yarn or local[4] "
            "[default: as Spark is configured, else this machine].",
        ),
    ]
    return with_options(command, options)


def single_reading(options: Mapping[str, Any], status: Status, **more: Any) -> Reading:
    """Return how to read a single run, by the options of logs and tables.

    Args:
        options: values of the options.
        status: status line with the progress.
        more: further fields.

    Raises:
        UsageError: several runs are chosen.
    """
    from forgetmap.sources import Reading

    if len(options["run"]) > 1:
        raise UsageError(
            f"--run is given {len(options['run'])} times, but there is a single source",
            hint=f"choose one run: --run {shlex.quote(options['run'][-1])}.",
        )
    names = ("strict", "cached", "score_range", "mapping", "scores")
    return Reading(
        run=options["run"][0] if options["run"] else None,
        progress=reading_progress(status),
        **{name: options[name] for name in names},
        **more,
    )


def reading_progress(status: Status) -> Callable[[str], None]:
    """Return a callback that shows the progress of reading in the status line."""
    return lambda words: status.update(f"{words} ...")
