"""Groups of commands whose modules are imported on use.

A command is a function of the module of its group. Where it is long, or the group is the root, it
lies in the module of its name (`forgetmap merge sweep` in `cli/merge/sweep.py`) under the name
`command`; then the group knows nothing of it but the line that its help shows.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import click
from click.shell_completion import CompletionItem


class CommandGroup(click.Group):
    """A group that lists its commands in an order of its own and imports them when used.

    Args:
        lines: name of each command and what it does, in the order of the help.
        package: the package of commands that have a module of their own.
        default: the command that is meant where none is named.
    """

    def __init__(
        self,
        *args: Any,
        lines: dict[str, str],
        package: str | None = None,
        default: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.package = package
        self.lines = lines
        self.default = default

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of the help."""
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now if the group does not have it yet."""
        command = super().get_command(ctx, cmd_name)
        if command is not None or cmd_name not in self.lines:
            return command
        module = f"{self.package}.{cmd_name.replace('-', '_')}"
        return cast("click.Command", import_module(module).command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command named first, or else the default with all words."""
        return super().resolve_command(ctx, self._with_default(args))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The same where the first word is an option."""
        is_help = not args or args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if is_help else self._with_default(args))

    def _with_default(self, args: list[str]) -> list[str]:
        return args if self.default is None or args[0] in self.lines else [self.default, *args]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin like this, without importing them."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.lines.get(name)) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines.items()))
