"""Options of commands that compare runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import click

from forgetmap.cli.options import Command, table_options, with_options
from forgetmap.cli.reading import log_options
from forgetmap.comparison import NAMES as TASK_TABLES
from forgetmap.comparison import Estimator, Rollup, Rule
from forgetmap.errors import UsageError
from forgetmap.pairing import PairBy

pair_by_option = click.option(
    "--pair-by",
    type=click.Choice(get_args(PairBy)),
    default="auto",
    show_default=True,
    help="What makes two items the same: content where both sides have it, else id.",
)


def comparison_options(command: Command) -> Command:
    """How runs are read, paired and judged; the names are those of `compare`."""
    chain = click.option(
        "--chain", is_flag=True, help="The runs are checkpoints, one trained from the other."
    )
    metric, *rest = _rules()
    return with_options(command, [chain, metric, table_options, log_options, *rest])


def rule_options(command: Command) -> Command:
    """How any two runs are paired and judged; the names are those of `compare`."""
    return with_options(command, _rules())


def spare_inputs(out: Path, inputs: Sequence[str]) -> None:
    """Refuse to write where the results come from: --overwrite would replace them."""
    for path in map(Path, inputs):
        if path.resolve().is_relative_to(out.resolve()):
            raise UsageError(f"--out {out} holds {path}", hint="choose another folder for --out.")


def _rules() -> list[Callable[[Command], Command]]:
    return [
        click.option("--metric", help="METRIC or METRIC/SCORER, where there are several."),
        click.option(
            "--min-paired",
            type=float,
            default=Rule().min_paired,
            show_default=True,
            help="Refuse if a smaller share of the smaller side pairs.",
        ),
        click.option(
            "--correct-at",
            type=float,
            default=Rule().correct_at,
            show_default=True,
            help="The score from which on an answer counts as right.",
        ),
        pair_by_option,
        click.option(
            "--estimator",
            type=click.Choice(get_args(Estimator)),
            default="auto",
            show_default=True,
            help="What the headline is made of; auto follows from what the data allow.",
        ),
        click.option(
            "--noise",
            type=click.Path(),
            metavar="RUN",
            help="A repeat of BEFORE: its disagreement with itself is taken out.",
        ),
        click.option(
            "--rollup",
            type=click.Choice(get_args(Rollup)),
            default="default",
            show_default=True,
            help="post-forget adds the averages of Harmon et al. (2026), for comparison.",
        ),
        click.option(
            "--task-table",
            type=click.Choice(TASK_TABLES),
            help="Options and categories of the tasks of that study, where the data name none.",
        ),
    ]
