"""`forgetmap merge`: recipes, one command per method, sweeps and drift."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from forgetmap.cli.merging import do_merge, writing_options
from forgetmap.cli.options import json_option
from forgetmap.evaluation import need
from forgetmap.merge import find_method, method_names

EXAMPLES = """\b
Examples:
  forgetmap merge linear models/base models/tuned --weight 0.2 --out merged
  forgetmap merge apply recipe.yaml --out merged
  forgetmap merge methods
"""
APPLY_EXAMPLES = """\b
Examples:
  forgetmap merge apply recipe.yaml --out merged
  forgetmap merge apply mergekit.yml --out merged --shard-size 2GB
"""
METHODS_EXAMPLES = """\b
Examples:
  forgetmap merge methods
  forgetmap merge methods --json
"""
ELSEWHERE = {
    "sweep": "Merge at many weights, evaluate each, and find the best.",
    "drift": "How far do two models lie apart, by layer and module?",
}
"""Commands in modules of their own, imported only to be run."""


class _MergeGroup(click.Group):
    """Adds a command per method; building one imports torch, so listing them must not."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *ELSEWHERE, *method_names()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in ELSEWHERE:
            found = getattr(import_module(f"forgetmap.cli.merge_{cmd_name}"), cmd_name)
            return found if isinstance(found, click.Command) else None
        if cmd_name in method_names():
            from forgetmap.cli.merge_method import method_command  # heavy

            need("torch")
            return method_command(find_method(cmd_name))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        own = {name: each.get_short_help_str(limit=80) for name, each in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl([*own.items(), *ELSEWHERE.items()])
        with formatter.section("Methods, each a command"):
            formatter.write_text(", ".join(method_names()))


@click.group(cls=_MergeGroup, epilog=EXAMPLES)
def merge() -> None:
    """Merge models, and know whether it kept what was known.

    A merge that was stopped goes on where it was; its folder appears only when it is whole.
    """


@merge.command(epilog=APPLY_EXAMPLES)
@click.argument("recipe", type=click.Path(path_type=Path))
@writing_options
def apply(recipe: Path, **writing: Any) -> None:
    """Merge as a RECIPE in YAML says: ours, or mergekit's as it is.

    The folder gets the weights, configuration, tokenizer, a model card and the recipe itself.
    """
    need("torch"), need("yaml")
    from forgetmap.merge import read_recipe  # heavy

    do_merge(read_recipe(recipe), **writing)


@merge.command(epilog=METHODS_EXAMPLES)
@json_option
def methods(*, as_json: bool) -> None:
    """List the methods, their parameters and papers."""
    need("torch")
    from forgetmap.cli.merge_method import print_methods  # heavy

    print_methods([find_method(name) for name in method_names()], as_json=as_json)
