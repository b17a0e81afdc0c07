"""`forgetmap plan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.next_commands import next_commands
from forgetmap.cli.options import json_option
from forgetmap.cli.options.compare import (
    by_option,
    level_option,
    margin_option,
    min_paired_option,
    refuse_verdict_options,
    result_options,
)
from forgetmap.cli.options.logs import log_options, table_options
from forgetmap.comparison import REPEAT_COUNTS, PlanInput
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from forgetmap.comparison import AdviceResult, ComparisonResult, PlanResult

EXAMPLES = """\b
Examples:
  forgetmap plan --loss 0.02
  forgetmap plan --loss 0.03 --gain 0.02 --rerun-noise 0.08 --repeats 1 --repeats 4
  forgetmap plan runs/base runs/tuned --loss 0.02
  forgetmap plan result/comparison.json --by task
"""


_OF_PLAN = frozenset({"loss", "gain", "noise_share", "repeats", "by", "as_json"})
"""Options that are not those of `compare`."""


@click.command("plan", epilog=EXAMPLES)
@click.argument("runs", nargs=-1, type=click.Path(), metavar="[COMPARISON | BEFORE AFTER]")
@click.option(
    "--loss",
    type=float,
    default=PlanInput().loss,
    show_default=True,
    help="Loss to detect, as a share of all items.",
)
@click.option(
    "--gain",
    type=float,
    default=PlanInput().gain,
    show_default=True,
    help="What is gained at the same time, as a share of all items: it hides the loss.",
)
@click.option(
    "--rerun-noise",
    "noise_share",
    type=float,
    default=PlanInput().noise,
    show_default=True,
    help="Share of answers that a rerun of a model flips one way: about 0.015 for greedy "
    "answers, 0.08 for answers sampled at T = 0.7.",
)
@margin_option
@level_option
@click.option(
    "--repeats",
    type=click.IntRange(1),
    multiple=True,
    help=f"Answers per item and model. Repeatable [default: {', '.join(map(str, REPEAT_COUNTS))}].",
)
@by_option("Groups to decide, with runs.")
@min_paired_option
@result_options
@table_options
@log_options
@json_option
def command(runs: tuple[str, ...], **options: Any) -> None:
    """Calculate how many items and repeats detect a loss.

    Without runs: how many items to evaluate to detect the loss, or to show that any loss is within
    the margin. With BEFORE and AFTER, or the comparison.json written by `compare --out`: how many
    more items or repeats would decide the undecided groups, and what to do about the others.
    """
    from rich.console import Console

    from forgetmap.comparison import PlanResult, advise, make_plan

    result: PlanResult | AdviceResult
    if runs:
        settings = {name: options[name] for name in options.keys() - _OF_PLAN}
        settings = {name: value for name, value in settings.items() if value is not None}
        comparison = _read(runs, **settings)
        commands = next_commands(runs) if len(runs) == 2 and not options["as_json"] else {}
        result = advise(comparison, by=options["by"], loss=options["loss"], commands=commands)
    else:
        names = ("loss", "gain", "margin", "level")
        wish = PlanInput(**{name: options[name] for name in names}, noise=options["noise_share"])
        result = make_plan(wish, options["repeats"] or REPEAT_COUNTS)
    if options["as_json"]:
        click.echo(result.to_json())
    elif isinstance(result, PlanResult):
        _print_plan(Console(), result)
    else:
        _print_advice(Console(), result)


def _read(runs: Sequence[str], **options: Any) -> ComparisonResult:
    from rich.console import Console

    from forgetmap.comparison import Comparison, compare

    if len(runs) == 1:
        refuse_verdict_options(runs[0])
        return _read_json(Path(runs[0]))
    if len(runs) > 2:
        raise UsageError(
            f"expected one or two arguments, not {len(runs)}",
            hint="give BEFORE and AFTER, or one comparison.json.",
        )
    with Console(stderr=True).status("Pairing items ..."):
        comparison = compare(*runs, **options)
    assert isinstance(comparison, Comparison)  # noqa: S101  # of two runs
    return comparison.result


def _read_json(path: Path) -> ComparisonResult:
    from pydantic import ValidationError

    from forgetmap.comparison import ComparisonResult

    path = path / "comparison.json" if path.is_dir() else path
    try:
        return ComparisonResult.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}",
            hint="give BEFORE and AFTER, or a folder written by `compare --out`.",
        ) from None
    except ValidationError:
        raise UsageError(
            f"{path} is not a comparison of two runs",
            hint="create one with `forgetmap compare BEFORE AFTER --out FOLDER`.",
        ) from None


def _print_plan(console: Console, plan: PlanResult) -> None:
    from rich.text import Text

    from forgetmap.text import Sheet, percent, print_sheet

    loss, margin = (f"{100 * share:g}%" for share in (plan.loss, plan.margin))
    title = (
        f"Number of items for a verdict with 80 % probability ({percent(plan.level, 0)} intervals)"
    )
    console.print(Text(f"{title}:", style="bold"))
    console.print()
    rows = [
        (f"{row.repeats}", _count(row.items), _count(row.answers), _count(row.items_no_net_loss),
         _count(row.items_no_loss))
        for row in plan.rows
    ]  # fmt: skip
    heads = ("answers per item", f"{loss} lost", "answers", "accuracy held", "no loss")
    print_sheet(console, Sheet(heads, rows))
    console.print()
    note = (
        f"{loss} lost: items needed to prove a loss of {loss} of all items while "
        f"{100 * plan.gain:g}% are gained; answers: of each model. accuracy held, no loss: items "
        f"needed to show that accuracy fell, or that anything was lost, by less than the margin "
        f"of {margin} if nothing was lost. Reruns flip {percent(plan.noise)} of the answers one "
        "way. A dash: no number of items is enough. If flips are confirmed, fewer answers do "
        "(`forgetmap confirm`)."
    )
    console.print(Text(note, style="dim"))


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _print_advice(console: Console, result: AdviceResult) -> None:
    from rich.text import Text

    from forgetmap.text import counted, printable

    if result.open:
        count = f"{counted(len(result.open), 'group')} open, {result.decided:,} decided."
    else:
        count = f"All {counted(result.decided, 'group')} decided."
    console.print(Text(count, style="bold"))
    for group in result.open:
        console.print(Text(f"\n{printable(group.name)}", style="bold"))
        console.print(Text(f"  {printable(group.words)}"))
        console.print(Text(f"  -> {group.advice}", style="green"))
    if result.next:
        console.print(Text("\nNext:", style="bold"))
    for step in result.next:
        console.print(Text(f"  -> {step}", style="green"))
