"""`forgetmap lab repair`."""

from __future__ import annotations

from pathlib import Path

import click

from forgetmap.cli.options.lab import (
    STOPPED,
    RunProgress,
    lab_options,
    open_recipe,
    require_training,
)
from forgetmap.cli.progress import JobProgress, stoppable

RESULT = "repair.json"
EXAMPLES = """\b
Examples:
  forgetmap lab repair tiny --out repair
  forgetmap lab repair tiny --rows 100 --steps 80 --domains 2 --seeds 5 --out repair
"""


@click.command("repair", epilog=EXAMPLES)
@lab_options("repair.json")
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Old examples in a replay set.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    default=150,
    show_default=True,
    help="Steps of training in a repair.",
)
@click.option(
    "--domains",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Categories to repair: those that lost most.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, 1, min_open=True),
    help="Learning rate [default: the lowest of the recipe].",
)
def command(  # noqa: PLR0913  # as many as the command has
    recipe: str,
    out: Path,
    start: Path | None,
    seeds: int,
    rows: int,
    steps: int,
    domains: int,
    rate: float | None,
    *,
    as_json: bool,
) -> None:
    """Bring back what a fine-tuned model forgot, with texts that its start model writes itself.

    Replay of texts like what the worst domains forgot, against as many at random, and against
    training on the new examples alone. Questions that are measured are never replayed.
    """
    require_training()
    from forgetmap.lab import REPAIRS, RepairPlan, repair_model

    plan = RepairPlan(rows=rows, steps=steps, rate=rate, domains=domains)
    found = open_recipe(recipe, start)
    with stoppable(STOPPED), JobProgress() as progress:
        counter = RunProgress(progress, len(REPAIRS) * seeds)
        result = repair_model(
            found, out, plan=plan, seeds=seeds,
            on_run=lambda run: counter.show(f"{run.kind} replay, seed {run.seed}"),
        )  # fmt: skip
    from forgetmap.cli.lab.output import show_repair

    show_repair(result, out / RESULT, as_json=as_json)
