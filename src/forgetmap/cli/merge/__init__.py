"""`forgetmap merge`: recipes, one command per method, sweeps and drift."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import json_option
from forgetmap.cli.options.evaluate import print_notes
from forgetmap.cli.options.merge import write_merge, writing_options
from forgetmap.merge import method_names

if TYPE_CHECKING:
    from forgetmap.merge import Method, Parameter

COMMANDS = {
    "apply": "Merge as described by a YAML recipe, ours or mergekit's.",
    "methods": "List the methods with parameters and papers.",
    "sweep": "Merge at many weights, evaluate each, and find the best.",
    "drift": "Measure the weight difference of two models by layer and module.",
}
EXAMPLES = """\b
Examples:
  forgetmap merge linear models/base models/tuned --weight 0.2 --out merged
  forgetmap merge apply recipe.yaml --out merged
  forgetmap merge methods
"""


class MergeGroup(CommandGroup):
    """A group with one more command per merge method, generated from its signature."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands, then the methods."""
        return [*super().list_commands(ctx), *method_names()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or that of a method."""
        if cmd_name in self.lines or cmd_name not in method_names():
            return super().get_command(ctx, cmd_name)
        from forgetmap.cli.merge.method import method_command
        from forgetmap.merge import find_method

        return method_command(find_method(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the methods too."""
        super().format_commands(ctx, formatter)
        with formatter.section("Methods (one command each)"):
            formatter.write_text(", ".join(method_names()))


@click.group("merge", cls=MergeGroup, package=__name__, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Merge models, and measure what the merge keeps.

    An interrupted merge resumes. The output folder appears only when it is complete.
    """


APPLY_EXAMPLES = """\b
Examples:
  forgetmap merge apply recipe.yaml --out merged
  forgetmap merge apply mergekit.yml --out merged --shard-size 2GB
"""


@command.command("apply", epilog=APPLY_EXAMPLES)
@click.argument("recipe", type=click.Path(path_type=Path))
@writing_options
def apply(recipe: Path, **writing: Any) -> None:
    """Merge as described by a RECIPE in YAML, ours or mergekit's.

    The folder contains the weights, configuration, tokenizer, a model card and the recipe.
    """
    from forgetmap._lazy import require

    require("yaml", "A recipe")
    from forgetmap.merge import read_recipe

    content = read_recipe(recipe)
    print_notes(content.notices)
    write_merge(content, **writing)


METHODS_EXAMPLES = """\b
Examples:
  forgetmap merge methods
  forgetmap merge methods --json
"""


@command.command("methods", epilog=METHODS_EXAMPLES)
@json_option
def methods(*, as_json: bool) -> None:
    """List the methods with parameters and papers."""
    from forgetmap.merge import find_method, method_names

    methods = [find_method(name) for name in method_names()]
    if as_json:
        click.echo(json.dumps([_as_json(method) for method in methods], indent=2))
        return
    for method in methods:
        _print_method(method)


def _as_json(method: Method) -> dict[str, object]:
    return {
        "name": method.name,
        "says": method.summary,
        "paper": method.paper,
        "base": method.base,
        "parameters": [asdict(parameter) for parameter in method.parameters],
    }


def _print_method(method: Method) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    console.print(Text(method.name, style="bold"), Text(method.summary), soft_wrap=True)
    parameters = ", ".join(map(_parameter, method.parameters)) or "no parameters"
    base = {"needed": "needs a base; ", "possible": "may have a base; "}.get(method.base, "")
    console.print(Text(f"    {base}{parameters}", style="dim"), soft_wrap=True)
    if method.paper:
        console.print(Text(f"    {method.paper}", style="dim"), soft_wrap=True)


def _parameter(parameter: Parameter) -> str:
    per_model = " per model" if parameter.per_model else ""
    default = "" if parameter.default is None else f" ({parameter.default})"
    return f"{parameter.name}{default}{per_model}"


DRIFT_EXAMPLES = """\b
Examples:
  forgetmap merge drift models/base models/tuned
  forgetmap merge drift org/base org/base+adapters/sft --json
  forgetmap merge drift models/base models/tuned --figure drift.svg
"""


@command.command("drift", epilog=DRIFT_EXAMPLES)
@click.argument("base")
@click.argument("tuned")
@click.option(
    "--no-ranks", is_flag=True, help="Skip effective ranks, which take longest to compute."
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also draw layers and module types: .svg, .png or .pdf [default: no figure].",
)
@json_option
def drift(base: str, tuned: str, figure: Path | None, *, no_ranks: bool, as_json: bool) -> None:
    """Measure the weight difference between BASE and TUNED by layer and module.

    Models are folders with safetensors, hub ids, or BASE+ADAPTER. Only one tensor of each is in
    memory at a time.
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
