"""`forgetmap lab merge-drift`."""

from __future__ import annotations

from pathlib import Path

import click

from forgetmap.cli.lab.compare import read_numbers
from forgetmap.cli.options.lab import (
    STOPPED,
    RunProgress,
    lab_options,
    open_recipe,
    require_training,
)
from forgetmap.cli.progress import JobProgress, stoppable

RESULT = "merge-drift.json"
EXAMPLES = """\b
Examples:
  forgetmap lab merge-drift tiny --out drift
  forgetmap lab merge-drift tiny --levels 0.02,0.05,0.1,0.2,0.5,1 --seeds 5 --out drift
"""


@click.command("merge-drift", epilog=EXAMPLES)
@lab_options("merge-drift.json")
@click.option(
    "--levels",
    default="0.02,0.05,0.1,0.2,0.5,1",
    show_default=True,
    help="Shares of the new examples to train on; more examples cause more drift.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, 1, min_open=True),
    help="Learning rate [default: the lowest of the recipe].",
)
def command(  # as many as the command has
    recipe: str,
    out: Path,
    start: Path | None,
    seeds: int,
    levels: str,
    rate: float | None,
    *,
    as_json: bool,
) -> None:
    """Test whether merging with the start model undoes more of the loss when drift is small.

    Models learn from a few to all of the new examples, and each is merged with the start model at
    ten weights. The result is the share of the loss that the best merge undoes while keeping 95 %
    of the gain. Half of the items choose the merge, the other half measure it.
    """
    require_training()
    from forgetmap.lab import merge_under_drift

    shares = read_numbers(levels, "--levels")
    world = open_recipe(recipe, start)
    with stoppable(STOPPED), JobProgress() as progress:
        counter = RunProgress(progress, len(set(shares)) * max(seeds, 0))
        result = merge_under_drift(
            world, out, shares=shares, seeds=seeds, rate=rate,
            on_level=lambda level: counter.show(f"level {level.share:g}, seed {level.seed}"),
        )  # fmt: skip
    from forgetmap.cli.lab.output import show_merge_drift

    show_merge_drift(result, out / RESULT, as_json=as_json)
