"""`forgetmap overlap records`."""

from __future__ import annotations

import click

from forgetmap.cli.options.output import json_option
from forgetmap.cli.overlap import level_option, print_on_terminal

EXAMPLES = """\b
Examples:
  forgetmap overlap records runs/base runs/tuned
"""


@click.command("records", epilog=EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@level_option
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Random seed of the bootstrap.",
)
@json_option
def command(before: str, after: str, level: float, seed: int, *, as_json: bool) -> None:
    """Bounds from two runs that recorded log-probabilities of right answers."""
    from forgetmap.overlap import overlap_from_records
    from forgetmap.report import tell_events

    result = overlap_from_records(before, after, level=level, seed=seed)
    if as_json:
        click.echo(result.to_json())
    else:
        print_on_terminal(tell_events(result))
