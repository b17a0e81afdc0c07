"""`forgetmap map`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import overwrite_option
from forgetmap.cli.options.compare import VERDICT_NAMES, verdict_options
from forgetmap.cli.options.evaluate import (
    AUTO,
    evaluation_options,
    make_settings,
    model_load_kwargs,
    print_estimates,
    print_notes,
    print_services,
    read_suite,
    without_too_long,
)
from forgetmap.cli.progress import JobProgress, stoppable
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.map import Auto

VERDICTS = {
    "no_material_loss": "no material loss",
    "small_loss": "small loss",
    "lost": "lost",
    "cannot_tell": "undecided",
}
STOP_REASONS = {
    "tested": "",
    "hopeless": " (more repeats would hardly help)",
    "used_up": " (limit reached)",
}
EXAMPLES = """\b
Examples:
  forgetmap map models/base models/tuned --suite basics --out map
  forgetmap map org/base org/sft org/rl --suite post-forget --chain --out map
  forgetmap map base base+adapters/sft --suite my.csv --temperature 0.7 --repeats 4 --out map
  forgetmap map base tuned --suite my.csv --temperature 0.7 --repeats auto --out map
  forgetmap map b,stage=base t,stage=tuned --suite post-forget --protocol published --out map
"""


@click.command("map", epilog=EXAMPLES)
@click.argument("before")
@click.argument("after", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the runs, the result and the report.",
)
@click.option(
    "--chain",
    is_flag=True,
    help="The models are successive checkpoints [default: each AFTER is compared with BEFORE].",
)
@click.option(
    "--max-repeats",
    type=click.IntRange(2),
    default=8,
    show_default=True,
    help="Maximum number of answers per item with --repeats auto.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    help="Maximum number of answers of all models together with --repeats auto [default: no "
    "limit].",
)
@verdict_options
@evaluation_options(suite_required=True)
@overwrite_option
def command(before: str, after: tuple[str, ...], out: Path, **options: Any) -> None:
    """Evaluate models before and after training on the same items, and compare them.

    Models are folders, hub ids, BASE+ADAPTER, GGUF files, or servers: http://HOST/v1#NAME. All
    models are evaluated with the same settings, except for settings that follow a model:
    MODEL,stage=base,max_tokens=4096 (also style, shots, temperature, top_p). An interrupted run
    resumes, and completed models are not evaluated again. --repeats auto adds repeats only where a
    category is undecided, and stops when all are decided.
    """
    from rich.console import Console

    from forgetmap.comparison import make_rule, print_comparison
    from forgetmap.evaluation import (
        estimate_run,
        find_model,
        find_style,
        model_labels,
        open_model,
        run_names,
        split_model,
    )
    from forgetmap.map import REPEATS, REPORT, map_models
    from forgetmap.text import printable

    make_rule({name: options[name] for name in VERDICT_NAMES})  # type: ignore[arg-type]  # known names
    requests = [split_model(model) for model in (before, *after)]
    models = [one.model for one in requests]
    sources = [find_model(model) for model in models]
    repeats = _auto_repeats(options)
    settings = make_settings(options)
    own_settings = [one.settings(settings) for one in requests]
    labels = model_labels(models)
    for one, name in zip(own_settings, labels, strict=True):
        find_style(one, name)
        print_notes(f"{name}: {note}" for note in one.notes)
    suite = read_suite(options)
    if options["dry_run"]:
        suite = without_too_long(suite, own_settings, sources, options)
        estimates = []
        for source, name, own in zip(sources, labels, own_settings, strict=True):
            backend, _ = open_model(source, name=name, **model_load_kwargs(options))
            estimates.append((name, estimate_run(backend, suite, own)))
        print_estimates(estimates)
        return
    with stoppable(), JobProgress() as progress:
        result = map_models(
            before, *after,
            suite=suite,
            out=out,
            settings=settings,
            repeats=repeats,
            chain=options["chain"],
            overwrite=options["overwrite"],
            skip_too_long=options["skip_too_long"],
            on_progress=progress.show_answers,
            **{name: options[name] for name in VERDICT_NAMES},
            **model_load_kwargs(options),
        )  # fmt: skip
    print_comparison(Console(), result.result, by="category")
    if repeats is not None:
        _print_repeats(out / REPEATS)
    print_services(out / "runs" / name for name in run_names(models))
    click.echo(f"\n{printable(f'Written to {out}')}")
    click.echo(printable(f"Report: {out / REPORT}"))


def _auto_repeats(options: dict[str, Any]) -> Auto | None:
    """Return the settings of automatic repeats, if requested; their maximum goes into `options`."""
    from forgetmap.map import Auto

    if options["repeats"] != AUTO:
        if options["budget"] is not None:
            raise UsageError(
                "--budget needs --repeats auto",
                hint="add --repeats auto, or remove --budget.",
            )
        return None
    options["repeats"] = options["max_repeats"]
    return Auto(most=options["max_repeats"], budget=options["budget"])


def _print_repeats(path: Path) -> None:
    """Print the number of repeats per category, and why it stopped."""
    from forgetmap.text import percent, printable

    repeats = json.loads(path.read_text(encoding="utf-8"))
    share = percent(repeats["answers"] / repeats["full"], 0)
    click.echo(
        "\n"
        f"Repeats: {repeats['answers']:,} answers, {share} of the {repeats['full']:,} needed for "
        f"{repeats['rule']['most']} per item."
    )
    several = len({row["after"] for row in repeats["categories"]}) > 1
    for row in repeats["categories"]:
        name = f"{row['after']}, {row['category']}" if several else row["category"]
        interval = f"{percent(row['low'])} to {percent(row['high'])}"
        click.echo(
            printable(
                f"  {name}: {VERDICTS[row['verdict']]} after {row['repeats']} answers per item"
                f"{STOP_REASONS[row['why']]}; {percent(row['value'])} of answers ({interval})"
            )
        )
