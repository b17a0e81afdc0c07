"""History of gate decisions: use of the margins, regressions and missed losses by release."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from forgetmap.errors import UnreadableError
from forgetmap.gate.result import GATE_VERSION, CheckResult, GateResult, Status
from forgetmap.gate.store import BaselineStore
from forgetmap.results import Value

FOLDER = "history"


class RecurringResult(Value):
    """A check that failed in more than one release."""

    check: str
    releases: list[str] = Field(description="The runs after, in chronological order.")


class EscapedResult(Value):
    """A release that passed and failed later, or was accepted without a PASS."""

    release: str
    reason: str


class ReleaseResult(Value):
    """One decision, and the part of the margins that it used."""

    created: str
    before: str | None
    after: str | None
    status: Status
    used: dict[str, float | None] = Field(
        description="For each blocking check, the upper limit that decides as a share of its "
        "margin; 1 means that the margin is used up."
    )
    worst: CheckResult | None = Field(description="The blocking check with the largest share.")


class HistoryResult(Value):
    """Decisions over releases, the oldest first, and their summary."""

    schema_version: int = GATE_VERSION
    releases: list[ReleaseResult]
    recurring: list[RecurringResult]
    escaped: list[EscapedResult]


def record_result(result: GateResult, store: str | Path) -> None:
    """Record a decision in the store."""
    stamp = result.created[:23].translate(dict.fromkeys(map(ord, ":-.")))
    name = f"{stamp}Z-{result.policy.hash[:8]}-{_release(result)[:40]}"
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    # A random suffix separates decisions that are recorded at the same time.
    file = f"{safe}-{secrets.token_hex(4)}.json"
    BaselineStore(str(store)).write_json(f"{FOLDER}/{file}", result.model_dump(mode="json"))


def read_history(store: str | Path) -> list[GateResult]:
    """Read every recorded decision, the oldest first."""
    return _read(BaselineStore(str(store)))


def count_looks(store: str | Path, result: GateResult) -> int:
    """Count the looks at the same models under the same policy that were inconclusive.

    A look that decides is the last; the same answers are not looked at twice. Models are compared
    by name, because each evaluation has its own run id.
    """
    looks: list[GateResult] = []
    for earlier in read_history(store):
        if _models(earlier) == _models(result):
            is_new = not any(_is_same_look(earlier, one) for one in (*looks, result))
            looks = [] if earlier.status != "INCONCLUSIVE" else [*looks, *([earlier] * is_new)]
    return len(looks)


def _models(result: GateResult) -> list[str]:
    runs = (result.before, result.after)
    return [result.policy.hash, *(run.model or run.name if run else "" for run in runs)]


def _is_same_look(earlier: GateResult, later: GateResult) -> bool:
    """Return whether a decision rests on the same answers, or only flips were asked again."""
    counts = [(one.compared, one.forgotten, one.gained) for one in (earlier, later)]
    fresh = (earlier.confirmed, later.confirmed)
    return counts[0] == counts[1] and (None in fresh or fresh[0] == fresh[1])


def last_status(store: BaselineStore, release: str) -> Status | None:
    """Return the last status of a run; None if none is recorded."""
    statuses = [result.status for result in _read(store) if _release(result) == release]
    return statuses[-1] if statuses else None


def find_recurring(results: Sequence[GateResult]) -> list[RecurringResult]:
    """Return checks that failed in two or more releases."""
    failed: dict[str, dict[str, None]] = {}
    for result in results:
        for check in result.checks:
            if check.status == "FAIL":
                failed.setdefault(check.name, {})[_release(result)] = None
    return [
        RecurringResult(check=check, releases=list(releases))
        for check, releases in failed.items()
        if len(releases) > 1
    ]


def find_escaped(
    results: Sequence[GateResult], accepted: Sequence[tuple[str, str | None]]
) -> list[EscapedResult]:
    """Return releases that passed and failed later, or were accepted without a PASS.

    Args:
        results: decisions, the oldest first.
        accepted: runs that became baselines, each with the status of its gate.
    """
    escapes = []
    passed: dict[str, str] = {}
    for result in results:
        release = _release(result)
        if result.status == "PASS":
            passed[release] = result.created[:10]
        elif result.status == "FAIL" and release in passed:
            reason = f"passed on {passed.pop(release)}, failed on {result.created[:10]}"
            escapes.append(EscapedResult(release=release, reason=reason))
    for release, status in accepted:
        if status != "PASS":
            reason = "accepted without a gate" if status is None else f"accepted after {status}"
            escapes.append(EscapedResult(release=release, reason=reason))
    return escapes


def make_release(result: GateResult) -> ReleaseResult:
    """Summarize one decision and the part of the margins that it used."""
    blocking = result.of_tier("blocking")
    known = [check for check in blocking if check.most is not None]
    return ReleaseResult(
        created=result.created,
        before=None if result.before is None else result.before.name,
        after=None if result.after is None else result.after.name,
        status=result.status,
        used={check.name: margin_used(check) for check in blocking},
        worst=max(known, key=lambda check: margin_used(check) or 0.0, default=None),
    )


def margin_used(check: CheckResult) -> float | None:
    """Return the upper limit of the loss as a share of the margin: 1 means all of it is used."""
    return None if check.most is None else max(check.most, 0.0) / check.margin


def _release(result: GateResult) -> str:
    """Return the identity of a candidate: the id of the run, else its name."""
    run = result.after
    return "unknown" if run is None else run.run_id or run.name


def _read(store: BaselineStore) -> list[GateResult]:
    results = []
    for name in store.list_names(FOLDER):
        if not name.endswith(".json"):
            continue
        path = f"{FOLDER}/{name}"
        try:
            results.append(GateResult(**store.read_json(path)))
        except ValidationError:
            hint = "remove it, or use the version of forgetmap that wrote it."
            file = f"{store.shown}/{path}"
            raise UnreadableError("not a decision of a gate", file=file, hint=hint) from None
    return sorted(results, key=lambda result: result.created)
