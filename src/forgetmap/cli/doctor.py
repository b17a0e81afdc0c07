"""`forgetmap doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from forgetmap import __version__
from forgetmap.cli.options import json_option
from forgetmap.doctor import Finding, all_parts, examine
from forgetmap.text import printable

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
MOST_NAME = 30


@click.command(epilog=EXAMPLES)
@click.argument("servers", nargs=-1, metavar="[ADDRESS]...")
@click.option("--thorough", is_flag=True, help="Also start Ray, Spark and vLLM: a minute or two.")
@json_option
def doctor(servers: tuple[str, ...], *, thorough: bool, as_json: bool) -> None:
    """Say what works on this machine, and what to do about what does not.

    ADDRESS is that of a server, such as http://localhost:8000/v1#model: everything it claims is
    tried. Ends with 1 if one of them, or something that all need, does not work.
    """
    findings = []
    with Console(stderr=True).status("") as status:
        for part in all_parts(servers):
            status.update(f"Trying {part.name} ...")
            findings.append(examine(part, thorough=thorough))
    if as_json:
        found = [each.as_json for each in findings]
        click.echo(json.dumps({"forgetmap": __version__, "parts": found}, indent=2))
    else:
        _print(Console(highlight=False), findings)
    if any(each.needed and each.state in {"missing", "broken"} for each in findings):
        raise SystemExit(1)


def _print(console: Console, findings: Sequence[Finding]) -> None:
    console.print(f"forgetmap {__version__}")
    widest = min(max(len(each.name) for each in findings), MOST_NAME)
    for group, members in groupby(findings, key=lambda each: each.group):
        console.print()
        console.print(Text(group, style="bold"))
        console.print(Padding(_table(members, widest), (0, 0, 0, INDENT)))


def _table(members: Iterable[Finding], widest: int) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, width=max(len(word) for word, _ in MARKS.values()))
    table.add_column(width=widest, overflow="fold")
    table.add_column(overflow="fold")
    for each in members:
        word, colour = MARKS[each.state]
        told = Text(printable(each.detail))
        if each.todo:
            told.append(f"\nfor {each.serves}: {printable(each.todo)}", style="bold")
        elif each.state == "installed":
            told.append("; --thorough starts it", style="dim")
        table.add_row(Text(word, style=colour), Text(printable(each.name)), told)
    return table
