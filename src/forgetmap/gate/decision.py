"""The public function `run_gate`: check two runs against a policy."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import narwhals as nw

from forgetmap import __version__
from forgetmap._http import redact_url
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
from forgetmap.gate.check_text import unknown_groups, with_suggestion
from forgetmap.gate.checks import decide_checks, refused_checks
from forgetmap.gate.history import count_looks, record_result
from forgetmap.gate.policy import GatePolicy, make_default_policy, read_policy
from forgetmap.gate.result import (
    Accept,
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
from forgetmap.sources import Progress, is_remote
from forgetmap.stats import look_share
from forgetmap.text import counted, listed

MOST_ITEMS = 20
"""Maximum number of items in the result of a failed gate."""
ANY_SHARE = 1e-12
"""Minimum paired share for `compare`: the gate checks the coverage itself."""


class GateOptions(TypedDict, total=False):
    """Options of `compare`; see `run_gate`."""

    column_map: Any
    task: str | None
    noise: Any
    confirm: tuple[Any, Any] | None
    chosen_among: int | None
    selected: bool | None
    run: str | Sequence[str] | None
    strict: bool
    scores: Literal["log", "own"] | None
    cached: bool
    progress: Progress | None
    score_range: tuple[float, float] | None
    mapping: str | Path | None


def run_gate(  # noqa: PLR0913  # all but the runs by name
    before: Any,
    after: Any,
    *,
    margin: float | None = None,
    accept: Accept | None = None,
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
        accept: what passes, if no policy is given: "items", by default: fewer items than the
            margin may be lost, whatever was gained; "net": also if accuracy fell by less than that.
        policy: a `GatePolicy`, or the path of its TOML file; by default no loss beyond the margin
            in all items, and a warning for every category.
        waivers: losses that are accepted for a limited time, or the path of their TOML file.
        look: number of this look at the models, if the policy plans several; by default one more
            than in the store.
        today: the date used to check whether waivers have expired; by default today in UTC.
        store: folder or address of the store of baselines and decisions.
        record: record the decision in the store; by default if there is one.
        options: as for `compare`: noise, confirm, selected, chosen_among, and how runs are read:
            column_map, task, run, strict, scores, cached, progress, score_range, mapping.

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
    gate_policy = _policy_of(policy, margin, accept)
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
        compared = _compare_once(first, second, gate_policy, options)
        typed = (before if baseline is None else place_of(baseline, store or ""), after)
        _refuse_contradictions(compared[0], typed, _compare_options(gate_policy, options))
        trial = _Trial(gate_policy, waiver_list, day, *compared)
        result = trial.decide(1 if look is None else look)
        earlier = 0 if look is not None or store is None else count_looks(store, result)
        if earlier:
            result = trial.decide(earlier + 1)
    if baseline is not None and result.before is not None:
        # The temporary copy no longer exists.
        origin = f"{PREFIX}{baseline.name}, version {baseline.version}"
        side = replace(result.before, origin=origin)
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


@dataclass(frozen=True, slots=True)
class _Trial:
    """Two runs against a policy; what `compare` says of them, or why it refuses."""

    policy: GatePolicy
    waivers: Sequence[Waiver]
    today: date
    comparison: Comparison | Notice
    missing: Mapping[str, str]

    def decide(self, number: int) -> GateResult:
        """Return the decision at a look."""
        look, found = take_look(self.policy, number), self.comparison
        facts: dict[str, Any] = {"before": None, "after": None}
        if isinstance(found, Notice):
            # Runs that cannot be compared show no loss, nor its absence.
            checks, notices = refused_checks(self.policy, found), [found]
        else:
            result, total = found.result, found.result.total
            checks = decide_checks(found, self.policy, look.level)
            notices = [*result.pairing.warnings, *_graded_notices(total, self.policy)]
            facts = {"before": result.before, "after": result.after}
            facts |= {"compared": total.n, "items": total.items}
            facts |= {"forgotten": total.forgotten, "gained": total.gained}
            facts |= {"confirmed": total.confirmed}
        checks = apply_waivers(checks, self.waivers, self.today)
        used_up = look.planned is not None and look.number > look.planned
        status = _status(checks, self.missing, used_up=used_up)
        if isinstance(found, Comparison) and status == "FAIL":
            facts["forgotten_items"] = _first_forgotten(found)
        words = _words(status, checks, self.missing, look if used_up else None)
        return GateResult(
            **facts,
            status=status,
            headline=f"{status}: {words}.",
            decision=f"{words}.",
            policy=PolicyResult(origin=self.policy.origin, hash=self.policy.hash),
            look=look,
            checks=checks,
            missing_tasks=list(self.missing),
            warnings=[*notices, *waiver_notices(self.waivers, checks, self.today)],
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            forgetmap=__version__,
        )


def _refuse_contradictions(
    found: Comparison | Notice, typed: tuple[Any, Any], options: Options
) -> None:
    """Refuse results that contradict their logs: neither PASS nor FAIL is known.

    Args:
        found: the comparison, or why there is none.
        typed: what a user can type for the two runs.
        options: options of the comparison.

    Raises:
        ContradictionError: the results contradict what their logs state.
    """
    if isinstance(found, Notice) or not found.result.pairing.contradictions:
        return
    readings = make_readings(options, len(typed))
    runs = zip((found.before, found.after), typed, readings, strict=True)
    shown = [_look_at(source, reading.run) for run, source, reading in runs if run.contradictions]
    if not shown and options.get("noise") is not None:
        shown = [_look_at(options["noise"], readings[0].run)]
    # One question for all prompts is no fact of a run; then the first is as good.
    look_at = shown[0] if shown else _look_at(typed[0], readings[0].run)
    raise ContradictionError(
        first_contradiction(found.result.pairing.contradictions),
        hint=f"{look_at} shows what it states and contains; give complete logs, each of one run.",
    )


def _look_at(source: Any, run: str | None) -> str:
    """Return the command that shows a run, or the attribute of a run in Python."""
    if not isinstance(source, str | os.PathLike):
        return "`contradictions` of the run"
    path = os.fspath(source)
    command = ["forgetmap", "records", "show", redact_url(path) if is_remote(path) else path]
    return f"`{shlex.join([*command, *(['--run', run] if run else [])])}`"


def _compare_once(
    before: Any, after: Any, policy: GatePolicy, options: GateOptions
) -> tuple[Comparison | Notice, dict[str, str]]:
    """Compare both runs, once for all looks; also return the required tasks without a score.

    Of these tasks, the values suggest other names.
    """
    found: Comparison | Notice
    try:
        found = compare(before, after, **_compare_options(policy, options))
    except MetricError as error:
        hint = 'set it in a policy (--policy FILE): metric = "..." below [compare].'
        raise MetricError(error.message, hint=hint) from None
    except BackendError:
        raise
    except PairingError as error:
        scored = _scored_tasks(before, after, policy, options) if policy.required_tasks else set()
        found = Notice("refused", error.message)
    else:
        scored = {task.name for task in found.result.tasks if task.n}
    missing = [task for task in policy.required_tasks if task not in scored]
    return found, {task: with_suggestion(task, scored) for task in missing}


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
    """Return the number of the look, and its level.

    The looks share their items, so each is tested by itself: at an equal part of the 5 % if their
    number is planned, else at 1 / (l (l + 1)) of it, which adds up to all of it. If a single look
    is planned, it has all of the 5 %, and unplanned ones have the parts of later looks.
    """
    if number < 1:
        raise UsageError(f"--look is {number}", hint="use 1 or more.")
    planned = None if policy.looks == "any" or number > policy.looks == 1 else policy.looks
    level = 1 - (1 - policy.level) * look_share(number, planned)
    return LookResult(number=number, planned=planned, level=level)


def _refuse_unknown(options: GateOptions) -> None:
    """Refuse unknown options: ignoring one would decide something else."""
    known = GateOptions.__annotations__
    unknown = [name for name in options if name not in known]
    if unknown:
        raise UsageError(
            f"a gate has no option {unknown[0]!r}",
            hint=f"put rules into a policy; the other options are {', '.join(known)}.",
        )


def _policy_of(
    policy: GatePolicy | str | Path | None, margin: float | None, accept: Accept | None
) -> GatePolicy:
    given = {"margin": margin, "accept": accept}
    known = {name: value for name, value in given.items() if value is not None}
    if policy is None:
        return make_default_policy(**known)  # type: ignore[arg-type]
    if known:
        name = next(iter(known))
        raise UsageError(
            f"{name} and policy cannot be combined",
            hint=f"set {name} in the policy, or remove the policy.",
        )
    return policy if isinstance(policy, GatePolicy) else read_policy(policy)


def _compare_options(policy: GatePolicy, options: GateOptions) -> Options:
    given = {name: value for name, value in options.items() if value is not None}
    own: dict[str, Any] = {**policy.compare.model_dump(), "chosen_among": policy.chosen_among}
    own |= {"level": policy.level, "min_paired": ANY_SHARE, **given}
    compared: Options = own  # type: ignore[assignment]  # all of them are options of `compare`
    return compared


def _scored_tasks(before: Any, after: Any, policy: GatePolicy, options: GateOptions) -> set[str]:
    """Return the tasks with a score after, of runs that could not be compared."""
    compared = _compare_options(policy, options)
    column_map, task = options.get("column_map"), options.get("task")
    readings = make_readings(compared, 2)
    _, run = open_all([before, after], column_map=column_map, task=task, readings=readings)
    rows = run.scores.filter(~nw.col("score").is_null()).select("task").unique().collect()
    return set(rows["task"].to_list())


def _status(checks: Sequence[CheckResult], missing: Mapping[str, str], *, used_up: bool) -> Status:
    statuses = {check.status for check in checks if check.tier == "blocking"}
    if missing or "FAIL" in statuses:
        return "FAIL"
    return "INCONCLUSIVE" if used_up or "INCONCLUSIVE" in statuses else "PASS"


def _words(
    status: Status,
    checks: Sequence[CheckResult],
    missing: Mapping[str, str],
    look: LookResult | None,
) -> str:
    """Return the decision in words; `look` is one that was not planned."""
    words = _decided(status, checks, missing, look)
    return "; ".join([words, *(said for said in unknown_groups(checks) if said not in words)])


def _decided(
    status: Status,
    checks: Sequence[CheckResult],
    missing: Mapping[str, str],
    look: LookResult | None,
) -> str:
    blocking = [check for check in checks if check.tier == "blocking"]
    behind = [check for check in blocking if check.status == status]
    if missing:
        are = "tasks are" if len(missing) > 1 else "task is"
        return f"required {are} missing: {', '.join(missing.values())}"
    if status == "INCONCLUSIVE" and look is not None:
        return f"look {look.number} exceeds the {look.planned} planned looks"
    if not behind:
        return "the policy has no blocking rule"
    if len(blocking) == 1:
        return f"{behind[0].name}: {behind[0].sentence}"
    number = counted(len(blocking), "blocking check")
    if status == "PASS":
        return f"{number} passed"
    verb = "failed" if status == "FAIL" else "cannot be decided"
    return f"{len(behind)} of {number} {verb}: {listed([check.name for check in behind])}"
