"""`forgetmap merge sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forgetmap.cli.asking import (
    asking_options,
    chosen_suite,
    loading,
    print_estimate,
    settings_of,
    stoppable,
)
from forgetmap.cli.options import json_option, overwrite_option
from forgetmap.evaluation import find_model

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
    help="Folder for runs, comparisons and report.",
)
@click.option(
    "--methods",
    default="linear",
    show_default=True,
    help="Ways from BASE to TUNED, such as linear,slerp,ties.",
)
@click.option(
    "--weights",
    multiple=True,
    default=["0:1:0.1"],
    show_default=True,
    help="Shares of TUNED, START:STOP:STEP or 0.2,0.8: 0 is BASE, 1 is TUNED. Once for all "
    "methods, or once for each.",
)
@click.option(
    "--density",
    type=float,
    default=0.5,
    show_default=True,
    help="Share of changes that ties, dare and breadcrumbs keep.",
)
@click.option(
    "--target",
    help="Tasks that TUNED was trained for, such as 'gsm8k:*': gains count "
    "there, forgetting elsewhere.",
)
@click.option("--target-suite", help="Items of such tasks, beside those of --suite.")
@click.option(
    "--budget",
    type=float,
    default=0.5,
    show_default=True,
    help="Most that the best merge may forget, as a share of what TUNED forgot.",
)
@click.option("--keep-weights", is_flag=True, help="Keep every merge that was built.")
@click.option("--no-drift", is_flag=True, help="Do not measure how far the weights moved.")
@asking_options(suite_required=True)
@json_option
@overwrite_option
def sweep(base: str, tuned: tuple[str, ...], out: Path, **options: Any) -> None:
    """Does merging keep what BASE knew and what TUNED learnt? Builds and evaluates every merge.

    Each merge is compared with both parents and its weights are deleted again. What was stopped
    goes on where it was; what is complete is not done again. With several TUNED models: does
    merging help where the weights moved less?
    """  # fmt: skip
    from forgetmap.cli.progress import Shown  # heavy
    from forgetmap.sweep import joined_suite, merge_sweep

    for model in (base, *tuned):
        find_model(model)
    settings = settings_of(options)
    target = [name.strip() for name in (options["target"] or "").split(",") if name.strip()]
    suite, targets = joined_suite(chosen_suite(options), target, options["target_suite"])
    methods = [name.strip() for name in options["methods"].split(",") if name.strip()]
    if options["dry_run"]:
        _print_estimate(base, tuned, suite, settings, methods, options)
        return
    with stoppable(), Shown() as shown:
        found = merge_sweep(
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
            report=shown.step,
            **loading(options),
        )  # fmt: skip
    _show(found, out, as_json=options["as_json"])


def _show(found: Any, out: Path, *, as_json: bool) -> None:
    from rich.console import Console  # heavy

    from forgetmap.sweep import (
        REPORT,
        tell_sweep,
    )
    from forgetmap.text import print_blocks, printable

    if as_json:
        click.echo(found.to_json())
        return
    print_blocks(Console(), tell_sweep(found.result))
    click.echo(f"\n{printable(f'Written to {out}')}")
    click.echo(printable(f"Report: {out / REPORT}"))


def _print_estimate(
    base: str,
    tuned: tuple[str, ...],
    suite: Any,
    settings: Any,
    methods: list[str],
    options: dict[str, Any],
) -> None:
    """What one model takes, and how many there are."""
    from forgetmap.evaluation import (
        estimate,
        open_model,  # heavy
    )
    from forgetmap.sweep import merges_of

    planned = merges_of(methods, options["weights"])
    merges = sum(each.parent is None for each in planned) * len(tuned)
    backend, _ = open_model(base, name="base", **loading(options))
    print_estimate([(base, estimate(backend, suite, settings))])
    click.echo(
        f"{merges + 1 + len(tuned):,} models of this size: {merges:,} merges and the parents."
    )
