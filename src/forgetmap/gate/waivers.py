"""Waivers: accepted losses with an owner, a reason, a limit and an expiry date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from forgetmap.errors import FieldError
from forgetmap.gate.check_text import margin_text
from forgetmap.gate.policy import GatePolicy, field_error, read_toml
from forgetmap.gate.result import CheckResult, WaiverResult, WaiverState
from forgetmap.results import Notice

_HINT = "use the fields rule, owner, reason, ceiling and expires; see docs/gate.md."


Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Waiver(BaseModel):
    """An accepted loss.

    Attributes:
        rule: name of the rule in the policy.
        group: task, category, tag or capability; all groups of the rule by default.
        owner: the responsible person.
        reason: why the loss is accepted.
        ceiling: the largest accepted loss.
        expires: last day of validity.
        origin: path of the file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str = Field(min_length=1)
    group: str | None = None
    owner: Words
    reason: Words
    ceiling: float = Field(gt=0, le=1, strict=True)
    expires: date
    origin: str = Field(default="", exclude=True)

    def covers(self, check: CheckResult) -> bool:
        """Return whether the waiver applies to this check."""
        return self.rule == check.rule and self.group in (None, check.group)


def read_waivers(path: str | Path) -> tuple[Waiver, ...]:
    """Read waivers from a TOML file, each in a table `[[waiver]]`.

    Raises:
        InputError: the file is missing, is not TOML, or has an invalid field.
    """
    path = Path(path)
    content = read_toml(path, _HINT)
    tables = content.pop("waiver", [])
    if content or not isinstance(tables, list):
        field = next(iter(content), "waiver")
        message = "the file must contain only tables `[[waiver]]`"
        raise FieldError(message, file=str(path), field=field, hint=_HINT)
    return tuple(_make(table, number, path) for number, table in enumerate(tables))


def _make(table: object, number: int, path: Path) -> Waiver:
    try:
        waiver = Waiver.model_validate(table)
    except ValidationError as error:
        raise field_error(error, path, _HINT, ("waiver", number)) from None
    return waiver.model_copy(update={"origin": f"{path}, waiver {number + 1}"})


def check_waivers(waivers: Sequence[Waiver], policy: GatePolicy) -> None:
    """Refuse waivers without effect: a misspelt one would protect nothing.

    Raises:
        FieldError: the policy has no such rule, or the ceiling is not above the margin.
    """
    margins = {rule.label: rule.margin for rule in policy.rules}
    for waiver in waivers:
        if waiver.rule not in margins:
            known = ", ".join(margins)
            raise FieldError(
                f"the policy has no rule {waiver.rule!r}",
                file=waiver.origin or None,
                field="rule",
                hint=f"the rules are {known}.",
            )
        if waiver.ceiling <= margins[waiver.rule]:
            raise FieldError(
                f"the ceiling {waiver.ceiling:g} is not above the margin of the rule",
                file=waiver.origin or None,
                field="ceiling",
                hint=f"set a ceiling above {margins[waiver.rule]:g}, or remove the waiver.",
            )


def apply_waivers(
    checks: Sequence[CheckResult], waivers: Sequence[Waiver], today: date
) -> list[CheckResult]:
    """Apply waivers to checks. A check that needs an expired waiver becomes FAIL."""
    return [_apply(check, waivers, today) for check in checks]


def waiver_notices(
    waivers: Sequence[Waiver], checks: Sequence[CheckResult], today: date
) -> list[Notice]:
    """Report waivers without a check, and a date other than today."""
    notices = [
        Notice(
            "waiver_unused",
            f"the waiver of {waiver.owner} for {waiver.rule!r} names {waiver.group!r}, which is "
            "not checked.",
        )
        for waiver in waivers
        if not any(waiver.covers(check) for check in checks)
    ]
    now = datetime.now(UTC).date()
    if waivers and today != now:
        notices.append(
            Notice("as_of", f"waivers are checked for {today}; the decision was made on {now}.")
        )
    return notices


def _apply(check: CheckResult, waivers: Sequence[Waiver], today: date) -> CheckResult:
    about = [waiver for waiver in waivers if waiver.covers(check)]
    if not about:
        return check
    # Prefer a waiver of this group alone, then the one that is valid longest.
    waiver = max(about, key=lambda waiver: (waiver.group is not None, waiver.expires))
    if check.status == "PASS":
        return _with_waiver(check, waiver, "not needed")
    if waiver.expires < today:
        words = f"the waiver of {waiver.owner} expired on {waiver.expires}; {check.sentence}"
        update = {"status": "FAIL", "sentence": words, "decides": None}
        return _with_waiver(check.model_copy(update=update), waiver, "expired")
    if check.reasons or check.most is None:  # no measured loss that could be accepted
        return _with_waiver(check, waiver, "not applicable")
    if check.most >= waiver.ceiling:
        return _with_waiver(check, waiver, "exceeded")
    words = (
        f"{check.sentence}; waived up to {margin_text(check, waiver.ceiling)} by {waiver.owner} "
        f"until {waiver.expires}: {waiver.reason}"
    )
    update = {"status": "PASS", "sentence": words, "decides": None}
    return _with_waiver(check.model_copy(update=update), waiver, "applied")


def _with_waiver(check: CheckResult, waiver: Waiver, state: WaiverState) -> CheckResult:
    facts = waiver.model_dump(mode="json", include={"owner", "reason", "ceiling", "expires"})
    return check.model_copy(update={"waiver": WaiverResult(**facts, state=state)})
