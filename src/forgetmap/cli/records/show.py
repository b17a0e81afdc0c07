"""`forgetmap records show`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options.logs import log_options, table_options
from forgetmap.cli.options.output import json_option
from forgetmap.cli.records import open_checked, print_problems, save_map_option, summary

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from forgetmap.records import Run, Survey, TaskSurvey

EXAMPLES = """\b
Examples:
  forgetmap records show runs/base
  forgetmap records show base.csv --columns item=question_id,score=correct --save-map
  forgetmap records show lm-eval-logs/base --run 2026-01-31
  forgetmap records show answers.csv#model_a
"""
TASK_HEADS = ("task", "metric", "items", "results", "scored", "mean score")
EXAMPLE_COLUMNS = ("task", "item", "repeat", "score", "outcome", "k", "gold", "answer")
METRIC_WIDTH, EXAMPLE_WIDTH = 20, 28


@click.command("show", epilog=EXAMPLES)
@click.argument("path", type=click.Path())
@table_options
@save_map_option
@log_options
@json_option
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Number of results to list.",
)
def command(path: str, *, as_json: bool, limit: int, **options: Any) -> None:
    """Say what is in PATH: format, model, tasks, items, repeats, metrics, problems."""
    from rich.console import Console

    from forgetmap.records import survey

    run = open_checked(path, options)
    content = survey(run)
    if as_json:
        facts = {
            **content.as_dict(),
            "format": run.format,
            "notices": run.notices,
            "problem_count": run.problem_count,
            "problems": [asdict(problem) for problem in run.problems],
            "manifest": run.info.model_dump(mode="json"),
        }
        click.echo(json.dumps(facts, indent=2))
        return
    _print_survey(Console(), run, content, limit)


def _print_survey(console: Console, run: Run, survey: Survey, limit: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from forgetmap.comparison import SIMULATED
    from forgetmap.text import Sheet, print_sheet, printable

    console.print(Text(printable(f"{survey.name}: {summary(survey)}"), style="bold"))
    if run.info.simulated:
        console.print(Text(SIMULATED, style="bold yellow"))
    grid = Table.grid(padding=(0, 2))
    for name, value in _facts(run, survey).items():
        grid.add_row(Text(name, style="dim"), Text(printable(value)))
    console.print(grid)
    console.print()
    print_sheet(console, Sheet(TASK_HEADS, [_task_row(run, task) for task in survey.tasks]))
    print_problems(console, run)
    rows = run.scores.head(limit).collect().rows(named=True) if limit else []
    if rows:
        console.print(Text("\nFirst results", style="bold"))
        console.print(_examples(rows))


def _facts(run: Run, survey: Survey) -> dict[str, str]:
    """Format, what the manifest says, and columns, in words."""
    manifest = run.info.model_dump(exclude_defaults=True, exclude={"tasks", "metrics", "simulated"})
    texts = " (and texts)" if survey.has_texts else ""
    return {
        **({"format": run.format} if run.format else {}),
        **{name: _in_words(value) for name, value in manifest.items()},
        "columns": f"{', '.join(survey.columns)}{texts}",
    }


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}".removeprefix("name ") for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _task_row(run: Run, task: TaskSurvey) -> tuple[str, ...]:
    """The measure that would be compared is marked."""
    from forgetmap.text import shorten

    measure = task.metric if task.scorer == "default" else f"{task.metric}/{task.scorer}"
    info = run.info.tasks.get(task.task)
    if info and (info.main_metric, info.main_scorer) == (task.metric, task.scorer):
        measure += " *"
    mean = "-" if task.mean_score is None else f"{task.mean_score:.3f}"
    counts = (f"{count:,}" for count in (task.items, task.rows, task.scored))
    return task.task, shorten(measure, METRIC_WIDTH), *counts, mean


def _examples(rows: Sequence[dict[str, Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from forgetmap.text import printable, shorten

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    names = [name for name in EXAMPLE_COLUMNS if any(row.get(name) is not None for row in rows)]
    for name in names:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in rows:
        cells = ("" if row[name] is None else str(row[name]) for name in names)
        table.add_row(*(Text(shorten(printable(cell), EXAMPLE_WIDTH)) for cell in cells))
    return table
