"""`forgetmap drift`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click
from rich.console import Console

from forgetmap.capabilities import (
    AGGREGATORS,
    DRAWS,
    PROFILES,
    SEED,
    DriftOptions,
    drift_with_runs,
    print_drift,
)
from forgetmap.cli.comparing import pair_by_option
from forgetmap.cli.options import (
    Command,
    json_option,
    overwrite_option,
    table_options,
    with_options,
)
from forgetmap.cli.reading import log_options, reading_progress
from forgetmap.cli.showing import WRITERS, refuse_to_replace, showing_options, shown
from forgetmap.errors import UsageError
from forgetmap.records import writable
from forgetmap.report import make_drift_payload, patterns_of

ENDINGS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
EXAMPLES = """\b
Examples:
  forgetmap drift responses/base responses/tuned --taxonomy captrack
  forgetmap drift runs/base runs/sft runs/dpo runs/rl --profile quick
  forgetmap drift base.csv tuned.csv --aggregator captrack-relative
  forgetmap drift runs/base runs/tuned --judge http://localhost:8000/v1 my-judge --allow-exec
  forgetmap drift runs/base runs/tuned --noise runs/base-again --target legal_qa,contracts
  forgetmap drift runs/base runs/tuned --taxonomy mine.toml --by metric
  forgetmap drift runs/base runs/sft runs/dpo --out drift.html
"""


def _measuring(command: Command) -> Command:
    options = [
        click.option(
            "--taxonomy",
            default="captrack",
            show_default=True,
            metavar="NAME|FILE",
            help="What is measured: captrack, knowledge, sample, or a TOML file.",
        ),
        click.option(
            "--aggregator",
            type=click.Choice(AGGREGATORS),
            default="default",
            show_default=True,
            help="Mean of bounded effects with limits, or of relative changes as published.",
        ),
        click.option(
            "--profile",
            type=click.Choice(PROFILES),
            default="full",
            show_default=True,
            help="quick: rules only, 200 items per task.",
        ),
        click.option(
            "--judge",
            nargs=2,
            metavar="URL MODEL",
            help="OpenAI-compatible server, for metrics that need a judge.",
        ),
        click.option(
            "--allow-exec",
            is_flag=True,
            help="Run code that the models wrote, in a sandbox, for metrics that need it.",
        ),
    ]
    return with_options(command, options)


def _comparing(command: Command) -> Command:
    options = [
        click.option(
            "--noise",
            type=click.Path(),
            metavar="RUN",
            help="A repeat of BEFORE: drift no larger than its own is marked.",
        ),
        click.option(
            "--target",
            metavar="TASK,...",
            default="",
            help="Tasks the models were trained for, in the same table.",
        ),
        pair_by_option,
        click.option(
            "--draws",
            type=click.IntRange(100),
            default=DRAWS,
            show_default=True,
            help="Of the bootstrap.",
        ),
        click.option("--seed", default=SEED, show_default=True, help="Of the bootstrap."),
        click.option(
            "--workers", type=click.IntRange(1), help="Processes that score; one per core."
        ),
    ]
    return with_options(command, options)


@click.command(epilog=EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--by",
    "rows",
    type=click.Choice(["capability", "metric"]),
    default="capability",
    show_default=True,
    help="Lines of the table.",
)
@_measuring
@_comparing
@table_options
@log_options
@json_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File for the report (.html), for Markdown (.md) or for all numbers (.json); folder for "
    "figures.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", *WRITERS]),
    help="Of --out; by default what its name ends with.",
)
@showing_options
@overwrite_option
def drift(before: str, after: tuple[str, ...], **options: Any) -> None:
    """How did what a model can do, will do, and how it does it, drift from BEFORE to AFTER?

    BEFORE and AFTER are run folders, tables of results, logs of an evaluation harness, responses
    collected for CapTrack, or CapTrack's metric files. Responses are scored where there are no
    scores yet. Several AFTER are columns of one heat map.
    """
    rows, as_json = options.pop("rows"), options.pop("as_json")
    out, form = options.pop("out"), options.pop("form")
    overwrite, what = options.pop("overwrite"), shown(options)
    options["target"] = [task.strip() for task in options["target"].split(",") if task.strip()]
    options["judge"] = options["judge"] or None
    if form is not None and out is None:
        raise UsageError("--format is that of --out, which is missing", hint="name a file.")
    if out is not None:
        form = form or ENDINGS.get(out.suffix.lower(), "json")
        refuse_to_replace(out, (before, *after), overwrite=overwrite)
    patterns_of(what["redact"])
    with Console(stderr=True).status("Reading ...") as status:
        options["progress"] = reading_progress(status)
        drifted = drift_with_runs([before, *after], cast("DriftOptions", options))
        result = drifted.result
        if out is not None and form != "json":
            status.update("Collecting changed items ...")
            WRITERS[str(form)](make_drift_payload(drifted, **what), out)
    if out is not None and form == "json":
        with writable(out):
            out.write_text(result.to_json() + "\n", encoding="utf-8")
    if as_json:
        click.echo(result.to_json())
    else:
        print_drift(Console(), result, rows=rows)
