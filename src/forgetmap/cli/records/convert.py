"""`forgetmap records convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options.logs import log_options, table_options
from forgetmap.cli.options.output import overwrite_option
from forgetmap.cli.records import (
    manifest_options,
    open_checked,
    save_map_option,
    summary,
    with_manifest_options,
)

if TYPE_CHECKING:
    from forgetmap.records import Run

TABLE_ENDINGS = (".csv", ".jsonl", ".parquet")
EXAMPLES = """\b
Examples:
  forgetmap records convert base.csv --out runs/base --model my/model --stage base
  forgetmap records convert runs/base --out base.parquet
  forgetmap records convert runs/base --out base.jsonl --format every-eval-ever
"""


@click.command("convert", epilog=EXAMPLES)
@click.argument("path", type=click.Path())
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Run folder to write, or table if it ends in .csv, .jsonl or .parquet.",
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
    help="Format of --out; auto: by its ending; every-eval-ever: instances, one JSON object per "
    "line.",
)
@manifest_options
@overwrite_option
def command(path: str, out: Path, form: str, **options: Any) -> None:
    """Write PATH as a run folder, or as one CSV, JSON lines or Parquet table."""
    from forgetmap.records import refuse_to_replace, survey, write_run, write_table
    from forgetmap.text import printable

    refuse_to_replace(out, overwrite=options["overwrite"])
    run = with_manifest_options(open_checked(path, options), options)
    if form == "every-eval-ever":
        _write_instances(run, out)
        return
    write = write_table if out.suffix in TABLE_ENDINGS else write_run
    write(run, out, overwrite=options["overwrite"])
    click.echo(printable(f"Written to {out}. {summary(survey(run))}"))


def _write_instances(run: Run, out: Path) -> None:
    from forgetmap.records import write_instances
    from forgetmap.text import counted, printable

    instances = write_instances(run, out)
    left_out = instances.left_out
    without = f"; {left_out:,} without score were left out" if left_out else ""
    count = counted(instances.rows, "instance")
    click.echo(printable(f"Written to {out}. {count}{without}."))
