"""The result of a gate as annotations of GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from forgetmap.gate.check_text import figures, is_waived, sort_checks
from forgetmap.gate.result import GateResult, Tier
from forgetmap.text import counted, printable

MOST = 10
"""Maximum number of annotations per level and step; GitHub silently drops the rest."""
Level = Literal["error", "warning", "notice"]
_LEVELS: dict[Tier, Level] = {"blocking": "error", "warning": "warning", "info": "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def as_annotations(result: GateResult) -> list[str]:
    """Return workflow commands: the decision, every check that did not pass and every waiver.

    If a level has more annotations than GitHub shows, the last one counts the rest.
    """
    lines: list[str] = []
    for level, group in groupby(sorted(_entries(result), key=_rank), key=lambda entry: entry[0]):
        entries = list(group)
        first = entries if len(entries) <= MOST else entries[: MOST - 1]
        lines += [_command(*entry) for entry in first]
        hidden = len(entries) - len(first)
        if hidden:
            rest = f"and {counted(hidden, 'check')} more: see the summary of the job"
            lines.append(_command(level, "forgetmap gate", rest))
    return lines


def _rank(entry: tuple[Level, str, str]) -> int:
    return ("error", "warning", "notice").index(entry[0])


def _entries(result: GateResult) -> Iterator[tuple[Level, str, str]]:
    level: Level = "notice" if result.status == "PASS" else "error"
    yield level, f"forgetmap gate: {result.status}", result.headline
    for task in result.missing_tasks:
        yield "error", "forgetmap gate: required task", f"the task {task} is missing"
    for check in sort_checks(result.checks):
        title = f"{check.status}: {check.name}"
        if check.status != "PASS":
            yield _LEVELS[check.tier], title, f"{check.sentence}\n{figures(check)}"
        elif is_waived(check):
            yield "warning", f"waived: {check.name}", check.sentence


def _command(level: Level, title: str, message: str) -> str:
    return f"::{level} title={_escape(title, _PROPERTY)}::{_escape(message, _DATA)}"


def _escape(text: str, table: dict[str, str]) -> str:
    """Escape text that could end its field or start another command."""
    return "".join(table.get(letter) or printable(letter) for letter in text)
