"""`forgetmap study`: many models, declared in one file, and what they say together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import json_option, overwrite_option
from forgetmap.cli.options.logs import log_options, reading_progress, table_options

if TYPE_CHECKING:
    from forgetmap.study import StudyResult

COMMANDS = {
    "init": "Write a study to start from.",
    "check": "Say what is in a study, and what is wrong with it.",
    "status": "Which models have runs, and which pairs can be compared?",
    "compare": "Compare all pairs that have runs; each is read once.",
    "findings": "What do the pairs say together? What papers claim, tested.",
    "place": "Where does a pair lie among the published ones?",
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
    help="Holds a run folder per model, called like its id, for models without `logs`.",
)


@click.group("study", cls=CommandGroup, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Many pairs of models: which stages, sizes and data make models forget?"""


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
    help="File to write the study to [default: it is printed].",
)
@overwrite_option
def init(name: str, out: Path | None, *, overwrite: bool) -> None:
    """Write a study to start from: that of a paper, or an empty one."""
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
    """Say what is in a study: models, pairs, merges, trends, and what is wrong with it."""
    from rich.console import Console

    from forgetmap.study import read_study, summarize_study, tell_summary
    from forgetmap.text import print_blocks

    summary = summarize_study(read_study(study))
    if as_json:
        click.echo(summary.to_json())
        return
    print_blocks(Console(), tell_summary(summary))


FINDINGS_EXAMPLES = """\b
Examples:
  forgetmap study findings --published
  forgetmap study findings --published --json
  forgetmap study findings study.toml --runs runs
"""


@command.command("findings", epilog=FINDINGS_EXAMPLES)
@click.argument("study", type=click.Path(path_type=Path), required=False)
@click.option(
    "--published", is_flag=True, help="What papers claim, held against their published values."
)
@runs_option
@json_option
def findings(study: Path | None, runs: Path | None, *, published: bool, as_json: bool) -> None:
    """What do the pairs say together, and how sure is it?

    With --published it needs no STUDY: it holds what two papers claim against their own values.
    """
    from rich.console import Console

    from forgetmap.errors import UsageError
    from forgetmap.study import published_findings, tell_findings, tell_published
    from forgetmap.text import print_blocks

    if published == (study is not None):
        raise UsageError(
            "findings are of a study or of the papers",
            hint="give a study.toml, or --published.",
        )
    if study is not None:
        result = _compare(study, runs).findings
        text, blocks = result.to_json(), tell_findings(result)
    else:
        claims = published_findings()
        text, blocks = claims.to_json(), tell_published(claims)
    if as_json:
        click.echo(text)
        return
    print_blocks(Console(), blocks)


COMPARE_EXAMPLES = """\b
Examples:
  forgetmap study compare study.toml
  forgetmap study compare study.toml --runs runs --json
"""


@command.command("compare", epilog=COMPARE_EXAMPLES)
@study_argument
@runs_option
@json_option
def compare(study: Path, runs: Path | None, *, as_json: bool) -> None:
    """Compare all pairs whose models have runs or logs; each is read once.

    Models without a run leave gaps, which are named.
    """
    from rich.console import Console

    from forgetmap.study import tell_study
    from forgetmap.text import print_blocks

    result = _compare(study, runs)
    if as_json:
        click.echo(result.to_json())
        return
    print_blocks(Console(), tell_study(result))


def _compare(study: Path, runs: Path | None) -> StudyResult:
    from rich.console import Console

    from forgetmap.study import compare_study, read_study

    with Console(stderr=True).status("Reading ...") as status:
        return compare_study(
            read_study(study),
            folder=runs,
            on_run=lambda model: status.update(f"Reading {model} ..."),
        )


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
    """Which models have runs or logs, and which pairs can be compared?"""
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
    """Where does a pair of runs lie among the 31 published pairs?

    BEFORE and AFTER are what `forgetmap compare` takes. Only runs of the suite post-forget, or of
    its tasks, have categories to compare.
    """
    from rich.console import Console

    from forgetmap.study import place_pair, tell_placement
    from forgetmap.text import print_blocks

    with Console(stderr=True).status("Pairing and counting ...") as status:
        options["progress"] = reading_progress(status)
        placement = place_pair(before, after, **options)
    if as_json:
        click.echo(placement.to_json())
        return
    print_blocks(Console(), tell_placement(placement))
