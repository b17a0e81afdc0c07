"""The options that were typed, as words to type again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import click
from click.core import ParameterSource


def typed_words(names: Collection[str], sources: int = 2) -> Iterator[str]:
    """Yield the options of these names that were typed, with their values.

    Args:
        names: names of the options.
        sources: number of sources of the command that repeats them.
    """
    params = click.get_current_context().params
    for option in typed_options():
        if option.name in names:
            yield from _option_words(option, params[option.name], sources)


def typed_options() -> Iterator[click.Option]:
    """Yield the options of the current command that were typed."""
    context = click.get_current_context()
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if isinstance(param, click.Option) and source is ParameterSource.COMMANDLINE:
            yield param


def _option_words(option: click.Option, value: object, sources: int) -> Iterator[str]:
    if option.is_flag:
        yield (option.opts if value else option.secondary_opts)[0]
        return
    values = list(value) if option.multiple and isinstance(value, Sequence) else [value]
    # Of an option for each source, such as --run, a single source has the last one.
    for each in values[-1:] if sources == 1 else values:
        yield option.opts[0]
        yield _text(each)


def _text(value: object) -> str:
    """Return the value of an option as it is typed."""
    if isinstance(value, Mapping):
        return ",".join(f"{field}={column}" for field, column in value.items())
    if isinstance(value, tuple):
        return ":".join(map(_text, value))
    if isinstance(value, float):
        return short if float(short := f"{value:g}") == value else repr(value)
    return str(value)
