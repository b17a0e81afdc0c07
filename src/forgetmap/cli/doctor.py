"""`forgetmap doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from forgetmap import __version__
from forgetmap.cli.options import json_option

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from forgetmap.doctor import Finding

EXAMPLES = """\b
Examples:
  forgetmap doctor
  forgetmap doctor --thorough
  forgetmap doctor http://localhost:8000/v1#model
  forgetmap doctor --json
"""
MARKS = {
    "works": ("works", "green"),
    "installed": ("not tried", "cyan"),
    "missing": ("missing", "yellow"),
    "broken": ("fails", "red"),
}
INDENT = 2
MAX_NAME_WIDTH = 30


@click.command("doctor", epilog=EXAMPLES)
@click.argument("servers", nargs=-1, metavar="[ADDRESS]...")
@click.option(
    "--thorough", is_flag=True, help="Also start Ray, Spark and vLLM, which takes a minute or two."
)
@json_option
def command(servers: tuple[str, ...], *, thorough: bool, as_json: bool) -> None:
    """Check what works on this machine, and how to fix what does not.

    ADDRESS is the address of a server, such as http://localhost:8000/v1#model; every feature it
    offers is tested. The exit code is 1 if a server or a required package does not work.
    """
    from rich.console import Console

    from forgetmap.doctor import all_parts, examine

    findings = []
    with Console(stderr=True).status("") as status:
        for part in all_parts(servers):
            status.update(f"Checking {part.name} ...")
            findings.append(examine(part, thorough=thorough))
    if as_json:
        parts = [finding.as_json for finding in findings]
        click.echo(json.dumps({"forgetmap": __version__, "parts": parts}, indent=2))
    else:
        _print(Console(highlight=False), findings)
    if any(finding.needed and finding.state in {"missing", "broken"} for finding in findings):
        raise SystemExit(1)


def _print(console: Console, findings: Sequence[Finding]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print(f"forgetmap {__version__}")
    width = min(max(len(finding.name) for finding in findings), MAX_NAME_WIDTH)
    for group, members in groupby(findings, key=lambda finding: finding.group):
        console.print()
        console.print(Text(group, style="bold"))
        console.print(Padding(_table(members, width), (0, 0, 0, INDENT)))


def _table(findings: Iterable[Finding], width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    from forgetmap.text import printable

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, width=max(len(word) for word, _ in MARKS.values()))
    table.add_column(width=width, overflow="fold")
    table.add_column(overflow="fold")
    for finding in findings:
        word, colour = MARKS[finding.state]
        detail = Text(printable(finding.detail))
        if finding.todo:
            detail.append(f"\nfor {finding.serves}: {printable(finding.todo)}", style="bold")
        elif finding.state == "installed":
            detail.append("; use --thorough to start it", style="dim")
        table.add_row(Text(word, style=colour), Text(printable(finding.name)), detail)
    return table
