"""The commands that follow a comparison, with the inputs and options that were typed."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import click

from forgetmap.cli.typed_options import typed_options, typed_words

_OF_OUTPUT = frozenset({"out", "overwrite", "as_json", "show", "limit"})
"""Options for the output, which is another one with each command."""
_OF_SOURCES = frozenset({"column_map", "task", "score_range", "mapping", "run", "scores"})
"""Options that decide which results are read."""
_OF_COMPARISON = frozenset({
    "metric", "correct_at", "pair_by", "estimator", "noise", "rollup", "task_table",
})  # fmt: skip
"""Options that decide how they are compared. A command must have all that were typed."""
REPLAY_OPTIONS = ("--pool", "POOL", "--out", "FILE")
"""Only the user knows these two."""


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command that may follow.

    Attributes:
        command: the command; options that were typed are repeated if it has them.
        sources: its sources, as typed.
        more: further options.
        unwanted: names of options that are not repeated.
        places: which of the typed sources they are; None for all.
    """

    command: click.Command
    sources: Sequence[str]
    more: Sequence[str] = ()
    unwanted: Collection[str] = ()
    places: Sequence[int] | None = None

    @property
    def option_names(self) -> set[str]:
        """Names of the options that are repeated if they were typed."""
        options = (param for param in self.command.params if isinstance(param, click.Option))
        return {option.name or "" for option in options} - {*_OF_OUTPUT, *self.unwanted}

    def line(self, name: str) -> str | None:
        """Return the whole line that calls it by this name; None if it would not work."""
        needed = _OF_SOURCES if len(self.sources) == 1 else _OF_SOURCES | _OF_COMPARISON
        if not needed & {option.name for option in typed_options()} <= self.option_names:
            return None
        words = [*name.split(), *(_as_argument(source) for source in self.sources)]
        words += typed_words(self.option_names, self.places)
        words += self.more
        return shlex.join(["forgetmap", *words]) if all(map(is_typable, words)) else None


def next_commands(
    sources: Sequence[str], accept: click.Command | None = None, more: Sequence[str] = ()
) -> dict[str, str]:
    """Return complete commands by their short names, for `print_comparison` and `print_gate`.

    Args:
        sources: BEFORE and each AFTER, as typed.
        accept: the command `gate accept`, if it may follow.
        more: further options of commands that show the same comparison.
    """
    commands: dict[str, NextCommand] = {}
    if _can_follow(sources):
        if len(sources) == 2 or click.get_current_context().params.get("chain"):
            commands |= _after_pair(sources, len(sources) - 1)  # of a chain, its ends
        commands["report"] = NextCommand(find_command("report"), sources, more)
        commands["compare --not-selected"] = NextCommand(
            find_command("compare"), sources, (*more, "--not-selected")
        )
    if accept is not None:
        last = (len(sources) - 1,)
        commands["gate accept"] = NextCommand(accept, sources[-1:], ("--as", "main"), places=last)
        commands["gate --not-selected"] = NextCommand(
            click.get_current_context().command, sources, ("--not-selected",)
        )
    return _lines(commands)


def each_next_commands(sources: Sequence[str]) -> list[dict[str, str]]:
    """Return the commands that follow each comparison of a fan-out."""
    if not _can_follow(sources):
        return [{} for _ in sources[1:]]
    return [_lines(_after_pair(sources, place)) for place in range(1, len(sources))]


def _can_follow(sources: Sequence[str]) -> bool:
    """Return whether other commands read these: not from Spark, nor the store of baselines."""
    engine = click.get_current_context().params.get("engine")
    return engine != "spark" and not sources[0].startswith("baseline:")


def _after_pair(sources: Sequence[str], place: int) -> dict[str, NextCommand]:
    """Return the commands that follow a comparison of BEFORE and one AFTER, by its place."""
    pair, places = (sources[0], sources[place]), (0, place) if len(sources) > 2 else None
    return {
        "plan": NextCommand(find_command("plan"), pair, places=places),
        "export replay": NextCommand(
            find_command("export replay"), pair, REPLAY_OPTIONS, places=places
        ),
        "confirm": NextCommand(find_command("confirm"), pair, places=places),
    }


def _lines(commands: Mapping[str, NextCommand]) -> dict[str, str]:
    lines = {name: command.line(name.partition(" --")[0]) for name, command in commands.items()}
    return {name: line for name, line in lines.items() if line is not None}


def find_command(name: str) -> click.Command:
    """Return a command by its name, such as `export replay`."""
    from forgetmap.cli.main import cli

    command: click.Command = cli
    for word in name.split():
        assert isinstance(command, click.Group)  # noqa: S101  # names are those of commands
        found = command.get_command(click.get_current_context(), word)
        assert found is not None  # noqa: S101
        command = found
    return command


def _as_argument(source: str) -> str:
    """Return a path so that it is not mistaken for an option."""
    return f"./{source}" if source.startswith("-") else source


def is_typable(word: str) -> bool:
    """Return whether a word can be printed in backticks, and typed as printed.

    A password in an address is not printed, and without it no command works.
    """
    from forgetmap._http import redact_url
    from forgetmap.sources import is_remote

    is_secret = is_remote(word) and redact_url(word) != word
    return word.isprintable() and "`" not in word and not is_secret
