"""Scores that take more than a rule: a judge that is asked, or a sandbox that runs code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from forgetmap.capabilities.scoring_batches import Scored, answered, failed
from forgetmap.errors import FieldError
from forgetmap.scoring import (
    Answered,
    Ask,
    CodeScorer,
    Fields,
    Judge,
    JudgeScorer,
    Program,
    Ran,
    run_programs,
)


def run_rows(
    scorer: CodeScorer, batches: Iterator[pa.RecordBatch], *, workers: int | None
) -> Iterator[pa.RecordBatch]:
    """Score batches by running the code in them, several programs at a time."""
    for batch in batches:
        rows = batch.to_pylist()
        samples = [answered(row) for row in rows]
        programs = [_program(scorer, sample) for sample in samples]
        runnable = [each if isinstance(each, Program) else None for each in programs]
        scored = Scored(scorer)
        ended = run_programs(runnable, workers=workers)
        for row, sample, program, ran in zip(rows, samples, programs, ended, strict=True):
            scored.add(row, _settled(scorer, sample, program, ran))
        yield scored.batch()


def _program(scorer: CodeScorer, sample: Answered | None) -> Program | FieldError | None:
    try:
        return None if sample is None else scorer.program(sample)
    except FieldError as error:
        return error


def _settled(
    scorer: CodeScorer, sample: Answered | None, program: object, ran: Ran | None
) -> Fields | None:
    if sample is None:
        return None
    return (
        failed(scorer, program) if isinstance(program, FieldError) else scorer.settle(sample, ran)
    )


def judge_rows(
    scorer: JudgeScorer, batches: Iterator[pa.RecordBatch], judge: Judge
) -> Iterator[pa.RecordBatch]:
    """Score batches by asking a judge, all questions of a batch together."""
    for batch in batches:
        rows = batch.to_pylist()
        samples = [answered(row) for row in rows]
        asked = [_asks(scorer, sample) for sample in samples]
        replies = iter(_replies(judge, [ask for asks in asked for ask in _only_asks(asks)]))
        scored = Scored(scorer)
        for row, sample, asks in zip(rows, samples, asked, strict=True):
            own = [next(replies) for _ in _only_asks(asks)]
            scored.add(row, _judged(scorer, sample, asks, own))
        yield scored.batch()


def _asks(scorer: JudgeScorer, sample: Answered | None) -> list[Ask] | FieldError:
    try:
        return [] if sample is None else list(scorer.asks(sample))
    except FieldError as error:
        return error


def _only_asks(asks: list[Ask] | FieldError) -> list[Ask]:
    return [] if isinstance(asks, FieldError) else asks


def _judged(
    scorer: JudgeScorer,
    sample: Answered | None,
    asks: list[Ask] | FieldError,
    replies: list[str | None],
) -> Fields | None:
    if sample is None:
        return None
    return failed(scorer, asks) if isinstance(asks, FieldError) else scorer.settle(sample, replies)


def _replies(judge: Judge, asks: list[Ask]) -> list[str | None]:
    """All replies, also where an event loop runs already, as in a notebook."""
    if not asks:
        return []
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, judge.ask_all(asks)).result()
