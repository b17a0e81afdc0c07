"""Grading of the answers of a backend: one journal entry per job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from typing import Any

from forgetmap.evaluation.backends.base import (
    Backend,
    Failure,
    Likelihoods,
    Prompt,
    Question,
    Response,
    Usage,
)
from forgetmap.evaluation.jobs import Job
from forgetmap.evaluation.journal import Answer
from forgetmap.evaluation.prompts import continuations_of, full_response
from forgetmap.evaluation.settings import ResolvedSettings
from forgetmap.records import Outcome
from forgetmap.scoring import UNSCORED, Grade, grade_likelihoods, grade_response


def graded_answers(
    backend: Backend, jobs: Sequence[Job], settings: ResolvedSettings
) -> Iterator[Answer]:
    """Yield graded answers as they become ready, those compared by log-likelihood first."""
    weighed = [job for job in jobs if job.is_weighed(settings)]
    questions = [Question(job.prompt, continuations_of(job.item, job.task)) for job in weighed]
    for index, likelihoods in backend.loglikelihood(questions) if questions else ():
        yield _answer_by_weight(weighed[index], likelihoods)
    for decoding in dict.fromkeys((settings.decoding, settings.free)):
        text_jobs = [
            job
            for job in jobs
            if not job.is_weighed(settings) and job.decoding(settings) == decoding
        ]
        prompts = [Prompt(job.prompt, job.seed, job.messages) for job in text_jobs]
        for index, response in backend.generate(prompts, decoding) if prompts else ():
            yield _answer_by_text(text_jobs[index], response, settings)


def _answer_by_weight(job: Job, result: Likelihoods | Failure) -> Answer:
    if isinstance(result, Failure):
        return _failure_answer(job, result)
    item = job.item
    grade = grade_likelihoods(
        result.logprobs, result.tokens, item.options, gold=item.gold, also_right=item.also_right
    )
    weights = dict(zip(item.options, result.logprobs, strict=True))
    return _answer(
        job,
        grade,
        tokens_in=result.tokens_in + sum(result.tokens),
        tokens_out=0,
        logprob_answer=weights.get(grade.choice or ""),
        logprob_gold=weights[item.gold],
        logprob_next=_next_best(weights, grade.choice),
        spent=_usage_list(result.usage),
    )


def _next_best(weights: Mapping[str, float], choice: str | None) -> float | None:
    """Return the weight of the best option other than the chosen one; None if none was chosen."""
    others = [weight for text, weight in weights.items() if text != choice]
    return None if choice is None else max(others, default=None)


def _answer_by_text(job: Job, result: Response | Failure, settings: ResolvedSettings) -> Answer:
    if isinstance(result, Failure):
        return _failure_answer(job, result)
    return _answer(
        job,
        _grade(job, result, settings),
        response=result.text,
        tokens_in=result.tokens_in,
        tokens_out=result.tokens_out,
        finish_reason=result.finish_reason,
        seed=job.seed if settings.decoding.temperature else None,
        spent=_usage_list(result.usage),
    )


def _grade(job: Job, result: Response, settings: ResolvedSettings) -> Grade:
    """Grade a response; scorers run later, when the run is written."""
    if job.task.scorers:
        return UNSCORED
    item = job.item
    return grade_response(
        full_response(result.text, settings),
        gold=item.gold,
        kind=job.task.kind,
        options=item.options,
        also_right=item.also_right,
        finish_reason=result.finish_reason,
    )


def _answer(job: Job, grade: Grade, **more: Any) -> Answer:
    task, item, repeat = job.key
    return Answer(task=task, item=item, repeat=repeat, **asdict(grade), **more)


def error_answer(job: Job, message: str) -> Answer:
    """Return the entry of a job without an answer."""
    return Answer(*job.key, score=None, outcome=Outcome.ERROR, error=message)


def _failure_answer(job: Job, failure: Failure) -> Answer:
    return replace(error_answer(job, str(failure)), spent=_usage_list(failure.usage))


def _usage_list(usage: Usage | None) -> list[int] | None:
    return None if usage is None else list(astuple(usage))
