"""`forgetmap merge`: recipes, one command per method, sweeps and drift."""

from __future__ import annotations

import click

from forgetmap.cli.groups import LazyGroup
from forgetmap.merge import method_names

COMMANDS = {
    "apply": "Merge as a recipe in YAML says: ours, or mergekit's as it is.",
    "methods": "List the methods, their parameters and papers.",
    "sweep": "Merge at many weights, evaluate each, and find the best.",
    "drift": "How far do two models lie apart, by layer and module?",
}
EXAMPLES = """\b
Examples:
  forgetmap merge linear models/base models/tuned --weight 0.2 --out merged
  forgetmap merge apply recipe.yaml --out merged
  forgetmap merge methods
"""


class MergeGroup(LazyGroup):
    """Adds a command per merge method, made from its signature."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, then the methods."""
        return [*super().list_commands(ctx), *method_names()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or that of the method of this name."""
        if cmd_name in self.lines or cmd_name not in method_names():
            return super().get_command(ctx, cmd_name)
        from forgetmap.cli.merge.method import method_command
        from forgetmap.merge import find_method

        return method_command(find_method(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the methods as well."""
        super().format_commands(ctx, formatter)
        with formatter.section("Methods, each a command"):
            formatter.write_text(", ".join(method_names()))


@click.group("merge", cls=MergeGroup, package=__name__, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Merge models, and know whether it kept what was known.

    A merge that was stopped goes on where it was; its folder appears only when it is whole.
    """
