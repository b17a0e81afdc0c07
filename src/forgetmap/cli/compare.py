"""`forgetmap compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from forgetmap.cli.comparing import comparison_options, spare_inputs
from forgetmap.cli.options import by_option, json_option, overwrite_option
from forgetmap.cli.reading import reading_progress
from forgetmap.comparison import (
    CELL_NAMES,
    KINDS,
    Chain,
    Comparison,
    FanOut,
    Kind,
    print_comparison,
    write_result,
)
from forgetmap.comparison import compare as compare_runs
from forgetmap.errors import UsageError
from forgetmap.records import reading, refuse_to_replace
from forgetmap.text import printable

EXAMPLES = """\b
Examples:
  forgetmap compare runs/base runs/tuned
  forgetmap compare base.csv tuned.csv --map item=question_id,score=correct --by task
  forgetmap compare runs/base runs/sft runs/dpo --json > result.json
  forgetmap compare runs/base runs/sft runs/rl --chain --out result
  forgetmap compare runs/base runs/tuned --show forgotten --limit 50
  forgetmap compare runs/base runs/tuned --noise runs/base-again
  forgetmap compare lm-eval-logs/base inspect-logs/tuned.eval
  forgetmap compare runs/base runs/tuned --rollup post-forget --task-table corrected
"""


@click.command(epilog=EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path(), nargs=-1, required=True)
@by_option("Lines of the table; tasks where nothing has a category.")
@comparison_options
@json_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder for all tables and items.")
@overwrite_option
@click.option("--show", type=click.Choice(list(KINDS)), help="List these items with both answers.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many.")
def compare(before: str, after: tuple[str, ...], **options: Any) -> None:
    """What did the model AFTER forget, and gain, against the model BEFORE?

    BEFORE and AFTER are run folders, logs of an evaluation harness as it wrote them, or tables
    with columns task, item and score; on disk, or under https://, s3://, gs:// or hf://.
    Several AFTER are each compared with BEFORE; with --chain they are checkpoints.
    """
    show, limit, by = options.pop("show"), options.pop("limit"), options.pop("by")
    out, overwrite = options.pop("out"), options.pop("overwrite")
    as_json = options.pop("as_json")
    if as_json and show:
        raise UsageError(
            "--json and --show do not go together", hint="--out writes the numbers and the items."
        )
    if out is not None:
        refuse_to_replace(out, overwrite=overwrite)
        spare_inputs(out, (before, *after, *filter(None, [options["noise"]])))
    with Console(stderr=True).status("Pairing and counting ...") as status:
        options["progress"] = reading_progress(status)
        result: Comparison | FanOut | Chain = compare_runs(before, *after, **options)
        if out is not None:
            write_result(result, out, overwrite=overwrite)
    if as_json:
        click.echo(result.to_json())
        return
    console = Console()
    print_comparison(console, result.result, by=by)
    for comparison in _shown(result) if show else ():
        _print_flips(console, comparison, show, limit)
    if out is not None:
        click.echo(f"\n{printable(f'Written to {out}')}")


def _shown(result: Comparison | FanOut | Chain) -> Sequence[Comparison]:
    """The comparisons to list items of; of a chain the first checkpoint with the last."""
    if isinstance(result, Chain):
        return result.comparisons[-1:]
    return result.comparisons if isinstance(result, FanOut) else (result,)


def _print_flips(console: Console, comparison: Comparison, kind: Kind, limit: int) -> None:
    with reading(comparison.before, comparison.after):
        rows = comparison.flip_frame(kind, texts=True, limit=limit).collect().rows(named=True)
    total = getattr(comparison.result.total, CELL_NAMES[KINDS[kind]])
    found = f"{kind} ({comparison.after.name}): {len(rows):,} of {total:,}"
    console.print(Text(f"\n{printable(found)}", style="bold"))
    for row in rows:
        name = printable(f"{row['task']} / {row['item']}{_repeat(row)}")
        console.print(Text(f"\n{name}", style="bold"))
        for label, column in _SHOWN.items():
            if row.get(column) is not None:
                text = printable(" ".join(str(row[column]).split()))
                console.print(Text(f"  {label:<9}{text}"), overflow="ellipsis", no_wrap=True)


_SHOWN = {
    "question": "question",
    "gold": "gold",
    "before": "answer_before",
    "after": "answer_after",
    "ended": "outcome_after",
    "said": "response_after",
}


def _repeat(row: dict[str, Any]) -> str:
    return f" (repeat {row['repeat']})" if row["repeat"] else ""
