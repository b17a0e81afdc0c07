"""`forgetmap completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

EXAMPLES = """\b
Examples:
  forgetmap completion bash >> ~/.bashrc
  forgetmap completion zsh >> ~/.zshrc
  forgetmap completion fish > ~/.config/fish/completions/forgetmap.fish
"""


@click.command("completion", epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    script = get_completion_class(shell)
    assert script is not None  # noqa: S101  # click has all three
    click.echo(script(ctx.find_root().command, {}, "forgetmap", "_FORGETMAP_COMPLETE").source())
