"""A report as Markdown, for pull requests and model cards.

Says what the terminal says, from the same lines and sheets, and lists the first flips. Nothing in
names or texts can become a link, a mention, HTML or a table of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from forgetmap.comparison import (
    Blocks,
    ComparisonResult,
    FanOutResult,
    Line,
    Sheet,
    printable,
    tell,
)
from forgetmap.report.drift_words import tell_drift
from forgetmap.report.payload import Cell, Items, Payload
from forgetmap.report.reportable import Reportable, payload_for

MOST_FLIPS = 10
"""Of each comparison and transition."""
MOST_LETTERS = 120
SHOWN = {
    "task": "task",
    "metric": "metric",
    "item": "item",
    "question": "question",
    "gold": "gold",
    "answer_before": "before",
    "answer_after": "after",
    "reason": "why",
}
_SPECIAL = re.compile(r"[\\`*_{}\[\]|~$]")
_HTML = {"&": "&amp;", "<": "&lt;"}
_STARTS = re.compile(r"^(\d*)([#>+=.)-])")
_NO_BREAK = "\N{ZERO WIDTH SPACE}"


def as_markdown(result: Reportable, *, by: str = "category") -> str:
    """A report as Markdown, with tables as GitHub and model cards know them.

    Args:
        result: what `compare` returned, or what `make_payload` made of it.
        by: the groups of the table, `category` or `task`.
    """
    payload = payload_for(result)
    parts = [f"# {escaped(payload.title)}"]
    if payload.capabilities:
        parts += blocks_as_markdown(tell_drift(payload.capabilities))
        names = list(payload.capabilities.result.models)
    else:
        parts += blocks_as_markdown(_with_cells(_told(payload, by), payload.comparisons))
        names = [each.after.name for each in payload.comparisons]
    for items in payload.items:
        parts += _flips(items, names[items.comparison])
    parts.append(f"Made with forgetmap {payload.version}{_date(payload)}.{_redacted(payload)}")
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = "".join(_HTML.get(letter, letter) for letter in printable(text))
    text = _SPECIAL.sub(r"\\\g<0>", text)
    # Links and mentions are made of plain text by whoever shows it.
    text = re.sub(r"(?<=[@#])(?=\w)", _NO_BREAK, text)
    text = re.sub(r":(?=//)", r"\:", text)
    return re.sub(r"(?i)\b(www)\.", r"\1\\.", text)


def quoted(text: str, most: int = MOST_LETTERS) -> str:
    """Text of an item as code, in which nothing is a link, a mention or a mark."""
    words = " ".join(printable(" ".join(text.split())).split())
    if len(words) > most:
        words = f"{words[: most - 1]}…"
    if not words:
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", words)), default=0))
    pad = " " if "`" in (words[0], words[-1]) else ""
    return f"{fence}{pad}{words}{pad}{fence}".replace("|", r"\|")


def _told(payload: Payload, by: str) -> Blocks:
    if payload.kind == "many":
        return tell(FanOutResult(comparisons=payload.comparisons), by)
    return tell(payload.comparisons[0], by)


def _with_cells(blocks: Blocks, comparisons: Sequence[ComparisonResult]) -> Blocks:
    """The four cells stand below what they are about."""
    cells = {result.seen: _cells(result) for result in comparisons}
    found: Blocks = []
    for block in blocks:
        found.append(block)
        if isinstance(block, Line) and block.text in cells:
            found.append(cells[block.text])
    return found


def _cells(result: ComparisonResult) -> Sheet:
    total = result.total
    return Sheet(
        ("", "right after", "wrong after"),
        [
            ("right before", f"{total.n11:,} kept", f"{total.n10:,} forgotten"),
            ("wrong before", f"{total.n01:,} gained", f"{total.n00:,} never right"),
        ],
    )


def blocks_as_markdown(blocks: Blocks) -> list[str]:
    """Paragraphs and tables; lines with a lead are lists, which stand together."""
    parts: list[str] = []
    listing = False
    for block in blocks:
        is_listed = isinstance(block, Line) and bool(block.lead)
        if isinstance(block, Sheet):
            rows = [[escaped(cell.strip()) for cell in row] for row in block.rows]
            parts.append(_table(block.heads, rows, align="---:"))
        elif is_listed and listing:
            parts[-1] += f"\n{_line(block)}"
        elif block.text:
            parts.append(_line(block))
        listing = is_listed
    return parts


def _line(line: Line) -> str:
    text = escaped(line.text)
    if line.look == "warning":
        return f"- ⚠ {text}"
    if line.lead:
        return f"- **{escaped(line.lead.strip())}**: {text}"
    if line.look in ("strong", "simulated"):
        return f"**{text}**"
    # A name at the beginning must start no list, quotation or title.
    return _STARTS.sub(r"\1\\\2", text)


def _table(heads: Sequence[str], rows: Iterable[Iterable[str]], *, align: str = "---") -> str:
    lines = [
        " | ".join(head.replace("\n", " ") for head in heads),
        " | ".join(["---", *[align] * (len(heads) - 1)]),
        *(" | ".join(row) for row in rows),
    ]
    return "\n".join(f"| {line} |" for line in lines)


def _flips(items: Items, after: str) -> list[str]:
    parts = []
    for kind, total in items.total.items():
        columns = items.columns
        places = _first_of_each_task(columns, kind)[:MOST_FLIPS]
        if not places:
            continue
        shown = [name for name in SHOWN if any(columns[name][n] for n in places if name in columns)]
        rows = [[_cell(columns[name][n]) for name in shown] for n in places]
        title = f"{kind} ({after}): {len(places):,} of {total:,}"
        parts += [f"## {escaped(title)}", _table([SHOWN[name] for name in shown], rows)]
    return parts


def _first_of_each_task(columns: Mapping[str, Sequence[Cell]], kind: str) -> list[int]:
    """The places of one transition: the first of every task, then the second, and so on."""
    seen: Counter[Cell] = Counter()
    turns = {}
    for place, transition in enumerate(columns.get("transition", [])):
        if transition == kind:
            task = columns["task"][place]
            turns[place] = seen[task]
            seen[task] += 1
    return sorted(turns, key=turns.__getitem__)


def _cell(cell: Cell) -> str:
    return "" if cell is None else quoted(str(cell))


def _date(payload: Payload) -> str:
    return "" if payload.made is None else f" on {escaped(payload.made)}"


def _redacted(payload: Payload) -> str:
    return " Texts are left out or blackened." if payload.redacted else ""
