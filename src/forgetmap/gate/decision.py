"""The public function `run_gate`: check two runs against a policy."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import narwhals as nw

from forgetmap import __version__
from forgetmap.comparison import (
    Comparison,
    GroupResult,
    Options,
    compare,
    first_contradiction,
    make_readings,
    open_all,
)
from forgetmap.errors import (
    BackendError,
    ContradictionError,
    ForgetmapError,
    MetricError,
    OutputError,
    PairingError,
    UsageError,
)
from forgetmap.gate.baselines import PREFIX, is_baseline, opened_baseline, place_of
from forgetmap.gate.checks import close_check, open_checks, refused_checks, reject
from forgetmap.gate.history import count_looks, record_result
from forgetmap.gate.policy import GatePolicy, make_default_policy, read_policy
from forgetmap.gate.result import (
    CheckResult,
    ForgottenItem,
    GateResult,
    LookResult,
    PolicyResult,
    Status,
)
from forgetmap.gate.waivers import (
    Waiver,
    apply_waivers,
    check_waivers,
    read_waivers,
    waiver_notices,
)
from forgetmap.records import reading, sort_items
from forgetmap.results import Notice
from forgetmap.sources import Progress, is_remote, without_secrets
from forgetmap.text import counted

MOST_ITEMS = 20
"""Maximum number of items in the result of a failed gate."""
ANY_SHARE = 1e-12
"""Minimum paired share for `compare`: the gate checks the coverage itself."""


class GateOptions(TypedDict, total=False):
    """Reading options; see `run_gate`."""

    column_map: Any
    task: str | None
    noise: Any
    run: str | Sequence[str] | None
    strict: bool
    scores: Literal["log", "own"] | None
    cached: bool
    processes: int | None
    progress: Progress | None
    score_range: tuple[float, float] | None
    mapping: str | Path | None


def run_gate(  # noqa: PLR0913  # all but the runs by name
    before: Any,
    after: Any,
    *,
    margin: float | None = None,
    policy: GatePolicy | str | Path | None = None,
    waivers: Sequence[Waiver] | str | Path | None = None,
    look: int | None = None,
    today: date | None = None,
    store: str | Path | None = None,
    record: bool | None = None,
    **options: Unpack[GateOptions],
) -> GateResult:
    """Decide whether a model may be released, by checking two runs against a policy.

    Args:
        before: path, dataframe or run of the model before, or `baseline:NAME`.
        after: path, dataframe or run of the model after.
        margin: the largest acceptable loss, as a share of all items, if no policy is given; 0.02
            by default.
        policy: a `GatePolicy`, or the path of its TOML file; by default no loss beyond the margin
            in all items, and a warning for every category.
        waivers: losses that are accepted for a limited time, or the path of their TOML file.
        look: number of this look at the models, if the policy plans several; by default one more
            than in the store.
        today: the date used to check whether waivers have expired; by default today in UTC.
        store: folder or address of the store of baselines and decisions.
        record: record the decision in the store; by default if there is one.
        options: how runs are read, as for `compare`: column_map, task, noise, run, strict,
            scores, cached, processes, progress, score_range, mapping.

    Returns:
        PASS, FAIL or INCONCLUSIVE, with all checks.

    Raises:
        ContradictionError: the results contradict what their logs state about them.

    Example:
        >>> import forgetmap as fm
        >>> fm.run_gate("runs/main", "runs/candidate", policy="policy.toml").status
        ... # doctest: +SKIP
        'PASS'
    """
    _refuse_unknown(options)
    gate_policy = _policy_of(policy, margin)
    waiver_list = read_waivers(waivers) if isinstance(waivers, str | Path) else tuple(waivers or ())
    check_waivers(waiver_list, gate_policy)
    if store is None and (record or is_baseline(before)):
        raise UsageError("no store given", hint="pass the folder of the baselines: store=FOLDER.")
    day = today or datetime.now(UTC).date()
    # `compare` refuses equal paths, unless another run of them is chosen.
    if before is after and not isinstance(before, str | Path):
        raise UsageError(
            "the same run is both before and after", hint="give the run of another model."
        )
    with opened_baseline(before, after, store or "") as (first, second, baseline):
        typed = (before if baseline is None else place_of(baseline, store or ""), after)
        decide_at = _compare_once((first, second), typed, gate_policy, waiver_list, day, options)
        result = decide_at(1 if look is None else look)
        if look is None and store is not None and gate_policy.looks != 1:
            result = decide_at(count_looks(store, result) + 1)
    if baseline is not None and result.before is not None:
        # The temporary copy no longer exists.
        origin = f"{PREFIX}{baseline.name}, version {baseline.version}"
        side = result.before.model_copy(update={"origin": origin})
        result = result.model_copy(update={"before": side})
    if store is not None and record is not False:
        _keep(result, store)
    return result


def _keep(result: GateResult, store: str | Path) -> None:
    """Record a decision; if that fails, the error includes the decision."""
    try:
        record_result(result, store)
    except ForgetmapError as error:
        message = f"not recorded: {result.headline} {error.message}"
        raise OutputError(message, hint=error.hint) from error


def _compare_once(
    sources: tuple[Any, Any],
    typed: tuple[Any, Any],
    policy: GatePolicy,
    waivers: Sequence[Waiver],
    today: date,
    options: GateOptions,
) -> Callable[[int], GateResult]:
    """Compare both runs, and return a function that decides at a given look.

    Args:
        sources: the runs.
        typed: what a user can type for them.
        policy: the policy.
        waivers: accepted losses.
        today: the date for waivers.
        options: how runs are read.

    Raises:
        ContradictionError: the results contradict what their logs state.
    """
    compared = _compare_options(policy, options)
    try:
        comparison = compare(*sources, **compared)
    except MetricError as error:
        hint = 'set it in a policy (--policy FILE): metric = "..." below [compare].'
        raise MetricError(error.message, hint=hint) from None
    except BackendError:
        raise
    except PairingError as error:
        missing = _missing_tasks(*sources, policy, options)
        return partial(_refused, policy, error, missing, waivers, today)
    if comparison.result.pairing.contradictions:
        raise _contradiction(comparison, typed, compared)
    return partial(_decide, comparison, policy, waivers, today)


def _contradiction(
    comparison: Comparison, typed: tuple[Any, Any], options: Options
) -> ContradictionError:
    """Return the error for results that contradict their logs: neither PASS nor FAIL is known."""
    found, noise = comparison.result.pairing.contradictions, options.get("noise")
    before, after = (reading.run for reading in make_readings(options, len(typed)))
    shown = {
        comparison.before.name: _look_at(typed[0], before),
        comparison.after.name: _look_at(typed[1], after),
        "noise": _look_at(noise, before),
    }
    # A message begins with the name of its run.
    first = next(name for name in shown if found[0].message.startswith(f"{name}: "))
    return ContradictionError(
        first_contradiction(found),
        hint=f"{shown[first]} shows what it states and contains; give complete logs, each of one "
        "run.",
    )


def _look_at(source: Any, run: str | None) -> str:
    """Return the command that shows a run, or the attribute of a run in Python."""
    if not isinstance(source, str | os.PathLike):
        return "`contradictions` of the run"
    path = os.fspath(source)
    command = ["forgetmap", "records", "show", without_secrets(path) if is_remote(path) else path]
    return f"`{shlex.join([*command, *(['--run', run] if run else [])])}`"


def _decide(
    comparison: Comparison,
    policy: GatePolicy,
    waivers: Sequence[Waiver],
    today: date,
    number: int,
) -> GateResult:
    look = take_look(policy, number)
    checks = apply_waivers(_decide_checks(comparison, policy, look), waivers, today)
    result = comparison.result
    scored = {task.name for task in result.tasks if task.n}
    made = _make_result(
        policy,
        look,
        checks,
        [task for task in policy.required_tasks if task not in scored],
        warnings=[
            *result.pairing.warnings,
            *_graded_notices(result.total, policy),
            *waiver_notices(waivers, checks, today),
        ],
        before=result.before,
        after=result.after,
        forgotten=result.total.n10,
    )
    if made.status != "FAIL":
        return made
    return made.model_copy(update={"forgotten_items": _first_forgotten(comparison)})


def _graded_notices(total: GroupResult, policy: GatePolicy) -> list[Notice]:
    """Report a decrease of graded scores above a margin, which rules on right and wrong miss."""
    margin = min(rule.margin for rule in policy.rules)
    graded = total.graded
    if graded is None or graded.value is None or graded.low is None or graded.low <= margin:
        return []
    cut = f"{policy.compare.correct_at:g}"
    message = (
        f"the mean score fell by {graded.value:.3g}, at least {graded.low:.3g}; no rule covers "
        f"this, because rules count only scores that fell below {cut} (correct_at)."
    )
    return [Notice("graded_fall", message)]


def _first_forgotten(comparison: Comparison) -> list[ForgottenItem]:
    """Return the first forgotten items of a failed gate; a report has all of them."""
    with reading(comparison.before, comparison.after):
        flips = comparison.flip_frame("forgotten").select("task", "item").unique()
        rows = sort_items(flips).head(MOST_ITEMS).collect()
    return [ForgottenItem(task=task, item=item) for task, item in rows.rows()]


def take_look(policy: GatePolicy, number: int) -> LookResult:
    """Return the number of the look, and its level so that all looks together err in at most 5 %.

    The looks share their items, so each is tested by itself: at an equal part of the 5 % if their
    number is planned, else at 1 / (l (l + 1)) of it, which adds up to all of it.
    """
    if number < 1:
        raise UsageError(f"--look is {number}", hint="use 1 or more.")
    planned = None if policy.looks == "any" else policy.looks
    parts = number * (number + 1) if planned is None else planned
    return LookResult(number=number, planned=planned, level=1 - (1 - policy.level) / parts)


def _refuse_unknown(options: GateOptions) -> None:
    """Refuse unknown options: ignoring one would decide something else."""
    known = GateOptions.__annotations__
    unknown = [name for name in options if name not in known]
    if unknown:
        raise UsageError(
            f"a gate has no option {unknown[0]!r}",
            hint=f"put rules into a policy; the options for reading runs are {', '.join(known)}.",
        )


def _policy_of(policy: GatePolicy | str | Path | None, margin: float | None) -> GatePolicy:
    if margin is not None and policy is not None:
        raise UsageError(
            "margin and policy cannot be combined",
            hint="set the margin in the rules of the policy, or remove the policy.",
        )
    if margin is not None:
        return make_default_policy(margin)
    if policy is None:
        return make_default_policy()
    return policy if isinstance(policy, GatePolicy) else read_policy(policy)


def _compare_options(policy: GatePolicy, options: GateOptions) -> Options:
    compared: Options = {**options}  # type: ignore[typeddict-item]  # all of them are also there
    how = policy.compare
    compared["metric"], compared["correct_at"] = how.metric, how.correct_at
    compared["pair_by"], compared["task_table"] = how.pair_by, how.task_table
    compared["noise_floor"], compared["level"] = how.noise_floor, policy.level
    compared["min_paired"] = ANY_SHARE
    return compared


def _decide_checks(
    comparison: Comparison, policy: GatePolicy, look: LookResult
) -> list[CheckResult]:
    opened = open_checks(comparison, policy, look.level)
    blocking = [check for check in opened if check.rule.tier == "blocking"]
    rejected = {
        id(check)
        for check, is_rejected in zip(blocking, reject(blocking, look.level), strict=True)
        if is_rejected
    }
    return [
        close_check(
            check,
            is_rejected=id(check) in rejected if check.rule.tier == "blocking" else check.is_beyond,
            level=look.level,
        )
        for check in opened
    ]


def _refused(
    policy: GatePolicy,
    error: PairingError,
    missing: Sequence[str],
    waivers: Sequence[Waiver],
    today: date,
    number: int,
) -> GateResult:
    """Return the result for runs that cannot be compared: they show no loss, nor its absence."""
    look = take_look(policy, number)
    reason = Notice("refused", error.message)
    checks = [
        close_check(check, is_rejected=False, level=look.level)
        for check in refused_checks(policy, reason)
    ]
    checks = apply_waivers(checks, waivers, today)
    notices = [reason, *waiver_notices(waivers, checks, today)]
    return _make_result(policy, look, checks, missing, warnings=notices)


def _missing_tasks(before: Any, after: Any, policy: GatePolicy, options: GateOptions) -> list[str]:
    """Return the required tasks without a score after, for runs that could not be compared."""
    if not policy.required_tasks:
        return []
    compared = _compare_options(policy, options)
    column_map, task = options.get("column_map"), options.get("task")
    readings = make_readings(compared, 2)
    _, run = open_all([before, after], column_map=column_map, task=task, readings=readings)
    rows = run.scores.filter(~nw.col("score").is_null()).select("task").unique().collect()
    scored = set(rows["task"].to_list())
    return [name for name in policy.required_tasks if name not in scored]


def _make_result(
    policy: GatePolicy,
    look: LookResult,
    checks: Sequence[CheckResult],
    missing: Sequence[str],
    **parts: Any,
) -> GateResult:
    used_up = look.planned is not None and look.number > look.planned
    status = _status(checks, missing, used_up=used_up)
    return GateResult(
        **{"before": None, "after": None, **parts},
        status=status,
        headline=_headline(status, checks, missing, look if used_up else None),
        policy=PolicyResult(origin=policy.origin, hash=policy.hash),
        look=look,
        checks=list(checks),
        missing_tasks=list(missing),
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        forgetmap=__version__,
    )


def _status(checks: Sequence[CheckResult], missing: Sequence[str], *, used_up: bool) -> Status:
    statuses = {check.status for check in checks if check.tier == "blocking"}
    if missing or "FAIL" in statuses:
        return "FAIL"
    return "INCONCLUSIVE" if used_up or "INCONCLUSIVE" in statuses else "PASS"


def _headline(
    status: Status,
    checks: Sequence[CheckResult],
    missing: Sequence[str],
    used_up: LookResult | None,
) -> str:
    blocking = [check for check in checks if check.tier == "blocking"]
    if missing:
        tasks = ", ".join(missing)
        return (
            f"{status}: required {'tasks are' if len(missing) > 1 else 'task is'} missing: {tasks}."
        )
    if status == "INCONCLUSIVE" and used_up is not None:
        return f"{status}: look {used_up.number} exceeds the {used_up.planned} planned looks."
    behind = [check for check in blocking if check.status == status]
    if not behind:
        return f"{status}: the policy has no blocking rule."
    if len(blocking) == 1:
        return f"{status}: {behind[0].name}: {behind[0].sentence}."
    count = f"{len(behind)} of {counted(len(blocking), 'blocking check')}"
    if status == "PASS":
        return f"{status}: {counted(len(blocking), 'blocking check')} passed."
    names = ", ".join(check.name for check in behind[:3])
    more = f" and {len(behind) - 3} more" if len(behind) > 3 else ""
    verb = "failed" if status == "FAIL" else "cannot be decided"
    return f"{status}: {count} {verb}: {names}{more}."
