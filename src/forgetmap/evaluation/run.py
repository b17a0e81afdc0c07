"""Evaluate a model on a suite and write the run folder, or estimate the cost."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from forgetmap._disk import only_writer
from forgetmap.errors import OutputError
from forgetmap.evaluation.answers import error_answer, graded_answers
from forgetmap.evaluation.backends.base import Backend, ServerBacked, Usage
from forgetmap.evaluation.items import Suite
from forgetmap.evaluation.jobs import Job, check_lengths, make_jobs, second_turn
from forgetmap.evaluation.journal import Answer, Journal
from forgetmap.evaluation.run_records import (
    ModelIdentity,
    asked_info,
    cost_of,
    record_columns,
    run_info,
    service_info,
)
from forgetmap.evaluation.settings import ResolvedSettings, Settings, resolve
from forgetmap.records import (
    Outcome,
    build_run,
    is_run_folder,
    read_run,
    refuse_to_replace,
    writable,
    write_run,
)

BYTES_PER_TOKEN = 8
SAMPLE_ITEMS = 8
"""Number of items per kind that are run to measure the speed."""


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of a run.

    Attributes:
        done: number of answers so far, including earlier attempts.
        total: number of answers of the whole run.
        tokens: tokens read and written in this attempt.
        seconds: duration of this attempt.
        failed: number of answers that are errors.
        damaged: number of damaged lines of the journal, whose answers are generated again.
        written: tokens that the model generated, of `tokens`.
    """

    done: int
    total: int
    tokens: int
    seconds: float
    failed: int
    damaged: int = 0
    written: int = 0


OnProgress = Callable[[Step], None]
"""Callback that receives the progress after every answer."""


def run_model(
    backend: Backend,
    suite: Suite,
    out: Path,
    model: ModelIdentity,
    settings: Settings | None = None,
    *,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
    again: bool = False,
) -> Path:
    """Evaluate a model on a suite and write a run folder; resume an earlier attempt.

    Args:
        backend: backend that answers.
        suite: tasks and items.
        out: the run folder; until it is complete, a journal is kept beside it.
        model: identity of the model.
        settings: settings of the evaluation.
        overwrite: start again, whatever exists.
        on_progress: called after every answer.
        again: the items were asked before, in another order and in other batches.

    Returns:
        The run folder. If it already exists and is complete, nothing is done.
    """
    resolved = resolve(settings or Settings(), backend)
    jobs = make_jobs(suite, resolved, backend, model.salt)
    fingerprint = _fingerprint(resolved, model, suite, jobs)
    if is_complete(out, fingerprint, overwrite=overwrite):
        return out
    lengths = check_lengths(jobs, resolved, backend)
    _check_room(out, sum(lengths))
    with writable(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    with only_writer(out.parent / f".{out.name}.lock", of=out):
        if is_complete(out, fingerprint, overwrite=overwrite):  # another process was faster
            return out
        journal_path = out.parent / f".{out.name}.journal.jsonl"
        if overwrite:
            journal_path.unlink(missing_ok=True)
        journal = Journal(journal_path, fingerprint, Answer)
        try:
            jobs = _answer_turns(backend, jobs, resolved, journal, on_progress)
        finally:
            journal.close()
        info = run_info(model, suite, resolved, fingerprint)
        asked = asked_info(model, suite, settings or Settings(), backend, again=again)
        info = info.model_copy(update={"asked": asked})
        if isinstance(backend, ServerBacked):
            usage = [answer.spent for answer in journal.done.values() if answer.spent]
            info = info.model_copy(update={"service": service_info(backend.service, usage)})
        columns = record_columns(jobs, journal, resolved)
        write_run(build_run(columns, info, model.name), out, overwrite=overwrite)
        journal.path.unlink(missing_ok=True)
    return out


def is_complete(out: Path, fingerprint: str, *, overwrite: bool) -> bool:
    """Whether the same run already exists.

    Raises:
        OutputError: the folder has other content.
    """
    if overwrite or not is_run_folder(out):
        refuse_to_replace(out, overwrite=overwrite)
        return False
    if read_run(out).info.fingerprint == fingerprint:
        return True
    raise OutputError(
        f"{out} belongs to a run with another model, suite or setting",
        hint="choose another --out, or add --overwrite.",
        occupied=out,
    )


def _fingerprint(
    settings: ResolvedSettings, model: ModelIdentity, suite: Suite, jobs: Sequence[Job]
) -> str:
    return settings.fingerprint(
        model=model.info.model_dump(),
        stamp=model.stamp,
        salt=model.salt,
        tasks={task.name: task.version for task in suite.tasks},
        asked=sha256("".join(job.prompt for job in jobs).encode()).hexdigest(),
    )


def _answer_turns(
    backend: Backend,
    jobs: Sequence[Job],
    settings: ResolvedSettings,
    journal: Journal[Answer],
    on_progress: OnProgress | None,
) -> list[Job]:
    """Generate all answers, second turns last; return the jobs with their final prompts."""
    progress = _progress_counter(len(jobs), journal, on_progress)
    first_turns = [job for job in jobs if job.task.follows is None]
    _answer_all(backend, first_turns, settings, journal, progress)
    requests = []
    for job in jobs:
        if job.task.follows is None:
            requests.append(job)
            continue
        first = journal.done.get((job.task.follows, job.item.id, job.repeat))
        second = second_turn(job, first, settings, backend)
        requests.append(second or job)
        if second is None and job.key not in journal.done:
            error = error_answer(job, "the first turn has no answer")
            journal.add(error)
            progress(error)
    _answer_all(backend, requests, settings, journal, progress)
    return requests


def _progress_counter(
    total: int, journal: Journal[Answer], on_progress: OnProgress | None
) -> Callable[[Answer], None]:
    """Return a function that counts answers and reports progress, including earlier attempts."""
    start, tokens, written = time.perf_counter(), 0, 0
    failed = sum(answer.outcome == Outcome.ERROR for answer in journal.done.values())

    def count(answer: Answer) -> None:
        nonlocal tokens, written, failed
        tokens += (answer.tokens_in or 0) + (answer.tokens_out or 0)
        written += answer.tokens_out or 0
        failed += answer.outcome == Outcome.ERROR
        if on_progress is not None:
            seconds = time.perf_counter() - start
            done = len(journal.done)
            on_progress(Step(done, total, tokens, seconds, failed, journal.damaged, written))

    return count


def _answer_all(
    backend: Backend,
    jobs: Sequence[Job],
    settings: ResolvedSettings,
    journal: Journal[Answer],
    progress: Callable[[Answer], None],
) -> None:
    open_jobs = [job for job in jobs if job.key not in journal.done]
    for answer in graded_answers(backend, open_jobs, settings):
        journal.add(answer)
        progress(answer)


def _check_room(out: Path, tokens: int) -> None:
    """Raise an error if even the prompts do not fit on the disk."""
    folder = out.absolute().parent
    while not folder.exists():
        folder = folder.parent
    free, needed = shutil.disk_usage(folder).free, tokens * BYTES_PER_TOKEN
    if free < needed:
        raise OutputError(
            f"{folder} has {free / 2**20:,.0f} MiB left, but the run needs about "
            f"{needed / 2**20:,.0f} MiB",
            hint="free some space, or choose an --out on another disk.",
        )


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """Estimated cost of a run.

    Attributes:
        answers: number of answers.
        tokens_in: tokens to read; servers read a question again for each option they score.
        most_tokens_out: tokens to generate if every answer has the maximum length.
        seconds: duration at the measured speed of a few items.
        most_cost: maximum price on a server with prices.
    """

    answers: int
    tokens_in: int
    most_tokens_out: int
    seconds: float
    most_cost: float | None = None


def estimate_run(backend: Backend, suite: Suite, settings: Settings | None = None) -> RunEstimate:
    """Estimate the cost of a run by counting tokens and running a few items."""
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
    """Return the input tokens counted by the server; 0 if it does not count."""
    if not isinstance(backend, ServerBacked) or not backend.service.abilities["counts"]:
        return 0
    return sum(Usage(*answer.spent).tokens_in for answer in answers if answer.spent)
