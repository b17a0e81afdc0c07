"""`forgetmap records`: check, show, convert, schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from forgetmap.cli.options import (
    Command,
    json_option,
    overwrite_option,
    table_options,
    with_options,
)
from forgetmap.cli.reading import log_options, reading_progress
from forgetmap.comparison import SIMULATED, ComparisonResult, FanOutResult
from forgetmap.records import (
    ModelInfo,
    Run,
    Survey,
    TaskSurvey,
    check_run,
    json_schema,
    refuse_duplicates,
    refuse_to_replace,
    result_key,
    survey,
    write_instances,
    write_run,
    write_table,
)
from forgetmap.sources import Reading, chosen, open_run, save_map
from forgetmap.text import Sheet, counted, print_sheet, printable, shorten

TABLE_ENDINGS = (".csv", ".jsonl", ".parquet")


def described_options(command: Command) -> Command:
    """What a manifest says that logs and tables do not."""
    options = [
        click.option("--run-id", help="Name of the run, for lineage."),
        click.option("--model", help="Which model answered."),
        click.option("--stage", help="base, cpt, sft, dpo, rl, merge, ..."),
        click.option("--parent", help="Run id of the checkpoint before."),
    ]
    return with_options(command, options)


save_map_option = click.option(
    "--save-map",
    is_flag=True,
    help="Keep --map and --task next to the table, and use them from now on.",
)


@click.group(
    epilog="""\b
Examples:
  forgetmap records check runs/base
  forgetmap records show base.csv --map item=question_id,score=correct
  forgetmap records convert base.csv --out runs/base
"""
)
def records() -> None:
    """Check, show and convert tables of per-item results."""


@records.command(
    short_help="Name the first fault with file, line and field.",
    epilog="""\b
Examples:
  forgetmap records check runs/base
  forgetmap records check base.csv --map item=question_id,score=correct --json
""",
)
@click.argument("path", type=click.Path())
@table_options
@save_map_option
@log_options
@json_option
def check(path: str, *, as_json: bool, **options: Any) -> None:
    """Check every result in PATH; the first fault is named with file, line and field."""
    run = _checked(path, options)
    found = survey(run)
    if as_json:
        simulated = run.info.simulated
        click.echo(json.dumps({"valid": True, "simulated": simulated, **found.as_dict()}, indent=2))
        return
    click.echo(printable(f"{path}: valid. {_summary(found)}"))
    if run.info.simulated:
        click.echo(SIMULATED)


@records.command(
    short_help="Say what is in a table or run.",
    epilog="""\b
Examples:
  forgetmap records show runs/base
  forgetmap records show base.csv --map item=question_id,score=correct --save-map
  forgetmap records show lm-eval-logs/base --run 2026-01-31
  forgetmap records show answers.csv#model_a
""",
)
@click.argument("path", type=click.Path())
@table_options
@save_map_option
@log_options
@json_option
@click.option("--limit", type=click.IntRange(0), default=3, show_default=True, help="Rows to show.")
def show(path: str, *, as_json: bool, limit: int, **options: Any) -> None:
    """Say what is in PATH: format, model, tasks, items, repeats, metrics, problems."""
    run = _checked(path, options)
    found = survey(run)
    if as_json:
        manifest = run.info.model_dump(mode="json")
        read = {"format": run.format, "notices": run.notices, "problem_count": run.problem_count}
        read["problems"] = [asdict(problem) for problem in run.problems]
        click.echo(json.dumps({**found.as_dict(), **read, "manifest": manifest}, indent=2))
        return
    _print_survey(Console(), run, found, limit)


@records.command(
    short_help="Write a run folder or one table.",
    epilog="""\b
Examples:
  forgetmap records convert base.csv --out runs/base --model my/model --stage base
  forgetmap records convert runs/base --out base.parquet
  forgetmap records convert runs/base --out base.jsonl --format every-eval-ever
""",
)
@click.argument("path", type=click.Path())
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="A run folder, or a table if it ends in .csv, .jsonl or .parquet.",
)
@table_options
@save_map_option
@log_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "every-eval-ever"]),
    default="auto",
    show_default=True,
    help="every-eval-ever writes its instances, one JSON object per line.",
)
@described_options
@overwrite_option
def convert(path: str, out: Path, form: str, **options: Any) -> None:
    """Write PATH as a run folder, or as one CSV, JSON lines or Parquet table."""
    refuse_to_replace(out, overwrite=options["overwrite"])
    run = _described(_checked(path, options), options)
    if form == "every-eval-ever":
        _write_instances(run, out)
        return
    if out.suffix in TABLE_ENDINGS:
        write_table(run, out, overwrite=options["overwrite"])
    else:
        write_run(run, out, overwrite=options["overwrite"])
    click.echo(printable(f"Written to {out}. {_summary(survey(run))}"))


@records.command(
    "import",
    short_help="Write the logs of a harness as a run folder.",
    epilog="""\b
Examples:
  forgetmap records import lm-eval-logs/base --out runs/base --stage base
  forgetmap records import logs/2026-01-01_arc.eval --out runs/arc --strict
  forgetmap records import s3://bucket/evals/tuned --out runs/tuned --parent base
""",
)
@click.argument("path", type=click.Path())
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The run folder.")
@table_options
@save_map_option
@log_options
@described_options
@overwrite_option
def import_logs(path: str, out: Path, **options: Any) -> None:
    """Write what is in PATH as a run folder, and say what could not be used."""
    refuse_to_replace(out, overwrite=options["overwrite"])
    run = _described(_checked(path, options), options)
    write_run(run, out, overwrite=options["overwrite"])
    click.echo(printable(f"Written to {out}. {_summary(survey(run))}"))
    _print_reading(Console(), run)


@records.command(
    short_help="Print a published JSON schema.",
    epilog="""\b
Examples:
  forgetmap records schema record > record.schema.json
  forgetmap records schema comparison
""",
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


def _checked(path: str, options: dict[str, Any]) -> Run:
    given = {name: options[name] for name in ("strict", "cached")}
    wanted = options["run"][0] if options["run"] else None
    with Console(stderr=True).status("Reading ...") as status:
        reading = Reading(run=wanted, progress=reading_progress(status), **given)
        run = open_run(
            path, column_map=options["column_map"], task=options["task"], reading=reading
        )
    check_run(run)
    refuse_duplicates(run, run.scores, result_key(run))
    if options["save_map"]:
        saved = save_map(chosen(path).path, options["column_map"], task=options["task"])
        click.echo(printable(f"Columns are kept in {saved}."), err=True)
    return run


def _write_instances(run: Run, out: Path) -> None:
    written = write_instances(run, out)
    without = f"; {written.left_out:,} without score were left out" if written.left_out else ""
    said = f"Written to {out}. {counted(written.rows, 'instance')}{without}."
    click.echo(printable(said))


def _described(run: Run, options: dict[str, Any]) -> Run:
    given = {name: options[name] for name in ("run_id", "stage", "parent") if options[name]}
    if options["model"]:
        given["model"] = ModelInfo(name=options["model"])
    return replace(run, info=run.info.model_copy(update=given))


def _summary(found: Survey) -> str:
    tasks = len({task.task for task in found.tasks})
    repeats = f", {counted(found.repeats, 'repeat')}" if found.repeats > 1 else ""
    missing = found.rows - sum(task.scored for task in found.tasks)
    without = f"; {missing:,} without score" if missing else ""
    return f"{counted(found.rows, 'result')} of {counted(tasks, 'task')}{repeats}{without}."


def _print_survey(console: Console, run: Run, found: Survey, limit: int) -> None:
    console.print(Text(printable(f"{found.name}: {_summary(found)}"), style="bold"))
    if run.info.simulated:
        console.print(Text(SIMULATED, style="bold yellow"))
    texts = " (and texts)" if found.has_texts else ""
    facts = {
        **({"format": run.format} if run.format else {}),
        **_known(run),
        "columns": f"{', '.join(found.columns)}{texts}",
    }
    grid = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        grid.add_row(Text(name, style="dim"), Text(printable(value)))
    console.print(grid)
    console.print()
    print_sheet(console, Sheet(_TASK_HEADS, [_task_row(run, task) for task in found.tasks]))
    _print_reading(console, run)
    rows = run.scores.head(limit).collect().rows(named=True) if limit else []
    if rows:
        console.print(Text("\nFirst results", style="bold"))
        console.print(_examples(rows))


_TASK_HEADS = ("task", "metric", "items", "results", "scored", "mean score")
_EXAMPLE = ("task", "item", "repeat", "score", "outcome", "k", "gold", "answer")


MOST_PROBLEMS = 10


def _print_reading(console: Console, run: Run) -> None:
    """What was left out while logs were read."""
    for notice in run.notices:
        console.print(Text(printable(f"! {notice}"), style="yellow"))
    if run.problem_count:
        said = f"\n{counted(run.problem_count, 'problem')}; everything else was read."
        console.print(Text(said, style="yellow"))
    for problem in run.problems[:MOST_PROBLEMS]:
        console.print(Text(printable(f"  {problem}")))


def _known(run: Run) -> dict[str, str]:
    """What the manifest says, in words."""
    manifest = run.info.model_dump(exclude_defaults=True, exclude={"tasks", "metrics", "simulated"})
    return {name: _in_words(value) for name, value in manifest.items()}


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}".removeprefix("name ") for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _task_row(run: Run, task: TaskSurvey) -> tuple[str, ...]:
    """The measure that would be compared is marked."""
    measure = task.metric if task.scorer == "default" else f"{task.metric}/{task.scorer}"
    info = run.info.tasks.get(task.task)
    if info and (info.main_metric, info.main_scorer) == (task.metric, task.scorer):
        measure += " *"
    mean = "-" if task.mean_score is None else f"{task.mean_score:.3f}"
    counts = (f"{count:,}" for count in (task.items, task.rows, task.scored))
    return task.task, shorten(measure, 20), *counts, mean


def _examples(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    names = [name for name in _EXAMPLE if any(row.get(name) is not None for row in rows)]
    for name in names:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in rows:
        cells = ("" if row[name] is None else str(row[name]) for name in names)
        table.add_row(*(Text(shorten(printable(cell), 28)) for cell in cells))
    return table
