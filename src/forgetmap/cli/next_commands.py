"""The commands that follow a comparison, with the inputs and options that were typed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import click
from click.core import ParameterSource


def next_commands(sources: Sequence[str]) -> dict[str, str]:
    """Return complete commands by their short names, for `print_comparison` and `print_gate`.

    Args:
        sources: BEFORE and each AFTER, as typed.
    """
    from forgetmap.cli.export import replay, rerun
    from forgetmap.cli.plan import command as plan
    from forgetmap.cli.report import command as report
    from forgetmap.sources import is_remote, without_secrets

    context = click.get_current_context()
    addresses = filter(is_remote, [*sources, context.params.get("noise") or ""])
    if any(without_secrets(address) != address for address in addresses):
        return {}  # a password in an address is not printed, and without it no command works
    targets: dict[str, tuple[click.Command, Sequence[str]]] = {"report": (report, ())}
    if len(sources) == 2:
        targets["plan"] = (plan, ())
        targets["export replay"] = (replay, ("--pool", "POOL", "--out", "FILE"))
        targets["export rerun"] = (rerun, ("--out", "FILE"))
    # Other commands read neither from Spark nor from the store of baselines.
    if context.params.get("engine") == "spark" or sources[0].startswith("baseline:"):
        targets = {}
    commands = {
        "gate accept": shlex.join(["forgetmap", "gate", "accept", sources[-1], "--as", "main"])
    }
    for name, (command, more) in targets.items():
        words = ["forgetmap", *name.split(), *sources, *_typed(context, command), *more]
        commands[name] = shlex.join(words)
    # Commands are printed in backticks; one in a path would end them too early.
    return {name: command for name, command in commands.items() if "`" not in command}


def _typed(context: click.Context, command: click.Command) -> Iterator[str]:
    """Yield the options on the command line that this other command has as well."""
    names = {param.name for param in command.params}
    for option in context.command.params:
        name = option.name or ""
        is_typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if isinstance(option, click.Option) and name in names and is_typed:
            yield from _words(option, context.params[name])


def _words(option: click.Option, value: object) -> Iterator[str]:
    if option.is_flag:
        yield (option.opts if value else option.secondary_opts)[0]
        return
    for each in value if option.multiple and isinstance(value, Sequence) else (value,):
        yield option.opts[0]
        yield _text(each)


def _text(value: object) -> str:
    """Return the value of an option as it is typed."""
    if isinstance(value, Mapping):
        return ",".join(f"{field}={column}" for field, column in value.items())
    if isinstance(value, tuple):
        return ":".join(f"{end:g}" for end in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
