"""`forgetmap plan`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from forgetmap.comparison import (
    NOISE_FLOOR,
    OPTION_COUNTS,
    REPEAT_COUNTS,
    SAMPLED_NOISE,
    Wish,
)
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from forgetmap.comparison import AdviceResult, ComparisonResult, PlanResult

EXAMPLES = """\b
Examples:
  forgetmap plan --loss 0.02 --accuracy 0.6
  forgetmap plan --loss 0.01 --margin 0.01 --k 4 --k open --noise-floor 0.002
  forgetmap plan runs/base runs/tuned --loss 0.02
  forgetmap plan result/comparison.json --by task
"""


_OF_PLAN = frozenset({"loss", "accuracy", "ks", "repeats", "by", "as_json"})
"""Options that are not those of `compare`."""


def _list(numbers: Sequence[float]) -> str:
    return ", ".join("open" if number == math.inf else f"{number:g}" for number in numbers)


class OptionsType(click.ParamType[float]):
    """A number of options, or `open`."""

    name = "NUMBER|open"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number."""
        if value == "open" or isinstance(value, float):
            return math.inf if value == "open" else value
        try:
            return float(int(value))
        except ValueError:
            self.fail(f"{value!r} is neither a number nor `open`", param, ctx)


@click.command("plan", epilog=EXAMPLES)
@click.argument("runs", nargs=-1, type=click.Path(), metavar="[COMPARISON | BEFORE AFTER]")
@click.option(
    "--loss",
    type=float,
    default=Wish().loss,
    show_default=True,
    help="Loss to detect, as a share of all items.",
)
@click.option(
    "--accuracy",
    type=float,
    default=Wish().accuracy,
    show_default=True,
    help="Expected accuracy of the model before training.",
)
@margin_option
@click.option(
    "--noise-floor",
    type=float,
    help=(
        "Share of answers that flip one way between two runs of the same model [default: "
        f"{NOISE_FLOOR:g} for one greedy run, {SAMPLED_NOISE:g} for sampled answers]."
    ),
)
@level_option
@click.option(
    "--k",
    "ks",
    type=OptionsType(),
    multiple=True,
    help=f"Number of options per item, or `open`. Repeatable [default: {_list(OPTION_COUNTS)}].",
)
@click.option(
    "--repeats",
    type=click.IntRange(2),
    multiple=True,
    help=f"Answers per item and model. Repeatable [default: {_list(REPEAT_COUNTS)}].",
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
        result = advise(comparison, by=options["by"], loss=options["loss"])
    else:
        result = make_plan(
            _wish(options), options["ks"] or OPTION_COUNTS, options["repeats"] or REPEAT_COUNTS
        )
    if options["as_json"]:
        click.echo(result.to_json())
    elif isinstance(result, PlanResult):
        _print_plan(Console(), result)
    else:
        _print_advice(Console(), result)


def _wish(options: dict[str, Any]) -> Wish:
    floor = options["noise_floor"]
    noise = {} if floor is None else {"noise_floor": floor, "sampled_noise": floor}
    names = ("loss", "accuracy", "margin", "level")
    return Wish(**{name: options[name] for name in names}, **noise)


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
        return ComparisonResult.model_validate_json(path.read_text(encoding="utf-8"))
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

    console.print(
        Text(
            f"Number of items for a verdict with 80 % probability ({percent(plan.level, 0)} "
            f"intervals), at an accuracy of {percent(plan.accuracy)}:",
            style="bold",
        )
    )
    console.print()
    rows = [
        (_kind(row.k, row.repeats), f"{row.repeats}", row.estimator, _count(row.items),
         _count(row.items_no_loss), _count(row.answers))
        for row in plan.rows
    ]  # fmt: skip
    loss, margin = (f"{100 * share:g}%" for share in (plan.loss, plan.margin))
    heads = ("kind of item", "repeats", "estimator", f"{loss} lost", "no loss", "answers")
    print_sheet(console, Sheet(heads, rows))
    console.print()
    console.print(Text(_note(plan, loss, margin), style="dim"))


def _note(plan: PlanResult, loss: str, margin: str) -> str:
    from forgetmap.text import percent

    return (
        f"{loss} lost: items needed to detect a loss of {loss} of all items. no loss: items "
        f"needed to show that any loss is within the margin of {margin}, if nothing was lost and "
        "noise flips nothing. answers: answers of each model needed to detect the loss. repeats "
        "1: one greedy run of each model with recorded choices, minus a noise floor of "
        f"{percent(plan.noise_floor)}; two options: guesses are redrawn. More repeats: sampled "
        f"answers of a model whose runs flip {percent(plan.churn)} one way, all of it on items "
        "that are right half of the time (worst case)."
    )


def _kind(k: int | None, repeats: int) -> str:
    if repeats > 1:
        return "any, sampled"
    return "open-ended" if k is None else f"{k} options"


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
