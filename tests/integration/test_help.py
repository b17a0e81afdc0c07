"""The help of every command: complete, readable, and shown without heavy imports."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from forgetmap.cli.main import COMMANDS, cli

HEAVY = (
    "numpy", "duckdb", "pyarrow", "scipy", "pandas", "polars", "narwhals", "torch", "transformers",
    "pydantic", "rich", "httpx",
)  # fmt: skip
SHOW_ALL = """
import sys
import click
from forgetmap.cli.main import cli

def show(command, name, parent):
    context = click.Context(command, info_name=name, parent=parent)
    assert "Examples:" in command.get_help(context)
    count = 1
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            count += show(command.get_command(context, inner), inner, context)
    return count

print(show(cli, "forgetmap", None), *(name for name in sys.modules if "." not in name))
"""


def commands(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """A context of every command and group."""
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, click.Context(inner, info_name=name, parent=context))


ALL = list(commands(cli, click.Context(cli, info_name="forgetmap")))


def test_no_help_loads_what_computes() -> None:
    """All of them in one fresh interpreter, since starting one for each would take a minute."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW_ALL], capture_output=True, text=True, check=True
    )
    count, *modules = done.stdout.split()
    assert int(count) == len(ALL)
    assert set(modules).isdisjoint(HEAVY)


@pytest.mark.parametrize("context", ALL, ids=lambda context: context.command_path)
def test_help_has_examples_that_parse_and_fits(context: click.Context) -> None:
    args = [*context.command_path.split()[1:], "--help"]
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(cli, args).output
    examples = re.findall(r"^ +(forgetmap .*)$", shown, re.MULTILINE)
    assert "Examples:" in shown
    assert examples
    assert max(map(len, shown.splitlines())) <= 100
    for example in examples:
        words = shlex.split(re.split(" >+ ", example)[0])[1:]
        command: click.Command = cli
        while isinstance(command, click.Group):
            _, inner, words = command.resolve_command(click.Context(command), words)
            assert inner is not None
            command = inner
        command.make_context("forgetmap", words)


def test_the_list_of_commands_is_complete_and_in_short_sentences() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).output
    assert all(f"  {name}" in shown and text in shown for name, text in COMMANDS.items())
    assert "..." not in CliRunner().invoke(cli, ["records", "--help"]).output.split("Options")[1]


@pytest.mark.parametrize("context", ALL, ids=lambda context: context.command_path)
def test_help_is_readable(context: click.Context) -> None:
    command = context.command
    assert "\\b" not in command.get_help(context)
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    assert [option.name for option in options if not (option.help or "").endswith(".")] == []
    assert [option.name for option in options if option.help and option.help[:3] == "Of "] == []


def test_every_line_of_a_group_leads_to_a_command_of_that_name() -> None:
    for context in ALL[1:]:
        assert context.command.name == context.info_name
