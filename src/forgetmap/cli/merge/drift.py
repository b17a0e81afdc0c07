"""`forgetmap merge drift`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from forgetmap.cli.options.output import json_option

EXAMPLES = """\b
Examples:
  forgetmap merge drift models/base models/tuned
  forgetmap merge drift org/base org/base+adapters/sft --json
  forgetmap merge drift models/base models/tuned --figure drift.svg
"""


@click.command("drift", epilog=EXAMPLES)
@click.argument("base")
@click.argument("tuned")
@click.option(
    "--no-ranks", is_flag=True, help="Leave out effective ranks, which take longest to compute."
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also draw layers and kinds of modules: .svg, .png or .pdf [default: no figure].",
)
@json_option
def command(base: str, tuned: str, figure: Path | None, *, no_ranks: bool, as_json: bool) -> None:
    """How far do the weights of TUNED lie from those of BASE, by layer and module?

    Models are folders with safetensors, hub ids, or BASE+ADAPTER. One tensor of each is in memory
    at a time.
    """
    from rich.console import Console

    from forgetmap._lazy import require
    from forgetmap.text import print_blocks

    require("torch", "Comparing weights")
    from forgetmap.merge import weight_drift
    from forgetmap.report import tell_weights, weight_drift_figure, write_figure

    drift = weight_drift(base, tuned, ranks=not no_ranks)
    if figure is not None:
        write_figure(weight_drift_figure(drift), figure, words=True)
    if as_json:
        click.echo(json.dumps(drift.model_dump(), indent=2, allow_nan=False))
    else:
        print_blocks(Console(), tell_weights(drift))
