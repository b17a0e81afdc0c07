"""`forgetmap confirm`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from forgetmap.cli.next_commands import NextCommand, find_command, next_commands
from forgetmap.cli.options import json_option, overwrite_option, refuse_overwriting_inputs
from forgetmap.cli.options.compare import rule_options
from forgetmap.cli.options.evaluate import (
    data_root_option,
    loading_options,
    model_load_kwargs,
    print_notes,
    print_services,
)
from forgetmap.cli.options.logs import log_options, reading_progress, table_options
from forgetmap.cli.progress import JobProgress, stoppable
from forgetmap.confirmation import ItemFormat

if TYPE_CHECKING:
    from forgetmap.confirmation import Confirmation, FlipPlan

EXAMPLES = """\b
Examples:
  forgetmap confirm runs/base runs/tuned --out confirm
  forgetmap confirm runs/base runs/tuned --models http://HOST/v1#base models/tuned --out confirm
  forgetmap confirm runs/base runs/tuned --repeats 3 --gains --out confirm
  forgetmap confirm lm-eval-logs/base lm-eval-logs/tuned --out confirm
  forgetmap confirm base.csv tuned.csv --limit 200 --dry-run
"""
_OWN = ("models", "suite", "repeats", "limit", "gains", "seed", "items_only", "item_format",
        "overwrite", "data_root")  # fmt: skip
"""Options of `confirm` itself, by their names in Python; the others are those of `compare`."""


@click.command("confirm", epilog=EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("confirm"),
    show_default=True,
    help="Folder for the fresh answers, or for the items and their commands.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Fresh answers of each model to each item, fixed before the first one.",
)
@click.option(
    "--limit",
    type=click.IntRange(2),
    help="Ask at most this many forgotten items, a random part [default: all].",
)
@click.option(
    "--gains",
    is_flag=True,
    help="Also ask the items that became right [default: only those that became wrong].",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed of the part with --limit."
)
@click.option(
    "--models",
    nargs=2,
    metavar="BEFORE AFTER",
    help="The two models, if they are not where the runs say.",
)
@click.option("--suite", help="The suite, if it is not where the runs say.")
@data_root_option
@click.option(
    "--items-only",
    is_flag=True,
    help="Only write the items and the commands [default: ask the models if the runs name them].",
)
@click.option(
    "--format",
    "item_format",
    type=click.Choice(get_args(ItemFormat)),
    help="Format of the items that are written [default: that of the harness, else jsonl].",
)
@click.option(
    "--dry-run", is_flag=True, help="Only say how many answers it takes, and what they can prove."
)
@overwrite_option
@json_option
@rule_options
@table_options
@log_options
@loading_options
def command(before: str, after: str, **options: Any) -> None:
    """Ask only the items that flipped again, to prove what was lost.

    Items that BEFORE answered right and AFTER wrong are asked once more, with another seed and
    order. The first answers chose them, so only the fresh ones count: no noise, luck or temperature
    can fake a loss that holds in them. Runs of forgetmap are asked by their models at once, and an
    interrupted confirmation resumes. For logs of lm-eval and Inspect it writes the items and the
    commands that ask them; other results get a JSONL file.
    """
    from rich.console import Console

    from forgetmap.comparison import View, compare, print_comparison
    from forgetmap.confirmation import choose_flips, confirm

    out, as_json, dry = options.pop("out"), options.pop("as_json"), options.pop("dry_run")
    loading = _pop_loading(options)
    own = {name: options.pop(name) for name in _OWN}
    inputs = (before, after, *filter(None, [options["noise"]]))
    refuse_overwriting_inputs(out, inputs)

    def tell(plan: FlipPlan) -> None:
        click.echo(tell_plan(plan), err=as_json)

    with Console(stderr=True).status("Pairing items ...") as status:
        options["progress"] = reading_progress(status)
        if dry:
            first = compare(before, after, **options)
            names = ("repeats", "limit", "gains", "seed")
            tell(choose_flips(first, **{name: own[name] for name in names}))
            return
    with stoppable(), JobProgress() as progress:
        done = confirm(
            before, after, out=out, loading=loading, on_plan=tell,
            on_progress=progress.show_answers, **own, **options,
        )  # fmt: skip
    print_notes(done.notices if done.comparison else ())
    if as_json:
        click.echo(done.to_json())
        return
    if done.comparison is None:
        _print_commands(done, before, after)
        return
    print_services(done.reruns)
    reruns = ("--confirm", *map(str, done.reruns))
    view = View(commands=next_commands((before, after), more=reruns))
    click.echo()
    print_comparison(Console(), done.comparison.result, view)


def _pop_loading(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options for loading models out of those of the comparison."""
    loading = model_load_kwargs(options)
    for name in (*loading["traffic"].__dataclass_fields__, *loading, "threads"):
        options.pop(name, None)
    return loading


def tell_plan(plan: FlipPlan) -> str:
    """Say what is asked, how many answers that takes, and what they can prove."""
    from forgetmap.text import counted, share

    lost = sum(item.is_lost for item in plan.items)
    part = "" if lost == plan.forgotten else f", a random part of {plan.forgotten:,}"
    gained = len(plan.items) - lost
    more = f", and {counted(gained, 'item')} that became right" if gained else ""
    times = "once more" if plan.repeats == 1 else f"{plan.repeats} more times"
    proof = "That cannot prove a loss: too few items flipped."
    if plan.provable is not None:
        proof = f"If all of them hold, that proves a loss of at least {share(plan.provable)}."
    return (
        f"Confirming {counted(lost, 'item')} that became wrong{part}{more}: both models answer "
        f"each of them {times}, {counted(plan.answers, 'answer')}. {proof}"
    )


def _print_commands(done: Confirmation, before: str, after: str) -> None:
    """Print what to run: the commands for both models, then the comparison."""
    from forgetmap.text import printable

    click.echo(printable(f"Written to {', '.join(map(str, done.files))}"))
    if done.commands:
        click.echo("\nAsk both models:")
    for line in done.commands:
        click.echo(printable(f"  {line}"))
    for notice in done.notices:
        click.echo(f"\n{printable(notice)}")
    reruns = [str(path) if done.commands else f"{path}.jsonl" for path in done.reruns]
    compare = find_command("compare")
    last = NextCommand(compare, (before, after), ("--confirm", *reruns)).line("compare")
    if last is not None:
        click.echo(f"\nThen compare:\n  {printable(last)}")
