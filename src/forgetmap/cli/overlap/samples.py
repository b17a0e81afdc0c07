"""`forgetmap overlap samples`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forgetmap.cli.options.output import json_option
from forgetmap.cli.overlap import estimate_options, estimate_settings, print_on_terminal

EXAMPLES = """\b
Examples:
  forgetmap overlap samples weighed.jsonl
"""


@click.command("samples", epilog=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--first",
    type=click.IntRange(1),
    help="Use only so many tokens of each completion [default: all].",
)
@estimate_options
@json_option
def command(file: Path, first: int | None, **options: Any) -> None:
    """Estimate from completions that were weighed elsewhere.

    FILE is JSON lines with prompt, side, before, after; log-probabilities per token or in sum.
    """
    from forgetmap.overlap import (
        estimate_overlap,
        estimate_table,
        read_samples,
        table_of,
    )
    from forgetmap.report import tell_overlap

    samples, settings = read_samples(file), estimate_settings(options)
    if first is None:
        result = estimate_overlap(samples, settings=settings)
    else:
        result = estimate_table(table_of(samples, first=first), settings=settings)
    if options["as_json"]:
        click.echo(result.to_json())
    else:
        print_on_terminal(tell_overlap(result))
