"""`forgetmap probe choose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options.evaluate import data_root_option, item_columns_option
from forgetmap.cli.options.output import json_option, overwrite_option
from forgetmap.cli.probe import metric_option

if TYPE_CHECKING:
    from forgetmap.probe import Probe

EXAMPLES = """\b
Examples:
  forgetmap probe choose runs/base --suite basics --out probe.jsonl
  forgetmap probe choose runs/seed-1 runs/seed-2 --suite items.csv --detect 0.02 --out probe.jsonl
"""
EVIDENCE = {
    "repeats": "right every time",
    "margin": "right by a clear margin of log-likelihood",
    "one answer": "right once, which says nothing about how stably",
}


@click.command("choose", epilog=EXAMPLES)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="File of items to write."
)
@click.option(
    "--suite",
    help="Suite that the runs were asked, as for `run`; items are asked as there "
    "[default: as the runs recorded them].",
)
@item_columns_option
@data_root_option
@click.option(
    "--detect",
    type=float,
    default=0.05,
    show_default=True,
    help="Forgetting to detect in each group, as a share of what is known stably.",
)
@click.option(
    "--by",
    type=click.Choice(["category", "task", "total"]),
    default="category",
    show_default=True,
    help="What the groups are.",
)
@click.option(
    "--lead",
    "margin",
    type=float,
    default=1.0,
    show_default=True,
    help="Log-likelihood by which the right answer must lead to count as known stably.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the choice.")
@metric_option
@json_option
@overwrite_option
def command(runs: tuple[str, ...], out: Path, **options: Any) -> None:
    """Choose few items that RUNS of the model before know stably."""
    from forgetmap.evaluation import load_suite
    from forgetmap.probe import choose_probe, write_probe

    name = options["suite"]
    suite = None
    if name is not None:
        loaded = load_suite(name, column_map=options["column_map"], root=options["data_root"])
        suite = (_suite_name(name, out), loaded)
    names = ("detect", "by", "margin", "seed", "metric")
    probe = choose_probe(runs, suite=suite, **{key: options[key] for key in names})
    write_probe(probe, out, overwrite=options["overwrite"])
    if options["as_json"]:
        click.echo(probe.to_json())
    else:
        _print_probe(probe, out)


def _suite_name(name: str, out: Path) -> str:
    """A file of items by its name if it lies beside the probe, else by its whole path."""
    path = Path(name)
    if not path.is_file():
        return name
    is_beside = path.absolute().parent == out.absolute().parent
    return path.name if is_beside else str(path.absolute())


def _print_probe(probe: Probe, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from forgetmap.text import counted, percent, printable

    table = Table(box=None, pad_edge=False)
    for name in ("", "items", "known stably", "chosen", "unchanged, wrong", "detects"):
        table.add_column(name, justify="left" if not name else "right")
    for group in probe.groups:
        table.add_row(
            printable(group.name),
            f"{group.items:,}",
            f"{group.stable:,}",
            f"{group.chosen:,}",
            percent(group.floor),
            percent(group.detectable),
        )
    Console(highlight=False).print(table)
    items = sum(group.items for group in probe.groups)
    stable = sum(group.stable for group in probe.groups)
    click.echo(
        f"\n{counted(len(probe.rows), 'item')} of {items:,}. Known stably: "
        f"{EVIDENCE[probe.evidence]}.\nThe probe does not see gains, nor losses among the "
        f"{items - stable:,} items that are not known stably."
    )
    if any(group.detectable is None or group.detectable > probe.detect for group in probe.groups):
        click.echo(
            f"Some groups have too few such items to detect {percent(probe.detect)}: all are taken."
        )
    click.echo(printable(f"Written to {out}. Run a model with --suite {out}."))
