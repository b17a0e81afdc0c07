"""`forgetmap theory verify`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from forgetmap.cli.options.output import json_option
from forgetmap.cli.progress import JobProgress

if TYPE_CHECKING:
    from forgetmap.theory import ClaimOutcome

EXAMPLES = """\b
Examples:
  forgetmap theory verify
  forgetmap theory verify F1 R3 --controls
  forgetmap theory verify --controls --json > claims.json
"""


@click.command("verify", epilog=EXAMPLES)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--controls", is_flag=True, help="Also change each formula by 5 %: it must be noticed."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown"]),
    default="text",
    show_default=True,
    help="Format of the table that is printed.",
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Processes that try claims.",
)
@json_option
def command(
    ids: tuple[str, ...], *, controls: bool, form: str, processes: int, as_json: bool
) -> None:
    """Try the claims of the theory; exit code 1 where one fails.

    Without ID all of them, in a few minutes. With --controls a claim must also fail once its
    formula is changed by about 5 %: one that cannot fail is worth nothing.
    """
    from forgetmap.theory import is_verified, outcomes_json, outcomes_markdown

    outcomes = _verify_claims(ids, controls=controls, processes=processes)
    if as_json:
        click.echo(outcomes_json(outcomes))
    elif form == "markdown":
        click.echo(outcomes_markdown(outcomes))
    else:
        _print_outcomes(outcomes)
    if not all(map(is_verified, outcomes)):
        sys.exit(1)


def _verify_claims(ids: tuple[str, ...], *, controls: bool, processes: int) -> list[ClaimOutcome]:
    from forgetmap.theory import find_claims, verify_claims

    order = [claim.id for claim in find_claims(ids)]
    outcomes: dict[str, ClaimOutcome] = {}
    with JobProgress() as progress:
        for outcome in verify_claims(ids, controls=controls, processes=processes):
            outcomes[outcome.id] = outcome
            progress.show_items("theory", len(outcomes), len(order), "claims")
    return [outcomes[claim] for claim in order]


def _print_outcomes(outcomes: list[ClaimOutcome]) -> None:
    from rich.console import Console

    from forgetmap.report import tell_outcomes
    from forgetmap.text import print_blocks

    print_blocks(Console(), tell_outcomes(outcomes))
