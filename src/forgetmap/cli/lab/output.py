"""Output files and texts of the lab commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from forgetmap._disk import whole_file
from forgetmap.text import Blocks, Line, Sheet, print_blocks, printable, signed

if TYPE_CHECKING:
    from forgetmap.lab import LabResult, MergeDriftResult, RepairResult


def show_lab(result: LabResult, file: Path, *, as_json: bool) -> None:
    """Write and print a comparison of methods."""
    from forgetmap.report import tell_lab

    capabilities: Blocks = [Line(), _capabilities(result)] if result.capabilities else []
    _show(result, [*tell_lab(result), *capabilities], file, as_json=as_json)


def show_repair(result: RepairResult, file: Path, *, as_json: bool) -> None:
    """Write and print a comparison of repairs."""
    from forgetmap.report import tell_repair

    _show(result, tell_repair(result), file, as_json=as_json)


def show_merge_drift(result: MergeDriftResult, file: Path, *, as_json: bool) -> None:
    """Write and print the levels of drift."""
    from forgetmap.report import tell_merge_drift

    _show(result, tell_merge_drift(result), file, as_json=as_json)


def _show(
    result: LabResult | RepairResult | MergeDriftResult,
    blocks: Blocks,
    file: Path,
    *,
    as_json: bool,
) -> None:
    from forgetmap.report import write_report

    with whole_file(file) as partial:
        partial.write_text(result.to_json() + "\n", encoding="utf-8")
    page = file.with_suffix(".html")
    write_report(result, page)
    if as_json:
        click.echo(result.to_json())
        return
    from rich.console import Console

    print_blocks(Console(), blocks)
    click.echo(f"\n{printable(f'Written to {file}')}")
    click.echo(printable(f"Report: {page}"))


def _capabilities(result: LabResult) -> Sheet:
    """Return a table with groups as rows and methods as columns."""
    methods = list(dict.fromkeys(row.method for row in result.capabilities))
    groups = [row for row in result.capabilities if row.capability is None]
    values = {(row.method, row.group): row.drift.value for row in groups}
    rows = [
        (group, *(_effect(values.get((method, group))) for method in methods))
        for group in dict.fromkeys(row.group for row in groups)
    ]
    return Sheet(("drift", *methods), rows, whole_heads=True)


def _effect(value: float | None) -> str:
    return "no data" if value is None else signed(value)
