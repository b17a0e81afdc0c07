"""`forgetmap records`: check, show, convert, import, map, schema."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import (
    Command,
    json_option,
    overwrite_option,
    refuse_existing,
    with_options,
)
from forgetmap.cli.options.logs import (
    engine_options,
    log_options,
    single_reading,
    table_options,
)
from forgetmap.errors import ChecksumError, UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from forgetmap.records import FileStatus, Run, Survey, TaskSurvey
    from forgetmap.sources import ColumnProfile, MapProposal, TableMap

COMMANDS = {
    "check": "Check a table or run, and locate the first error.",
    "show": "Show what a table or run contains.",
    "convert": "Write a run folder or a single table.",
    "import": "Import the logs of a harness as a run folder.",
    "map": "Propose a mapping for a table or JSON file of unknown structure.",
    "schema": "Print a published JSON schema.",
}
EXAMPLES = """\b
Examples:
  forgetmap records check runs/base
  forgetmap records show base.csv --columns item=question_id,score=correct
  forgetmap records convert base.csv --out runs/base
"""
MAX_PROBLEMS = 10

_save_map_option = click.option(
    "--save-map",
    is_flag=True,
    help="Save --columns, --task and --range next to the table for later commands.",
)


@click.group("records", cls=CommandGroup, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Check, show and convert tables of per-item results."""


def _manifest_options(command: Command) -> Command:
    """Add options for facts that logs and tables do not have."""
    options = [
        click.option("--run-id", help="Name of the run, for lineage [default: from PATH]."),
        click.option("--model", help="Name of the model [default: from PATH]."),
        click.option(
            "--stage",
            help="Training stage: base, cpt, sft, dpo, rl, merge, ... [default: from PATH].",
        ),
        click.option("--parent", help="Run id of the parent checkpoint [default: from PATH]."),
    ]
    return with_options(command, options)


def _with_manifest_options(run: Run, options: dict[str, Any]) -> Run:
    """Return the run with the facts of the options."""
    from dataclasses import replace

    from forgetmap.records import ModelInfo

    update = {name: options[name] for name in ("run_id", "stage", "parent") if options[name]}
    if options["model"]:
        update["model"] = ModelInfo(name=options["model"])
    return replace(run, info=run.info.model_copy(update=update))


def _open_checked(path: str, options: dict[str, Any]) -> Run:
    """Open a run and check every result; with --save-map, save its columns."""
    from rich.console import Console

    from forgetmap.records import check_run
    from forgetmap.sources import TableMap, engine_session, open_run, save_map
    from forgetmap.text import printable

    columns, task = options["column_map"], options["task"]
    with Console(stderr=True).status("Reading ...") as status:
        session = engine_session(options.get("engine"), options.get("master"))
        reading = single_reading(options, status, spark=session)
        run = open_run(path, column_map=columns, task=task, reading=reading)
    check_run(run, unique=True)
    if options["save_map"]:
        table_map = TableMap().merged(columns, task, options["score_range"])
        saved = save_map(path, table_map)
        click.echo(printable(f"Columns saved in {saved}."), err=True)
    return run


def _summary(survey: Survey) -> str:
    """Return the numbers of results, tasks and repeats as a sentence."""
    from forgetmap.text import counted

    tasks = len({task.task for task in survey.tasks})
    repeats = f", {counted(survey.repeats, 'repeat')}" if survey.repeats > 1 else ""
    missing = survey.rows - sum(task.scored for task in survey.tasks)
    without = f"; {missing:,} without score" if missing else ""
    return f"{counted(survey.rows, 'result')} of {counted(tasks, 'task')}{repeats}{without}."


def _print_problems(console: Console, run: Run) -> None:
    """Print what was left out when logs were read."""
    from rich.text import Text

    from forgetmap.text import counted, printable

    for notice in dict.fromkeys((*run.notices, *(one.message for one in run.contradictions))):
        console.print(Text(printable(f"! {notice}"), style="yellow"))
    if run.problem_count:
        count = f"\n{counted(run.problem_count, 'problem')}; everything else was read."
        console.print(Text(count, style="yellow"))
    for problem in run.problems[:MAX_PROBLEMS]:
        console.print(Text(printable(f"  {problem}")))


CHECK_EXAMPLES = """\b
Examples:
  forgetmap records check runs/base
  forgetmap records check runs/base --deep
  forgetmap records check base.csv --columns item=question_id,score=correct --json
"""


@command.command("check", epilog=CHECK_EXAMPLES)
@click.argument("path", type=click.Path())
@table_options
@_save_map_option
@log_options
@click.option(
    "--deep",
    is_flag=True,
    help=(
        "Also verify the checksum of every file of a run folder; exit code 2 if one was changed or "
        "is missing [default: check results only]."
    ),
)
@json_option
def check(path: str, *, as_json: bool, deep: bool, **options: Any) -> None:
    """Check every result in PATH. The first error is reported with file, line and field."""
    from forgetmap.comparison import SIMULATED
    from forgetmap.records import survey
    from forgetmap.text import printable

    files = _check_files(path) if deep else {}
    run = _open_checked(path, options)
    content, simulated = survey(run), run.info.simulated
    if as_json:
        facts = {"valid": True, "simulated": simulated, **content.as_dict()}
        click.echo(json.dumps(facts | ({"files": files} if deep else {}), indent=2))
        return
    for name, status in files.items():
        click.echo(printable(f"{name}: {status}"))
    click.echo(printable(f"{path}: valid. {_summary(content)}"))
    if simulated:
        click.echo(SIMULATED)


def _check_files(path: str) -> dict[str, FileStatus]:
    """Check each file of a run folder for changes.

    Raises:
        UsageError: it is not a run folder, so there are no checksums.
        ChecksumError: a file was changed.
    """
    from forgetmap.records import check_files, is_run_folder

    folder = Path(path)
    if not is_run_folder(folder):
        raise UsageError(
            f"{path} is not a run folder, so it has no checksums",
            hint="create one with `forgetmap records convert`, or remove --deep.",
        )
    states = check_files(folder)
    damaged = [name for name, status in states.items() if status in ("changed", "missing")]
    if damaged:
        raise ChecksumError(
            f"checksum check failed: the file is {states[damaged[0]]}",
            file=str(folder / damaged[0]),
            hint="copy the folder again.",
        )
    return states


SHOW_EXAMPLES = """\b
Examples:
  forgetmap records show runs/base
  forgetmap records show base.csv --columns item=question_id,score=correct --save-map
  forgetmap records show lm-eval-logs/base --run 2026-01-31
  forgetmap records show answers.csv#model_a
"""
TASK_HEADS = ("task", "metric", "items", "results", "scored", "mean score")
EXAMPLE_COLUMNS = ("task", "item", "repeat", "score", "outcome", "k", "gold", "answer")
METRIC_WIDTH, EXAMPLE_WIDTH = 20, 28


@command.command("show", epilog=SHOW_EXAMPLES)
@click.argument("path", type=click.Path())
@table_options
@_save_map_option
@log_options
@json_option
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Number of results to list.",
)
def show(path: str, *, as_json: bool, limit: int, **options: Any) -> None:
    """Show what PATH contains: format, model, tasks, items, repeats, metrics and problems.

    Also lists statements of a log that its results contradict, such as totals.
    """
    from rich.console import Console

    from forgetmap.records import survey

    run = _open_checked(path, options)
    content = survey(run)
    if as_json:
        facts = {
            **content.as_dict(),
            "format": run.format,
            "notices": run.notices,
            "contradictions": [asdict(one) for one in run.contradictions],
            "problem_count": run.problem_count,
            "problems": [asdict(problem) for problem in run.problems],
            "manifest": run.info.model_dump(mode="json", exclude={"contradictions"}),
        }
        click.echo(json.dumps(facts, indent=2))
        return
    _print_survey(Console(), run, content, limit)


def _print_survey(console: Console, run: Run, survey: Survey, limit: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from forgetmap.comparison import SIMULATED
    from forgetmap.text import Sheet, print_sheet, printable

    console.print(Text(printable(f"{survey.name}: {_summary(survey)}"), style="bold"))
    if run.info.simulated:
        console.print(Text(SIMULATED, style="bold yellow"))
    grid = Table.grid(padding=(0, 2))
    for name, value in _facts(run, survey).items():
        grid.add_row(Text(name, style="dim"), Text(printable(value)))
    console.print(grid)
    console.print()
    print_sheet(console, Sheet(TASK_HEADS, [_task_row(run, task) for task in survey.tasks]))
    _print_problems(console, run)
    rows = run.scores.head(limit).collect().rows(named=True) if limit else []
    if rows:
        console.print(Text("\nFirst results", style="bold"))
        console.print(_examples(rows))


def _facts(run: Run, survey: Survey) -> dict[str, str]:
    """Return format, manifest and columns as texts."""
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
    """Return a row of the table of tasks; the main metric is marked."""
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


TABLE_ENDINGS = (".csv", ".jsonl", ".parquet")
CONVERT_EXAMPLES = """\b
Examples:
  forgetmap records convert base.csv --out runs/base --model my/model --stage base
  forgetmap records convert runs/base --out base.parquet
  forgetmap records convert evals.base --engine spark --master yarn --out runs/base
  forgetmap records convert runs/base --out base.jsonl --format every-eval-ever
"""


@command.command("convert", epilog=CONVERT_EXAMPLES)
@click.argument("path", type=click.Path())
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Run folder to write, or a table if the name ends in .csv, .jsonl or .parquet.",
)
@table_options
@_save_map_option
@log_options
@engine_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "every-eval-ever"]),
    default="auto",
    show_default=True,
    help="Format of --out. auto: from its extension; every-eval-ever: one instance per line, as "
    "JSON.",
)
@_manifest_options
@overwrite_option
def convert(path: str, out: Path, form: str, **options: Any) -> None:
    """Write PATH as a run folder, or as a single CSV, JSON Lines or Parquet table."""
    from forgetmap.records import refuse_to_replace, survey, write_run, write_table
    from forgetmap.text import printable

    refuse_to_replace(out, overwrite=options["overwrite"])
    run = _with_manifest_options(_open_checked(path, options), options)
    if form == "every-eval-ever":
        _write_instances(run, out)
        return
    write = write_table if out.suffix in TABLE_ENDINGS else write_run
    write(run, out, overwrite=options["overwrite"])
    click.echo(printable(f"Written to {out}. {_summary(survey(run))}"))


def _write_instances(run: Run, out: Path) -> None:
    from forgetmap.records import write_instances
    from forgetmap.text import counted, printable

    instances = write_instances(run, out)
    left_out = instances.left_out
    without = f"; {left_out:,} without score were left out" if left_out else ""
    count = counted(instances.rows, "instance")
    click.echo(printable(f"Written to {out}. {count}{without}."))


IMPORT_EXAMPLES = """\b
Examples:
  forgetmap records import lm-eval-logs/base --out runs/base --stage base
  forgetmap records import logs/2026-01-01_arc.eval --out runs/arc --strict
  forgetmap records import s3://bucket/evals/tuned --out runs/tuned --parent base
"""


@command.command("import", epilog=IMPORT_EXAMPLES)
@click.argument("path", type=click.Path())
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Run folder to write.")
@table_options
@_save_map_option
@log_options
@_manifest_options
@overwrite_option
def import_(path: str, out: Path, **options: Any) -> None:
    """Import PATH as a run folder, and list what could not be used."""
    from rich.console import Console

    from forgetmap.records import refuse_to_replace, survey, write_run
    from forgetmap.text import printable

    refuse_to_replace(out, overwrite=options["overwrite"])
    run = _with_manifest_options(_open_checked(path, options), options)
    write_run(run, out, overwrite=options["overwrite"])
    click.echo(printable(f"Written to {out}. {_summary(survey(run))}"))
    _print_problems(Console(), run)


MAP_EXAMPLES = """\b
Examples:
  forgetmap records map answers.json
  forgetmap records map answers.jsonl --columns item=uid --range 1:10 --out answers.toml
"""
PROFILE_HEADS = ("column", "type", "filled", "different", "range", "examples")


@command.command("map", epilog=MAP_EXAMPLES)
@click.argument("path", type=click.Path())
@table_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Mapping file to write, for --mapping [default: write nothing].",
)
@click.option(
    "--save-map",
    is_flag=True,
    help="Write the mapping next to PATH, as PATH.map.toml, which all commands then use.",
)
@json_option
@overwrite_option
def map_(
    path: str,
    out: Path | None,
    *,
    save_map: bool,
    as_json: bool,
    overwrite: bool,
    **options: Any,
) -> None:
    """Inspect a table or JSON file, and propose a mapping to read it.

    Prints the columns with types, ranges and examples, the mapping, and three rows read with it.
    """
    from forgetmap.sources import TableMap, map_file, propose_map
    from forgetmap.sources import save_map as write_map

    known = TableMap().merged(options["column_map"], options["task"], options["score_range"])
    target = out or (map_file(path) if save_map else None)
    if target is not None:
        refuse_existing(target, (path,), overwrite=overwrite)
    proposal = propose_map(path, known)
    if target is not None:
        write_map(path, proposal.table_map, out=target)
    if as_json:
        click.echo(json.dumps(_proposal_facts(proposal, target), indent=2))
        return
    _print_proposal(proposal, target)


def _proposal_facts(proposal: MapProposal, target: Path | None) -> dict[str, Any]:
    rows = _first_rows(proposal)
    return {
        "shape": proposal.shape,
        "rows": proposal.rows,
        "columns": [asdict(column) for column in proposal.columns],
        "map": asdict(proposal.table_map),
        "models": list(proposal.models),
        "notes": list(proposal.notes),
        "problem": proposal.problem,
        "written_to": None if target is None else str(target),
        "first": rows,
    }


def _first_rows(proposal: MapProposal) -> list[dict[str, Any]]:
    if proposal.run is None:
        return []
    rows: list[dict[str, Any]] = proposal.run.scores.head(3).collect().rows(named=True)
    return rows


def _print_proposal(proposal: MapProposal, target: Path | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from forgetmap.sources import map_text
    from forgetmap.text import counted, printable

    console = Console()
    looked_at = f", {counted(proposal.rows, 'row')} examined" if proposal.rows else ""
    title = f"{proposal.origin or proposal.path}: {proposal.shape}{looked_at}."
    console.print(Text(printable(title), style="bold"))
    if proposal.columns:
        console.print(_profiles(proposal.columns))
    written = "" if target is None else f", written to {printable(str(target))}"
    console.print(Text(f"\nProposed mapping{written}", style="bold"))
    for line in map_text(proposal.table_map).splitlines()[1:]:
        console.print(Text(printable(line)), soft_wrap=True)
    for note in proposal.notes:
        console.print(Text(printable(f"! {note}"), style="yellow"))
    first = _first_rows(proposal)
    if first:
        console.print(Text("\nFirst results", style="bold"))
        console.print(_examples(first))
    console.print()
    if proposal.models:
        shown = ", ".join(f"#{name}" for name in proposal.models[:MAX_MODELS])
        more = ", ..." if len(proposal.models) > MAX_MODELS else ""
        console.print(Text(printable(f"{len(proposal.models):,} models: {shown}{more}")))
    for line in _next_step(proposal, target).splitlines():
        console.print(Text(printable(line)), soft_wrap=True)


MAX_PROFILES, MAX_MODELS = 40, 12


def _profiles(columns: Sequence[ColumnProfile]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from forgetmap.text import printable

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in PROFILE_HEADS[:-1]:
        table.add_column(head, no_wrap=True)
    table.add_column(PROFILE_HEADS[-1], no_wrap=True, overflow="ellipsis", max_width=EXAMPLE_WIDTH)
    for column in columns[:MAX_PROFILES]:
        span = "" if column.low is None else f"{column.low:g} to {column.high:g}"
        counts = (f"{column.filled:,}", f"{column.different:,}")
        cells = (column.path, column.kind, *counts, span, ", ".join(column.examples))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _next_step(proposal: MapProposal, target: Path | None) -> str:
    from forgetmap.sources import map_file

    is_next_to_it = not proposal.origin and target == map_file(proposal.path)
    option = "" if is_next_to_it else f" --mapping {shlex.quote(str(target))}"
    if target is None or (proposal.log_format and not is_next_to_it):
        option = _as_options(proposal.table_map)  # --mapping is for tables, and this may be a log
    if proposal.problem:
        return (
            f"The mapping cannot read the file yet: {proposal.problem}\n"
            "Name columns with --columns item=COLUMN,score=COLUMN."
        )
    if len(proposal.sources) > 1:
        return f"Next: forgetmap compare {' '.join(proposal.sources)}{option}"
    show = f"Next: forgetmap records show {proposal.sources[0]}{option}"
    if proposal.log_format or target is None:
        return show
    mapping = shlex.quote(str(target))
    return f"For other tables with these columns: --mapping {mapping}\n{show}"


def _as_options(table_map: TableMap) -> str:
    """Return the options that are equivalent to a map."""
    named = {**table_map.columns, "rows": table_map.rows, "model": table_map.model}
    columns = ",".join(f"{name}={column}" for name, column in named.items() if column)
    options = {"--columns": columns, "--task": table_map.task, "--range": table_map.score_range}
    return "".join(f" {name} {shlex.quote(str(text))}" for name, text in options.items() if text)


SCHEMA_EXAMPLES = """\b
Examples:
  forgetmap records schema record > record.schema.json
  forgetmap records schema comparison
"""


@command.command("schema", epilog=SCHEMA_EXAMPLES)
@click.argument("what", type=click.Choice(["record", "comparison", "fan-out"]))
def schema(what: str) -> None:
    """Print the JSON schema of a record, or of the output of `compare --json`."""
    from pydantic import TypeAdapter

    from forgetmap.comparison import ComparisonResult, FanOutResult
    from forgetmap.records import json_schema

    schemas = {
        "record": json_schema,
        "comparison": TypeAdapter(ComparisonResult).json_schema,
        "fan-out": TypeAdapter(FanOutResult).json_schema,
    }
    click.echo(json.dumps(schemas[what](), indent=2))
