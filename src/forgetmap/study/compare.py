"""Comparison of all pairs of a study from existing runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetmap.comparison import Rule
from forgetmap.errors import EmptyInputError, FieldError, UsageError
from forgetmap.results import Estimate, Notice
from forgetmap.sources import Reading, engine_session, open_run
from forgetmap.stats import PairEffect, Reals, item_covariance, normal_quantile, pair_effect
from forgetmap.study.answers import IGNORED, OnRun, StudyAnswers, read_answers
from forgetmap.study.declaration import Study, StudyMerge, StudyPair
from forgetmap.study.drift import measure_drift, taxonomy_of
from forgetmap.study.drift_findings import find_drift_effects
from forgetmap.study.findings import find_effects
from forgetmap.study.merging import MergeChanges, merging_reduces
from forgetmap.study.pair_table import TOTAL, Effect, StudyTable, lineage, pair_facts
from forgetmap.study.read import pair_line
from forgetmap.study.result import FindingsResult, PairDrift, PairResults, StudyGap, StudyResult
from forgetmap.study.run_files import run_folder
from forgetmap.study.verdicts import judge_pairs
from forgetmap.text import counted, listed

EFFECTS: tuple[Effect, ...] = ("forgetting", "backward_transfer")
MIN_SHARED = 0.8
"""Minimum share of common answers of two models; below it, a notice is added."""


@dataclass(frozen=True, slots=True)
class PairComparer:
    """Compares pairs of models on one axis of items.

    Attributes:
        answers: answers of all models.
        weights: category -> weight of each task.
    """

    answers: StudyAnswers
    weights: Mapping[str, Reals]

    def effect(self, before: str, after: str, category: str = TOTAL) -> PairEffect:
        """Return the values of both effects, and the terms of the items of the category."""
        answers, items = self.answers, self.items(category)
        first, second = answers.right[before][:, items], answers.right[after][:, items]
        count = min(len(first), len(second))
        return pair_effect(
            first[:count],
            second[:count],
            answers.luck[items],
            answers.task[items],
            self.weights[category],
        )

    def items(self, category: str) -> NDArray[np.bool_]:
        """Return which items count in a category."""
        counted: NDArray[np.bool_] = self.weights[category][self.answers.task] > 0
        return counted

    def shared(self, before: str, after: str) -> tuple[int, float]:
        """Return the number of items that both answered, and their share of all answered items."""
        first, second = (
            (~np.isnan(self.answers.right[name])).any(axis=0) for name in (before, after)
        )
        both, either = int((first & second).sum()), int((first | second).sum())
        return both, both / either if either else 0.0


def find_runs(study: Study, folder: Path | None = None) -> dict[str, list[str]]:
    """Return the logs or the run folder of each model or merge; those without any are absent.

    Args:
        study: the study; paths of its logs are relative to its file.
        folder: folder with one run folder per model, named by its id.
    """
    entries = [(model.id, model.logs) for model in study.models]
    entries += [(merge.id, merge.logs) for merge in study.merges]
    runs = {}
    for name, logs in entries:
        paths = [log if "://" in log else str(study.folder / log) for log in logs]
        if not paths and folder is not None:
            paths = [str(run_folder(folder, name))]
        if paths and all("://" in path or Path(path).exists() for path in paths):
            runs[name] = paths
    return runs


def compare_study(
    study: Study,
    runs: Mapping[str, Sequence[Any]] | None = None,
    *,
    folder: Path | None = None,
    on_run: OnRun | None = None,
    engine: Any = None,
    master: str | None = None,
) -> StudyResult:
    """Compare all pairs of a study whose models have runs; each run is read once.

    Args:
        study: the study.
        runs: model -> its runs, in any form that `compare` accepts; by default those of
            `find_runs`.
        folder: folder with one run folder per model.
        on_run: called with the id of each model that is read.
        engine: `duckdb`, `spark`, or a Spark session for reading runs.
        master: address of the Spark cluster.

    Raises:
        FieldError: two models of a pair have no item in common; the error names the line of the
            pair.
        UsageError: no pair has runs of both models.
    """
    runs = find_runs(study, folder) if runs is None else runs
    session = engine_session(engine, master)
    if session is not None:
        how = Reading(spark=session)
        runs = {name: [open_run(one, reading=how) for one in own] for name, own in runs.items()}
    return compare_with_answers(study, runs, on_run=on_run)[0]


def compare_with_answers(
    study: Study,
    runs: Mapping[str, Sequence[Any]] | None = None,
    *,
    folder: Path | None = None,
    on_run: OnRun | None = None,
    keep_rows: bool = False,
) -> tuple[StudyResult, PairComparer]:
    """Like `compare_study`, and also return the answers of all models.

    Args:
        study: the study.
        runs: model -> its runs.
        folder: folder with one run folder per model.
        on_run: called with the id of each model that is read.
        keep_rows: also keep the answers, for lists of items.
    """
    runs = find_runs(study, folder) if runs is None else runs
    pairs = [pair for pair in study.pairs if pair.before in runs and pair.after in runs]
    gaps = study_gaps(study, runs)
    if not pairs:
        raise UsageError(
            f"no pair of {study.name} has runs of both models; missing: "
            f"{listed([gap.model for gap in gaps])}",
            hint="add `logs` to the models, or use --runs FOLDER with a run folder per model.",
        )
    used = _used_models(study, pairs, runs)
    sources = {name: list(runs[name]) for name in runs if name in used}
    if taxonomy_of(study) is not None:  # they are needed twice, but read once
        sources = {name: [open_run(one) for one in every] for name, every in sources.items()}
    answers = read_answers(
        sources,
        task_table=study.task_table,
        on_run=on_run,
        keep_rows=keep_rows,
    )
    comparer = PairComparer(answers, _weights(answers))
    _check_shared(study, pairs, comparer)
    table, covariance = _tabulate(study, pairs, comparer)
    findings = find_effects(table, study.name, level=study.level, margin=study.margin)
    merges = _merge_changes(study, comparer)
    if merges is not None:
        merging = merging_reduces(merges, study.level)
        findings = findings.model_copy(update={"findings": [*findings.findings, merging]})
    findings = _with_notices(findings, pairs, comparer)
    results = _pair_results(study, pairs, comparer, table, covariance)
    findings = _with_reasons(findings, results)
    result = StudyResult(
        study=study.name,
        pairs=results,
        gaps=gaps,
        findings=_with_drift(findings, study, pairs, sources),
    )
    return result, comparer


def study_gaps(study: Study, runs: Mapping[str, object]) -> list[StudyGap]:
    """Return models and merges without a run, with the pairs that need them."""
    every = [*study.pairs, *study.merge_pairs]
    names = [model.id for model in study.models] + [merge.id for merge in study.merges]
    return [
        StudyGap(model=name, pairs=[p.label for p in every if name in (p.before, p.after)])
        for name in names
        if name not in runs
    ]


def _used_models(study: Study, pairs: Sequence[StudyPair], runs: Mapping[str, object]) -> set[str]:
    """Return the models of pairs, and merges with their references; only these are read."""
    merges = [pair for pair in study.merge_pairs if pair.before in runs and pair.after in runs]
    return {name for pair in [*pairs, *merges] for name in (pair.before, pair.after)}


def _is_ready(merge: StudyMerge, models: set[str]) -> bool:
    return len(merge.models) == 2 and set(merge.models) <= models


def _weights(answers: StudyAnswers) -> dict[str, Reals]:
    """Return weights: a category is the mean of its tasks, the total the mean of categories."""
    categories = np.asarray(answers.categories)
    names = [name for name in dict.fromkeys(answers.categories) if name != IGNORED]
    if not names:
        raise EmptyInputError(
            "the task table of the study ignores all of its tasks",
            hint="remove `task_table`, or evaluate other tasks.",
        )
    weights = {name: (categories == name) / (categories == name).sum() for name in names}
    total: Reals = np.sum([*weights.values()], axis=0) / len(names)
    return {TOTAL: total, **(weights if len(names) > 1 else {})}


def _check_shared(study: Study, pairs: Sequence[StudyPair], comparer: PairComparer) -> None:
    for pair in pairs:
        if not comparer.shared(pair.before, pair.after)[0]:
            raise FieldError(
                f"{pair.before} and {pair.after} have no item in common",
                file=study.origin or None,
                line=pair_line(study, pair),
                hint="evaluate both on the same suite, or remove the pair; `forgetmap records "
                "show` lists the contents of a run.",
            )


Covariance = dict[tuple[Effect, str], Reals]


def _tabulate(
    study: Study, pairs: Sequence[StudyPair], comparer: PairComparer
) -> tuple[StudyTable, Covariance]:
    categories = tuple(comparer.weights)
    values = np.empty((len(pairs), len(categories), len(EFFECTS)))
    covariance: Covariance = {}
    # One category at a time: the terms of all would fill the memory.
    for place, name in enumerate(categories):
        effects = [comparer.effect(pair.before, pair.after, name) for pair in pairs]
        values[:, place] = [one.values for one in effects]
        task = comparer.answers.task[comparer.items(name)]
        for number, effect in enumerate(EFFECTS):
            terms = np.stack([one.terms[number] for one in effects])
            covariance[effect, name] = item_covariance(terms, task)
    table = StudyTable(
        facts=pair_facts(study, pairs),
        categories=categories,
        forgetting=values[:, :, 0],
        backward_transfer=values[:, :, 1],
        covariance=covariance,
    )
    return table, covariance


def _pair_results(
    study: Study,
    pairs: Sequence[StudyPair],
    comparer: PairComparer,
    table: StudyTable,
    covariance: Covariance,
) -> list[PairResults]:
    rows = []
    for place in range(len(pairs)):
        errors = {
            key: (float(table.values(*key)[place]), float(matrix[place, place]))
            for key, matrix in covariance.items()
        }
        rows.append(errors)
    return _with_verdicts(study, pairs, comparer, rows)


def pair_estimates(study: Study, pair: StudyPair, comparer: PairComparer) -> PairResults:
    """Compare a single pair, such as a merge and its reference."""
    row: dict[tuple[Effect, str], tuple[float, float]] = {}
    for name in comparer.weights:
        values = comparer.effect(pair.before, pair.after, name)
        variance = item_covariance(values.terms, comparer.answers.task[comparer.items(name)])
        for number, effect in enumerate(EFFECTS):
            row[effect, name] = float(values.values[number]), float(variance[number, number])
    return _with_verdicts(study, [pair], comparer, [row])[0]


def _with_verdicts(
    study: Study,
    pairs: Sequence[StudyPair],
    comparer: PairComparer,
    rows: Sequence[Mapping[tuple[Effect, str], tuple[float, float]]],
) -> list[PairResults]:
    """Return the results of pairs from the value and variance of each effect and category."""
    reach = float(normal_quantile(study.level))
    verdicts = judge_pairs(
        comparer.answers,
        comparer.weights[TOTAL],
        [(pair.before, pair.after) for pair in pairs],
        Rule(level=study.level, task_table=study.task_table, selected=study.selected),
    )
    results = []
    for pair, row, judged in zip(pairs, rows, verdicts, strict=True):
        estimates: dict[Effect, dict[str, Estimate]] = {effect: {} for effect in EFFECTS}
        for (effect, name), (value, variance) in row.items():
            estimates[effect][name] = _estimate(value, reach * float(np.sqrt(variance)))
        items, share = comparer.shared(pair.before, pair.after)
        results.append(
            PairResults(
                before=pair.before,
                after=pair.after,
                label=pair.label,
                group=pair.group,
                items=items,
                shared=share,
                verdict=judged.verdict,
                margin=judged.margin,
                loss=judged.loss,
                exchange=judged.exchange,
                undecided=judged.undecided,
                reason=judged.reason,
                **estimates,
            )
        )
    return results


def _estimate(value: float, reach: float) -> Estimate:
    method = "adjusted for chance as published, not clipped; items resampled"
    if np.isnan(value):
        return Estimate.missing(method, "no item of this category")
    return Estimate(value=value, low=value - reach, high=value + reach, method=method)


def _merge_changes(study: Study, comparer: PairComparer) -> MergeChanges | None:
    known = set(comparer.answers.right)
    merges = [merge for merge in study.merges if merge.id in known and _is_ready(merge, known)]
    if not merges:
        return None
    changes, errors = [], []
    for merge in merges:
        earlier, later = merge.models
        merged, trained = comparer.effect(earlier, merge.id), comparer.effect(earlier, later)
        changes.append(float(merged.values[0] - trained.values[0]))
        task = comparer.answers.task[comparer.items(TOTAL)]
        gap = item_covariance((merged.terms - trained.terms)[:1], task)
        errors.append(float(np.sqrt(gap[0, 0])))
    return MergeChanges(
        labels=tuple(merge.label or merge.id for merge in merges),
        lineages=tuple(lineage(study, merge.models[0]) for merge in merges),
        changes=np.asarray(changes),
        errors=np.asarray(errors),
        reach=float(normal_quantile(study.level)),
    )


def _with_drift(
    findings: FindingsResult,
    study: Study,
    pairs: Sequence[StudyPair],
    runs: Mapping[str, Sequence[Any]],
) -> FindingsResult:
    """Return the findings, with those on capabilities if the study measures drift."""
    if taxonomy_of(study) is None:
        return findings
    drift = measure_drift(study, pairs, runs)
    if isinstance(drift, Notice):
        return findings.model_copy(update={"notices": [*findings.notices, drift]})
    values = drift.table.values("drift")
    sizes = [
        PairDrift(before=fact.before, after=fact.after, size=float(value))
        for fact, value in zip(drift.table.facts, values, strict=True)
    ]
    return findings.model_copy(
        update={
            "drift": find_drift_effects(drift, study.level),
            "drift_sizes": sizes,
            "notices": [*findings.notices, *drift.notices],
        }
    )


def _with_reasons(findings: FindingsResult, pairs: Sequence[PairResults]) -> FindingsResult:
    """Add a notice for each pair of which nothing can be concluded."""
    reasons = [
        Notice("undecided", f"{pair.before} -> {pair.after}: cannot tell: {pair.reason}.")
        for pair in pairs
        if pair.reason
    ]
    return findings.model_copy(update={"notices": [*findings.notices, *reasons]})


def _with_notices(
    findings: FindingsResult, pairs: Sequence[StudyPair], comparer: PairComparer
) -> FindingsResult:
    few = [p.label for p in pairs if comparer.shared(p.before, p.after)[1] < MIN_SHARED]
    if not few:
        return findings
    message = (
        f"in {counted(len(few), 'pair')} less than {MIN_SHARED:.0%} of the items are common to "
        f"both models: {listed(few)}."
    )
    notices = [*findings.notices, Notice("few_shared", message)]
    return findings.model_copy(update={"notices": notices})
