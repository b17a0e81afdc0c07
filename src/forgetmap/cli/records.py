"""`forgetmap records`: check, show, convert, schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from forgetmap.cli.options import json_option, overwrite_option, table_options
from forgetmap.records.folder import write_run
from forgetmap.records.manifest import ModelInfo
from forgetmap.records.run import Run
from forgetmap.records.schema import json_schema
from forgetmap.records.survey import Survey, survey
from forgetmap.records.tables import write_table
from forgetmap.records.validate import check_run, refuse_duplicates, result_key
from forgetmap.sources.open import open_run
from forgetmap.transitions.render import printable
from forgetmap.transitions.result import ComparisonResult, FanOutResult
from forgetmap.transitions.words import percent

TABLE_ENDINGS = (".csv", ".jsonl", ".parquet")


@click.group()
def records() -> None:
    """Check, show and convert tables of per-item results."""


@records.command(
    epilog="""\b
Examples:
  forgetmap records check runs/base
  forgetmap records check base.csv --map item=question_id,score=correct --json
"""
)
@click.argument("path", type=click.Path())
@table_options
@json_option
def check(path: str, column_map: dict[str, str], task: str | None, *, as_json: bool) -> None:
    """Check every result in PATH; the first fault is named with file, line and field."""
    run = _checked(path, column_map, task)
    found = survey(run)
    if as_json:
        click.echo(json.dumps({"valid": True, **found.as_dict()}, indent=2))
        return
    click.echo(f"{path}: valid. {_summary(found)}")


@records.command(
    epilog="""\b
Examples:
  forgetmap records show runs/base
  forgetmap records show base.csv --map item=question_id,score=correct --limit 5
"""
)
@click.argument("path", type=click.Path())
@table_options
@json_option
@click.option("--limit", type=click.IntRange(0), default=3, show_default=True, help="Rows to show.")
def show(
    path: str, column_map: dict[str, str], task: str | None, *, as_json: bool, limit: int
) -> None:
    """Say what is in PATH: model, tasks, items, repeats, metrics."""
    run = _checked(path, column_map, task)
    found = survey(run)
    if as_json:
        manifest = run.info.model_dump(mode="json")
        click.echo(json.dumps({**found.as_dict(), "manifest": manifest}, indent=2))
        return
    _print_survey(Console(), run, found, limit)


@records.command(
    epilog="""\b
Examples:
  forgetmap records convert base.csv --out runs/base --model my/model --stage base
  forgetmap records convert runs/base --out base.parquet
"""
)
@click.argument("path", type=click.Path())
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="A run folder, or a table if it ends in .csv, .jsonl or .parquet.",
)
@table_options
@click.option("--run-id", help="Name of the run, for lineage.")
@click.option("--model", help="Which model answered.")
@click.option("--stage", help="base, cpt, sft, dpo, rl, merge, ...")
@click.option("--parent", help="Run id of the checkpoint before.")
@overwrite_option
def convert(
    path: str, out: Path, column_map: dict[str, str], task: str | None, **options: Any
) -> None:
    """Write PATH as a run folder, or as one CSV, JSON lines or Parquet table."""
    run = _described(_checked(path, column_map, task), options)
    if out.suffix in TABLE_ENDINGS:
        write_table(run, out, overwrite=options["overwrite"])
    else:
        write_run(run, out, overwrite=options["overwrite"])
    click.echo(f"Written to {out}. {_summary(survey(run))}")


@records.command(
    epilog="""\b
Examples:
  forgetmap records schema record > record.schema.json
  forgetmap records schema comparison
"""
)
@click.argument("what", type=click.Choice(["record", "comparison", "fan-out"]))
def schema(what: str) -> None:
    """Print the JSON schema of a record, or of what `compare --json` prints."""
    schemas = {
        "record": json_schema,
        "comparison": ComparisonResult.model_json_schema,
        "fan-out": FanOutResult.model_json_schema,
    }
    click.echo(json.dumps(schemas[what](), indent=2))


def _checked(path: str, column_map: dict[str, str], task: str | None) -> Run:
    run = open_run(path, column_map=column_map, task=task)
    check_run(run)
    refuse_duplicates(run, run.scores, result_key(run))
    return run


def _described(run: Run, options: dict[str, Any]) -> Run:
    given = {name: options[name] for name in ("run_id", "stage", "parent") if options[name]}
    if options["model"]:
        given["model"] = ModelInfo(name=options["model"])
    return replace(run, info=run.info.model_copy(update=given))


def _summary(found: Survey) -> str:
    tasks = len({task.task for task in found.tasks})
    scored = sum(task.scored for task in found.tasks)
    repeats = f", {found.repeats} repeats" if found.repeats > 1 else ""
    without = f"{found.rows - scored:,} without score"
    return f"{found.rows:,} results of {tasks:,} tasks{repeats}; {without}."


def _print_survey(console: Console, run: Run, found: Survey, limit: int) -> None:
    console.print(Text(f"{printable(found.name)}: {_summary(found)}", style="bold"))
    if run.info.simulated:
        console.print("[bold yellow]SIMULATED[/] data, not a measured model.")
    manifest = run.info.model_dump(exclude_defaults=True, exclude={"tasks", "metrics", "simulated"})
    for name, value in manifest.items():
        console.print(Text(printable(f"  {name}: {value}")))
    console.print(
        Text(f"  columns: {', '.join(found.columns)}{' (+ texts)' if found.has_texts else ''}\n")
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(("task", "metric", "items", "results", "scored", "mean score")):
        table.add_column(head, justify="right" if place > 1 else "left")
    for task in found.tasks:
        measure = task.metric if task.scorer == "default" else f"{task.metric}/{task.scorer}"
        counts = (f"{n:,}" for n in (task.items, task.rows, task.scored))
        cells = (printable(task.task), printable(measure), *counts, percent(task.mean_score))
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    for row in run.scores.head(limit).collect().rows(named=True) if limit else ():
        known = {name: value for name, value in row.items() if value is not None}
        console.print(Text(printable(f"\n  {known}")), no_wrap=True, overflow="ellipsis")
