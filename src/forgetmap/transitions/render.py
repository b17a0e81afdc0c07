"""A comparison as text for the terminal and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from forgetmap.transitions.result import ComparisonResult, GroupResult
from forgetmap.transitions.words import percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

HEADS = ("", "items", "forgotten", "gained", "of known", "before", "after", "net drop")
CHAIN_HEADS = (
    "accuracy", "lost since\nprevious", "gained", "lost since\nfirst", "gained", "first lost\nhere",
    "regained\nhere",
)  # fmt: skip
LEGEND = """
forgotten, gained: share of all items; of known: forgotten as a share of what was right before;
before, after: accuracy; net drop: all that accuracy shows of the loss."""
MOST_ROWS = 40
MOST_PATHS = 16
NARROW = 100


def as_text(result: ComparisonResult, *, by: str = "category", width: int = NARROW) -> str:
    """The comparison as plain text."""
    from rich.console import Console  # noqa: PLC0415  # 50 ms, only when something is shown

    stream = StringIO()
    console = Console(file=stream, width=width, color_system=None, legacy_windows=False)
    print_comparison(console, result, by=by)
    return stream.getvalue().rstrip()


def print_comparison(console: Console, result: ComparisonResult, *, by: str) -> None:
    """Headline, table of groups, why items were lost, what did not pair, warnings."""
    from rich.markup import escape as plain  # noqa: PLC0415

    if result.before.simulated or result.after.simulated:
        console.print("[bold yellow]SIMULATED[/] data, not a measured model.")
    console.print(f"[bold]{plain(printable(result.headline))}[/]\n", highlight=False)
    console.print(group_table(result, by))
    for line in _notes(result):
        console.print(plain(line), highlight=False)
    for notice in result.pairing.warnings:
        console.print(f"[yellow]![/] {plain(printable(notice.message))}", highlight=False)


def group_table(result: ComparisonResult, by: str) -> RenderableType:
    """One line per group, the totals on top."""
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True, overflow="ellipsis", min_width=16)
    for head in HEADS[1:]:
        table.add_column(head, justify="right", no_wrap=True)
    _add(table, "all items", result.total, style="bold")
    _add(table, "mean over tasks", result.total_macro)
    groups = groups_by(result, by)
    if groups:
        table.add_section()
    for group in groups[:MOST_ROWS]:
        _add(table, printable(group.name), group)
    if len(groups) > MOST_ROWS:
        table.add_row(f"... {len(groups) - MOST_ROWS:,} more")
    return table


def groups_by(result: ComparisonResult, by: str) -> Sequence[GroupResult]:
    """The groups to show, worst first; tasks where nothing has a category."""
    groups = {"task": result.tasks, "category": result.categories, "tag": result.tags}[by]
    if by == "category" and not groups:
        groups = result.tasks
    return sorted(groups, key=lambda group: (-(group.forgetting.value or 0.0), group.name))


def as_html(result: ComparisonResult) -> str:
    """The comparison as a small HTML table."""
    rows = [("all items", result.total), ("mean over tasks", result.total_macro)]
    rows += [(group.name, group) for group in groups_by(result, "category")[:MOST_ROWS]]
    head = "".join(f"<th>{escape(name)}</th>" for name in HEADS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _row(name, group)) + "</tr>"
        for name, group in rows
    )
    notes = "".join(f"<li>{escape(each.message)}</li>" for each in result.pairing.warnings)
    return (
        f"<p><b>{escape(result.headline)}</b></p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><ul>{notes}</ul>"
    )


def printable(text: str) -> str:
    """Text from outside without control characters, which could drive the terminal."""
    return "".join(
        char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def _add(table: Table, name: str, group: GroupResult, *, style: str | None = None) -> None:
    from rich.text import Text  # noqa: PLC0415

    table.add_row(*(Text(cell) for cell in _row(name, group)), style=style)


def _row(name: str, group: GroupResult) -> tuple[str, ...]:
    return (
        name,
        f"{group.items:,}",
        percent(group.forgetting.value),
        percent(group.backward_transfer.value),
        percent(group.conditional_forgetting.value),
        percent(group.acc_before),
        percent(group.acc_after),
        percent(group.conventional_forgetting),
    )


def _notes(result: ComparisonResult) -> list[str]:
    pairing = result.pairing
    rows = f"{pairing.rows_before:,} results before and {pairing.rows_after:,} after"
    return [
        LEGEND,
        "Raw counts: lucky guesses and sampling noise are still in them.",
        "",
        _why_lost(result.total),
        f"Paired {pairing.paired:,} of {rows}.",
    ]


def _why_lost(total: GroupResult) -> str:
    if not total.n10:
        return "Nothing was lost."
    named = {
        "wrong": "wrong answer",
        "no_answer": "no answer found",
        "refused": "refused",
        "truncated": "cut at the token limit",
        "degenerate": "endless repetition",
        "unknown": "outcome not recorded",
    }
    parts = [f"{named[name]} {count:,}" for name, count in total.reasons.items() if count]
    return f"Why {total.n10:,} were lost: {', '.join(parts)}."


def chain_text(result: ComparisonResult, *, width: int = NARROW) -> str:
    """A chain as plain text."""
    from rich.console import Console  # noqa: PLC0415

    stream = StringIO()
    print_chain(Console(file=stream, width=width, color_system=None, legacy_windows=False), result)
    return stream.getvalue().rstrip()


def print_chain(console: Console, result: ComparisonResult) -> None:
    """The stages of a chain, then how many items share each history."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    names = [result.before.name, *(stage.name for stage in result.stages or [])]
    console.print(Text(printable(f"Chain: {' -> '.join(names)}"), style="bold"))
    items = result.stages[0].against_first.items if result.stages else 0
    console.print(f"{items:,} items are scored at every stage.\n", highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True, overflow="ellipsis", min_width=12)
    for head in CHAIN_HEADS:
        table.add_column(head, justify="right", vertical="bottom")
    for stage in result.stages or []:
        previous, first = stage.against_previous, stage.against_first
        cells = (
            printable(stage.name),
            percent(first.acc_after),
            percent(previous.forgetting.value),
            percent(previous.backward_transfer.value),
            percent(first.forgetting.value),
            percent(first.backward_transfer.value),
            f"{stage.first_lost:,}",
            f"{stage.regained:,}",
        )
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    console.print("\nHistories (1 right, 0 wrong, one digit per checkpoint):")
    for path in (result.paths or [])[:MOST_PATHS]:
        console.print(f"  {path.path}  {path.n:>9,}  {path.kind}", highlight=False)
    for notice in result.pairing.warnings:
        console.print(Text(f"! {printable(notice.message)}"))
