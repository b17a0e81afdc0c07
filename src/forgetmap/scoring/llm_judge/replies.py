"""What a judge replied, read strictly: what is not in the demanded form is no verdict."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from forgetmap.scoring.grades import Judged, undecided
from forgetmap.scoring.thinking import without_thinking

_DECORATION = " \t_#>\"'."
_VERDICT = re.compile(r"^VERDICT\s*:\s*(\S+)$", re.IGNORECASE)
_SCORE = re.compile(r"^(?:SCORE|RATING)\s*:\s*(\d{1,3})(?:\.0+)?(?:\s*/\s*10)?$", re.IGNORECASE)
_NUMBERED = re.compile(r"^(\d{1,3})\s*[:.)-]\s*(yes|no)$", re.IGNORECASE)
_SHOWN = 120


def verdict(reply: str | None, allowed: Collection[str]) -> str | None:
    """The word after `VERDICT:` on the last line, in capitals, if it is one of the allowed."""
    found = _last(_VERDICT, reply)
    word = found.strip(_DECORATION + "[]()<>").upper() if found else ""
    return word if word in allowed else None


def score(reply: str | None, low: int, high: int) -> int | None:
    """The whole number after `SCORE:` or `RATING:` on the last line, if it is within range."""
    found = _last(_SCORE, reply)
    return int(found) if found and low <= int(found) <= high else None


def yes_or_no(reply: str | None, count: int) -> list[bool] | None:
    """Yes or no for each of the numbers from 1, if each has exactly one."""
    lines = (_NUMBERED.match(line) for line in _lines(reply))
    said = [(int(line[1]), line[2].lower() == "yes") for line in lines if line]
    if sorted(number for number, _ in said) != list(range(1, count + 1)):
        return None
    return [each for _, each in sorted(said)]


def unreadable(replies: Sequence[str | None]) -> Judged:
    """A judgement that failed: nobody knows what it would have been."""
    if any(reply is None for reply in replies):
        return undecided("the judge gave no reply")
    last = " ".join(str(replies[-1]).split())[-_SHOWN:] if replies else ""
    return undecided(f"the judge's reply is not in the demanded form: {last!r}")


def _lines(reply: str | None) -> list[str]:
    """Without marks and blanks around them; none where there is no reply."""
    aloud, _ = without_thinking(reply or "")
    plain = aloud.replace("*", "").replace("`", "")
    return [bare for line in plain.splitlines() if (bare := line.strip(_DECORATION))]


def _last(form: re.Pattern[str], reply: str | None) -> str | None:
    """What the last line says, unless another line of this form says otherwise."""
    lines = _lines(reply)
    said = {found[1].casefold() for line in lines if (found := form.match(line))}
    found = form.match(lines[-1]) if lines else None
    return found[1] if found and len(said) == 1 else None
