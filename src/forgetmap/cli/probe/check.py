"""`forgetmap probe check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options.output import json_option
from forgetmap.cli.probe import metric_option

if TYPE_CHECKING:
    from rich.table import Table

    from forgetmap.probe import GroupFinding

EXAMPLES = """\b
Examples:
  forgetmap probe check probe.jsonl runs/tuned-probe
  forgetmap probe check probe.jsonl runs/tuned-probe --before runs/base --full runs/tuned
"""


@click.command("check", epilog=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path())
@click.option(
    "--before",
    multiple=True,
    type=click.Path(),
    help="Full run the probe was chosen from. Repeatable.",
)
@click.option(
    "--full",
    type=click.Path(),
    help="Full run of the model after, to compare with [default: none].",
)
@metric_option
@json_option
def command(file: Path, run: str, **options: Any) -> None:
    """What does a RUN on the items of FILE say of forgetting?

    With --before and --full also whether full runs say the same.
    """
    from forgetmap.probe import check_probe, findings_json

    names = ("before", "full", "metric")
    findings = check_probe(file, run, **{name: options[name] for name in names})
    if options["as_json"]:
        click.echo(findings_json(findings))
        return
    _print_findings(findings)


def _print_findings(findings: list[GroupFinding]) -> None:
    from rich.console import Console

    from forgetmap.text import percent, printable

    Console(highlight=False).print(_table(findings))
    alarms = [finding.name for finding in findings if finding.alarm]
    verdict = f"Forgot: {', '.join(alarms)}." if alarms else "No group shows forgetting."
    click.echo()
    click.echo(printable(f"{verdict} Lost means: of what was known stably before."))
    missing = sum(finding.missing for finding in findings)
    if missing:
        click.echo(f"{missing:,} chosen items have no scored answer.")
    for finding in findings:
        full = finding.full
        if full is not None:
            click.echo(
                printable(
                    f"{finding.name}: the full runs lost {percent(full.forgetting)} of all items,"
                    f" {percent(full.unseen)} where no probe sees it, and gained "
                    f"{percent(full.gained)}."
                )
            )


def _table(findings: list[GroupFinding]) -> Table:
    from rich.table import Table

    has_full = any(finding.full for finding in findings)
    table = Table(box=None, pad_edge=False)
    heads = ["", "asked", "of", "lost", "of these items", "of items like these", "p"]
    for name in heads + (["full", "within"] if has_full else []):
        table.add_column(name, justify="right" if name else "left")
    for finding in findings:
        table.add_row(*_cells(finding))
    return table


def _cells(finding: GroupFinding) -> list[str]:
    from forgetmap.text import percent, printable

    lost = finding.lost
    cells = [printable(finding.name), f"{lost.asked:,}", f"{lost.of:,}"]
    if lost.asked:
        cells += [percent(lost.value), f"{percent(lost.low)} to {percent(lost.high)}"]
        cells += [f"{percent(lost.wide_low)} to {percent(lost.wide_high)}"]
        cells += ["<0.001" if finding.p < 0.001 else f"{finding.p:.3f}"]
    else:
        cells += ["-"] * 4
    if finding.full is not None:
        within = {True: "yes", False: "no", None: "-"}[finding.agrees]
        cells += [percent(finding.full.share), within]
    return cells
