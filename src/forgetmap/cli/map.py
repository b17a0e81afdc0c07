"""`forgetmap map`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.next_commands import REPLAY_OPTIONS, is_typable
from forgetmap.cli.options import overwrite_option
from forgetmap.cli.options.compare import (
    VERDICT_NAMES,
    details_option,
    table_option,
    verdict_options,
)
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
from forgetmap.cli.typed_options import typed_words
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.comparison import View
    from forgetmap.map import Auto

STOP_REASONS = {
    "decided": "",
    "hopeless": " (more repeats would hardly help)",
    "used_up": " (limit reached)",
}
EXAMPLES = """\b
Examples:
  forgetmap map models/base models/tuned --suite basics --out map
  forgetmap map org/base org/sft org/rl --suite post-forget --chain --out map
  forgetmap map base base+adapters/sft --suite my.csv --temperature 0.7 --repeats 4 --out map
  forgetmap map base tuned --suite my.csv --temperature 0.7 --repeats auto --out map
  forgetmap map base tuned --suite my.csv --temperature 0.7 --confirm --out map
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
    "--confirm",
    is_flag=True,
    help="Ask the items that flipped once more, to prove what was lost [default: no].",
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
@table_option
@details_option
@verdict_options
@evaluation_options(suite_required=True)
@overwrite_option
def command(before: str, after: tuple[str, ...], out: Path, **options: Any) -> None:
    """Evaluate models before and after training on the same items, and compare them.

    Models are folders, hub ids, BASE+ADAPTER, GGUF files, or servers: http://HOST/v1#NAME. All
    models are evaluated with the same settings, except for settings that follow a model:
    MODEL,stage=base,max_tokens=4096 (also style, shots, temperature, top_p). An interrupted run
    resumes, and completed models are not evaluated again. --repeats auto adds repeats only where a
    category is undecided, and stops when all are decided; --confirm asks only the items that
    flipped once more, which is cheaper.
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
            confirm=options["confirm"],
            overwrite=options["overwrite"],
            skip_too_long=options["skip_too_long"],
            on_progress=progress.show_answers,
            **{name: options[name] for name in VERDICT_NAMES},
            **model_load_kwargs(options),
        )  # fmt: skip
    runs = [str(out / "runs" / name) for name in run_names(models)]
    print_comparison(Console(), result.result, _view(options, (before, *after), runs))
    if repeats is not None:
        _print_repeats(out / REPEATS)
    print_services(map(Path, runs))
    click.echo(f"\n{printable(f'Written to {out}')}")
    click.echo(printable(f"Report: {out / REPORT}"))


def _view(options: dict[str, Any], models: Sequence[str], runs: Sequence[str]) -> View:
    """Return what to show of a result, with the commands that may follow."""
    from forgetmap.comparison import View

    each = [_next_commands((runs[0], run)) for run in runs[1:]]
    commands = _confirm_command(models)
    if len(each) == 1 or options["chain"]:
        commands = {**_next_commands((runs[0], runs[-1])), **commands}
    return View(by=options["by"], details=options["details"], commands=commands, each=each)


def _next_commands(runs: Sequence[str]) -> dict[str, str]:
    """Return the commands that follow a comparison of two runs."""
    lines = {
        "confirm": ["forgetmap", "confirm", *runs],
        "report": ["forgetmap", "report", *runs],
        "plan": ["forgetmap", "plan", *runs],
        "export replay": ["forgetmap", "export", "replay", *runs, *REPLAY_OPTIONS],
        "compare --not-selected": ["forgetmap", "compare", *runs, "--not-selected"],
    }
    return {name: shlex.join(words) for name, words in lines.items() if all(map(is_typable, words))}


def _confirm_command(models: Sequence[str]) -> dict[str, str]:
    """Return the same command with --confirm: what is there is not evaluated again."""
    context = click.get_current_context()
    names = {param.name or "" for param in context.command.params if param.name != "confirm"}
    line = shlex.join(["forgetmap", "map", *models, *typed_words(names), "--confirm"])
    is_typable = line.isprintable() and "`" not in line  # addresses of models have no secrets
    params = context.params
    alone = len(models) == 2 and not params["chain"] and params["repeats"] != AUTO
    return {"confirm": line} if alone and is_typable else {}


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
    from forgetmap.text import percent, printable, share

    repeats = json.loads(path.read_text(encoding="utf-8"))
    spent = percent(repeats["answers"] / repeats["full"], 0)
    click.echo(
        "\n"
        f"Repeats: {repeats['answers']:,} answers, {spent} of the {repeats['full']:,} needed for "
        f"{repeats['schedule'][-1]} per item."
    )
    several = len({row["after"] for row in repeats["categories"]}) > 1
    for row in repeats["categories"]:
        name = f"{row['after']}, {row['category']}" if several else row["category"]
        most = "" if row["high"] is None else f"; at most {share(row['high'])} lost"
        click.echo(
            printable(
                f"  {name}: {row['words']} after {row['repeats']} answers per item"
                f"{STOP_REASONS[row['why']]}{most}"
            )
        )
