"""`forgetmap records`: check, show, convert, import, schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import LazyGroup
from forgetmap.cli.options import Command, with_options
from forgetmap.cli.options.logs import reading_progress

if TYPE_CHECKING:
    from rich.console import Console

    from forgetmap.records import Run, Survey

COMMANDS = {
    "check": "Name the first fault with file, line and field.",
    "show": "Say what is in a table or run.",
    "convert": "Write a run folder or one table.",
    "import": "Write the logs of a harness as a run folder.",
    "schema": "Print a published JSON schema.",
}
EXAMPLES = """\b
Examples:
  forgetmap records check runs/base
  forgetmap records show base.csv --columns item=question_id,score=correct
  forgetmap records convert base.csv --out runs/base
"""
MAX_PROBLEMS = 10

save_map_option = click.option(
    "--save-map",
    is_flag=True,
    help="Keep --columns and --task next to the table, and use them from now on.",
)


@click.group("records", cls=LazyGroup, package=__name__, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Check, show and convert tables of per-item results."""


def manifest_options(command: Command) -> Command:
    """What a manifest says that logs and tables do not."""
    options = [
        click.option("--run-id", help="Name of the run, for lineage [default: as in PATH]."),
        click.option("--model", help="Name of the model that answered [default: as in PATH]."),
        click.option(
            "--stage",
            help="Stage of training: base, cpt, sft, dpo, rl, merge, ... [default: as in PATH].",
        ),
        click.option("--parent", help="Run id of the checkpoint before [default: as in PATH]."),
    ]
    return with_options(command, options)


def with_manifest_options(run: Run, options: dict[str, Any]) -> Run:
    """The run with what `manifest_options` say of it."""
    from dataclasses import replace

    from forgetmap.records import ModelInfo

    update = {name: options[name] for name in ("run_id", "stage", "parent") if options[name]}
    if options["model"]:
        update["model"] = ModelInfo(name=options["model"])
    return replace(run, info=run.info.model_copy(update=update))


def open_checked(path: str, options: dict[str, Any]) -> Run:
    """Open a run and check every result; with --save-map its columns are kept."""
    from rich.console import Console

    from forgetmap.records import check_run
    from forgetmap.sources import Reading, open_run, save_map
    from forgetmap.text import printable

    columns, task = options["column_map"], options["task"]
    with Console(stderr=True).status("Reading ...") as status:
        reading = Reading(
            run=options["run"][0] if options["run"] else None,
            strict=options["strict"],
            cached=options["cached"],
            processes=options["processes"],
            progress=reading_progress(status),
        )
        run = open_run(path, column_map=columns, task=task, reading=reading)
    check_run(run, unique=True)
    if options["save_map"]:
        saved = save_map(path, columns, task=task)
        click.echo(printable(f"Columns are kept in {saved}."), err=True)
    return run


def summary(survey: Survey) -> str:
    """How many results, tasks and repeats, in a sentence."""
    from forgetmap.text import counted

    tasks = len({task.task for task in survey.tasks})
    repeats = f", {counted(survey.repeats, 'repeat')}" if survey.repeats > 1 else ""
    missing = survey.rows - sum(task.scored for task in survey.tasks)
    without = f"; {missing:,} without score" if missing else ""
    return f"{counted(survey.rows, 'result')} of {counted(tasks, 'task')}{repeats}{without}."


def print_problems(console: Console, run: Run) -> None:
    """What was left out while logs were read."""
    from rich.text import Text

    from forgetmap.text import counted, printable

    for notice in run.notices:
        console.print(Text(printable(f"! {notice}"), style="yellow"))
    if run.problem_count:
        count = f"\n{counted(run.problem_count, 'problem')}; everything else was read."
        console.print(Text(count, style="yellow"))
    for problem in run.problems[:MAX_PROBLEMS]:
        console.print(Text(printable(f"  {problem}")))
