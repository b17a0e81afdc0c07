"""`forgetmap map`."""

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
from forgetmap.cli.options import overwrite_option
from forgetmap.runner.models import find_model

EXAMPLES = """\b
Examples:
  forgetmap map models/base models/tuned --suite basics --out map
  forgetmap map org/base org/sft org/rl --suite post-forget --chain --out map
  forgetmap map base base+adapters/sft --suite my.csv --temperature 0.7 --repeats 4 --out map
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
@asking_options(suite_required=True)
@overwrite_option
def map(before: str, after: tuple[str, ...], out: Path, **options: Any) -> None:  # noqa: A001
    """What did the models AFTER forget, and gain, against BEFORE? Evaluates all of them.

    Models are folders, hub ids, BASE+ADAPTER or GGUF files. All are asked the same items in the
    same way. What was stopped goes on where it was; what is complete is not done again.
    """
    from rich.console import Console  # noqa: PLC0415  # heavy

    from forgetmap.cli.progress import Shown  # noqa: PLC0415
    from forgetmap.map.job import REPORT, map_models, run_names  # noqa: PLC0415
    from forgetmap.runner.evaluate import open_model  # noqa: PLC0415
    from forgetmap.runner.run import estimate  # noqa: PLC0415
    from forgetmap.transitions.render import print_comparison, printable  # noqa: PLC0415

    models = [before, *after]
    sources = [find_model(model) for model in models]
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
            chain=options["chain"],
            overwrite=options["overwrite"],
            report=shown.step,
            **loading(options),
        )  # fmt: skip
    print_comparison(Console(), result.result, by="category")
    click.echo(f"\n{printable(f'Written to {out}')}")
    click.echo(printable(f"Report: {out / REPORT}"))
