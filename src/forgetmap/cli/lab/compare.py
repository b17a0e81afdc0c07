"""`forgetmap lab compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from forgetmap.cli.options import split_names
from forgetmap.cli.options.lab import (
    STOPPED,
    RunProgress,
    lab_options,
    open_recipe,
    require_training,
)
from forgetmap.cli.progress import JobProgress, stoppable
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.lab import LabPlan, LabRecipe

RESULT = "lab.json"
EXAMPLES = """\b
Examples:
  forgetmap lab compare tiny --methods forward-kl,replay --out lab
  forgetmap lab compare tiny --methods lora --strengths 1,2,4,8,16,32 --out ranks
  forgetmap lab compare tiny --seeds 5 --workers 2 --capabilities --out lab
  forgetmap lab compare my-lab/recipe.toml --dry-run --out lab
"""


@click.command("compare", epilog=EXAMPLES)
@lab_options("lab.json")
@click.option(
    "--methods",
    help=(
        "Methods to compare, such as forward-kl,replay. Plain fine-tuning is always included "
        "[default: all except slow ones]."
    ),
)
@click.option(
    "--strengths",
    multiple=True,
    help=(
        "Strengths to try instead of a method's own: 1,2,4, or lora=1,2,4 if several methods are "
        "compared. Repeatable."
    ),
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of training runs at the same time.",
)
@click.option(
    "--capabilities",
    is_flag=True,
    help="Also measure capability drift, on one seed of each method.",
)
@click.option("--dry-run", is_flag=True, help="Show the planned training runs without training.")
def command(  # noqa: PLR0913  # as many as the command has
    recipe: str,
    out: Path,
    start: Path | None,
    seeds: int,
    methods: str | None,
    strengths: tuple[str, ...],
    workers: int,
    *,
    capabilities: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Compare training methods by forgetting, from the same start to the same score.

    Every method is tried at all learning rates and strengths on a development seed. Its best
    setting is then repeated on other seeds and compared with plain fine-tuning at its best learning
    rate and at equal compute.
    """
    require_training()
    from forgetmap.lab import compare_methods, plan_comparison

    names = split_names(methods)
    chosen = read_strengths(strengths, names)
    plan = plan_comparison(names, seeds=seeds, strengths=chosen)
    world = open_recipe(recipe, start, make=not dry_run)
    if dry_run:
        _print_plan(plan, world)
        return
    with stoppable(STOPPED), JobProgress() as progress:
        counter = RunProgress(progress, plan.count_arms(world), workers)
        result = compare_methods(
            world,
            out,
            names,
            seeds=seeds,
            strengths=chosen,
            workers=workers,
            capabilities=capabilities,
            on_arm=counter.show_arm,
        )
    from forgetmap.cli.lab.output import show_lab

    show_lab(result, out / RESULT, as_json=as_json)


def read_strengths(texts: tuple[str, ...], methods: list[str]) -> dict[str, list[float]]:
    """Parse `lora=1,2,4` by method; a list without a name belongs to the only method.

    Raises:
        UsageError: it is not a list of numbers, or the method is missing.
    """
    strengths: dict[str, list[float]] = {}
    for text in texts:
        name, equals, values = text.rpartition("=")
        if not equals:
            if len(methods) != 1:
                raise UsageError(
                    f"--strengths {text} does not name a method",
                    hint=f"write --strengths METHOD={text}.",
                )
            name = methods[0]
        strengths[name.strip()] = read_numbers(values, "--strengths")
    return strengths


def read_numbers(text: str, option: str) -> list[float]:
    """Parse numbers separated by commas.

    Raises:
        UsageError: a part is not a number, or there is none.
    """
    try:
        numbers = [float(part) for part in split_names(text)]
    except ValueError:
        numbers = []
    if not numbers or not all(0 <= number < float("inf") for number in numbers):
        raise UsageError(
            f"{option} {text!r} is not a list of numbers", hint="give numbers such as 1,2,4."
        )
    return numbers


def _print_plan(plan: LabPlan, recipe: LabRecipe) -> None:
    from forgetmap.text import counted, printable

    sweep = plan.sweep_arms(recipe)
    for arm in sweep:
        click.echo(printable(arm.folder))
    total = plan.count_arms(recipe)
    click.echo(
        f"{counted(total, 'training run')}: {len(sweep):,} to choose settings, listed above, and "
        f"{total - len(sweep):,} on {plan.seeds} further seeds, with the best setting of each "
        "method and plain fine-tuning at every learning rate."
    )
