"""The options that were typed, as words to type again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import click
from click.core import ParameterSource


def typed_words(names: Collection[str], places: Sequence[int] | None = None) -> Iterator[str]:
    """Yield the options of these names that were typed, with their values.

    Args:
        names: names of the options.
        places: which of the typed sources the command that repeats them has; None for all.
    """
    params = click.get_current_context().params
    for option in typed_options():
        if option.name in names:
            yield from _option_words(option, params[option.name], places)


def typed_options() -> Iterator[click.Option]:
    """Yield the options of the current command that were typed."""
    context = click.get_current_context()
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if isinstance(param, click.Option) and source is ParameterSource.COMMANDLINE:
            yield param


def _option_words(
    option: click.Option, value: object, places: Sequence[int] | None
) -> Iterator[str]:
    if option.is_flag:
        yield (option.opts if value else option.secondary_opts)[0]
        return
    if option.nargs > 1 and isinstance(value, Sequence):
        yield option.opts[0]
        yield from map(_text, value)
        return
    values = list(value) if option.multiple and isinstance(value, Sequence) else [value]
    # Of an option for each source, such as --run, a command has those of its sources.
    if places is not None and len(values) > 1:
        values = [values[place] for place in places]
    for each in values:
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
