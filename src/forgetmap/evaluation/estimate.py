"""What a run would take, before it is started."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from forgetmap.evaluation.answers import graded_answers
from forgetmap.evaluation.backends.base import Backend, ServerBacked, Usage
from forgetmap.evaluation.items import Suite
from forgetmap.evaluation.jobs import check_lengths, make_jobs
from forgetmap.evaluation.journal import Answer
from forgetmap.evaluation.run_records import cost_of
from forgetmap.evaluation.settings import Settings, resolve

SAMPLE_ITEMS = 8
"""Items of each kind that are tried to measure the speed."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What a run would take.

    Attributes:
        answers: to be had.
        tokens_in: to be read; a server reads a question again for each option it weighs.
        most_tokens_out: to be written, if every answer is as long as it may be.
        seconds: at the speed of a few items.
        most_cost: of a server with prices.
    """

    answers: int
    tokens_in: int
    most_tokens_out: int
    seconds: float
    most_cost: float | None = None


def estimate_run(backend: Backend, suite: Suite, settings: Settings | None = None) -> RunEstimate:
    """What a run would take, from counting its tokens and trying a few items."""
    resolved = resolve(settings or Settings(), backend)
    jobs = make_jobs(suite, resolved, backend, "")
    lengths = check_lengths(jobs, resolved, backend)
    weighed = [job.is_weighed(resolved) for job in jobs]
    most_out = sum(
        0
        if by_weight
        else min(job.decoding(resolved).max_new_tokens, max(backend.context - length, 0))
        for job, by_weight, length in zip(jobs, weighed, lengths, strict=True)
    )
    seconds, tokens_in = 0.0, 0.0
    for kind in (True, False):
        indices = [index for index, by_weight in enumerate(weighed) if by_weight == kind]
        sample = indices[:: max(len(indices) // SAMPLE_ITEMS, 1)][:SAMPLE_ITEMS]
        start = time.perf_counter()
        answers = list(graded_answers(backend, [jobs[index] for index in sample], resolved))
        if sample:
            seconds += (time.perf_counter() - start) / len(sample) * len(indices)
            read = _server_tokens_in(backend, answers) / sum(lengths[index] for index in sample)
            tokens_in += (read or 1) * sum(lengths[index] for index in indices)
    cost = (
        cost_of(backend.service, tokens_in, most_out) if isinstance(backend, ServerBacked) else None
    )
    return RunEstimate(len(jobs), round(tokens_in), most_out, seconds, cost)


def _server_tokens_in(backend: Backend, answers: Sequence[Answer]) -> int:
    """Tokens that a server counted, which knows better than we; 0 if none did."""
    if not isinstance(backend, ServerBacked) or not backend.service.abilities["counts"]:
        return 0
    return sum(Usage(*answer.spent).tokens_in for answer in answers if answer.spent)
