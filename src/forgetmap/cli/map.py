"""`forgetmap map`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.asking import (
    AUTO,
    asking_options,
    chosen_suite,
    loading,
    print_estimate,
    settings_of,
    stoppable,
)
from forgetmap.cli.options import overwrite_option
from forgetmap.cli.service import print_services
from forgetmap.errors import UsageError
from forgetmap.evaluation import find_model

if TYPE_CHECKING:
    from forgetmap.map import Auto

SAID = {"lost": "lost", "none_lost": "nothing lost", "cannot_tell": "undecided"}
ENDED = {
    "tested": "",
    "hopeless": " (more would hardly tell)",
    "used_up": " (no more were allowed)",
}
EXAMPLES = """\b
Examples:
  forgetmap map models/base models/tuned --suite basics --out map
  forgetmap map org/base org/sft org/rl --suite post-forget --chain --out map
  forgetmap map base base+adapters/sft --suite my.csv --temperature 0.7 --repeats 4 --out map
  forgetmap map base tuned --suite my.csv --temperature 0.7 --repeats auto --out map
"""


@click.command("map", epilog=EXAMPLES)
@click.argument("before")
@click.argument("after", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for runs, result and report.",
)
@click.option("--chain", is_flag=True, help="The models are checkpoints, one from the other.")
@click.option(
    "--max-repeats",
    type=click.IntRange(2),
    default=8,
    show_default=True,
    help="Most answers per item under --repeats auto.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    help="Most answers of all models together under --repeats auto.",
)
@asking_options(suite_required=True)
@overwrite_option
def map(before: str, after: tuple[str, ...], out: Path, **options: Any) -> None:  # noqa: A001
    """What did the models AFTER forget, and gain, against BEFORE? Evaluates all of them.

    Models are folders, hub ids, BASE+ADAPTER, GGUF files, or servers: http://HOST/v1#NAME. All are
    asked the same items in the same way. What was stopped goes on where it was; what is complete
    is not done again. --repeats auto asks again only where a category is undecided, and stops
    when none is.
    """
    from rich.console import Console  # heavy

    from forgetmap.cli.progress import Shown
    from forgetmap.comparison import print_comparison
    from forgetmap.evaluation import (
        estimate,
        open_model,
        run_names,
    )
    from forgetmap.map import REPEATS, REPORT, map_models
    from forgetmap.text import printable

    models = [before, *after]
    sources = [find_model(model) for model in models]
    repeats = _auto(options)
    suite, settings = chosen_suite(options), settings_of(options)
    if options["dry_run"]:
        found = []
        for source, name in zip(sources, run_names(models), strict=True):
            backend, _ = open_model(source, name=name, **loading(options))
            found.append((name, estimate(backend, suite, settings)))
        print_estimate(found)
        return
    with stoppable(), Shown() as shown:
        result = map_models(
            before, *after,
            suite=suite,
            out=out,
            settings=settings,
            repeats=repeats,
            chain=options["chain"],
            overwrite=options["overwrite"],
            report=shown.step,
            **loading(options),
        )  # fmt: skip
    print_comparison(Console(), result.result, by="category")
    if repeats is not None:
        print_repeats(out / REPEATS)
    print_services(out / "runs" / name for name in run_names(models))
    click.echo(f"\n{printable(f'Written to {out}')}")
    click.echo(printable(f"Report: {out / REPORT}"))


def _auto(options: dict[str, Any]) -> Auto | None:
    """How repeats are spent, if that is left open; the most of them go into the settings."""
    from forgetmap.map import Auto  # heavy

    if options["repeats"] != AUTO:
        if options["budget"] is not None:
            raise UsageError(
                "a budget is for repeats that are not fixed",
                hint="add --repeats auto, or leave out --budget.",
            )
        return None
    options["repeats"] = options["max_repeats"]
    return Auto(most=options["max_repeats"], budget=options["budget"])


def print_repeats(path: Path) -> None:
    """What every category took, and why it ended."""
    from forgetmap.text import percent, printable

    spent = json.loads(path.read_text(encoding="utf-8"))
    share = percent(spent["answers"] / spent["full"], 0)
    click.echo(
        f"\nRepeats: {spent['answers']:,} answers, {share} of the {spent['full']:,} that "
        f"{spent['rule']['most']} per item would take."
    )
    several = len({each["after"] for each in spent["categories"]}) > 1
    for each in spent["categories"]:
        name = f"{each['after']}, {each['category']}" if several else each["category"]
        limits = f"{percent(each['low'])} to {percent(each['high'])}"
        click.echo(
            printable(
                f"  {name}: {SAID[each['verdict']]} after {each['repeats']} answers per item"
                f"{ENDED[each['why']]}; {percent(each['value'])} of answers ({limits})"
            )
        )
