"""`forgetmap overlap`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from forgetmap.cli.options import (
    Command,
    GroupWithDefault,
    json_option,
    overwrite_option,
    with_options,
)
from forgetmap.errors import OutputError
from forgetmap.evaluation import Dtype, is_address

if TYPE_CHECKING:
    from forgetmap.overlap import Asked, Model, OverlapResult
    from forgetmap.text import Blocks

MODELS_EXAMPLES = """\b
Examples:
  forgetmap overlap models models/base models/tuned --prompts prompts.txt
"""
SAMPLES_EXAMPLES = """\b
Examples:
  forgetmap overlap samples weighed.jsonl
"""
RECORDS_EXAMPLES = """\b
Examples:
  forgetmap overlap records runs/base runs/tuned
"""
BRIDGE_EXAMPLES = """\b
Examples:
  forgetmap overlap bridge models.csv --out bridge
"""
EXAMPLES = """\b
Examples:
  forgetmap overlap models/base models/tuned --prompts prompts.txt
  forgetmap overlap models/base models/tuned --prompts prompts.jsonl --samples 32 --out overlap
  forgetmap overlap http://localhost:8000/v1 http://localhost:8001/v1 --prompts prompts.txt
  forgetmap overlap samples overlap/samples.jsonl
  forgetmap overlap records runs/base runs/tuned
  forgetmap overlap bridge models.csv --out bridge
"""
MODELS = "models"
JOURNAL, RESULT = "samples.jsonl", "overlap.json"


@click.group(cls=GroupWithDefault, default=MODELS, epilog=EXAMPLES)
def overlap() -> None:
    """How far did a model move, and what does it certainly still do?

    `forgetmap overlap BEFORE AFTER --prompts FILE` lets both models write, weighs everything with
    both, and estimates overlap, divergence and a floor of what is kept.
    """


_ASKED: tuple[Callable[[Command], Command], ...] = (
    click.option("--level", type=float, default=0.95, show_default=True, help="Of intervals."),
    click.option(
        "--behaviour", "behaviours", type=float, multiple=True, default=(0.5, 0.9),
        show_default=True,
        help="Probability, before, of a behaviour to be certified; may be given several times.",
    ),
    click.option(
        "--new-share", type=float, default=0.5, show_default=True,
        help="Weight of AFTER when a completion is assigned to one of the two.",
    ),
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
                 help="Of sampling and bootstrap."),
)  # fmt: skip


def _asked_options(command: Command) -> Command:
    return with_options(command, _ASKED)


_DRAWN: tuple[Callable[[Command], Command], ...] = (
    click.option("--prompts", type=click.Path(path_type=Path), required=True,
                 help="Text (one per line), JSON lines, JSON or CSV with prompt, id, group."),
    click.option("--samples", type=click.IntRange(1), default=16, show_default=True,
                 help="Completions of each prompt by each model."),
    click.option("--max-new-tokens", "limit", type=click.IntRange(1), default=64,
                 show_default=True, help="Limit of a completion."),
    click.option("--chat", is_flag=True, help="Put prompts into the chat template."),
    click.option("--expert", help="A model of the new behaviour alone: then AFTER's old mass."),
    click.option("--out", type=click.Path(path_type=Path),
                 help="Folder for samples and result; a run that was stopped goes on there."),
    click.option("--device", default="auto", show_default=True, help="cpu, cuda, ..."),
    click.option("--dtype", type=click.Choice(get_args(Dtype)), default="auto", show_default=True,
                 help="Of the weights."),
    click.option("--trust-remote-code", is_flag=True, help="Run code that comes with a model."),
)  # fmt: skip


def _drawn_options(command: Command) -> Command:
    return with_options(command, _DRAWN)


@overlap.command(MODELS, epilog=MODELS_EXAMPLES)
@click.argument("before")
@click.argument("after")
@_drawn_options
@_asked_options
@json_option
@overwrite_option
def models(before: str, after: str, **options: Any) -> None:
    """Measure two models: a folder, a hub id, BASE+ADAPTER, a GGUF file, or a server's address.

    A server is `http://HOST:PORT/v1`, with `#MODEL` behind it where it has several.
    """
    from forgetmap.cli.asking import stoppable  # heavy
    from forgetmap.cli.progress import Shown
    from forgetmap.overlap import (
        Manner,
        measure_overlap,
        read_prompts,
    )

    prompts = read_prompts(options["prompts"])
    asked = _asked(options)
    manner = Manner(options["samples"], options["limit"], options["chat"], options["seed"])
    journal = _journal(options["out"], overwrite=options["overwrite"])
    names = [before, after, *([options["expert"]] if options["expert"] else [])]
    with stoppable(), Shown() as shown, ExitStack() as stack:
        opened = [stack.enter_context(_opened(name, options)) for name in names]
        result = measure_overlap(
            opened[0], opened[1], prompts, manner,
            asked=asked,
            expert=opened[2] if len(opened) > 2 else None,
            journal=journal,
            report=lambda step: shown.step("completions", step),
        )  # fmt: skip
    if options["out"] is not None:
        _write(options["out"] / RESULT, result.to_json())
    _show(result, as_json=options["as_json"])


@overlap.command(epilog=SAMPLES_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--first", type=click.IntRange(1), help="Only so many tokens of each completion.")
@_asked_options
@json_option
def samples(file: Path, first: int | None, **options: Any) -> None:
    """Estimate from completions that were weighed elsewhere: JSON lines with prompt, side, before,
    after; log-probabilities per token or in sum.
    """  # noqa: D205  # click shows it as a paragraph
    from forgetmap.overlap import estimate_overlap, estimate_table, read_samples, table_of  # heavy

    found = read_samples(file)
    asked = _asked(options)
    if first is None:
        result = estimate_overlap(found, asked=asked)
    else:
        result = estimate_table(table_of(found, first=first), asked=asked)
    _show(result, as_json=options["as_json"])


@overlap.command(epilog=RECORDS_EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option("--level", type=float, default=0.95, show_default=True, help="Of intervals.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of bootstrap.")
@json_option
def records(before: str, after: str, level: float, seed: int, *, as_json: bool) -> None:
    """Bounds from two runs that recorded log-probabilities of right answers."""
    from forgetmap.overlap import (
        overlap_of_records,  # heavy
        tell_events,
    )

    result = overlap_of_records(before, after, level=level, seed=seed)
    if as_json:
        click.echo(result.to_json())
    else:
        _print(tell_events(result))


@overlap.command(epilog=BRIDGE_EXAMPLES)
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder for result and figures.")
@json_option
@overwrite_option
def bridge(table: Path, out: Path | None, *, as_json: bool, overwrite: bool) -> None:
    """Does divergence predict forgetting, of methods it has not seen?

    TABLE is CSV or JSON with method, model, forgetting and divergences (kl, kl_old, kl_new, ...),
    or with the files overlap and comparison in place of numbers.
    """
    from forgetmap.overlap import (  # heavy
        bridge_section,
        draw,
        fit_bridge,
        read_models,
        tell_bridge,
    )
    from forgetmap.records import complete_folder

    result = fit_bridge(read_models(table))
    if out is not None:
        with complete_folder(out, overwrite=overwrite) as partial:
            (partial / "bridge.json").write_text(result.to_json() + "\n", encoding="utf-8")
            (partial / "manifest.json").write_text('{"bridge": true}\n', encoding="utf-8")
            for figure in bridge_section(result)["figures"]:
                draw(figure, partial)
    if as_json:
        click.echo(result.to_json())
    else:
        _print(tell_bridge(result))


def _asked(options: dict[str, Any]) -> Asked:
    from forgetmap.overlap import Asked  # heavy

    return Asked(options["level"], options["new_share"], options["behaviours"], options["seed"])


@contextmanager
def _opened(name: str, options: dict[str, Any]) -> Iterator[Model]:
    if is_address(name):
        from forgetmap.overlap import ServerModel

        with ServerModel(name) as model:
            yield model
        return
    from forgetmap.evaluation import need

    need("torch")
    from forgetmap.overlap import LocalModel  # torch

    loading = {each: options[each] for each in ("device", "dtype", "trust_remote_code")}
    yield LocalModel.open(name, **loading)


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
    from forgetmap.records import writable  # heavy

    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")


def _show(result: OverlapResult, *, as_json: bool) -> None:
    from forgetmap.overlap import tell_overlap  # heavy

    if as_json:
        click.echo(result.to_json())
    else:
        _print(tell_overlap(result))


def _print(blocks: Blocks) -> None:
    from rich.console import Console  # 50 ms

    from forgetmap.text import print_blocks

    print_blocks(Console(), blocks)
