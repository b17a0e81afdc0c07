"""`forgetmap study`: studies of many models that are declared in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import json_option, overwrite_option
from forgetmap.cli.options.evaluate import data_root_option, loading_options
from forgetmap.cli.options.logs import (
    engine_options,
    log_options,
    reading_progress,
    table_options,
)
from forgetmap.report import STUDY_ITEMS

if TYPE_CHECKING:
    from forgetmap.study import StudyResult

COMMANDS = {
    "init": "Write a study file to start from.",
    "check": "Check a study file and show its contents.",
    "run": "Evaluate every model once; resume where interrupted.",
    "status": "List the models with runs and the pairs ready to compare.",
    "compare": "Compare all pairs that have runs, reading each run once.",
    "report": "Write tables, figures and a site that works offline.",
    "findings": "Test published claims on all pairs together.",
    "place": "Show where a pair ranks among the published pairs.",
}
EXAMPLES = """\b
Examples:
  forgetmap study init post-forget --out study.toml
  forgetmap study check study.toml
  forgetmap study findings --published
  forgetmap study place runs/base runs/tuned
"""


study_argument = click.argument("study", type=click.Path(path_type=Path))
runs_option = click.option(
    "--runs",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder with one run folder per model id, for models without `logs`.",
)


@click.group("study", cls=CommandGroup, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Compare many pairs of models: which stages, sizes and data cause forgetting?"""


INIT_EXAMPLES = """\b
Examples:
  forgetmap study init empty --out study.toml
  forgetmap study init post-forget --out study.toml
  forgetmap study init captrack
"""


@command.command("init", epilog=INIT_EXAMPLES)
@click.argument("name", type=click.Choice(["post-forget", "captrack", "empty"]))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write the study to [default: print it].",
)
@overwrite_option
def init(name: str, out: Path | None, *, overwrite: bool) -> None:
    """Write a study file to start from: that of a paper, or an empty one."""
    from forgetmap.cli.options import refuse_existing
    from forgetmap.records import writable
    from forgetmap.study import study_template

    text = study_template(name)
    if out is None:
        click.echo(text, nl=False)
        return
    refuse_existing(out, (), overwrite=overwrite)
    with writable(out):
        out.write_text(text, encoding="utf-8")
    click.echo(f"Written to {out}. Next: forgetmap study check {out}")


CHECK_EXAMPLES = """\b
Examples:
  forgetmap study check study.toml
  forgetmap study check study.toml --json
"""


@command.command("check", epilog=CHECK_EXAMPLES)
@study_argument
@json_option
def check(study: Path, *, as_json: bool) -> None:
    """Check a study file, and show its models, pairs, merges and trends."""
    from rich.console import Console

    from forgetmap.study import read_study, summarize_study, tell_summary
    from forgetmap.text import print_blocks

    summary = summarize_study(read_study(study))
    if as_json:
        click.echo(summary.to_json())
        return
    print_blocks(Console(), tell_summary(summary))


RUN_EXAMPLES = """\b
Examples:
  forgetmap study run study.toml --out runs --dry-run --gpu h100
  forgetmap study run study.toml --out runs --parallel 4
  forgetmap study run study.toml --out runs --only base,tuned --max-gpu-hours 20
  forgetmap study run study.toml --out runs --server http://localhost:8000/v1
"""


@command.command("run", epilog=RUN_EXAMPLES)
@study_argument
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder to write the runs to."
)
@click.option("--only", help="Evaluate only these models or merges, by id [default: all].")
@click.option(
    "--parallel", type=click.IntRange(1), default=1, show_default=True,
    help=(
        "Number of models to evaluate at the same time, on this machine or cluster and on each "
        "server."
    ),
)  # fmt: skip
@click.option(
    "--server", "servers", multiple=True, metavar="URL",
    help=(
        "Server of models of the study: http://HOST/v1, or ID=http://HOST/v1#NAME. Repeatable "
        "[default: as in the study file]."
    ),
)  # fmt: skip
@click.option(
    "--max-items",
    type=click.FloatRange(0, min_open=True),
    help="Stop before the model that would exceed this number of answers [default: no limit].",
)
@click.option(
    "--max-tokens",
    type=click.FloatRange(0, min_open=True),
    help=(
        "Stop before the model that would exceed this number of input and output tokens "
        "[default: no limit]."
    ),
)
@click.option(
    "--max-gpu-hours",
    type=click.FloatRange(0, min_open=True),
    help="Stop before the model that would exceed this number of GPU hours [default: no limit].",
)
@click.option(
    "--gpu",
    help=(
        "GPU for which to estimate hours: t4, l4, l40s, rtx4090, a100, a100-40, h100, h200, b200, "
        "mi300x [default: a100]."
    ),
)
@click.option(
    "--tokens-per-second",
    metavar="N|SIZE=N",
    help=(
        "Tokens per second of one GPU, or of a model size: 7B=2500 [default: measured in finished "
        "runs of the study, else from --gpu]."
    ),
)
@click.option("--keep-weights", is_flag=True, help="Keep merged models after evaluating them.")
@click.option("--dry-run", is_flag=True, help="Only estimate time and tokens; load no model.")
@data_root_option
@loading_options
@click.pass_context
def run(ctx: click.Context, /, study: Path, out: Path, only: str | None, **options: Any) -> None:
    """Evaluate every model of a study once, regardless of the number of pairs.

    Models with `logs` are not evaluated. Finished models are not loaded again, and an interrupted
    study resumes, even after a crash. A model that fails does not stop the others; `forgetmap study
    status` shows the reason. The limits apply to this call.
    """
    from forgetmap.cli.options import split_names
    from forgetmap.cli.study_run import dry_run, evaluate_study
    from forgetmap.study import read_study

    declared, names = read_study(study), split_names(only)
    if options.pop("dry_run"):
        dry_run(declared, out, names, options)
        return
    ctx.exit(evaluate_study(declared, out, names, options))


FINDINGS_EXAMPLES = """\b
Examples:
  forgetmap study findings --published
  forgetmap study findings --published --categories
  forgetmap study findings --published --json
  forgetmap study findings study.toml --runs runs
"""


@command.command("findings", epilog=FINDINGS_EXAMPLES)
@click.argument("study", type=click.Path(path_type=Path), required=False)
@click.option(
    "--published", is_flag=True, help="Test the claims of the papers on their published values."
)
@click.option("--categories", is_flag=True, help="Also print every group in every category.")
@runs_option
@json_option
def findings(
    study: Path | None, runs: Path | None, *, published: bool, categories: bool, as_json: bool
) -> None:
    """Test published claims on all pairs of a study, with uncertainty.

    With --published no STUDY is needed: the claims of two papers are tested on their own values.
    """
    from rich.console import Console

    from forgetmap.errors import UsageError
    from forgetmap.study import (
        published_findings,
        tell_categories,
        tell_findings,
        tell_published,
    )
    from forgetmap.text import print_blocks

    if published == (study is not None):
        raise UsageError(
            "no study was given",
            hint="give a study.toml, or --published.",
        )
    if study is not None:
        result = _compare(study, runs).findings
        text, blocks, groups = result.to_json(), tell_findings(result), result.groups
    else:
        claims = published_findings()
        text, blocks, groups = claims.to_json(), tell_published(claims), claims.groups
    if as_json:
        click.echo(text)
        return
    print_blocks(Console(), [*blocks, *(tell_categories(groups) if categories else [])])


COMPARE_EXAMPLES = """\b
Examples:
  forgetmap study compare study.toml
  forgetmap study compare study.toml --runs runs --json
  forgetmap study compare study.toml --engine spark --master spark://HOST:7077
"""


@command.command("compare", epilog=COMPARE_EXAMPLES)
@study_argument
@runs_option
@engine_options
@json_option
def compare(study: Path, runs: Path | None, *, as_json: bool, **engine: Any) -> None:
    """Compare all pairs whose models have runs or logs. Each run is read once.

    Models without a run are listed, and their pairs are skipped.
    """
    from rich.console import Console

    from forgetmap.study import tell_study
    from forgetmap.text import print_blocks

    result = _compare(study, runs, **engine)
    if as_json:
        click.echo(result.to_json())
        return
    print_blocks(Console(), tell_study(result))


def _compare(
    study: Path, runs: Path | None, engine: str | None = None, master: str | None = None
) -> StudyResult:
    from rich.console import Console

    from forgetmap.study import compare_study, read_study

    with Console(stderr=True).status("Reading ...") as status:
        return compare_study(
            read_study(study),
            folder=runs,
            engine=engine,
            master=master,
            on_run=lambda model: status.update(f"Reading {model} ..."),
        )


REPORT_EXAMPLES = """\b
Examples:
  forgetmap study report study.toml --runs runs --out site
  forgetmap study report study.toml --out site --no-text
  forgetmap study report --published --out published
"""


@command.command("report", epilog=REPORT_EXAMPLES)
@click.argument("study", type=click.Path(path_type=Path), required=False)
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder to write the site to."
)
@click.option(
    "--published", is_flag=True, help="Report the 31 pairs of Harmon et al. from published values."
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=STUDY_ITEMS,
    show_default=True,
    help="Maximum number of changed items on the page of a pair; all are in a CSV file next to it.",
)
@click.option("--no-text", is_flag=True, help="Leave out questions, answers and responses.")
@click.option(
    "--redact",
    multiple=True,
    metavar="REGEX",
    help=(
        "Redact text that matches this pattern in questions, options, answers and responses. "
        "Repeatable."
    ),
)
@runs_option
@overwrite_option
def report(study: Path | None, out: Path, runs: Path | None, **options: Any) -> None:
    """Write the results of a study as a folder: an offline site, tables and figures.

    Open index.html. Tables are LaTeX, CSV and Markdown, one per stage; figures are SVG. No data is
    sent anywhere. With --published no STUDY is needed.
    """
    from rich.console import Console

    from forgetmap.cli.options import refuse_existing
    from forgetmap.errors import UsageError
    from forgetmap.report import parse_patterns, write_study
    from forgetmap.study import examine_study, published_detail, read_study
    from forgetmap.text import printable

    published, overwrite = options.pop("published"), options.pop("overwrite")
    if published == (study is not None):
        raise UsageError(
            "no study was given",
            hint="give a study.toml, or --published.",
        )
    refuse_existing(out, [str(path) for path in (study, runs) if path], overwrite=overwrite)
    parse_patterns(options["redact"])
    with Console(stderr=True).status("Reading ...") as status:
        if study is None:
            detail = published_detail()
        else:
            detail = examine_study(
                read_study(study),
                folder=runs,
                on_run=lambda model: status.update(f"Reading {model} ..."),
            )
        page = write_study(
            detail,
            out,
            overwrite=overwrite,
            texts=not options["no_text"],
            redact=options["redact"],
            limit=options["limit"],
            on_page=lambda name: status.update(f"Writing {name} ..."),
        )
    click.echo(printable(f"Report: {page}"))


STATUS_EXAMPLES = """\b
Examples:
  forgetmap study status study.toml
  forgetmap study status study.toml --runs runs --json
"""


@command.command("status", epilog=STATUS_EXAMPLES)
@study_argument
@runs_option
@json_option
def status(study: Path, runs: Path | None, *, as_json: bool) -> None:
    """List the models that have runs or logs, and the pairs ready to compare."""
    from rich.console import Console

    from forgetmap.study import read_study, study_status, tell_status
    from forgetmap.text import print_blocks

    result = study_status(read_study(study), runs)
    if as_json:
        click.echo(result.to_json())
        return
    print_blocks(Console(), tell_status(result))


PLACE_EXAMPLES = """\b
Examples:
  forgetmap study place runs/base runs/tuned
  forgetmap study place runs/base runs/tuned --json
"""


@command.command("place", epilog=PLACE_EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@json_option
@table_options
@log_options
def place(before: str, after: str, *, as_json: bool, **options: Any) -> None:
    """Show where a pair of runs ranks among the 31 published pairs.

    BEFORE and AFTER are the same as for `forgetmap compare`. Only runs of the suite post-forget, or
    of its tasks, have categories to compare.
    """
    from rich.console import Console

    from forgetmap.study import place_pair, tell_placement
    from forgetmap.text import print_blocks

    with Console(stderr=True).status("Pairing items ...") as status:
        options["progress"] = reading_progress(status)
        placement = place_pair(before, after, **options)
    if as_json:
        click.echo(placement.to_json())
        return
    print_blocks(Console(), tell_placement(placement))
