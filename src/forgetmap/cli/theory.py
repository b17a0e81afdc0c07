"""`forgetmap theory`: the claims, simulations, advice and the interactive page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from forgetmap.cli.options import json_option
from forgetmap.cli.theory_advice import advise
from forgetmap.cli.theory_lab import page, simulate
from forgetmap.cli.theory_limits import print_limits
from forgetmap.text import Sheet, print_sheet

if TYPE_CHECKING:
    from forgetmap.theory import Outcome

EXAMPLES = """\b
Examples:
  forgetmap theory verify
  forgetmap theory simulate --method sft --separation 3
  forgetmap theory page --out page.html
  forgetmap theory advise replay --keep 0.3
"""
VERIFY_EXAMPLES = """\b
Examples:
  forgetmap theory verify
  forgetmap theory verify F1 R3 --controls
  forgetmap theory verify --controls --json > claims.json
"""


@click.group(epilog=EXAMPLES)
def theory() -> None:
    """Why post-training forgets: a two-mode model of it, verified by number."""


@theory.command(epilog=VERIFY_EXAMPLES)
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
    help="How to print.",
)
@click.option(
    "--processes", type=click.IntRange(1), default=2, show_default=True, help="How many at once."
)
@json_option
def verify(
    ids: tuple[str, ...], *, controls: bool, form: str, processes: int, as_json: bool
) -> None:
    """Try the claims of the theory; exit code 1 where one fails.

    Without ID all of them, in a few minutes. With --controls a claim must also fail once its
    formula is changed by about 5 %: one that cannot fail is worth nothing.
    """
    from forgetmap.theory import verification  # heavy

    outcomes = _try(ids, controls=controls, processes=processes)
    if as_json:
        click.echo(verification.as_json(outcomes))
    elif form == "markdown":
        click.echo(verification.as_markdown(outcomes))
    else:
        _print_outcomes(outcomes)
    if not all(verification.good(each) for each in outcomes):
        sys.exit(1)


def _try(ids: tuple[str, ...], *, controls: bool, processes: int) -> list[Outcome]:
    from forgetmap.theory import (
        find_claims,
        try_claims,
    )

    console = Console(stderr=True)
    wanted = [each.id for each in find_claims(ids)]
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} claims"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    found = {}
    with bar:
        task = bar.add_task("trying", total=len(wanted))
        for outcome in try_claims(ids, controls=controls, processes=processes):
            found[outcome.id] = outcome
            bar.update(task, advance=1, description=f"{outcome.id} done")
    return [found[each] for each in wanted]


def _print_outcomes(outcomes: list[Outcome]) -> None:
    from forgetmap.theory import TOLD, good, told

    rows = [(each.id, "PASS" if good(each) else "FAIL", *told(each)) for each in outcomes]
    console = Console()
    print_sheet(console, Sheet(("claim", "", *TOLD), rows, spare=("control", "checks")))
    bad = [each.id for each in outcomes if not good(each)]
    total = f"{len(outcomes) - len(bad)} of {len(outcomes)} claims hold"
    console.print(Text(f"\n{total}{': not ' + ', '.join(bad) if bad else ''}.", style="bold"))
    print_limits(console)


for _command in (simulate, page, advise):
    theory.add_command(_command)
