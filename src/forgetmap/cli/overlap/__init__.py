"""`forgetmap overlap`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import LazyGroup
from forgetmap.cli.options import Command, with_options

if TYPE_CHECKING:
    from forgetmap.overlap import OverlapSettings
    from forgetmap.text import Blocks

COMMANDS = {
    "models": "Measure two models, by letting both write and weighing everything with both.",
    "samples": "Estimate from completions that were weighed elsewhere.",
    "records": "Bounds from two runs that recorded log-probabilities of right answers.",
    "bridge": "Does divergence predict forgetting, of methods it has not seen?",
}
EXAMPLES = """\b
Examples:
  forgetmap overlap models/base models/tuned --prompts prompts.txt
  forgetmap overlap models/base models/tuned --prompts prompts.jsonl --samples 32 --out overlap
  forgetmap overlap http://localhost:8000/v1 http://localhost:8001/v1 --prompts prompts.txt
  forgetmap overlap samples overlap/samples.jsonl
  forgetmap overlap records runs/base runs/tuned
  forgetmap overlap bridge models.csv --out bridge
"""

level_option = click.option(
    "--level", type=float, default=0.95, show_default=True, help="Confidence level of intervals."
)


@click.group(
    "overlap", cls=LazyGroup, package=__name__, lines=COMMANDS, default="models", epilog=EXAMPLES
)
def command() -> None:
    """How far did a model move, and what does it certainly still do?

    `forgetmap overlap BEFORE AFTER --prompts FILE` lets both models write, weighs everything with
    both, and estimates overlap, divergence and a floor of what is kept.
    """


def estimate_options(command: Command) -> Command:
    """How overlap is estimated; `estimate_settings` reads them."""
    options = [
        level_option,
        click.option(
            "--behaviour", "behaviours", type=float, multiple=True, default=(0.5, 0.9),
            show_default=True,
            help="Probability, before, of a behaviour to be certified. Repeatable.",
        ),
        click.option(
            "--new-share", type=float, default=0.5, show_default=True,
            help="Weight of AFTER when a completion is assigned to one of the two.",
        ),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
                     help="Random seed of sampling and bootstrap."),
    ]  # fmt: skip
    return with_options(command, options)


def estimate_settings(options: dict[str, Any]) -> OverlapSettings:
    """What is estimated."""
    from forgetmap.overlap import OverlapSettings

    return OverlapSettings(
        options["level"], options["new_share"], options["behaviours"], options["seed"]
    )


def print_on_terminal(blocks: Blocks) -> None:
    """Print a result."""
    from rich.console import Console

    from forgetmap.text import print_blocks

    print_blocks(Console(), blocks)
