"""Options of commands that compare runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import click
from click.core import ParameterSource

from forgetmap.cli.options import Command, with_options
from forgetmap.cli.options.logs import log_options, table_options
from forgetmap.comparison import (
    CORRECT_AT,
    LEVEL,
    MARGIN,
    MIN_PAIRED,
    STATED_ESTIMATORS,
    TASK_TABLES,
    Rollup,
)
from forgetmap.errors import UsageError
from forgetmap.pairing import PairBy

pair_by_option = click.option(
    "--pair-by",
    type=click.Choice(get_args(PairBy)),
    default="auto",
    show_default=True,
    help="How items are matched. auto: by content if both sides have it, else by id.",
)
min_paired_option = click.option(
    "--min-paired",
    type=float,
    default=MIN_PAIRED,
    show_default=True,
    help="Minimum share of scored items of each side that must also be scored on the other side.",
)
margin_option = click.option(
    "--margin",
    type=float,
    default=MARGIN,
    show_default=True,
    help="Largest acceptable loss, as a share of all items.",
)
noise_floor_option = click.option(
    "--noise-floor",
    type=float,
    help="Share of answers that reruns of a model flip one way at most, if you know it: adds a "
    "limit that holds only if this is true [default: nothing is assumed].",
)
level_option = click.option(
    "--level",
    type=float,
    default=LEVEL,
    show_default=True,
    help="Confidence level of the intervals and the verdict.",
)
_VERDICT_OPTIONS = (margin_option, noise_floor_option, level_option)
VERDICT_NAMES = ("margin", "noise_floor", "level")
"""Options of the verdict; names of options of `compare`."""


class EstimatorChoice(click.Choice[str]):
    """Built-in estimators, and by name also those of installed packages.

    The latter are not listed in the help, because finding them would double its time.
    """

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name if it is an estimator."""
        from forgetmap.comparison import estimator_names

        if value not in self.choices and value in estimator_names():
            return value
        return super().convert(value, param, ctx)


def comparison_options(command: Command) -> Command:
    """Add options for reading, pairing and comparing runs, named as in `compare`."""
    chain = click.option(
        "--chain",
        is_flag=True,
        help="The runs are successive checkpoints [default: each AFTER is compared with BEFORE].",
    )
    metric, *others = _rules()
    return with_options(
        command, [chain, metric, table_options, log_options, *others, confirm_option]
    )


def rule_options(command: Command) -> Command:
    """Add options for pairing and comparing runs, named as in `compare`."""
    return with_options(command, _rules())


def result_options(command: Command) -> Command:
    """Add the options of `rule_options` except the minimum paired share and the verdict's."""
    return with_options(command, [_metric_option, *_further_rules()])


def verdict_options(command: Command) -> Command:
    """Add options of the verdict."""
    return with_options(command, _VERDICT_OPTIONS)


def refuse_verdict_options(result: str | Path) -> None:
    """Refuse options of the verdict if the result already has verdicts.

    Raises:
        UsageError: such an option was given.
    """
    context = click.get_current_context()
    for name in VERDICT_NAMES:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option} does not change the verdicts saved in {result}",
                hint=f"give BEFORE and AFTER, or repeat `compare --out` with {option}.",
            )


def by_option(text: str, default: str | None = "category") -> Callable[[Command], Command]:
    """Return the option for groups; its help states the purpose."""
    return click.option(
        "--by",
        type=click.Choice(["task", "category", "tag"]),
        default=default,
        show_default=default is not None,
        help=text,
    )


table_option = by_option(
    "Show a table with a row for each task, category or tag; tasks where no item has a category "
    "[default: no table].",
    default=None,
)
details_option = click.option(
    "--details",
    is_flag=True,
    help="Show the table, every warning and how we know [default: the first screen].",
)
_metric_option = click.option(
    "--metric",
    help=("Metric to compare, as METRIC or METRIC/SCORER [default: the main metric of each task]."),
)
confirm_option = click.option(
    "--confirm",
    type=click.Path(),
    nargs=2,
    metavar="BEFORE AFTER",
    help="Fresh answers of both models to the items that flipped, asked as `forgetmap confirm` "
    "says [default: none].",
)
selected_option = click.option(
    "--selected/--not-selected",
    "selected",
    default=None,
    help="Whether answers of BEFORE helped to choose the items [default: looks for signs of it].",
)
noise_option = click.option(
    "--noise",
    type=click.Path(),
    metavar="RUN",
    help="Another run of BEFORE: a repeat of its answers [default: none].",
)


def _rules() -> list[Callable[[Command], Command]]:
    return [_metric_option, min_paired_option, *_VERDICT_OPTIONS, *_further_rules()]


def _further_rules() -> list[Callable[[Command], Command]]:
    return [
        click.option(
            "--correct-at",
            type=float,
            default=CORRECT_AT,
            show_default=True,
            help="Minimum score that counts as right.",
        ),
        pair_by_option,
        click.option(
            "--estimator",
            type=EstimatorChoice(STATED_ESTIMATORS),
            default="auto",
            show_default=True,
            help="Adds a limit that holds only if guesses are blind. auto assumes nothing.",
        ),
        selected_option,
        click.option(
            "--look",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="Which look at these items this is; later looks are stricter.",
        ),
        click.option(
            "--chosen-among",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="Number of checkpoints among which AFTER was chosen by these items.",
        ),
        noise_option,
        click.option(
            "--rollup",
            type=click.Choice(get_args(Rollup)),
            default="default",
            show_default=True,
            help="How to average tasks. post-forget adds the averages of Harmon et al. (2026).",
        ),
        click.option(
            "--task-table",
            type=click.Choice(TASK_TABLES),
            help=(
                "Table of Harmon et al. (2026) with the number of options and the category of each "
                "task, used if the data do not have them: as used for its averages (as-run), as in "
                "its code (as-released), or corrected [default: none; with --rollup post-forget: "
                "as-run]."
            ),
        ),
    ]
