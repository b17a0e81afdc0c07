"""The result of a gate as one Markdown comment, for a pull request or the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forgetmap.gate.check_text import (
    is_waived,
    loss_range,
    margin_text,
    next_steps,
    sort_checks,
    waiver_line,
)
from forgetmap.gate.result import CheckResult, GateResult, Status
from forgetmap.text import (
    counted,
    escape_markdown,
    markdown_table,
    percent,
    quote_markdown,
)

MARKER = "<!-- forgetmap-gate -->"
"""First line of every comment, by which it is found and replaced."""
MOST_LETTERS = 65_536
"""Maximum length of a comment on GitHub."""
_HEADS = ("Check", "Status", "Lost", "Margin", "Items", "Why")
_SIGNS: dict[Status, str] = {"PASS": "✅", "FAIL": "❌", "INCONCLUSIVE": "⚠️"}
_BLOCKING_BYTES, _WARNING_BYTES, _REST_BYTES, _NOTES_BYTES = 20_000, 13_000, 9_000, 4_000
"""Maximum size of each part in bytes; a letter has at least one."""
_NAME_LETTERS, _SENTENCE_LETTERS = 100, 400


def as_comment(result: GateResult) -> str:
    """Return one comment: the decision, the important checks, the rest folded; within the limit."""
    blocking = sort_checks(result.of_tier("blocking"))
    warnings = [check for check in result.of_tier("warning") if check.status != "PASS"]
    shown = {id(check) for check in (*blocking, *warnings)}
    rest = [check for check in result.checks if id(check) not in shown]
    parts = [
        MARKER,
        f"## {_SIGNS[result.status]} forgetmap gate: {result.status}",
        f"{_cut(result.headline, 2 * _SENTENCE_LETTERS)} {result.counts}".rstrip(),
        *_next(result),
        *_waived(result.checks),
        *_list("required task is missing: ", result.missing_tasks, _NAME_LETTERS),
        *_section("Blocking checks", blocking, _BLOCKING_BYTES),
        *_section("Warnings that fail or are open", sort_checks(warnings), _WARNING_BYTES),
        *_items(result),
        *_folded(f"All other checks ({len(rest):,})", [*_table(sort_checks(rest), _REST_BYTES)]),
        *_folded("Cautions", _list("", [n.message for n in result.warnings], _SENTENCE_LETTERS)),
        _footer(result),
    ]
    return "\n\n".join(parts) + "\n"


def _next(result: GateResult) -> Iterator[str]:
    """Return what would decide an open gate."""
    if result.status == "INCONCLUSIVE":
        steps = [escape_markdown(step.words) for step in next_steps(result)]
        yield f"What next: {'; '.join(steps)}."


def _waived(checks: Sequence[CheckResult]) -> Iterator[str]:
    count = sum(map(is_waived, checks))
    if count:
        yield f"**{counted(count, 'check')} passed only because of a waiver.**"


def _section(title: str, checks: Sequence[CheckResult], room: int) -> Iterator[str]:
    if checks:
        yield f"### {title}"
        yield from _table(checks, room)


def _items(result: GateResult) -> list[str]:
    """Return the first forgotten items of a failed gate."""
    lines = [
        f"- {_cut(one.task, _NAME_LETTERS)}: {quote_markdown(one.item, _NAME_LETTERS)}"
        for one in result.forgotten_items
    ]
    shown = f"{len(lines):,} of {result.forgotten:,}" if result.forgotten else f"{len(lines):,}"
    return _folded(f"Forgotten items ({shown})", _lines(lines))


def _folded(title: str, parts: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", *parts, "</details>"] if parts else []


def _list(lead: str, texts: Sequence[str], most: int) -> list[str]:
    return _lines([f"- {lead}{_cut(text, most)}" for text in texts])


def _lines(lines: Sequence[str]) -> list[str]:
    return ["\n".join(_fit(lines, _NOTES_BYTES, "- and {} more"))] if lines else []


def _table(checks: Sequence[CheckResult], room: int) -> Iterator[str]:
    rows = [_row(check) for check in checks]
    kept = len(_fit([" | ".join(row) for row in rows], room, ""))
    if kept:
        yield markdown_table(_HEADS, rows[:kept])
    if kept < len(rows):
        yield f"and {counted(len(rows) - kept, 'check')} more"


def _row(check: CheckResult) -> list[str]:
    why = check.sentence
    waived = waiver_line(check)
    if waived is not None and check.waiver is not None and check.waiver.state != "not needed":
        why = f"{why} ({waived})"
    return [
        _cut(check.name, _NAME_LETTERS),
        f"{_SIGNS[check.status]} {check.status}{' (waived)' if is_waived(check) else ''}",
        escape_markdown(loss_range(check)),
        escape_markdown(margin_text(check)),
        f"{check.items:,}",
        _cut(why, _SENTENCE_LETTERS),
    ]


def _footer(result: GateResult) -> str:
    look = result.look
    looks = "" if look.planned == 1 else f" · look {look.number} of {look.planned or 'any number'}"
    runs = " → ".join(
        quote_markdown(run.name) for run in (result.before, result.after) if run is not None
    )
    return (
        f"{f'{runs} · ' if runs else ''}policy {quote_markdown(result.policy.origin)} "
        f"(sha256 `{result.policy.hash}`) · {percent(look.level)} intervals{looks} · "
        f"forgetmap {escape_markdown(result.forgetmap)}"
    )


def _cut(text: str, most: int) -> str:
    """Return text on one line, escaped for Markdown and shortened."""
    words = " ".join(text.split())
    return escape_markdown(words if len(words) <= most else f"{words[: most - 1]}…")


def _fit(lines: Sequence[str], room: int, more: str) -> list[str]:
    """Return the lines that fit; if some do not, `more` states how many."""
    kept: list[str] = []
    for line in lines:
        # Ten bytes for the markup of a table row.
        room -= len(line.encode()) + 10
        if room < 0:
            break
        kept.append(line)
    if more and len(kept) < len(lines):
        kept.append(more.format(len(lines) - len(kept)))
    return kept
