"""`forgetmap overlap`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import Command, json_option, overwrite_option, with_options
from forgetmap.cli.options.evaluate import device_option, dtype_option, trust_option
from forgetmap.cli.progress import JobProgress, stoppable
from forgetmap.errors import OutputError

if TYPE_CHECKING:
    from forgetmap.overlap import LanguageModel, OverlapSettings
    from forgetmap.text import Blocks

COMMANDS = {
    "models": "Sample from two models and score every completion with both.",
    "samples": "Estimate from completions scored elsewhere.",
    "records": "Bound what was kept, from recorded log-probabilities of right answers.",
    "bridge": "Test whether divergence predicts forgetting of unseen methods.",
}
EXAMPLES = """\b
Examples:
  forgetmap overlap models/base models/tuned --prompts prompts.txt
  forgetmap overlap models/base models/tuned --prompts prompts.jsonl --samples 32 --out overlap
  forgetmap overlap http://localhost:8000/v1 http://localhost:8001/v1 --prompts prompts.txt
  forgetmap overlap samples overlap/samples.jsonl
  forgetmap overlap records runs/base runs/tuned
  forgetmap overlap bridge models.csv --out bridge
"""

_level_option = click.option(
    "--level", type=float, default=0.95, show_default=True, help="Confidence level of intervals."
)


@click.group("overlap", cls=CommandGroup, lines=COMMANDS, default="models", epilog=EXAMPLES)
def command() -> None:
    """Measure the overlap of two models, and bound what the second certainly still does.

    `forgetmap overlap BEFORE AFTER --prompts FILE` samples from both models, scores every
    completion with both, and estimates overlap, divergence and a lower bound on what is kept.
    """


def _estimate_options(command: Command) -> Command:
    """Add options for estimating overlap; `_estimate_settings` reads them."""
    options = [
        _level_option,
        click.option(
            "--behaviour", "behaviours", type=float, multiple=True, default=(0.5, 0.9),
            show_default=True,
            help="Probability of a behaviour before, for which a bound is computed. Repeatable.",
        ),
        click.option(
            "--new-share", type=float, default=0.5, show_default=True,
            help="Weight of AFTER when assigning a completion to one of the models.",
        ),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
                     help="Random seed of the samples and the bootstrap."),
    ]  # fmt: skip
    return with_options(command, options)


def _estimate_settings(options: dict[str, Any]) -> OverlapSettings:
    """Return the settings of the estimate."""
    from forgetmap.overlap import OverlapSettings

    return OverlapSettings(
        options["level"], options["new_share"], options["behaviours"], options["seed"]
    )


def _print_on_terminal(blocks: Blocks) -> None:
    """Print a result."""
    from rich.console import Console

    from forgetmap.text import print_blocks

    print_blocks(Console(), blocks)


MODELS_EXAMPLES = """\b
Examples:
  forgetmap overlap models models/base models/tuned --prompts prompts.txt
"""
JOURNAL, RESULT = "samples.jsonl", "overlap.json"


def _sampling_options(command: Command) -> Command:
    options = [
        click.option("--prompts", type=click.Path(path_type=Path), required=True,
                     help=(
                         "File of prompts: text (one per line), or JSON Lines, JSON or CSV with "
                         "prompt, id and group."
                     )),
        click.option("--samples", type=click.IntRange(1), default=16, show_default=True,
                     help="Number of completions per prompt and model."),
        click.option("--max-new-tokens", "limit", type=click.IntRange(1), default=64,
                     show_default=True, help="Maximum number of tokens per completion."),
        click.option("--chat", is_flag=True,
                     help="Format prompts with the chat template [default: use them unchanged]."),
        click.option("--expert",
                     help=(
                         "A model of the new behaviour alone, to estimate the old mass of AFTER "
                         "[default: none]."
                     )),
        click.option("--out", type=click.Path(path_type=Path),
                     help=(
                         "Folder for samples and result. An interrupted run resumes there "
                         "[default: nothing is written]."
                     )),
        device_option,
        dtype_option,
        trust_option,
    ]  # fmt: skip
    return with_options(command, options)


@command.command("models", epilog=MODELS_EXAMPLES)
@click.argument("before")
@click.argument("after")
@_sampling_options
@_estimate_options
@json_option
@overwrite_option
def models(before: str, after: str, **options: Any) -> None:
    """Measure two models: folders, hub ids, BASE+ADAPTER, GGUF files, or server addresses.

    Write a server as `http://HOST:PORT/v1`, followed by `#MODEL` if it serves several.
    """
    from forgetmap.overlap import SamplingPlan, measure_overlap, read_prompts
    from forgetmap.report import tell_overlap

    prompts = read_prompts(options["prompts"])
    plan = SamplingPlan(options["samples"], options["limit"], options["chat"], options["seed"])
    journal = _journal(options["out"], overwrite=options["overwrite"])
    names = [before, after, *([options["expert"]] if options["expert"] else [])]
    with stoppable(), JobProgress() as progress, ExitStack() as stack:
        models = [stack.enter_context(_open_model(name, options)) for name in names]
        result = measure_overlap(
            models[0], models[1], prompts, plan,
            settings=_estimate_settings(options),
            expert=models[2] if len(models) > 2 else None,
            journal=journal,
            on_progress=lambda step: progress.show_answers("completions", step),
        )  # fmt: skip
    if options["out"] is not None:
        _write(options["out"] / RESULT, result.to_json())
    if options["as_json"]:
        click.echo(result.to_json())
    else:
        _print_on_terminal(tell_overlap(result))


@contextmanager
def _open_model(name: str, options: dict[str, Any]) -> Iterator[LanguageModel]:
    from forgetmap._lazy import require
    from forgetmap.evaluation import is_address

    if is_address(name):
        from forgetmap.overlap import ServerModel

        with ServerModel(name) as model:
            yield model
        return
    require("torch", "Measuring overlap")
    from forgetmap.overlap import LocalModel

    names = ("device", "dtype", "trust_remote_code")
    yield LocalModel.open(name, **{key: options[key] for key in names})


def _journal(out: Path | None, *, overwrite: bool) -> Path | None:
    if out is None:
        return None
    if out.exists() and not out.is_dir():
        raise OutputError(
            f"{out} is a file", hint="choose a folder for the samples and the result."
        )
    journal = out / JOURNAL
    if overwrite:
        journal.unlink(missing_ok=True)
    return journal


def _write(path: Path, text: str) -> None:
    from forgetmap.records import writable

    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")


SAMPLES_EXAMPLES = """\b
Examples:
  forgetmap overlap samples scored.jsonl
"""


@command.command("samples", epilog=SAMPLES_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--first",
    type=click.IntRange(1),
    help="Use only this many tokens of each completion [default: all].",
)
@_estimate_options
@json_option
def samples(file: Path, first: int | None, **options: Any) -> None:
    """Estimate from completions scored elsewhere.

    FILE is JSON Lines with prompt, side, before and after: log-probabilities per token or in total.
    """
    from forgetmap.overlap import (
        estimate_overlap,
        estimate_table,
        read_samples,
        table_of,
    )
    from forgetmap.report import tell_overlap

    samples, settings = read_samples(file), _estimate_settings(options)
    if first is None:
        result = estimate_overlap(samples, settings=settings)
    else:
        result = estimate_table(table_of(samples, first=first), settings=settings)
    if options["as_json"]:
        click.echo(result.to_json())
    else:
        _print_on_terminal(tell_overlap(result))


RECORDS_EXAMPLES = """\b
Examples:
  forgetmap overlap records runs/base runs/tuned
"""


@command.command("records", epilog=RECORDS_EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@_level_option
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Random seed of the bootstrap.",
)
@json_option
def records(before: str, after: str, level: float, seed: int, *, as_json: bool) -> None:
    """Bound what was kept, from two runs with recorded log-probabilities of right answers."""
    from forgetmap.overlap import overlap_from_records
    from forgetmap.report import tell_events

    result = overlap_from_records(before, after, level=level, seed=seed)
    if as_json:
        click.echo(result.to_json())
    else:
        _print_on_terminal(tell_events(result))


BRIDGE_EXAMPLES = """\b
Examples:
  forgetmap overlap bridge models.csv --out bridge
"""


@command.command("bridge", epilog=BRIDGE_EXAMPLES)
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the result and figures [default: nothing is written].",
)
@json_option
@overwrite_option
def bridge(table: Path, out: Path | None, *, as_json: bool, overwrite: bool) -> None:
    """Test whether divergence predicts forgetting of methods that were not used to fit it.

    TABLE is CSV or JSON with the columns method, model, forgetting and divergences (kl, kl_old,
    kl_new, ...), or with paths in the columns overlap and comparison instead of numbers.
    """
    from forgetmap.overlap import fit_bridge, read_models
    from forgetmap.report import tell_bridge, write_bridge

    result = fit_bridge(read_models(table))
    if out is not None:
        write_bridge(result, out, overwrite=overwrite)
    if as_json:
        click.echo(result.to_json())
    else:
        _print_on_terminal(tell_bridge(result))
