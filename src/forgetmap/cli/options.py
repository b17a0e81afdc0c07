"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

Command = Callable[..., Any]


class MapType(click.ParamType[dict[str, str]]):
    """`item=question_id,score=correct` as a mapping."""

    name = "FIELD=COLUMN,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        """Read the mapping."""
        if isinstance(value, dict):
            return value
        pairs = {}
        for part in str(value).split(","):
            field, equals, column = part.partition("=")
            if not (field.strip() and equals and column.strip()):
                self.fail(f"{part!r} is not FIELD=COLUMN, such as item=question_id", param, ctx)
            pairs[field.strip()] = column.strip()
        return pairs


class GroupWithDefault(click.Group):
    """A group whose command may be left out: then it is the one named."""

    def __init__(self, *args: Any, default: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.default = default

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command named first, or else the default with all words."""
        named = args[0] in self.commands
        return super().resolve_command(ctx, args if named else [self.default, *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The same where the first word is an option."""
        known = {"-h", "--help", *self.commands}
        named = not args or args[0] in known
        return super().parse_args(ctx, args if named else [self.default, *args])


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """A command with these options, shown in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def table_options(command: Command) -> Command:
    """How to read a table whose columns are named otherwise."""
    options = [
        click.option(
            "--map",
            "column_map",
            type=MapType(),
            default={},
            help="Names of columns, such as item=question_id,score=correct.",
        ),
        click.option("--task", help="Name of the task, for a table without a task column."),
    ]
    return with_options(command, options)


def by_option(help: str) -> Callable[[Command], Command]:  # noqa: A002  # as click calls it
    """Which groups; what for is said in the help."""
    return click.option(
        "--by",
        type=click.Choice(["task", "category", "tag"]),
        default="category",
        show_default=True,
        help=help,
    )


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace an earlier result of the same name."
)
