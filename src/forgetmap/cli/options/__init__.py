"""Options that several commands share, one module per subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Command = Callable[..., Any]


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """A command with these options, shown in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def split_names(text: str | None) -> list[str]:
    """The names in a list such as `mmlu:*, piqa:main`."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]
