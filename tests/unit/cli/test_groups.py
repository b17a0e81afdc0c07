"""Groups of commands, imported on use."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from forgetmap.cli.groups import CommandGroup

COMMAND = """
import click

@click.command({name!r})
@click.argument("words", nargs=-1)
@click.option("--loud", is_flag=True)
def command(words, loud):
    click.echo({name!r} + " " + " ".join(words) + "!" * loud)
"""


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandGroup:
    """`say` and `fetch`, of which `say` is meant where none is named."""
    package = tmp_path / "lazy_commands"
    package.mkdir()
    for module, name in {"__init__": "x", "say": "say", "fetch": "fetch"}.items():
        (package / f"{module}.py").write_text(COMMAND.format(name=name))
    monkeypatch.syspath_prepend(tmp_path)
    lines = {"say": "Say it.", "fetch": "Fetch it.", "absent": "Not there."}
    return CommandGroup("group", package="lazy_commands", lines=lines, default="say")


@pytest.mark.parametrize(
    ("args", "output"),
    [
        (["say", "yes"], "say yes\n"),
        (["yes", "no"], "say yes no\n"),
        (["--loud", "yes"], "say yes!\n"),
        (["fetch", "yes"], "fetch yes\n"),
    ],
)
def test_a_command_or_the_default(group: CommandGroup, args: list[str], output: str) -> None:
    assert CliRunner().invoke(group, args).output == output


def test_a_command_of_the_group_itself_needs_no_module(group: CommandGroup) -> None:
    @group.command("absent")
    def absent() -> None:
        click.echo("here after all")

    assert CliRunner().invoke(group, ["absent"]).output == "here after all\n"


def test_help_and_completion_import_no_command(group: CommandGroup) -> None:
    shown = CliRunner().invoke(group, ["--help"]).output
    assert [line.split()[0] for line in shown.split("Commands:")[1].split("\n") if line] == [
        "say", "fetch", "absent",
    ]  # fmt: skip
    context = click.Context(group)
    assert [item.value for item in group.shell_complete(context, "a")] == ["absent"]
    with pytest.raises(ModuleNotFoundError):
        group.get_command(context, "absent")


def test_without_a_default_an_unknown_command_is_refused(group: CommandGroup) -> None:
    group.default = None
    done = CliRunner().invoke(group, ["nonsense"])
    assert done.exit_code == 2
    assert "No such command 'nonsense'" in done.output
    assert "Did you mean" not in done.output


def test_a_misspelt_command_is_suggested(group: CommandGroup) -> None:
    group.default = None
    assert "Did you mean 'fetch'?" in CliRunner().invoke(group, ["fetchh"]).output


def test_an_option_with_too_few_values_is_shown_whole(group: CommandGroup) -> None:
    @group.command("absent")
    @click.option("--confirm", nargs=2, metavar="BEFORE AFTER")
    @click.option("--loud")
    def absent(**options: object) -> None:
        click.echo(str(options))

    done = CliRunner().invoke(group, ["absent", "--confirm", "one"])
    assert done.exit_code == 2
    assert "Give it as --confirm BEFORE AFTER." in done.output
    assert "Give it" not in CliRunner().invoke(group, ["absent", "--loud"]).output
