"""The commands that follow a comparison, with the inputs and options that were typed."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
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


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command that may follow.

    Attributes:
        command: the command; options that were typed are repeated if it has them.
        sources: its sources, as typed.
        more: further options.
        unwanted: names of options that are not repeated.
    """

    command: click.Command
    sources: Sequence[str]
    more: Sequence[str] = ()
    unwanted: Collection[str] = ()

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
        words += typed_words(self.option_names, len(self.sources))
        words += self.more
        return shlex.join(["forgetmap", *words]) if all(map(is_typable, words)) else None


def next_commands(sources: Sequence[str], accept: click.Command | None = None) -> dict[str, str]:
    """Return complete commands by their short names, for `print_comparison` and `print_gate`.

    Args:
        sources: BEFORE and each AFTER, as typed.
        accept: the command `gate accept`, if it may follow.
    """
    commands = _after_comparison(sources)
    if accept is not None:
        commands["gate accept"] = NextCommand(accept, sources[-1:], ("--as", "main"))
    lines = {name: command.line(name) for name, command in commands.items()}
    return {name: line for name, line in lines.items() if line is not None}


def _after_comparison(sources: Sequence[str]) -> dict[str, NextCommand]:
    from forgetmap.cli.export import replay, rerun
    from forgetmap.cli.plan import command as plan
    from forgetmap.cli.report import command as report

    # Other commands read neither from Spark nor from the store of baselines.
    engine = click.get_current_context().params.get("engine")
    if engine == "spark" or sources[0].startswith("baseline:"):
        return {}
    commands = {"report": NextCommand(report, sources)}
    if len(sources) == 2:
        replay_options = ("--pool", "POOL", "--out", "FILE")
        commands["plan"] = NextCommand(plan, sources)
        commands["export replay"] = NextCommand(replay, sources, replay_options)
        commands["export rerun"] = NextCommand(rerun, sources, ("--out", "FILE"))
    return commands


def _as_argument(source: str) -> str:
    """Return a path so that it is not mistaken for an option."""
    return f"./{source}" if source.startswith("-") else source


def is_typable(word: str) -> bool:
    """Return whether a word can be printed in backticks, and typed as printed.

    A password in an address is not printed, and without it no command works.
    """
    from forgetmap.sources import is_remote, without_secrets

    is_secret = is_remote(word) and without_secrets(word) != word
    return word.isprintable() and "`" not in word and not is_secret
