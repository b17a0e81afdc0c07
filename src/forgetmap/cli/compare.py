"""`forgetmap compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console
from rich.text import Text

from forgetmap.cli.options import json_option, overwrite_option, table_options
from forgetmap.errors import UsageError
from forgetmap.pairing.keys import PairBy
from forgetmap.transitions.chains import Chain
from forgetmap.transitions.compare import FanOut
from forgetmap.transitions.compare import compare as compare_runs
from forgetmap.transitions.comparison import Comparison
from forgetmap.transitions.coverage import MIN_PAIRED
from forgetmap.transitions.export import write_result
from forgetmap.transitions.flips import KINDS, Kind
from forgetmap.transitions.render import print_chain, print_comparison, printable

EXAMPLES = """\b
Examples:
  forgetmap compare runs/base runs/tuned
  forgetmap compare base.csv tuned.csv --map item=question_id,score=correct --by task
  forgetmap compare runs/base runs/sft runs/dpo --json > result.json
  forgetmap compare runs/base runs/sft runs/rl --chain --out result
  forgetmap compare runs/base runs/tuned --show forgotten --limit 50
"""


@click.command(epilog=EXAMPLES)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path(), nargs=-1, required=True)
@click.option("--chain", is_flag=True, help="The runs are checkpoints, one trained from the other.")
@click.option(
    "--by",
    type=click.Choice(["task", "category", "tag"]),
    default="category",
    show_default=True,
    help="Lines of the table.",
)
@click.option("--metric", help="METRIC or METRIC/SCORER, where there are several.")
@table_options
@click.option(
    "--min-paired",
    type=float,
    default=MIN_PAIRED,
    show_default=True,
    help="Refuse if a smaller share of the smaller side pairs.",
)
@click.option(
    "--correct-at",
    type=float,
    default=0.5,
    show_default=True,
    help="The score from which on an answer counts as right.",
)
@click.option(
    "--pair-by",
    type=click.Choice(get_args(PairBy)),
    default="auto",
    show_default=True,
    help="What makes two items the same: content where both sides have it, else id.",
)
@json_option
@click.option("--out", type=click.Path(path_type=Path), help="Write all tables into this folder.")
@overwrite_option
@click.option("--show", type=click.Choice(list(KINDS)), help="List these items with both answers.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="With --show.")
def compare(before: str, after: tuple[str, ...], **options: Any) -> None:
    """What did the model AFTER forget, and gain, against the model BEFORE?

    BEFORE and AFTER are run folders, or CSV, JSON lines or Parquet tables with columns task, item
    and score. Several AFTER are each compared with BEFORE; with --chain they are checkpoints.
    """
    show, limit, by = options.pop("show"), options.pop("limit"), options.pop("by")
    out, overwrite = options.pop("out"), options.pop("overwrite")
    as_json = options.pop("as_json")
    if as_json and show:
        raise UsageError("--json and --show do not go together", hint="use --out for both.")
    progress = Console(stderr=True)
    with progress.status("Pairing and counting ..."):
        result: Comparison | FanOut | Chain = compare_runs(before, *after, **options)
        if out is not None:
            write_result(result, out, overwrite=overwrite)
    if as_json:
        click.echo(result.to_json())
        return
    _print(result, by=by, show=show, limit=limit)
    if out is not None:
        click.echo(f"\nWritten to {out}")


def _print(result: Comparison | FanOut | Chain, *, by: str, show: Kind | None, limit: int) -> None:
    console = Console()
    if isinstance(result, Chain):
        print_chain(console, result.result)
        shown: tuple[Comparison, ...] = (result.comparisons[-1],)
    else:
        shown = tuple(result) if isinstance(result, FanOut) else (result,)
        for place, comparison in enumerate(shown):
            if place:
                console.rule()
            print_comparison(console, comparison.result, by=by)
    for comparison in shown if show else ():
        _print_flips(console, comparison, show or "forgotten", limit)


def _print_flips(console: Console, comparison: Comparison, kind: Kind, limit: int) -> None:
    rows = comparison.flip_frame(kind, texts=True, limit=limit).collect().rows(named=True)
    console.print(f"\n[bold]{kind}[/], {len(rows):,} shown:", highlight=False)
    for row in rows:
        console.print(
            Text(printable(f"\n{row['task']} / {row['item']}{_repeat(row)}"), style="bold")
        )
        for label, name in _SHOWN:
            if row.get(name) is not None:
                text = printable(" ".join(str(row[name]).split()))
                line = Text(f"  {label:<9}{text}")
                console.print(line, overflow="ellipsis", no_wrap=True)


_SHOWN = (
    ("question", "question"),
    ("gold", "gold"),
    ("before", "answer_before"),
    ("after", "answer_after"),
    ("ended", "outcome_after"),
    ("said", "response_after"),
)


def _repeat(row: dict[str, Any]) -> str:
    return f" (repeat {row['repeat']})" if row["repeat"] else ""
