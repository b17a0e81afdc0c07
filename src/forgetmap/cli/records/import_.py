"""`forgetmap records import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forgetmap.cli.options.logs import log_options, table_options
from forgetmap.cli.options.output import overwrite_option
from forgetmap.cli.records import (
    manifest_options,
    open_checked,
    print_problems,
    save_map_option,
    summary,
    with_manifest_options,
)

EXAMPLES = """\b
Examples:
  forgetmap records import lm-eval-logs/base --out runs/base --stage base
  forgetmap records import logs/2026-01-01_arc.eval --out runs/arc --strict
  forgetmap records import s3://bucket/evals/tuned --out runs/tuned --parent base
"""


@click.command("import", epilog=EXAMPLES)
@click.argument("path", type=click.Path())
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Run folder to write.")
@table_options
@save_map_option
@log_options
@manifest_options
@overwrite_option
def command(path: str, out: Path, **options: Any) -> None:
    """Write what is in PATH as a run folder, and say what could not be used."""
    from rich.console import Console

    from forgetmap.records import refuse_to_replace, survey, write_run
    from forgetmap.text import printable

    refuse_to_replace(out, overwrite=options["overwrite"])
    run = with_manifest_options(open_checked(path, options), options)
    write_run(run, out, overwrite=options["overwrite"])
    click.echo(printable(f"Written to {out}. {summary(survey(run))}"))
    print_problems(Console(), run)
