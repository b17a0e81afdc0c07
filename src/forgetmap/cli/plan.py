"""`forgetmap plan`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from forgetmap.cli.options import by_option, json_option, table_options
from forgetmap.comparison import (
    KS,
    REPEATS,
    AdviceResult,
    Comparison,
    ComparisonResult,
    PlanResult,
    Wish,
    advise,
    compare,
    make_plan,
)
from forgetmap.errors import UsageError
from forgetmap.text import Sheet, counted, percent, print_sheet, printable

EXAMPLES = """\b
Examples:
  forgetmap plan --loss 0.02 --accuracy 0.6
  forgetmap plan --loss 0.01 --k 4 --k open --churn 0.08
  forgetmap plan runs/base runs/tuned --loss 0.02
  forgetmap plan result/comparison.json --by task
"""


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


@click.command(epilog=EXAMPLES)
@click.argument("runs", nargs=-1, type=click.Path(), metavar="[COMPARISON | BEFORE AFTER]")
@click.option(
    "--loss",
    type=float,
    default=Wish().loss,
    show_default=True,
    help="The loss to be found, as a share of all items.",
)
@click.option(
    "--accuracy",
    type=float,
    default=Wish().accuracy,
    show_default=True,
    help="Of the model before, expected.",
)
@click.option(
    "--churn",
    type=float,
    default=Wish().churn,
    show_default=True,
    help="How often two runs of one sampled model flip one way, expected.",
)
@click.option(
    "--k",
    "ks",
    type=OptionsType(),
    multiple=True,
    help="Number of options, or `open`; may be given several times.",
)
@click.option(
    "--repeats",
    type=click.IntRange(2),
    multiple=True,
    help="Answers per item and model; may be given several times.",
)
@by_option("After a run: which groups to decide.")
@table_options
@json_option
def plan(runs: tuple[str, ...], **options: Any) -> None:
    """How many items and repeats detect a loss?

    Without runs: what to evaluate. With a comparison (BEFORE and AFTER, or the comparison.json that
    `compare --out` wrote): what more would decide the groups of which nothing can be said yet.
    """
    loss = options["loss"]
    found: PlanResult | AdviceResult
    if runs:
        compared = _read(runs, column_map=options["column_map"], task=options["task"])
        found = advise(compared, by=options["by"], loss=loss)
    else:
        wish = Wish(loss, options["accuracy"], options["churn"])
        found = make_plan(wish, options["ks"] or KS, options["repeats"] or REPEATS)
    if options["as_json"]:
        click.echo(found.to_json())
    elif isinstance(found, PlanResult):
        _print_plan(Console(), found)
    else:
        _print_advice(Console(), found)


def _read(runs: Sequence[str], **options: Any) -> ComparisonResult:
    if len(runs) == 1:
        return _read_json(Path(runs[0]))
    if len(runs) > 2:
        raise UsageError(
            f"{len(runs)} runs were given", hint="give BEFORE and AFTER, or one comparison.json."
        )
    with Console(stderr=True).status("Pairing and counting ..."):
        comparison = compare(*runs, **options)
    assert isinstance(comparison, Comparison)  # noqa: S101  # of two runs
    return comparison.result


def _read_json(path: Path) -> ComparisonResult:
    path = path / "comparison.json" if path.is_dir() else path
    try:
        return ComparisonResult.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}",
            hint="give BEFORE and AFTER, or a folder that `compare --out` wrote.",
        ) from None
    except ValidationError:
        raise UsageError(
            f"{path} is no comparison of two runs",
            hint="write one with `forgetmap compare BEFORE AFTER --out FOLDER`.",
        ) from None


def _print_plan(console: Console, found: PlanResult) -> None:
    console.print(
        Text(
            f"To find a loss of {percent(found.loss)} of all items four times in five "
            f"(one-sided 5%), from an accuracy of {percent(found.accuracy)}:",
            style="bold",
        )
    )
    console.print()
    rows = [
        (_kind(row.k, row.repeats), f"{row.repeats}", row.estimator, _count(row.items),
         _count(row.answers))
        for row in found.rows
    ]  # fmt: skip
    heads = ("kind of items", "repeats", "estimator", "items", "answers per model")
    print_sheet(console, Sheet(heads, rows))
    console.print()
    said = (
        "repeats 1: one greedy run of each model, with the chosen options recorded. More: sampled "
        f"answers of a model of which two runs flip {percent(found.churn)} one way, all of it on "
        "items that are right half of the time, which is the worst case."
    )
    console.print(Text(said, style="dim"))


def _kind(k: int | None, repeats: int) -> str:
    if repeats > 1:
        return "any, sampled"
    return "open-ended" if k is None else f"{k} options"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _print_advice(console: Console, found: AdviceResult) -> None:
    if not found.open:
        console.print(Text(f"Nothing is open: all {found.decided:,} groups are decided."))
        return
    said = f"{counted(len(found.open), 'group')} open, {found.decided:,} decided."
    console.print(Text(said, style="bold"))
    for each in found.open:
        console.print(Text(f"\n{printable(each.name)}", style="bold"))
        console.print(Text(f"  {printable(each.words)}"))
        console.print(Text(f"  -> {each.advice}", style="green"))
