"""Batch scoring of responses on Arrow data, in this process or in another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa

from forgetmap.errors import FieldError
from forgetmap.scoring import (
    UNSCORED,
    CodeScorer,
    Fields,
    Grade,
    Judge,
    JudgeQuestion,
    JudgeScorer,
    Program,
    ProgramResult,
    RuleScorer,
    Scorer,
    ScorerInput,
    find_scorer,
    grade_missing,
    outcome_of,
    run_programs,
    score_sample,
)

RESPONSE_COLUMNS = (
    "item", "repeat", "question", "options", "response", "material", "gold", "gold_index",
    "finish_reason",
)  # fmt: skip
"""Columns of a batch of responses."""
SCORE_SCHEMA = pa.schema(
    [
        ("item", pa.string()),
        ("repeat", pa.int32()),
        ("metric", pa.string()),
        ("score", pa.float64()),
        ("outcome", pa.string()),
        ("answer", pa.string()),
        ("choice", pa.string()),
        ("error", pa.string()),
    ]
)


def score_batch(name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Score a batch by the rule of this name; called by workers."""
    return score_rows(cast("RuleScorer", find_scorer(name)), batch)


def score_rows(scorer: RuleScorer, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Score a batch by a rule; an unusable item becomes an error of its own."""
    scored = ScoreRows(scorer)
    for row in batch.to_pylist():
        sample = as_scorer_input(row)
        scored.add(row, None if sample is None else score_sample(scorer, sample))
    return scored.batch()


def as_scorer_input(row: Mapping[str, Any]) -> ScorerInput | None:
    """Return the input of a scorer for a row; None without a response."""
    if row["response"] is None:
        return None
    material = json.loads(row["material"]) if row["material"] else {}
    if row["gold_index"] is not None:
        material.setdefault("gold_index", row["gold_index"])
    question = row["question"]
    return ScorerInput(
        response=row["response"],
        gold=material.get("gold", row["gold"]),
        question=tuple(material.get("turns", () if question is None else (question,))),
        options=tuple(row["options"] or ()),
        material=material,
        finish_reason=row["finish_reason"],
    )


def missing_values(scorer: Scorer, error: FieldError) -> Fields:
    """Mark all values of a scorer as missing, because the item is unusable."""
    return dict.fromkeys(scorer.fields, grade_missing(error.message))


class ScoreRows:
    """Collects the values of one scorer as rows."""

    def __init__(self, scorer: Scorer) -> None:
        self._fields = tuple(scorer.fields)
        self._rows: list[tuple[Any, ...]] = []

    def add(self, row: Mapping[str, Any], fields: Fields | None) -> None:
        """Add the values of one response; None marks all as missing."""
        grades = fields if fields is not None else dict.fromkeys(self._fields, UNSCORED)
        key = (row["item"], row["repeat"])
        for name, grade in grades.items():
            values = (grade.score, outcome_of(grade), grade.answer, grade.choice, grade.error)
            self._rows.append((*key, name, *values))

    def batch(self) -> pa.RecordBatch:
        """Return all rows so far."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(SCORE_SCHEMA)
        arrays = [
            _array(list(column), field.type)
            for column, field in zip(columns, SCORE_SCHEMA, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCORE_SCHEMA)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a lone surrogate
        sound = [
            v.encode("utf-8", "replace").decode() if v else v for v in cast("list[str]", values)
        ]
        return pa.array(sound, kind)


def run_rows(
    scorer: CodeScorer, batches: Iterator[pa.RecordBatch], *, workers: int | None
) -> Iterator[pa.RecordBatch]:
    """Score batches by running the code in them, several programs at a time."""
    for batch in batches:
        rows = batch.to_pylist()
        samples = [as_scorer_input(row) for row in rows]
        programs = [_program(scorer, sample) for sample in samples]
        runnable = [program if isinstance(program, Program) else None for program in programs]
        scored = ScoreRows(scorer)
        ended = run_programs(runnable, workers=workers)
        for row, sample, program, ran in zip(rows, samples, programs, ended, strict=True):
            scored.add(row, _settled_by_run(scorer, sample, program, ran))
        yield scored.batch()


def _program(scorer: CodeScorer, sample: ScorerInput | None) -> Program | FieldError | None:
    try:
        return None if sample is None else scorer.program(sample)
    except FieldError as error:
        return error


def _settled_by_run(
    scorer: CodeScorer, sample: ScorerInput | None, program: object, ran: ProgramResult | None
) -> Fields | None:
    if sample is None:
        return None
    return (
        missing_values(scorer, program)
        if isinstance(program, FieldError)
        else scorer.settle(sample, ran)
    )


def judge_rows(
    scorer: JudgeScorer, batches: Iterator[pa.RecordBatch], judge: Judge, *, repeats: int = 1
) -> Iterator[pa.RecordBatch]:
    """Score batches with an LLM judge, all questions of a batch together.

    Args:
        scorer: asks the questions and reads the replies.
        batches: batches of responses.
        judge: the LLM judge.
        repeats: number of judgements per response, which are averaged.
    """
    for batch in batches:
        rows = batch.to_pylist()
        samples = [as_scorer_input(row) for row in rows]
        all_questions = [_questions(scorer, sample) for sample in samples]
        usable = [ask for questions in all_questions for ask in _usable_questions(questions)]
        rounds = [iter(_replies(judge, usable, repeat)) for repeat in range(repeats)]
        scored = ScoreRows(scorer)
        for row, sample, questions in zip(rows, samples, all_questions, strict=True):
            judgements = []
            for replies in rounds:
                own = [next(replies) for _ in _usable_questions(questions)]
                judgements.append(_settled_by_judge(scorer, sample, questions, own))
            scored.add(row, _mean_judgement(judgements))
        yield scored.batch()


def _mean_judgement(judgements: Sequence[Fields | None]) -> Fields | None:
    """Average every value over the judgements that have it."""
    answers = [fields for fields in judgements if fields is not None]
    if len(answers) <= 1:
        return answers[0] if answers else None
    return {name: _mean_grade([fields[name] for fields in answers]) for name in answers[0]}


def _mean_grade(grades: Sequence[Grade]) -> Grade:
    scored = [grade for grade in grades if grade.score is not None]
    if not scored:
        return grades[0]
    mean = sum(grade.score for grade in scored if grade.score is not None) / len(scored)
    return replace(scored[0], score=mean)


def _questions(scorer: JudgeScorer, sample: ScorerInput | None) -> list[JudgeQuestion] | FieldError:
    try:
        return [] if sample is None else list(scorer.questions(sample))
    except FieldError as error:
        return error


def _usable_questions(questions: list[JudgeQuestion] | FieldError) -> list[JudgeQuestion]:
    return [] if isinstance(questions, FieldError) else questions


def _settled_by_judge(
    scorer: JudgeScorer,
    sample: ScorerInput | None,
    questions: list[JudgeQuestion] | FieldError,
    replies: list[str | None],
) -> Fields | None:
    if sample is None:
        return None
    return (
        missing_values(scorer, questions)
        if isinstance(questions, FieldError)
        else scorer.settle(sample, replies)
    )


def _replies(judge: Judge, questions: list[JudgeQuestion], repeat: int) -> list[str | None]:
    """Return all replies, also if an event loop is already running, as in a notebook."""
    if not questions:
        return []
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, judge.ask_all(questions, repeat=repeat)).result()
