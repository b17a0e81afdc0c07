"""The help of every command: complete and readable."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from forgetmap.cli.main import cli


def commands(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """A context of every command and group."""
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, click.Context(inner, info_name=name, parent=context))


ALL = list(commands(cli, click.Context(cli, info_name="forgetmap")))


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
