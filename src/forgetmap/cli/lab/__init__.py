"""`forgetmap lab`: training methods compared from one start to one score."""

from __future__ import annotations

import json
from pathlib import Path

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import json_option
from forgetmap.cli.options.lab import pretrain, require_training

COMMANDS = {
    "compare": "Compare training methods at the same score on the new task.",
    "repair": "Restore what a model forgot, with texts from its start model.",
    "merge-drift": "Test whether merging compensates better when drift is small.",
    "methods": "List the methods, what each needs, and its settings.",
    "start": "Pre-train the start model of the tiny world.",
    "init": "Write a recipe with data to start from.",
}
EXAMPLES = """\b
Examples:
  forgetmap lab compare tiny --methods forward-kl,replay --out lab
  forgetmap lab repair tiny --out repair
  forgetmap lab merge-drift tiny --out drift
  forgetmap lab init smollm2 --out my-lab
"""


@click.group("lab", cls=CommandGroup, package=__name__, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Compare training methods from one start model to one score on the new task.

    A RECIPE is `tiny`, a small world whose models train on a CPU in seconds, or your own
    recipe.toml. Interrupted runs resume, and finished runs are not repeated.
    """


METHODS_EXAMPLES = """\b
Examples:
  forgetmap lab methods
  forgetmap lab methods --json
"""


@command.command("methods", epilog=METHODS_EXAMPLES)
@json_option
def methods(*, as_json: bool) -> None:
    """List the methods, the old data each needs, and the strengths that are tried."""
    require_training()
    from forgetmap.lab import METHODS

    found = list(METHODS.values())
    if as_json:
        rows = [
            {
                "name": method.name,
                "title": method.title,
                "needs": method.needs,
                "strength_of": method.strength_of,
                "strengths": list(method.strengths) if method.strength_of else [],
                "is_slow": method.is_slow,
            }
            for method in found
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for method in found:
        slow = "; slow, skipped unless named" if method.is_slow else ""
        tried = _strengths(method.strength_of, method.strengths)
        console.print(Text(f"{method.name}:", style="bold"), Text(method.title), soft_wrap=True)
        facts = f"    needs {_NEEDS[method.needs]}{tried}{slow}"
        console.print(Text(facts, style="dim"), soft_wrap=True)


_NEEDS = {
    "nothing": "no old data",
    "prompts": "old prompts without answers",
    "examples": "old examples with answers",
}


def _strengths(name: str, values: tuple[float, ...]) -> str:
    return f"; tries {name} {', '.join(f'{value:g}' for value in values)}" if name else ""


START_EXAMPLES = """\b
Examples:
  forgetmap lab start --out start
  forgetmap lab start --steps 400 --seed 1 --out start
"""


@command.command("start", epilog=START_EXAMPLES)
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder for the start model."
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    default=1600,
    show_default=True,
    help="Number of training steps.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed of the weights and the texts.",
)
def start(out: Path, steps: int, seed: int) -> None:
    """Pre-train the start model of the tiny world: 0.65 million parameters, minutes on a CPU."""
    require_training()
    from forgetmap.lab import Pretraining
    from forgetmap.text import printable

    pretrain(out, Pretraining(steps=steps, seed=seed))
    click.echo(printable(f"Written to {out}"))


INIT_EXAMPLES = """\b
Examples:
  forgetmap lab init tiny --out my-lab
  forgetmap lab init smollm2 --out my-lab
  forgetmap lab init gpu --out my-lab
"""


@command.command("init", epilog=INIT_EXAMPLES)
@click.argument("starter", type=click.Choice(["tiny", "smollm2", "gpu"]))
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder for the recipe."
)
def init(starter: str, out: Path) -> None:
    """Write a recipe.toml with the data it needs, as a starting point.

    tiny: the recipe of that name as files. smollm2: teaches SmolLM2-135M facts of an invented
    world. gpu: a template for your own model and data.
    """
    from forgetmap.lab import write_starter
    from forgetmap.text import printable

    for file in write_starter(starter, out):
        click.echo(printable(f"Written to {file}"))
