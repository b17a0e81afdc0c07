"""`forgetmap probe`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.groups import CommandGroup
from forgetmap.cli.options import json_option, overwrite_option
from forgetmap.cli.options.evaluate import data_root_option, item_columns_option
from forgetmap.cli.typed_options import typed_words
from forgetmap.comparison import LEVEL

if TYPE_CHECKING:
    from rich.table import Table

    from forgetmap.probe import GroupFinding, Probe

COMMANDS = {
    "choose": "Choose a small set of items that the model before knows reliably.",
    "check": "Check a model for forgetting with a run on the chosen items.",
}
EXAMPLES = """\b
Examples:
  forgetmap probe runs/base --suite basics --detect 0.05 --out probe.jsonl
  forgetmap run models/tuned --suite probe.jsonl --out runs/tuned-probe
  forgetmap probe check probe.jsonl runs/tuned-probe
"""

_metric_option = click.option(
    "--metric", help="Metric to use, METRIC or METRIC/SCORER [default: the main one of each task]."
)


@click.group("probe", cls=CommandGroup, lines=COMMANDS, default="choose", epilog=EXAMPLES)
def command() -> None:
    """Choose a small set of items that detects forgetting as well as a full run.

    `forgetmap probe RUN --suite SUITE --out FILE` chooses the items from a full run of the model
    before training. See `forgetmap probe choose --help` for its options.
    """


CHOOSE_EXAMPLES = """\b
Examples:
  forgetmap probe choose runs/base --suite basics --out probe.jsonl
  forgetmap probe choose runs/seed-1 runs/seed-2 --suite items.csv --detect 0.02 --out probe.jsonl
"""
EVIDENCE = {
    "repeats": "right in every repeat",
    "margin": "right by a clear log-likelihood margin",
    "one answer": "right once, which does not show reliability",
}


@command.command("choose", epilog=CHOOSE_EXAMPLES)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="File of items to write."
)
@click.option(
    "--suite",
    help="Suite of the runs, as for `run` [default: as recorded in the runs].",
)
@item_columns_option
@data_root_option
@click.option(
    "--detect",
    type=float,
    default=0.05,
    show_default=True,
    help="Forgetting to detect in each group, as a share of the reliably known items.",
)
@click.option(
    "--by",
    type=click.Choice(["category", "task", "total"]),
    default="category",
    show_default=True,
    help="Groups in which to detect forgetting.",
)
@click.option(
    "--lead",
    type=float,
    default=1.0,
    show_default=True,
    help="Minimum log-likelihood lead of the right answer to count as reliably known.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed for choosing items."
)
@_metric_option
@json_option
@overwrite_option
def choose(runs: tuple[str, ...], out: Path, **options: Any) -> None:
    """Choose a small set of items that RUNS of the model before training answer reliably."""
    from forgetmap.evaluation import load_suite
    from forgetmap.probe import choose_probe, write_probe

    name = options["suite"]
    suite = None
    if name is not None:
        loaded = load_suite(name, column_map=options["column_map"], root=options["data_root"])
        suite = (_suite_name(name, out), loaded)
    names = ("detect", "by", "lead", "seed", "metric")
    probe = choose_probe(runs, suite=suite, **{key: options[key] for key in names})
    write_probe(probe, out, overwrite=options["overwrite"])
    if options["as_json"]:
        click.echo(probe.to_json())
    else:
        _print_probe(probe, out)


def _suite_name(name: str, out: Path) -> str:
    """Return the name of a file of items beside the probe, else its full path."""
    path = Path(name)
    if not path.is_file():
        return name
    is_beside = path.absolute().parent == out.absolute().parent
    return path.name if is_beside else str(path.absolute())


def _print_probe(probe: Probe, out: Path) -> None:
    """Show what was chosen, and how to evaluate it: as the suite was read."""
    from rich.console import Console
    from rich.table import Table

    from forgetmap.text import counted, percent, printable

    table = Table(box=None, pad_edge=False)
    for name in ("", "items", "known stably", "chosen", "noise", "detects"):
        table.add_column(name, justify="left" if not name else "right")
    for group in probe.groups:
        table.add_row(
            printable(group.name),
            f"{group.items:,}",
            f"{group.stable:,}",
            f"{group.chosen:,}",
            percent(group.noise),
            percent(group.detectable),
        )
    Console(highlight=False).print(table)
    items = sum(group.items for group in probe.groups)
    stable = sum(group.stable for group in probe.groups)
    click.echo(
        "\n"
        f"{counted(len(probe.rows), 'item')} of {items:,}. Known reliably: "
        f"{EVIDENCE[probe.evidence]}.\n"
        f"The probe cannot detect gains, or losses among the {items - stable:,} items that are not "
        "reliably known."
    )
    if any(group.detectable is None or group.detectable > probe.detect for group in probe.groups):
        click.echo(
            f"Some groups have too few reliable items to detect {percent(probe.detect)}; all of "
            "theirs are included."
        )
    words = ["--suite", str(out), *typed_words({"column_map", "data_root"})]
    click.echo(
        printable(
            f"Written to {out}. Evaluate the model before again and the model after, both with "
            f"{shlex.join(words)}: answers that helped to choose the items prove nothing."
        )
    )


CHECK_EXAMPLES = """\b
Examples:
  forgetmap probe check probe.jsonl runs/tuned-probe --before runs/base-probe
  forgetmap probe check probe.jsonl runs/tuned-probe --chosen-from runs/base --full runs/tuned
"""


@command.command("check", epilog=CHECK_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path())
@click.option(
    "--before",
    type=click.Path(),
    help="Run of the model before on FILE, made after the items were chosen [default: none, so "
    "nothing is proven].",
)
@click.option(
    "--look",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Which check with this probe it is; later checks are stricter.",
)
@click.option(
    "--chosen-from",
    multiple=True,
    type=click.Path(),
    help="Full run from which the probe was chosen, for --full. Repeatable.",
)
@click.option(
    "--full",
    type=click.Path(),
    help="Full run of the model after, to compare with [default: none].",
)
@click.option(
    "--level",
    type=float,
    default=LEVEL,
    show_default=True,
    help="Confidence level of the intervals and the verdicts.",
)
@_metric_option
@json_option
def check(file: Path, run: str, **options: Any) -> None:
    """Check a model for forgetting with a RUN on the items of FILE.

    Needs a run of the model before on the same items, made after they were chosen. With
    --chosen-from and --full, also shows whether full runs agree.
    """
    from forgetmap.probe import check_probe, findings_json

    as_json = options.pop("as_json")
    findings = check_probe(file, run, **options)
    if as_json:
        click.echo(findings_json(findings))
        return
    _print_findings(findings, file, is_judged=options["before"] is not None)


def _print_findings(findings: list[GroupFinding], file: Path, *, is_judged: bool) -> None:
    from rich.console import Console

    from forgetmap.stats import LOSSES
    from forgetmap.text import percent, printable, share

    Console(highlight=False).print(_table(findings))
    lost = [
        f"{finding.name} (at least {share(finding.low)})"
        for finding in findings
        if finding.verdict in LOSSES
    ]
    click.echo()
    if is_judged:
        click.echo(printable(f"Lost in: {', '.join(lost)}." if lost else "No loss is proven."))
    else:
        click.echo(
            printable(
                "Cannot tell: the model before helped to choose these items. Ask it again with "
                f"--suite {file}, and pass that run as --before."
            )
        )
    click.echo("Forgotten: wrong now, of what was reliably known; noise included.")
    missing = sum(finding.missing for finding in findings)
    if missing:
        click.echo(f"{missing:,} chosen items have no scored answer.")
    for finding in findings:
        full = finding.full
        if full is not None:
            click.echo(
                printable(
                    f"{finding.name}: the full runs lost {percent(full.forgetting)} of all items, "
                    f"{percent(full.unseen)} outside the reach of the probe, and gained "
                    f"{percent(full.gained)}."
                )
            )


def _table(findings: list[GroupFinding]) -> Table:
    from rich.table import Table

    has_full = any(finding.full for finding in findings)
    table = Table(box=None, pad_edge=False)
    heads = ["", "asked", "of", "forgotten", "between", "verdict"]
    for name in heads + (["full", "within"] if has_full else []):
        table.add_column(name, justify="right" if name else "left")
    for finding in findings:
        table.add_row(*_cells(finding))
    return table


def _cells(finding: GroupFinding) -> list[str]:
    from forgetmap.comparison import verdict_words
    from forgetmap.text import percent, printable

    found = finding.forgotten
    cells = [printable(finding.name), f"{found.asked:,}", f"{found.of:,}"]
    if found.asked:
        cells += [percent(found.value), f"{percent(found.low)} and {percent(found.high)}"]
        cells += [verdict_words(finding)]
    else:
        cells += ["-"] * 3
    if finding.full is not None:
        within = {True: "yes", False: "no", None: "-"}[finding.agrees]
        cells += [percent(finding.full.share), within]
    return cells
