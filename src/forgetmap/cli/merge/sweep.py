"""`forgetmap merge sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import json_option, overwrite_option, split_names
from forgetmap.cli.options.evaluate import (
    evaluation_options,
    make_settings,
    model_load_kwargs,
    print_estimates,
    print_notes,
    read_suite,
    without_too_long,
)
from forgetmap.cli.progress import JobProgress, stoppable

if TYPE_CHECKING:
    from forgetmap.evaluation import Settings, Suite
    from forgetmap.sweep import Sweep

EXAMPLES = """\b
Examples:
  forgetmap merge sweep models/base models/tuned --suite basics --out sweep
  forgetmap merge sweep base sft --methods linear,slerp --weights 0:1:0.1 --suite world --out s
  forgetmap merge sweep base sft --suite post-forget --target 'mmlu:*math*' --out sweep
  forgetmap merge sweep base a b c d --weights 0.2,0.5,0.8 --suite basics --out sweep
"""


@click.command("sweep", epilog=EXAMPLES)
@click.argument("base")
@click.argument("tuned", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the runs, comparisons and report.",
)
@click.option(
    "--methods",
    default="linear",
    show_default=True,
    help="Merge methods, such as linear,slerp,ties.",
)
@click.option(
    "--weights",
    multiple=True,
    default=["0:1:0.1"],
    show_default=True,
    help=(
        "Shares of TUNED, as START:STOP:STEP or 0.2,0.8. 0 is BASE, 1 is TUNED. Once for all "
        "methods, or once per method."
    ),
)
@click.option(
    "--density",
    type=float,
    default=0.5,
    show_default=True,
    help="Share of weight changes kept by ties, dare and breadcrumbs.",
)
@click.option(
    "--target",
    help=(
        "Tasks that TUNED was trained for, such as 'gsm8k:*'. Gains are counted there, forgetting "
        "elsewhere [default: none]."
    ),
)
@click.option(
    "--target-suite",
    help="Suite with the target tasks, in addition to --suite [default: none].",
)
@click.option(
    "--budget",
    type=float,
    default=0.5,
    show_default=True,
    help="Maximum forgetting of the best merge, as a share of what TUNED forgot.",
)
@click.option(
    "--keep-weights",
    is_flag=True,
    help="Keep the weights of every merge [default: delete them after evaluation].",
)
@click.option("--no-drift", is_flag=True, help="Do not measure the weight difference.")
@evaluation_options(suite_required=True)
@json_option
@overwrite_option
def command(base: str, tuned: tuple[str, ...], out: Path, **options: Any) -> None:
    """Build and evaluate merges of BASE and TUNED, and find the best one.

    Each merge is compared with both parents, and its weights are then deleted. Interrupted sweeps
    resume, and completed merges are not repeated. All models are evaluated with the same settings.
    With several TUNED models, also tests whether merging helps more where the weights moved less.
    """
    from forgetmap.evaluation import find_model
    from forgetmap.map import check_asking, joined_suite, merge_sweep

    settings = make_settings(options)
    check_asking((base, *tuned), settings)
    for model in (base, *tuned):
        find_model(model)
    print_notes(settings.notes)
    target = split_names(options["target"])
    suite, targets = joined_suite(read_suite(options), target, options["target_suite"])
    methods = split_names(options["methods"])
    suite = without_too_long(suite, settings, (base, *tuned), options)
    if options["dry_run"]:
        _print_estimate((base, *tuned), suite, settings, options)
        return
    with stoppable(), JobProgress() as progress:
        sweep = merge_sweep(
            base, *tuned,
            suite=suite,
            out=out,
            methods=methods,
            weights=options["weights"],
            target=targets,
            budget=options["budget"],
            density=options["density"],
            keep_weights=options["keep_weights"],
            drift=not options["no_drift"],
            settings=settings,
            overwrite=options["overwrite"],
            report=progress.show_answers,
            **model_load_kwargs(options),
        )  # fmt: skip
    _print_sweep(sweep, out, as_json=options["as_json"])


def _print_sweep(sweep: Sweep, out: Path, *, as_json: bool) -> None:
    from rich.console import Console

    from forgetmap.map import REPORT
    from forgetmap.report import tell_sweep
    from forgetmap.text import print_blocks, printable

    if as_json:
        click.echo(sweep.to_json())
        return
    print_blocks(Console(), tell_sweep(sweep.result))
    click.echo(f"\n{printable(f'Written to {out}')}")
    click.echo(printable(f"Report: {out / REPORT}"))


def _print_estimate(
    models: tuple[str, ...], suite: Suite, settings: Settings, options: dict[str, Any]
) -> None:
    """Print the cost of one model, and the number of models."""
    from forgetmap.evaluation import estimate_run, open_model
    from forgetmap.sweep import merges_of

    grid = merges_of(split_names(options["methods"]), options["weights"])
    merges = sum(merge.parent is None for merge in grid) * (len(models) - 1)
    backend, _ = open_model(models[0], name="base", **model_load_kwargs(options))
    print_estimates([(models[0], estimate_run(backend, suite, settings))])
    click.echo(f"{merges + len(models):,} models of this size: {merges:,} merges and the parents.")
