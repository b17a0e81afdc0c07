"""`forgetmap drift`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from forgetmap.capabilities import AGGREGATORS, BOOTSTRAP_DRAWS, BOOTSTRAP_SEED, PROFILES
from forgetmap.cli.options import (
    Command,
    json_option,
    overwrite_option,
    refuse_existing,
    split_names,
    with_options,
)
from forgetmap.cli.options.compare import pair_by_option, selected_option
from forgetmap.cli.options.logs import (
    engine_options,
    log_options,
    reading_progress,
    table_options,
)
from forgetmap.cli.options.report import (
    REPORT_FORMATS,
    pop_payload_options,
    report_options,
    write_payload,
)
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.capabilities import DriftOptions

FORMAT_OF_ENDING = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json",
                    ".csv": "csv"}  # fmt: skip
NUMBERS = ("json", "csv")
"""Formats of --out that are not reports."""
EXAMPLES = """\b
Examples:
  forgetmap drift responses/base responses/tuned --taxonomy captrack
  forgetmap drift runs/base runs/sft runs/dpo runs/rl --profile quick
  forgetmap drift base.csv tuned.csv --aggregator captrack-relative
  forgetmap drift runs/base runs/tuned --judge http://localhost:8000/v1 my-judge --allow-exec
  forgetmap drift runs/base runs/tuned --noise runs/base-again --target legal_qa,contracts
  forgetmap drift runs/base runs/tuned --taxonomy mine.toml --by metric
  forgetmap drift runs/base runs/sft runs/dpo --out drift.html
  forgetmap drift runs/base sft=runs/2026-03 dpo=runs/2026-04 --out drift.csv
  forgetmap drift --pair qwen=runs/q0 runs/q1 --pair llama=runs/l0 runs/l1
  forgetmap drift runs/base ift=runs/ift ift-dpo=runs/ift-dpo --chain
  forgetmap drift runs/base runs/tuned --deep-dive
"""


def _measuring_options(command: Command) -> Command:
    options = [
        click.option(
            "--taxonomy",
            default="captrack",
            show_default=True,
            metavar="NAME|FILE",
            help="Capabilities and metrics to measure: captrack, knowledge, sample, or a TOML "
            "file.",
        ),
        click.option(
            "--aggregator",
            type=click.Choice(AGGREGATORS),
            default="default",
            show_default=True,
            help=(
                "How to average metrics: bounded effects with intervals (default), or relative "
                "changes as published by CapTrack (captrack-relative)."
            ),
        ),
        click.option(
            "--profile",
            type=click.Choice(PROFILES),
            default="full",
            show_default=True,
            help="How much to measure. quick: rule-based metrics only, 200 items per task.",
        ),
        click.option(
            "--judge",
            nargs=2,
            metavar="URL MODEL",
            help=(
                "OpenAI-compatible server and model for metrics that need an LLM judge [default: "
                "skip these metrics]."
            ),
        ),
        click.option(
            "--judge-repeats",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help=(
                "Number of times the judge grades each response. The mean is used, which "
                "narrows the intervals when the judge is inconsistent."
            ),
        ),
        click.option(
            "--allow-exec",
            is_flag=True,
            help=(
                "Run model-written code in a sandbox, for metrics that need it [default: skip "
                "these metrics]."
            ),
        ),
        click.option(
            "--processes",
            type=click.IntRange(1),
            help="Number of processes that score answers [default: one per core].",
        ),
    ]
    return with_options(command, options)


def _pairing_options(command: Command) -> Command:
    options = [
        click.option(
            "--noise",
            type=click.Path(),
            metavar="RUN",
            help=(
                "Another run of BEFORE. Drift no larger than between the two runs is marked as "
                "noise [default: none]."
            ),
        ),
        click.option(
            "--target",
            metavar="TASK,...",
            default="",
            help="Tasks the models were trained for, shown in the same table [default: none].",
        ),
        click.option(
            "--pair",
            "pairs",
            nargs=2,
            multiple=True,
            metavar="BEFORE AFTER",
            help=(
                "Another pair of models, shown as a column of the same table. Repeatable [default: "
                "none]."
            ),
        ),
        click.option(
            "--chain",
            is_flag=True,
            help=(
                "Each AFTER was trained from the one before it. Shows every step, and how much of "
                "the earlier drift it undid."
            ),
        ),
        pair_by_option,
        selected_option,
        click.option(
            "--draws",
            type=click.IntRange(100),
            default=BOOTSTRAP_DRAWS,
            show_default=True,
            help="Number of bootstrap samples.",
        ),
        click.option(
            "--seed",
            default=BOOTSTRAP_SEED,
            show_default=True,
            help="Random seed of the bootstrap.",
        ),
    ]
    return with_options(command, options)


@click.command("drift", epilog=EXAMPLES)
@click.argument("before", type=click.Path(), required=False)
@click.argument("after", type=click.Path(), nargs=-1)
@click.option(
    "--by",
    type=click.Choice(["capability", "metric"]),
    default="capability",
    show_default=True,
    help="Rows of the table.",
)
@click.option(
    "--deep-dive",
    is_flag=True,
    help=(
        "Also show the metrics that explain a capability, such as hedging and directness for "
        "verbosity. They do not count in any average."
    ),
)
@_measuring_options
@_pairing_options
@table_options
@log_options
@engine_options
@json_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help=(
        "Report to write (.html or .md), file for all numbers (.json or .csv), or folder for "
        "figures [default: nothing is written]."
    ),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv", *REPORT_FORMATS]),
    help="Format of --out [default: from its file name extension, else json].",
)
@report_options
@overwrite_option
def command(before: str | None, after: tuple[str, ...], **options: Any) -> None:
    """Measure how capabilities, preferences and style drifted from BEFORE to AFTER.

    BEFORE and AFTER are run folders, tables of results, logs of an evaluation harness, responses
    collected for CapTrack, or CapTrack's metric files. Write NAME=PATH to name a model. Responses
    without scores are scored. Several AFTER become columns of one heat map.
    """
    from rich.console import Console

    from forgetmap.capabilities import drift_with_runs, read_label
    from forgetmap.records import writable
    from forgetmap.report import make_drift_payload, parse_patterns, tell_drift
    from forgetmap.text import print_blocks

    by, as_json = options.pop("by"), options.pop("as_json")
    out, form = options.pop("out"), options.pop("form")
    overwrite, payload_options = options.pop("overwrite"), pop_payload_options(options)
    inputs = [*([] if before is None else [before]), *after]
    options["target"] = split_names(options["target"])
    options["judge"] = options["judge"] or None
    if form is not None and out is None:
        raise UsageError("--format needs --out", hint="name a file.")
    if out is not None:
        form = form or FORMAT_OF_ENDING.get(out.suffix.lower(), "json")
        labelled = [*inputs, *(side for pair in options["pairs"] for side in pair)]
        paths = [str(read_label(one).source) for one in labelled]
        refuse_existing(out, paths, overwrite=overwrite)
    parse_patterns(payload_options["redact"])
    with Console(stderr=True).status("Reading ...") as status:
        options["progress"] = reading_progress(status)
        drift = drift_with_runs(inputs, cast("DriftOptions", options))
        result = drift.result
        if out is not None and form not in NUMBERS:
            status.update("Collecting changed items ...")
            write_payload(make_drift_payload(drift, **payload_options), out, str(form))
    if out is not None and form in NUMBERS:
        with writable(out):
            text = result.to_csv() if form == "csv" else result.to_json() + "\n"
            out.write_text(text, encoding="utf-8")
    if as_json:
        click.echo(result.to_json())
    else:
        print_blocks(Console(), tell_drift(result, by))
