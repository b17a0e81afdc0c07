"""`forgetmap export`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import (
    Command,
    json_option,
    overwrite_option,
    refuse_overwriting_inputs,
    with_options,
)
from forgetmap.cli.options.compare import rule_options
from forgetmap.cli.options.logs import (
    ColumnsType,
    log_options,
    reading_progress,
    table_options,
)
from forgetmap.cli.typed_options import typed_words
from forgetmap.export import (
    CARD_ROWS,
    MIN_SIMILARITY,
    PER_ITEM,
    RowFormat,
)

if TYPE_CHECKING:
    from forgetmap.comparison import Comparison
    from forgetmap.export import ReplaySummary

COMMANDS = {
    "replay": "Write training examples similar to the forgotten items.",
    "card": "Write the forgetting section of a model card.",
    "hub": "Write a data set of what happened to each item.",
    "space": "Write the report as a static Space of the Hugging Face hub.",
}
EXAMPLES = """\b
Examples:
  forgetmap export replay runs/base runs/tuned --pool train.jsonl --out replay.jsonl
  forgetmap export card runs/base runs/tuned --out README.md
  forgetmap export hub runs/base runs/tuned --out dataset
  forgetmap export space runs/base runs/tuned --out space
"""


@click.group("export", cls=CommandGroup, lines=COMMANDS, epilog=EXAMPLES)
def command() -> None:
    """Export the results of a comparison: training data, a model card, a data set.

    BEFORE and AFTER are the same as for `forgetmap compare`.
    """


def _pair_options(command: Command) -> Command:
    """Add the two runs, and options for reading, pairing and comparing them."""
    runs = [
        click.argument("before", type=click.Path()),
        click.argument("after", type=click.Path()),
    ]
    return with_options(command, [*runs, rule_options, table_options, log_options])


def _out_option(text: str) -> Callable[[Command], Command]:
    return click.option("--out", type=click.Path(path_type=Path), required=True, help=text)


def _compare(
    before: str, after: str, out: Path, options: dict[str, Any], **more: Any
) -> Comparison:
    """Compare two runs; refuse to overwrite an input."""
    from rich.console import Console

    from forgetmap.comparison import compare

    refuse_overwriting_inputs(out, (before, after, *filter(None, [options["noise"]])))
    with Console(stderr=True).status("Pairing items ...") as status:
        options["progress"] = reading_progress(status)
        comparison: Comparison = compare(before, after, **options, **more)
    return comparison


REPLAY_EXAMPLES = """\b
Examples:
  forgetmap export replay runs/base runs/tuned --pool train.jsonl --out replay.jsonl
  forgetmap export replay runs/base runs/tuned --pool a.csv --pool b.parquet --out replay.jsonl
  forgetmap export replay logs/base logs/tuned --pool chats.jsonl --limit 2000 --out replay.jsonl
  forgetmap export replay runs/base runs/tuned --include-measured --out replay.jsonl
"""


@command.command("replay", epilog=REPLAY_EXAMPLES)
@_out_option("JSON Lines file to write.")
@click.option(
    "--pool",
    multiple=True,
    type=click.Path(),
    help=(
        "Where to choose examples from: a JSON Lines, JSON, CSV or Parquet file with messages, "
        "or with prompt and completion; or a run or log with questions and right answers. "
        "Repeatable."
    ),
)
@click.option(
    "--pool-columns",
    type=ColumnsType(),
    help=(
        "Column names of --pool, such as prompt=q,completion=a or messages=chat [default: "
        "recognised by name]."
    ),
)
@click.option(
    "--format",
    "row_format",
    type=click.Choice(get_args(RowFormat)),
    default="chat",
    show_default=True,
    help="Row format for TRL: messages, or a prompt and a completion.",
)
@click.option(
    "--per-item",
    type=click.IntRange(1),
    default=PER_ITEM,
    show_default=True,
    help="Maximum number of examples per forgotten item.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Maximum number of examples in total; the most similar come first [default: all].",
)
@click.option(
    "--min-similarity",
    type=click.FloatRange(0, 1),
    default=MIN_SIMILARITY,
    show_default=True,
    help="Minimum similarity of an example to a forgotten item; 1 means identical words.",
)
@click.option(
    "--include-measured",
    is_flag=True,
    help=(
        "Also write the forgotten items themselves. They can no longer be used for measurement "
        "afterwards [default: no evaluation item is written]."
    ),
)
@click.option(
    "--excluded",
    type=click.Path(path_type=Path),
    help=(
        "JSON Lines file for the examples that were left out, each with the item it would leak "
        "[default: only counted]."
    ),
)
@click.option(
    "--skip-unusable",
    is_flag=True,
    help="Skip rows of --pool that have no text [default: the first one is an error].",
)
@overwrite_option
@json_option
@_pair_options
def replay(before: str, after: str, **options: Any) -> None:
    """Write training examples similar to the items that AFTER forgot, for replay.

    For each forgotten item, the most similar examples of --pool are chosen. Examples that equal,
    contain or paraphrase an item of either run are left out, regardless of case, punctuation, white
    space, order of options and surrounding text.
    """
    from forgetmap.export import write_replay

    as_json, out = options.pop("as_json"), options.pop("out")
    names = ("pool", "pool_columns", "row_format", "per_item", "limit", "min_similarity",
             "include_measured", "excluded", "skip_unusable", "overwrite")  # fmt: skip
    chosen = {name: options.pop(name) for name in names}
    for path in filter(None, (out, chosen["excluded"])):
        refuse_overwriting_inputs(path, chosen["pool"])
    summary = write_replay(_compare(before, after, out, options), out, **chosen)
    for notice in summary.notices:
        click.secho(f"Warning: {notice}", fg="yellow", bold=True, err=True)
    click.echo(summary.to_json() if as_json else _tell_replay(summary))


def _tell_replay(summary: ReplaySummary) -> str:
    from forgetmap.text import counted, printable

    lines = []
    if summary.pool:
        words = {
            "same": "identical",
            "contains": "containing an item",
            "part": "containing a long part of an item",
            "reworded": "paraphrased",
        }
        why = ", ".join(f"{n:,} {words[name]}" for name, n in summary.excluded.items() if n)
        left_out = sum(summary.excluded.values())
        lines.append(
            f"Left out of {counted(summary.pool, 'example')} because of "
            f"{counted(summary.guarded, 'evaluation item')}: {left_out:,}{why and f' ({why})'}."
        )
        if summary.repeated or summary.unusable:
            lines.append(
                f"Also left out: {summary.repeated:,} duplicates, {summary.unusable:,} without "
                "text."
            )
        lines.append(
            f"{summary.reached:,} of {counted(summary.forgotten, 'forgotten item')} have examples; "
            f"median similarity {summary.similarity}."
        )
    count = counted(summary.rows, "training example")
    lines.append(
        printable(
            f"Written to {summary.out}: {count}, {summary.measured:,} of them evaluation items."
        )
    )
    return "\n".join(lines)


CARD_EXAMPLES = """\b
Examples:
  forgetmap export card runs/base runs/tuned --out README.md
  forgetmap export card runs/base runs/tuned --margin 0.01 --rows 20 --out models/tuned/README.md
"""
_SETTINGS = ("metric", "min_paired", "margin", "noise_floor", "level", "correct_at", "pair_by",
             "estimator", "rollup", "task_table")  # fmt: skip


@command.command("card", epilog=CARD_EXAMPLES)
@_out_option("Model card. An earlier section is replaced; the rest of the file is kept.")
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=CARD_ROWS,
    show_default=True,
    help="Number of categories or tasks in the table, largest losses first.",
)
@json_option
@_pair_options
def card(before: str, after: str, **options: Any) -> None:
    """Write the "Forgetting" section of a model card: verdict, estimate, categories and method.

    The section is enclosed in two comments and is replaced when you write it again. It quotes no
    questions or answers.
    """
    from forgetmap.export import write_card
    from forgetmap.text import printable

    as_json, out, rows = (options.pop(name) for name in ("as_json", "out", "rows"))
    comparison = _compare(before, after, out, options, texts=False)
    summary = write_card(comparison, out, command=_typed(before, after), rows=rows)
    if as_json:
        click.echo(summary.to_json())
        return
    click.echo(printable(summary.headline))
    done = {"made": "made", "added": "section added", "replaced": "section replaced"}
    click.echo(printable(f"Written to {out} ({done[summary.action]})."))


def _typed(before: str, after: str) -> str:
    """Return the command of the comparison, with paths shortened to their names."""
    context = click.get_current_context()
    words = ["forgetmap", "compare", Path(before).name, Path(after).name]
    words += typed_words(_SETTINGS)
    if context.params.get("noise"):
        words += ["--noise", Path(context.params["noise"]).name]
    return shlex.join(words)


SPACE_EXAMPLES = """\b
Examples:
  forgetmap export space runs/base runs/tuned --out space
  forgetmap export space runs/base runs/tuned --texts --out space
"""
HUB_EXAMPLES = """\b
Examples:
  forgetmap export hub runs/base runs/tuned --license cc-by-4.0 --out dataset
  forgetmap export hub runs/base runs/tuned --texts --out private-dataset
"""


@command.command("hub", epilog=HUB_EXAMPLES)
@_out_option("Folder to write.")
@click.option("--license", help="License of the data set, such as cc-by-4.0 [default: none].")
@click.option("--name", help="Name of the data set [default: the names of the runs].")
@click.option(
    "--texts",
    is_flag=True,
    help=(
        "Also write questions, options, answers and responses. Models can be trained on benchmarks "
        "published this way [default: only names, scores and outcomes]."
    ),
)
@overwrite_option
@json_option
@_pair_options
def hub(before: str, after: str, **options: Any) -> None:
    """Write a data set of what happened to each item, with a data set card, for `load_dataset`.

    Nothing is uploaded.
    """
    from forgetmap.export import write_hub
    from forgetmap.text import counted, printable

    as_json, out = options.pop("as_json"), options.pop("out")
    chosen = {name: options.pop(name) for name in ("license", "name", "texts", "overwrite")}
    comparison = _compare(before, after, out, options, texts=chosen["texts"])
    summary = write_hub(comparison, out, **chosen)
    if as_json:
        click.echo(summary.to_json())
        return
    if summary.texts:
        click.secho("Warning: the data set contains questions and answers.", fg="yellow", err=True)
    rows = counted(summary.rows, "transition")
    click.echo(printable(f'Written to {out}: {rows}. Load it with load_dataset("{out}").'))


@command.command("space", epilog=SPACE_EXAMPLES)
@_out_option("Folder to write.")
@click.option(
    "--texts",
    is_flag=True,
    help="Show questions, answers and responses [default: names, scores and outcomes only].",
)
@overwrite_option
@_pair_options
def space(before: str, after: str, **options: Any) -> None:
    """Write the report as a folder that the Hugging Face hub shows as a static Space.

    Nothing is uploaded.
    """
    from forgetmap.report import write_space
    from forgetmap.text import printable

    out, texts, overwrite = (options.pop(name) for name in ("out", "texts", "overwrite"))
    comparison = _compare(before, after, out, options, texts=texts)
    write_space(comparison, Path(out), texts=texts, overwrite=overwrite)
    upload = f"hf upload OWNER/NAME {shlex.quote(str(out))} . --repo-type space"
    click.echo(printable(f"Written to {out}. Upload it with: {upload}"))
