"""`forgetmap theory`: the claims, simulations, advice and the interactive page."""

from __future__ import annotations

import click

from forgetmap.cli.groups import LazyGroup

COMMANDS = {
    "verify": "Try the claims of the theory; exit code 1 where one fails.",
    "simulate": "Follow a way of post-training in the two-mode model.",
    "page": "Write an interactive page that follows the flow while you move its parameters.",
    "advise": "What follows from the theory for a training run, with its assumptions.",
}
EXAMPLES = """\b
Examples:
  forgetmap theory verify
  forgetmap theory simulate --method sft --separation 3
  forgetmap theory page --out page.html
  forgetmap theory advise replay --keep 0.3
"""


@click.group("theory", cls=LazyGroup, package=__name__, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Why post-training forgets: a two-mode model of it, verified by number."""
