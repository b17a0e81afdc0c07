"""Evaluation of every model of a study, once for all of its pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forgetmap.errors import ForgetmapError
from forgetmap.study.bill import bill_of, make_rates
from forgetmap.study.budget import Budget, RunLimits
from forgetmap.study.declaration import Study
from forgetmap.study.ledger import OnRunUpdate, RunLedger, StudyRuns
from forgetmap.study.parallel import run_in_processes
from forgetmap.study.plan import PlannedRun, plan_runs
from forgetmap.study.single_run import OnStudyProgress, RunOptions, evaluate_plan


def run_study(
    study: Study,
    out: str | Path,
    *,
    only: Sequence[str] = (),
    parallel: int | None = None,
    servers: Mapping[str, str] | None = None,
    limits: RunLimits | None = None,
    on_progress: OnStudyProgress | None = None,
    on_update: OnRunUpdate | None = None,
    **options: Any,
) -> StudyRuns:
    """Evaluate every model that has no run yet; resume an earlier call.

    A model that fails does not stop the others.

    Args:
        study: the study.
        out: folder for one run folder per model.
        only: ids of models; by default all.
        parallel: number of models at a time in separate processes, and as many on each server; None
            evaluates one after the other in this process.
        servers: id -> address of a server with the model.
        limits: limits; the call stops before a model that would exceed them.
        on_progress: called after every answer or at intervals; from any thread, never concurrently.
        on_update: called when a model starts, is done, or fails; from any thread, never
            concurrently.
        options: `data_root`, `keep_weights` and `threads` as in `RunOptions`; dtype, device and so
            on, as for `open_model`.
    """
    out = Path(out)
    plans = plan_runs(study, out, only, servers=servers)
    limits = limits or RunLimits()
    rates = limits.rates
    if rates is None and limits.values:
        rates = make_rates(study, plan_runs(study, out), out)
    bills = {plan.id: bill_of(study, plan, rates) for plan in plans}
    budget = Budget(limits, bills, options.get("tensor_parallel") or 1)
    budget.require_known(plans)
    ledger = RunLedger(out, plans, budget, on_update)
    how = RunOptions(
        data_root=options.pop("data_root", None),
        keep_weights=options.pop("keep_weights", False),
        threads=options.pop("threads", None),
        loading=options,
    )
    if parallel is None:
        _run_here(study, plans, out, how, ledger, on_progress)
    else:
        run_in_processes(study, plans, out, how, ledger, parallel, on_progress)
    return ledger.result()


def _run_here(
    study: Study,
    plans: Sequence[PlannedRun],
    out: Path,
    options: RunOptions,
    ledger: RunLedger,
    on_progress: OnStudyProgress | None,
) -> None:
    while (plan := ledger.begin(plans)) is not None:
        try:
            effort = evaluate_plan(study, plan, out, options, on_progress)
        except ForgetmapError as error:
            ledger.fail(plan, error)
        else:
            ledger.finish(plan, effort)
