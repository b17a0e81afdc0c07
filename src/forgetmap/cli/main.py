"""`forgetmap`: finds the command, shows typed errors as two lines, never as a traceback."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from forgetmap import __version__
from forgetmap.errors import ForgetmapError

COMMANDS = {
    "compare": "What did a model forget, and gain, against another?",
    "records": "Check, show and convert tables of per-item results.",
    "simulate": "Write two simulated runs whose truth is known.",
    "completion": "Print the shell completion script.",
}
EXAMPLES = """\b
Examples:
  forgetmap compare runs/base runs/tuned
  forgetmap compare base.csv tuned.csv --map item=question_id,score=correct
  forgetmap compare runs/base runs/sft runs/rl --chain
  forgetmap compare runs/base runs/tuned --show forgotten
  forgetmap records check results.jsonl
"""


class _LoadedOnDemand(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"forgetmap.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_LoadedOnDemand,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="forgetmap")
def cli() -> None:
    """Show what a language model lost in post-training: which items, how many, and why."""


def main() -> None:
    """Entry point of the command."""
    try:
        cli.main(prog_name="forgetmap")
    except ForgetmapError as error:
        click.secho("Error: ", fg="red", bold=True, err=True, nl=False)
        click.echo(_printable(str(error)), err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has gone: that is not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
