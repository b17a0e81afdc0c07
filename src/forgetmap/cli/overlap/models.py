"""`forgetmap overlap models`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import Command, with_options
from forgetmap.cli.options.evaluate import device_option, dtype_option, trust_option
from forgetmap.cli.options.output import json_option, overwrite_option
from forgetmap.cli.overlap import estimate_options, estimate_settings, print_on_terminal
from forgetmap.cli.progress import JobProgress, stoppable
from forgetmap.errors import OutputError

if TYPE_CHECKING:
    from forgetmap.overlap import LanguageModel

EXAMPLES = """\b
Examples:
  forgetmap overlap models models/base models/tuned --prompts prompts.txt
"""
JOURNAL, RESULT = "samples.jsonl", "overlap.json"


def _sampling_options(command: Command) -> Command:
    options = [
        click.option("--prompts", type=click.Path(path_type=Path), required=True,
                     help="File of prompts: text (one per line), or JSON lines, JSON or CSV with "
                     "prompt, id, group."),
        click.option("--samples", type=click.IntRange(1), default=16, show_default=True,
                     help="Completions of each prompt by each model."),
        click.option("--max-new-tokens", "limit", type=click.IntRange(1), default=64,
                     show_default=True, help="Upper limit on the tokens of a completion."),
        click.option("--chat", is_flag=True,
                     help="Put prompts into the chat template [default: use them as they are]."),
        click.option("--expert",
                     help="A model of the new behaviour alone, to estimate how much old mass AFTER "
                     "has [default: none]."),
        click.option("--out", type=click.Path(path_type=Path),
                     help="Folder for samples and result; a run that was stopped goes on there "
                     "[default: nothing is written]."),
        device_option,
        dtype_option,
        trust_option,
    ]  # fmt: skip
    return with_options(command, options)


@click.command("models", epilog=EXAMPLES)
@click.argument("before")
@click.argument("after")
@_sampling_options
@estimate_options
@json_option
@overwrite_option
def command(before: str, after: str, **options: Any) -> None:
    """Measure two models: a folder, a hub id, BASE+ADAPTER, a GGUF file, or a server's address.

    A server is `http://HOST:PORT/v1`, with `#MODEL` behind it where it has several.
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
            settings=estimate_settings(options),
            expert=models[2] if len(models) > 2 else None,
            journal=journal,
            on_progress=lambda step: progress.show_answers("completions", step),
        )  # fmt: skip
    if options["out"] is not None:
        _write(options["out"] / RESULT, result.to_json())
    if options["as_json"]:
        click.echo(result.to_json())
    else:
        print_on_terminal(tell_overlap(result))


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
        raise OutputError(f"{out} is a file", hint="give a folder for samples and result.")
    journal = out / JOURNAL
    if overwrite:
        journal.unlink(missing_ok=True)
    return journal


def _write(path: Path, text: str) -> None:
    from forgetmap.records import writable

    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
