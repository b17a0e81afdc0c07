"""`forgetmap compare`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from forgetmap.cli.next_commands import each_next_commands, next_commands
from forgetmap.cli.options import (
    json_option,
    overwrite_option,
    refuse_overwriting_inputs,
)
from forgetmap.cli.options.compare import comparison_options, details_option, table_option
from forgetmap.cli.options.logs import engine_options, reading_progress
from forgetmap.comparison import Kind
from forgetmap.errors import ForgetmapError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from forgetmap.comparison import Chain, Comparison, FanOut

EXAMPLES = """\b
Examples:
  forgetmap compare runs/base runs/tuned
  forgetmap compare base.csv tuned.csv --columns item=question_id,score=correct --by task
  forgetmap compare runs/base runs/sft runs/dpo --json > result.json
  forgetmap compare runs/base runs/sft runs/rl --chain --out result
  forgetmap compare runs/base runs/tuned --show forgotten --limit 50
  forgetmap compare runs/base runs/tuned --details
  forgetmap compare runs/base runs/tuned --noise runs/base-again
  forgetmap compare logs/base logs/tuned --confirm confirm/rerun-before confirm/rerun-after
  forgetmap compare lm-eval-logs/base inspect-logs/tuned.eval
  forgetmap compare s3a://evals/base s3a://evals/tuned --engine spark --master spark://HOST:7077
  forgetmap compare runs/base runs/tuned --rollup post-forget --task-table corrected
"""
MAX_MODELS = 6
ITEM_LINES = {
    "question": "question",
    "gold": "gold",
    "before": "answer_before",
    "after": "answer_after",
    "ended": "outcome_after",
    "said": "response_after",
}
"""Label -> column, in lists of items."""


@click.command("compare", epilog=EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path(), nargs=-1, metavar="AFTER...")
@table_option
@details_option
@comparison_options
@engine_options
@json_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder to write all tables and items to [default: nothing is written].",
)
@overwrite_option
@click.option(
    "--show",
    type=click.Choice(get_args(Kind)),
    help="List the items of this kind with both answers [default: no items].",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Number of items to list.",
)
def command(before: str, after: tuple[str, ...], **options: Any) -> None:
    """Compare a model before and after training: what it forgot and what it gained.

    BEFORE and AFTER are run folders, logs of an evaluation harness, or tables with the columns
    task, item and score. They can be local paths or https://, s3://, gs:// and hf:// addresses.
    Each AFTER is compared with BEFORE; with --chain the runs are successive checkpoints.
    """
    from rich.console import Console

    from forgetmap.comparison import FanOut, View, compare, print_comparison, write_result
    from forgetmap.records import refuse_to_replace
    from forgetmap.text import printable

    if not after:
        raise _single_source_error(before)
    show, limit = options.pop("show"), options.pop("limit")
    by, details = options.pop("by"), options.pop("details")
    out, overwrite = options.pop("out"), options.pop("overwrite")
    as_json = options.pop("as_json")
    if as_json and show:
        raise UsageError(
            "--json and --show cannot be combined",
            hint="use --out to write the numbers and the items to files.",
        )
    if out is not None:
        refuse_to_replace(out, overwrite=overwrite)
        reruns = filter(None, [options["noise"], *(options["confirm"] or ())])
        refuse_overwriting_inputs(out, (before, *after, *reruns))
    with Console(stderr=True).status("Pairing items ...") as status:
        options["progress"] = reading_progress(status)
        result: Comparison | FanOut | Chain = compare(before, *after, **options)
        if out is not None:
            write_result(result, out, overwrite=overwrite)
    if as_json:
        click.echo(result.to_json())
        return
    console = Console()
    sources = (before, *after)
    each = each_next_commands(sources) if isinstance(result, FanOut) else ()
    view = View(by=by, details=details, commands=next_commands(sources), each=each)
    print_comparison(console, result.result, view)
    for comparison in _comparisons(result) if show else ():
        _print_items(console, comparison, show, limit)
    if out is not None:
        click.echo(f"\n{printable(f'Written to {out}')}")


def _single_source_error(source: str) -> UsageError:
    """Name the models of a folder of logs: both may be in it."""
    from forgetmap._http import redact_url
    from forgetmap.sources import is_remote, recognise

    path = Path(source)
    try:
        logs = recognise(path) if path.exists() else []
    except ForgetmapError:  # reported when it is read
        logs = []
    models = sorted({log.info.model.name for log in logs if log.info.model.name})
    if len(models) < 2:
        source = redact_url(source) if is_remote(source) else source
        return UsageError(
            f"there is nothing to compare {source} with",
            hint=f"give the runs before and after: forgetmap compare {shlex.quote(source)} AFTER.",
        )
    words = ["forgetmap", "compare", source, source, "--run", models[0], "--run", models[1]]
    return UsageError(
        f"{source} contains results of {len(models)} models: {', '.join(models[:MAX_MODELS])}",
        hint=f"choose the models before and after: {shlex.join(words)}.",
    )


def _comparisons(result: Comparison | FanOut | Chain) -> Sequence[Comparison]:
    """Return the comparisons whose items are listed; for a chain, that of its two ends."""
    from forgetmap.comparison import Chain, FanOut

    if isinstance(result, Chain):
        return result.comparisons[-1:]
    return result.comparisons if isinstance(result, FanOut) else (result,)


def _print_items(console: Console, comparison: Comparison, kind: Any, limit: int) -> None:
    from rich.text import Text

    from forgetmap.comparison import CELL_NAMES, KINDS
    from forgetmap.records import reading
    from forgetmap.text import printable

    with reading(comparison.before, comparison.after):
        rows = comparison.flip_frame(kind, texts=True, limit=limit).collect().rows(named=True)
    total = getattr(comparison.result.total, CELL_NAMES[KINDS[kind]])
    amount = f"{len(rows):,} of {total:,}" if total else "no items"
    title = f"{kind} ({comparison.after.name}): {amount}"
    console.print(Text(f"\n{printable(title)}", style="bold"))
    for row in rows:
        repeat = f" (repeat {row['repeat']})" if row["repeat"] else ""
        name = printable(f"{row['task']} / {row['item']}{repeat}")
        console.print(Text(f"\n{name}", style="bold"))
        for label, column in ITEM_LINES.items():
            if row.get(column) is not None:
                text = printable(" ".join(str(row[column]).split()))
                console.print(Text(f"  {label:<9}{text}"), overflow="ellipsis", no_wrap=True)
