"""`forgetmap probe`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import GroupWithDefault, MapType, json_option, overwrite_option

if TYPE_CHECKING:
    from forgetmap.probe import Finding, Probe

CHOOSE = "choose"
EXAMPLES = """\b
Examples:
  forgetmap probe runs/base --suite basics --detect 0.05 --out probe.jsonl
  forgetmap run models/tuned --suite probe.jsonl --out runs/tuned-probe
  forgetmap probe check probe.jsonl runs/tuned-probe
"""
CHOOSE_EXAMPLES = """\b
Examples:
  forgetmap probe choose runs/base --suite basics --out probe.jsonl
  forgetmap probe choose runs/seed-1 runs/seed-2 --suite items.csv --detect 0.02 --out probe.jsonl
"""
CHECK_EXAMPLES = """\b
Examples:
  forgetmap probe check probe.jsonl runs/tuned-probe
  forgetmap probe check probe.jsonl runs/tuned-probe --before runs/base --full runs/tuned
"""
STABLE = {
    "repeats": "right every time",
    "margin": "right by a clear margin of log-likelihood",
    "one answer": "right once, which says nothing about how stably",
}


@click.group(cls=GroupWithDefault, default=CHOOSE, epilog=EXAMPLES)
def probe() -> None:
    """Which few items show forgetting as a full run would?

    `forgetmap probe RUN --suite SUITE --out FILE` chooses them from a full run of the model before;
    `forgetmap probe choose --help` lists its options.
    """


@probe.command(CHOOSE, epilog=CHOOSE_EXAMPLES)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file of items.")
@click.option("--suite", help="What the runs were asked, as for `run`; items are asked as there.")
@click.option("--map", "column_map", type=MapType(), help="Columns of a file of items.")
@click.option(
    "--data-root",
    type=click.Path(path_type=Path),
    envvar="FORGETMAP_DATA",
    help="Folder with local copies of hub data sets.",
)
@click.option(
    "--detect",
    type=float,
    default=0.05,
    show_default=True,
    help="Forgetting to be seen in each group, as a share of what is known stably.",
)
@click.option(
    "--by",
    type=click.Choice(["category", "task", "total"]),
    default="category",
    show_default=True,
    help="What the groups are.",
)
@click.option(
    "--margin",
    type=float,
    default=1.0,
    show_default=True,
    help="By which one answer must lead, in log-likelihood, to count as stable.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the choice.")
@click.option("--metric", help="METRIC or METRIC/SCORER, where a run has several.")
@json_option
@overwrite_option
def choose(runs: tuple[str, ...], out: Path, **options: Any) -> None:
    """Choose few items that RUNS of the model before know stably."""
    from forgetmap.evaluation import load_suite
    from forgetmap.probe import choose_probe, write_probe  # heavy

    name = options["suite"]
    suite = None
    if name is not None:
        where = {"column_map": options["column_map"], "root": options["data_root"]}
        suite = (_named_from(name, out), load_suite(name, **where))
    found = choose_probe(
        runs,
        suite=suite,
        **{key: options[key] for key in ("detect", "by", "margin", "seed", "metric")},
    )
    write_probe(found, out, overwrite=options["overwrite"])
    if options["as_json"]:
        click.echo(found.to_json())
    else:
        _print_probe(found, out)


def _named_from(name: str, out: Path) -> str:
    """A file of items by its name if it lies beside the probe, else by its whole path."""
    path = Path(name)
    if not path.is_file():
        return name
    beside = path.absolute().parent == out.absolute().parent
    return path.name if beside else str(path.absolute())


def _print_probe(found: Probe, out: Path) -> None:
    from rich.console import Console  # heavy
    from rich.table import Table

    from forgetmap.text import counted, percent, printable

    table = Table(box=None, pad_edge=False)
    for name in ("", "items", "known stably", "chosen", "unchanged, wrong", "detects"):
        table.add_column(name, justify="left" if not name else "right")
    for each in found.groups:
        table.add_row(
            printable(each.name),
            f"{each.items:,}",
            f"{each.stable:,}",
            f"{each.chosen:,}",
            percent(each.floor),
            percent(each.detectable),
        )
    console = Console(highlight=False)
    console.print(table)
    items = sum(each.items for each in found.groups)
    stable = sum(each.stable for each in found.groups)
    click.echo(
        f"\n{counted(len(found.rows), 'item')} of {items:,}. Known stably: "
        f"{STABLE[found.evidence]}.\nThe probe does not see gains, nor losses among the "
        f"{items - stable:,} items that are not known stably."
    )
    if any(each.detectable is None or each.detectable > found.detect for each in found.groups):
        click.echo(
            f"Some groups have too few such items to detect {percent(found.detect)}: all are taken."
        )
    click.echo(printable(f"Written to {out}. Run a model with --suite {out}."))


@probe.command(epilog=CHECK_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path())
@click.option(
    "--before",
    multiple=True,
    type=click.Path(),
    help="Full run the probe was chosen from; may be given several times.",
)
@click.option("--full", type=click.Path(), help="Full run of the model after, to compare with.")
@click.option("--metric", help="METRIC or METRIC/SCORER, where a run has several.")
@json_option
def check(file: Path, run: str, **options: Any) -> None:
    """What does a RUN on the items of FILE say of forgetting?

    With --before and --full also whether full runs say the same.
    """
    from forgetmap.probe import check_probe, findings_json  # heavy

    chosen = {key: options[key] for key in ("before", "full", "metric")}
    findings = check_probe(file, run, **chosen)
    if options["as_json"]:
        click.echo(findings_json(findings))
        return
    _print_findings(findings)


def _print_findings(findings: list[Finding]) -> None:
    from rich.console import Console  # heavy
    from rich.table import Table

    from forgetmap.text import percent, printable

    full = any(each.full for each in findings)
    table = Table(box=None, pad_edge=False)
    heads = ["", "asked", "of", "lost", "of these items", "of items like these", "p"]
    for name in heads + (["full", "within"] if full else []):
        table.add_column(name, justify="right" if name else "left")
    for each in findings:
        lost = each.lost
        cells = [printable(each.name), f"{lost.asked:,}", f"{lost.of:,}"]
        if lost.asked:
            cells += [percent(lost.value), f"{percent(lost.low)} to {percent(lost.high)}"]
            cells += [f"{percent(lost.wide_low)} to {percent(lost.wide_high)}", _p(each.p)]
        else:
            cells += ["-"] * 4
        if each.full is not None:
            within = {True: "yes", False: "no", None: "-"}[each.agrees]
            cells += [percent(each.full.share), within]
        table.add_row(*cells)
    Console(highlight=False).print(table)
    alarms = [each.name for each in findings if each.alarm]
    words = f"Forgot: {', '.join(alarms)}." if alarms else "No group shows forgetting."
    click.echo()
    click.echo(printable(f"{words} Lost means: of what was known stably before."))
    missing = sum(each.missing for each in findings)
    if missing:
        click.echo(f"{missing:,} chosen items have no scored answer.")
    for each in findings:
        if each.full is not None:
            click.echo(
                printable(
                    f"{each.name}: the full runs lost {percent(each.full.forgetting)} of all items,"
                    f" {percent(each.full.unseen)} where no probe sees it, and gained "
                    f"{percent(each.full.gained)}."
                )
            )


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"  # as it is printed
