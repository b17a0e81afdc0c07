"""`forgetmap study run`: the cost estimate, or the evaluation of all models with progress."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options.evaluate import model_load_kwargs
from forgetmap.cli.progress import StudyProgress, stoppable
from forgetmap.errors import InputError
from forgetmap.text import counted

if TYPE_CHECKING:
    from forgetmap.study import BillRates, Study, StudyRuns

EXIT_FAILED = 2


def dry_run(study: Study, out: Path, only: Sequence[str], options: dict[str, Any]) -> None:
    """Print the estimated cost of the runs."""
    from rich.console import Console

    from forgetmap.study import plan_runs, tell_bill
    from forgetmap.text import print_blocks

    rates = _rates(study, out, options)
    print_blocks(Console(), tell_bill(study, plan_runs(study, out, only), rates))


def evaluate_study(study: Study, out: Path, only: Sequence[str], options: dict[str, Any]) -> int:
    """Evaluate all models without a run, and print the outcome.

    Returns:
        The exit code.
    """
    from forgetmap.study import RunLimits, find_servers, plan_runs, run_study

    servers = find_servers(study, options["servers"])
    plans = plan_runs(study, out, only, servers=servers)
    done = sum(plan.state != "missing" for plan in plans)
    limits = RunLimits(
        options["max_items"],
        options["max_tokens"],
        options["max_gpu_hours"],
        _rates(study, out, options),
    )
    with stoppable(), StudyProgress(len(plans), done) as progress:
        runs = run_study(
            study,
            out,
            only=only,
            parallel=options["parallel"],
            servers=servers,
            limits=limits,
            data_root=options["data_root"],
            keep_weights=options["keep_weights"],
            threads=options["threads"],
            on_progress=progress.show_answers,
            on_update=progress.show_update,
            # Threads are for the processes that load models, not for this one.
            **model_load_kwargs({**options, "threads": None}),
        )
    _print_result(study, out, runs)
    return EXIT_FAILED if runs.failed else 0


def _rates(study: Study, out: Path, options: dict[str, Any]) -> BillRates:
    from forgetmap.study import make_rates, plan_runs

    return make_rates(
        study,
        plan_runs(study, out),
        out,
        gpu=options["gpu"],
        tokens_per_second=options["tokens_per_second"],
    )


def _print_result(study: Study, out: Path, runs: StudyRuns) -> None:
    from forgetmap.study import model_line

    for name, error in runs.failed.items():
        place = f" ({study.origin}, line {model_line(study, name)})"
        has_place = isinstance(error, InputError) and error.file == study.origin
        click.echo(f"{name}{'' if has_place else place} failed: {error}", err=True)
    total = len(runs.done) + len(runs.failed) + len(runs.left)
    again = shlex.join(["forgetmap", *sys.argv[1:]])
    if runs.refusal:
        left = ", ".join(runs.left)
        click.echo(f"Stopped: {runs.refusal}. {counted(len(runs.left), 'model')} left: {left}.")
    if runs.refusal or runs.failed:
        click.echo(f"{len(runs.done)} of {total} models are evaluated. To resume: {again}")
        return
    click.echo(
        f"{len(runs.done)} of {total} models are evaluated. "
        f"Next: forgetmap study compare {study.origin} --runs {out}"
    )
