"""Application of the scorers of a taxonomy to the responses of a run.

A unit of work is one scorer on one task. Its values are cached by the content of the task and the
version of the scorer, so that an interrupted measurement resumes, and nothing is scored twice. The
result is an ordinary run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa

from forgetmap._cache import cache_root, cached_folder, temporary_path
from forgetmap._workers import WorkerPool
from forgetmap.capabilities.batches import RESPONSE_COLUMNS, SCORE_SCHEMA, score_batch
from forgetmap.capabilities.choices import Profile
from forgetmap.capabilities.taxonomy import Metric, Taxonomy
from forgetmap.capabilities.values import TaxonomyRun, is_provisional, relation_of, sql
from forgetmap.records import (
    KEY,
    SCORE_NAMES,
    SCORES,
    MetricInfo,
    Run,
    RunInfo,
    TaskInfo,
    complete_folder,
    describe_folder,
    fill_scores,
    fill_texts,
    is_undamaged,
    literal,
    read_run,
    reading,
    scan,
    scores_schema,
    write_parquet,
)
from forgetmap.scoring import (
    TAMPERING,
    CodeScorer,
    Judge,
    JudgeScorer,
    find_scorer,
    load_scorer,
    needs_of,
    open_judge,
    signature_of,
)
from forgetmap.sources import OWN_SCORER, Progress

QUICK_ITEMS = 200
REPLIES = "judge/replies.sqlite"
REPEATED_JUDGE_TEMPERATURE = 0.7
ROWS_PER_BATCH_RANGE = 100, 2_000
"""Minimum and maximum number of responses per batch."""
PER_PROCESS = 12
"""Number of batches of a task per process, so that all end at about the same time."""
COPIED_ROWS = 100_000
"""Number of rows of a run that are copied at a time."""
MIN_ROWS_FOR_WORKERS = 20_000
"""Minimum number of responses that justifies starting other processes."""
_SCORE_COLUMNS = ("metric", "scorer", "score", "outcome", "answer", "choice")


@dataclass(frozen=True, slots=True)
class Measuring:
    """Settings of a measurement.

    Attributes:
        profile: `full`, or `quick`: rules only, on 200 items per task.
        judge: LLM judge for the metrics that need one, if available.
        judge_repeats: number of judgements of each response.
        allow_exec: run model-written code in a sandbox.
        processes: number of scoring processes; None means one per core.
        cached: use cached values.
        progress: called with progress messages.
    """

    profile: Profile = "full"
    judge: Judge | None = None
    judge_repeats: int = 1
    allow_exec: bool = False
    processes: int | None = None
    cached: bool = True
    progress: Progress | None = None

    def allows(self, metric: Metric) -> bool:
        """Return whether the requirements of a metric are met."""
        if metric.needs == "rule":
            return True
        allowed = self.judge is not None if metric.needs == "judge" else self.allow_exec
        return allowed and self.profile == "full"


def judge_at(url: str, model: str, *, cached: bool = True, repeats: int = 1) -> Judge:
    """Return a judge whose replies are cached by question, so that nothing is asked twice.

    Args:
        url: address of the server.
        model: name of the model on the server.
        cached: whether replies are cached.
        repeats: number of judgements; several are sampled, otherwise they would be equal.
    """
    parameters = {"temperature": REPEATED_JUDGE_TEMPERATURE} if repeats > 1 else None
    cache = cache_root() / REPLIES if cached else None
    return open_judge(url, model, cache=cache, parameters=parameters)


@dataclass(frozen=True, slots=True)
class ScoringUnit:
    """One scorer on one task, by its name in the run."""

    task: str
    scorer: str


def plan(source: TaxonomyRun, taxonomy: Taxonomy, how: Measuring) -> list[ScoringUnit]:
    """Return the units to score: those that the run lacks and that can be computed."""
    units: dict[ScoringUnit, None] = {}
    for metric in taxonomy.metrics:
        if metric.scorer is None or not how.allows(metric):
            continue
        by_judge = metric.judge is not None and how.judge is not None and how.profile == "full"
        name = str(metric.judge if by_judge else metric.scorer)
        for task in filter(None, (metric.task, metric.agrees_with)):
            name_in_run = source.tasks.get(task)
            if name_in_run is not None and not _is_recorded(source, name_in_run, metric, name):
                units[ScoringUnit(name_in_run, name)] = None
    return list(units)


def _is_recorded(source: TaxonomyRun, task: str, metric: Metric, name: str) -> bool:
    """Return whether the records have this metric; values by rule do not count if a judge can."""
    rule = signature_of(find_scorer(str(metric.scorer))) if name != metric.scorer else None
    return any(
        measure.metric == metric.field
        and scored
        and measure.scorer != rule
        and not is_provisional(measure, metric)
        for measure, scored in source.offered[task].items()
    )


def measure(run: Run, taxonomy: Taxonomy, how: Measuring | None = None) -> Run:
    """Return the run with all scores of the taxonomy that can be computed.

    Recorded scores under a name of the taxonomy are used as they are.
    """
    how = how or Measuring()
    units = plan(TaxonomyRun(run, taxonomy), taxonomy, how) if run.texts is not None else []
    if not units:
        return run
    for unit in units:
        load_scorer(unit.scorer)  # a missing package fails here, not after an hour
    work = _Work(run, how)
    few = how.processes is None and work.size(units) < MIN_ROWS_FOR_WORKERS
    with WorkerPool(1 if few else how.processes) as pool:
        parts = {unit: work.part(unit, pool) for unit in units}
    folder = work.place_of_all(parts)
    if not is_undamaged(folder):
        with complete_folder(folder, overwrite=folder.exists()) as partial:
            write_parquet(partial / SCORES, work.merged(parts), scores_schema())
            describe_folder(partial, _describe(run.info, parts, taxonomy))
    return replace(
        read_run(folder),
        texts=run.texts,
        name=run.name,
        origin=run.origin,
        notices=(*run.notices, *_tampering(parts)),
        ids_are_occurrences=run.ids_are_occurrences,
        positions_of=run.positions_of,
        format=run.format,
        problems=run.problems,
        problem_count=run.problem_count,
        contradictions=run.contradictions,
    )


def _tampering(parts: Mapping[ScoringUnit, Path]) -> Iterator[str]:
    """Report the number of programs that tried to write their own verdict, by task."""
    for unit, path in parts.items():
        if needs_of(find_scorer(unit.scorer)) != "sandbox":
            continue
        rows = f"SELECT DISTINCT item, repeat FROM {scan('read_parquet', path)}"
        count = len(sql(f"{rows} WHERE starts_with(error, {literal(TAMPERING)})").fetchall())
        if count:
            many = "model-written programs faked their verdict and count"
            one = "model-written program faked its verdict and counts"
            yield f"{unit.task}: {count:,} {one if count == 1 else many} as wrong ({TAMPERING})."


def _cache_folder(how: Measuring, *key: str) -> Path:
    """Return the cache folder of a key."""
    if not how.cached:
        return temporary_path()
    digest = blake2b("\n".join(key).encode(), digest_size=16).hexdigest()
    return cached_folder(digest, "scores")


def _is_judged(unit: ScoringUnit) -> bool:
    return needs_of(find_scorer(unit.scorer)) == "judge"


def _digest(content: str) -> str:
    """Return SQL for sums over hashes of rows that do not depend on their order."""
    return f"bit_xor({content}), sum({content}::HUGEINT % 1000000007)"


class _Work:
    """The responses of a run, and their scores so far."""

    def __init__(self, run: Run, how: Measuring) -> None:
        assert run.texts is not None  # noqa: S101  # asked before
        self._run, self._how = run, how
        self._texts = relation_of(fill_texts(run.texts))
        self._scores = relation_of(fill_scores(run.scores))
        self._contents = self._fingerprints()

    def size(self, units: Sequence[ScoringUnit]) -> int:
        """Return the number of responses to score."""
        return sum(self._contents[unit.task][0] for unit in units if unit.task in self._contents)

    def place_of_all(self, parts: Mapping[ScoringUnit, Path]) -> Path:
        """Return the path of the run with all scores, the same only for the same run and parts."""
        if any(_is_judged(unit) for unit in parts):
            return temporary_path()
        content = _digest(f"hash({', '.join(SCORE_NAMES)})")
        with reading(self._run):
            (scores,) = self._scores.aggregate(content).fetchall()
        info = self._run.info.model_dump_json()
        return _cache_folder(self._how, "run", info, str(scores), *map(str, parts.values()))

    def _fingerprints(self) -> dict[str, tuple[int, str]]:
        """Return the number of responses and a hash of the content of every task."""
        texts = "hash(item, repeat, question, options::VARCHAR, response, material)"
        scores = "hash(item, repeat, gold, gold_index, finish_reason)"
        fingerprints: dict[str, tuple[int, str]] = {}
        with reading(self._run):
            for table, content in ((self._texts, texts), (self._scores, scores)):
                counted = table.aggregate(f"task, count(*), {_digest(content)}", "task")
                for task, count, *digest in counted.fetchall():
                    before = fingerprints.get(task, (count, ""))
                    fingerprints[task] = (before[0], f"{before[1]} {digest}")
        return fingerprints

    def part(self, unit: ScoringUnit, pool: WorkerPool) -> Path:
        """Return the file with the values of one unit, which is scored unless it is cached."""
        scorer = find_scorer(unit.scorer)
        content = self._contents.get(unit.task, (0, ""))[1]
        if _is_judged(unit):  # replies are already cached, and failures may be temporary
            path = temporary_path()
        else:
            path = _cache_folder(
                self._how, "part", unit.task, signature_of(scorer), self._how.profile, content
            )
        if not is_undamaged(path):
            with complete_folder(path, overwrite=path.exists()) as partial:
                write_parquet(partial / SCORES, self._measured(unit, pool), SCORE_SCHEMA)
                describe_folder(partial, RunInfo())
        return path / SCORES

    def _measured(self, unit: ScoringUnit, pool: WorkerPool) -> Iterator[pa.RecordBatch]:
        total, done = self._contents.get(unit.task, (0, ""))[0], 0
        if self._how.profile == "quick":
            total = min(total, QUICK_ITEMS)
        needs = needs_of(find_scorer(unit.scorer))
        rows = min(
            max(total // (PER_PROCESS * pool.size), ROWS_PER_BATCH_RANGE[0]),
            ROWS_PER_BATCH_RANGE[1],
        )
        if needs == "rule":
            score = partial(score_batch, unit.scorer)
            scored = pool.map(score, self._responses(unit.task, rows))
        else:
            scored = self._with_help(unit, self._responses(unit.task, rows))
        for batch in scored:
            yield batch
            done = min(done + rows, total)
            if self._how.progress:
                self._how.progress(
                    f"Scoring {self._run.name}, {unit.task} by {unit.scorer}: {done:,} of {total:,}"
                )

    def _with_help(
        self, unit: ScoringUnit, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Return values that need a judge or a sandbox."""
        from forgetmap.capabilities.batches import judge_rows, run_rows  # rarely

        scorer = find_scorer(unit.scorer)
        if needs_of(scorer) == "sandbox":
            return run_rows(cast("CodeScorer", scorer), batches, workers=self._how.processes)
        assert self._how.judge is not None  # noqa: S101  # else it was not planned
        return judge_rows(
            cast("JudgeScorer", scorer),
            batches,
            self._how.judge,
            repeats=self._how.judge_repeats,
        )

    def _responses(self, task: str, rows: int) -> Iterator[pa.RecordBatch]:
        """Return all responses to a task, or those of the quick profile, in batches."""
        here = f"task = {literal(task)}"
        texts, scores = self._texts.filter(here), self._scores.filter(here)
        chosen = ""
        if self._how.profile == "quick":
            # The same items for every model, whatever their ids.
            content = "md5(coalesce(any_value(question_hash)::VARCHAR, item))"
            chosen = (
                "WHERE item IN (SELECT item FROM scores GROUP BY item "
                f"ORDER BY {content}, item LIMIT {QUICK_ITEMS})"
            )
        query = f"""
            SELECT {", ".join(RESPONSE_COLUMNS)}
            FROM texts LEFT JOIN (
                SELECT item, repeat, any_value(gold) AS gold, any_value(gold_index) AS gold_index,
                    any_value(finish_reason) AS finish_reason
                FROM scores GROUP BY item, repeat
            ) USING (item, repeat) {chosen}"""
        with reading(self._run):
            yield from sql(query, texts=texts, scores=scores).to_arrow_reader(rows)

    def merged(self, parts: Mapping[ScoringUnit, Path]) -> Iterator[pa.RecordBatch]:
        """Return all scores: those of the run, then the measured ones by unit.

        Provisional scores from reading are replaced by measured ones, as are those that wait for a
        judge or a sandbox.
        """
        replaced = ", ".join(
            f"({literal(unit.task)}, {literal(scorer)})"
            for unit in parts
            for scorer in (OWN_SCORER, signature_of(find_scorer(unit.scorer)))
        )
        kept = self._scores.filter(f"(task, coalesce(scorer, '')) NOT IN ({replaced})")
        with reading(self._run):
            yield from _canonical(kept)
            for unit, path in parts.items():
                yield from _canonical(_with_shared(self._scores, unit, path))


def _canonical(table: duckdb.DuckDBPyRelation) -> Iterator[pa.RecordBatch]:
    for batch in table.project(", ".join(SCORE_NAMES)).to_arrow_reader(COPIED_ROWS):
        yield batch.cast(scores_schema())


def _with_shared(
    scores: duckdb.DuckDBPyRelation, unit: ScoringUnit, path: Path
) -> duckdb.DuckDBPyRelation:
    """Return the measured values, with the columns of the run that do not depend on the metric."""
    shared = [
        f"any_value({name}) AS {name}"
        for name in SCORE_NAMES
        if name not in (*KEY, *_SCORE_COLUMNS)
    ]
    scorer = signature_of(find_scorer(unit.scorer))
    query = f"""
        SELECT {", ".join(map(_column, SCORE_NAMES))}
        FROM (
            SELECT *, {literal(unit.task)} AS task, {literal(scorer)} AS scorer
            FROM {scan("read_parquet", path)}
        ) AS part
        JOIN (
            SELECT item, repeat, {", ".join(shared)}
            FROM scores WHERE task = {literal(unit.task)} GROUP BY item, repeat
        ) AS answers ON part.item = answers.item AND part.repeat = answers.repeat"""
    return sql(query, scores=scores)


def _column(name: str) -> str:
    return f"part.{name}" if name in (*KEY, *_SCORE_COLUMNS) else f"answers.{name}"


def _describe(info: RunInfo, parts: dict[ScoringUnit, Path], taxonomy: Taxonomy) -> RunInfo:
    """Return the manifest with the range of every value and the main metric of every task."""
    metrics, tasks = dict(info.metrics), dict(info.tasks)
    less = {metric.field for metric in taxonomy.metrics if metric.polarity == "down"}
    for unit in reversed(parts):
        scorer = find_scorer(unit.scorer)
        for name, scale in scorer.fields.items():
            metrics[name] = MetricInfo(
                low=scale.low, high=scale.high, higher_is_better=name not in less
            )
        main = {"main_metric": next(iter(scorer.fields)), "main_scorer": signature_of(scorer)}
        tasks[unit.task] = tasks.get(unit.task, TaskInfo()).model_copy(update=main)
    return info.model_copy(update={"metrics": metrics, "tasks": tasks})
