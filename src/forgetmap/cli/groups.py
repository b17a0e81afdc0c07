"""Groups of commands whose modules are imported on use.

A command is a function in the module of its group. Long commands, and those of the root group, have
a module with their name (`forgetmap merge sweep` in `cli/merge/sweep.py`), in which they are called
`command`; then the group has only the line for its help.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

from forgetmap._plugins import did_you_mean


class CommandGroup(click.Group):
    """A group that lists its commands in its own order and imports them on use.

    Args:
        lines: description of each command by name, in the order of the help.
        package: package of commands that have their own module.
        default: command if none is given.
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
        """Return the names in the order of the help."""
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name; import it on first use."""
        command = super().get_command(ctx, cmd_name)
        if command is not None or cmd_name not in self.lines:
            return command
        module = f"{self.package}.{cmd_name.replace('-', '_')}"
        return cast("click.Command", import_module(module).command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the first word as the command, or else the default command with all words."""
        try:
            return super().resolve_command(ctx, self._with_default(args))
        except click.UsageError as error:
            hint = did_you_mean(args[0], self.lines)
            if not hint:
                raise
            message = f"{error.message} {hint[0].upper()}{hint[1:].rstrip()}"
            raise click.UsageError(message, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke a command; show an option whole if some of its values are missing."""
        try:
            return super().invoke(ctx)
        except click.BadOptionUsage as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            for option in () if command is None else command.params:
                form = f"{error.option_name} {option.metavar}"
                is_short = option.nargs > 1 and error.option_name in option.opts
                if is_short and form not in error.message:
                    message = f"{error.message} Give it as {form}."
                    raise click.BadOptionUsage(error.option_name, message, error.ctx) from None
            raise

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command if the first word is an option."""
        is_help = not args or args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if is_help else self._with_default(args))

    def _with_default(self, args: list[str]) -> list[str]:
        return args if self.default is None or args[0] in self.lines else [self.default, *args]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin like this, without importing them."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.lines.get(name)) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines.items()))
