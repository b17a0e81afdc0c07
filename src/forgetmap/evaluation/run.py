"""Ask a model everything, and write the run folder."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from forgetmap import __version__
from forgetmap.errors import OutputError
from forgetmap.evaluation.backend import (
    Backend,
    Failure,
    Likelihoods,
    Prompt,
    Question,
    Response,
    Served,
    Service,
    Spent,
)
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.jobs import Job, check_lengths, continued, make_jobs
from forgetmap.evaluation.journal import Answer, Journal
from forgetmap.evaluation.prompts import answered, continuations_of
from forgetmap.evaluation.settings import Manner, Settings, settle
from forgetmap.records import (
    HarnessInfo,
    MetricInfo,
    ModelInfo,
    Outcome,
    RunInfo,
    ServiceInfo,
    TaskInfo,
    build_run,
    is_run_folder,
    read_run,
    refuse_to_replace,
    write_run,
)
from forgetmap.scoring import (
    UNSCORED,
    Answered,
    Grade,
    Scorer,
    find_scorer,
    grade_likelihoods,
    grade_response,
    outcome_of,
    signed,
    values_of,
)

BYTES_PER_TOKEN = 8
PROBES = 8
MILLION = 1_000_000
WEIGHED, LENIENT, STRICT = "loglikelihood", "lenient", "strict"


@dataclass(frozen=True, slots=True)
class Step:
    """How far a run is.

    Attributes:
        done: answers had, those of an earlier attempt included.
        total: answers wanted.
        tokens: read and written since the start of this attempt.
        seconds: since then.
        failed: answers that are errors.
    """

    done: int
    total: int
    tokens: int
    seconds: float
    failed: int


@dataclass(frozen=True, slots=True)
class Estimate:
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


Report = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class Examinee:
    """Who answers.

    Attributes:
        name: of the run.
        model: which weights.
        stamp: changes when the weights do.
        salt: tells the random numbers of this run from those of other models.
    """

    name: str
    model: ModelInfo = field(default_factory=ModelInfo)
    stamp: str = ""
    salt: str = ""


def run_model(
    backend: Backend,
    suite: Suite,
    out: Path,
    who: Examinee,
    settings: Settings | None = None,
    *,
    overwrite: bool = False,
    report: Report | None = None,
) -> Path:
    """Evaluate a model on a suite and write a run folder; go on where an earlier attempt ended.

    Args:
        backend: what the answers come from.
        suite: what is asked.
        out: the run folder; a journal stands beside it until it is complete.
        who: answers.
        settings: how the model is asked.
        overwrite: start anew, whatever is there.
        report: called after every answer.

    Returns:
        The run folder. If it is already there and complete, nothing is done.
    """
    manner = settle(settings or Settings(), backend)
    versions = {task.name: task.version for task in suite.tasks}
    jobs = make_jobs(suite, manner, backend, who.salt)
    asked = sha256("".join(job.prompt for job in jobs).encode()).hexdigest()
    fingerprint = manner.fingerprint(
        model=who.model.model_dump(), stamp=who.stamp, salt=who.salt, tasks=versions, asked=asked
    )
    if is_complete(out, fingerprint, overwrite=overwrite):
        return out
    lengths = check_lengths(jobs, manner, backend)
    _check_room(out, sum(lengths))
    journal_path = out.parent / f".{out.name}.journal.jsonl"
    if overwrite:
        journal_path.unlink(missing_ok=True)
    journal = Journal(journal_path, fingerprint, Answer)
    try:
        jobs = _answer_turns(backend, jobs, manner, journal, report)
    finally:
        journal.close()
    info = _info(who, suite, manner, fingerprint)
    if isinstance(backend, Served):
        spent = [answer.spent for answer in journal.done.values() if answer.spent]
        info = info.model_copy(update={"service": _service(backend.service, spent)})
    write_run(build_run(_columns(jobs, journal, manner), info, who.name), out, overwrite=overwrite)
    journal.path.unlink(missing_ok=True)
    return out


def is_complete(out: Path, fingerprint: str, *, overwrite: bool) -> bool:
    """Whether this very run is there already.

    Raises:
        OutputError: there is something else.
    """
    if overwrite or not is_run_folder(out):
        refuse_to_replace(out, overwrite=overwrite)
        return False
    if read_run(out).info.fingerprint == fingerprint:
        return True
    raise OutputError(
        f"{out} is a run of another model, suite or setting",
        hint="choose another --out, or --overwrite it.",
    )


def estimate(backend: Backend, suite: Suite, settings: Settings | None = None) -> Estimate:
    """What a run would take, from counting its tokens and trying a few items."""
    manner = settle(settings or Settings(), backend)
    jobs = make_jobs(suite, manner, backend, "")
    lengths = check_lengths(jobs, manner, backend)
    weighed = [job.is_weighed(manner) for job in jobs]
    most_out = sum(
        0
        if by_weight
        else min(job.decoding(manner).max_new_tokens, max(backend.context - length, 0))
        for job, by_weight, length in zip(jobs, weighed, lengths, strict=True)
    )
    seconds, tokens_in = 0.0, 0.0
    for kind in (True, False):
        places = [place for place, by_weight in enumerate(weighed) if by_weight == kind]
        tried = places[:: max(len(places) // PROBES, 1)][:PROBES]
        started = time.perf_counter()
        answers = list(_answers(backend, [jobs[place] for place in tried], manner))
        if tried:
            seconds += (time.perf_counter() - started) / len(tried) * len(places)
            read = _read(backend, answers) / sum(lengths[place] for place in tried)
            tokens_in += (read or 1) * sum(lengths[place] for place in places)
    cost = _cost(backend.service, tokens_in, most_out) if isinstance(backend, Served) else None
    return Estimate(len(jobs), round(tokens_in), most_out, seconds, cost)


def _read(backend: Backend, answers: Sequence[Answer]) -> int:
    """Tokens that a server counted, which knows better than we; 0 if none did."""
    if not isinstance(backend, Served) or not backend.service.abilities["counts"]:
        return 0
    return sum(Spent(*answer.spent).tokens_in for answer in answers if answer.spent)


def _cost(service: Service, tokens_in: float, tokens_out: int) -> float | None:
    """What a server asks for that; None without prices."""
    if service.price_in is None and service.price_out is None:
        return None
    return (tokens_in * (service.price_in or 0) + tokens_out * (service.price_out or 0)) / MILLION


def _answer_turns(
    backend: Backend,
    jobs: Sequence[Job],
    manner: Manner,
    journal: Journal[Answer],
    report: Report | None,
) -> list[Job]:
    """All answers, second turns last; the jobs as they were asked."""
    tell = _teller(len(jobs), journal, report)
    first = [job for job in jobs if job.task.follows is None]
    _answer_all(backend, first, manner, journal, tell)
    asked = []
    for job in jobs:
        if job.task.follows is None:
            asked.append(job)
            continue
        before = journal.done.get((job.task.follows, job.item.id, job.repeat))
        second = continued(job, before, manner, backend)
        asked.append(second or job)
        if second is None and job.key not in journal.done:
            missing = _error(job, "the first turn got no answer")
            journal.add(missing)
            tell(missing)
    _answer_all(backend, asked, manner, journal, tell)
    return asked


def _teller(
    total: int, journal: Journal[Answer], report: Report | None
) -> Callable[[Answer], None]:
    """Reports every answer of this attempt, with what came before it."""
    started, tokens = time.perf_counter(), 0
    failed = sum(answer.outcome == Outcome.ERROR for answer in journal.done.values())

    def tell(answer: Answer) -> None:
        nonlocal tokens, failed
        tokens += (answer.tokens_in or 0) + (answer.tokens_out or 0)
        failed += answer.outcome == Outcome.ERROR
        if report is not None:
            seconds = time.perf_counter() - started
            report(Step(len(journal.done), total, tokens, seconds, failed))

    return tell


def _answer_all(
    backend: Backend,
    jobs: Sequence[Job],
    manner: Manner,
    journal: Journal[Answer],
    tell: Callable[[Answer], None],
) -> None:
    left = [job for job in jobs if job.key not in journal.done]
    for answer in _answers(backend, left, manner):
        journal.add(answer)
        tell(answer)


def _answers(backend: Backend, jobs: Sequence[Job], manner: Manner) -> Iterator[Answer]:
    weighed = [job for job in jobs if job.is_weighed(manner)]
    questions = [Question(job.prompt, continuations_of(job.item, job.task)) for job in weighed]
    for place, weights in backend.loglikelihood(questions) if questions else ():
        yield _weighed(weighed[place], weights)
    for decoding in dict.fromkeys((manner.decoding, manner.free)):
        written = [
            job for job in jobs if not job.is_weighed(manner) and job.decoding(manner) == decoding
        ]
        prompts = [Prompt(job.prompt, job.seed, job.messages) for job in written]
        for place, response in backend.generate(prompts, decoding) if prompts else ():
            yield _written(written[place], response, manner)


def _weighed(job: Job, found: Likelihoods | Failure) -> Answer:
    if isinstance(found, Failure):
        return _failed(job, found)
    item = job.item
    verdict = grade_likelihoods(
        found.logprobs, found.tokens, item.options, gold=item.gold, also_right=item.also_right
    )
    weights = dict(zip(item.options, found.logprobs, strict=True))
    return _answer(
        job,
        verdict,
        tokens_in=found.tokens_in + sum(found.tokens),
        tokens_out=0,
        logprob_answer=weights.get(verdict.choice or ""),
        logprob_gold=weights[item.gold],
        logprob_next=_next_best(weights, verdict.choice),
        spent=_counted(found.spent),
    )


def _next_best(weights: Mapping[str, float], choice: str | None) -> float | None:
    """The weight of the best option that was not chosen, where one was."""
    others = [weight for text, weight in weights.items() if text != choice]
    return None if choice is None else max(others, default=None)


def _written(job: Job, found: Response | Failure, manner: Manner) -> Answer:
    if isinstance(found, Failure):
        return _failed(job, found)
    return _answer(
        job,
        _verdict(job, found, manner),
        response=found.text,
        tokens_in=found.tokens_in,
        tokens_out=found.tokens_out,
        finish_reason=found.finish_reason,
        seed=job.seed if manner.decoding.temperature else None,
        spent=_counted(found.spent),
    )


def _verdict(job: Job, found: Response, manner: Manner) -> Grade:
    """What a response counts as; scorers have their say when the run is written."""
    if job.task.scorers:
        return UNSCORED
    item = job.item
    return grade_response(
        answered(found.text, manner),
        gold=item.gold,
        kind=job.task.kind,
        options=item.options,
        also_right=item.also_right,
        finish_reason=found.finish_reason,
    )


def _answer(job: Job, verdict: Grade, **more: Any) -> Answer:
    task, item, repeat = job.key
    return Answer(task=task, item=item, repeat=repeat, **asdict(verdict), **more)


def _error(job: Job, message: str) -> Answer:
    return Answer(*job.key, score=None, outcome=Outcome.ERROR, error=message)


def _failed(job: Job, found: Failure) -> Answer:
    return replace(_error(job, str(found)), spent=_counted(found.spent))


def _counted(spent: Spent | None) -> list[int] | None:
    return None if spent is None else list(astuple(spent))


def _service(service: Service, spent: Sequence[Sequence[int]]) -> ServiceInfo:
    """What the server took for all answers, those of earlier attempts included."""
    total = Spent(*map(sum, zip(*spent, strict=True))) if spent else Spent()
    counts = service.abilities.get("counts", True)
    cost = _cost(service, total.tokens_in, total.tokens_out) if counts else None
    return ServiceInfo(
        address=service.address,
        abilities=service.abilities,
        notes=list(service.notes),
        cost=cost,
        **asdict(total),
    )


def _columns(jobs: Sequence[Job], journal: Journal[Answer], manner: Manner) -> dict[str, list[Any]]:
    """The records of a run; what was written is scored leniently and strictly."""
    columns: dict[str, list[Any]] = {}
    for job in jobs:
        for row in _rows(job, journal.done[job.key], manner):
            for name, cell in row.items():
                columns.setdefault(name, []).append(cell)
    return columns


def _rows(job: Job, answer: Answer, manner: Manner) -> Iterator[dict[str, Any]]:
    if job.task.scorers:
        yield from _scored_rows(job, answer, manner)
        return
    for how in (WEIGHED,) if job.is_weighed(manner) else (LENIENT, STRICT):
        yield _row(job, answer, how, manner)


def _scored_rows(job: Job, answer: Answer, manner: Manner) -> Iterator[dict[str, Any]]:
    """One row per field of each scorer; what needs a judge or a sandbox stays unscored."""
    row = _row(job, answer, "", manner)
    for name in job.task.scorers:
        found = find_scorer(name)
        for field_name, own in _values(job, answer, found).items():
            yield row | own | {"metric": field_name, "scorer": signed(found)}


def _values(job: Job, answer: Answer, found: Scorer) -> dict[str, dict[str, Any]]:
    """What differs between the rows of one answer: nothing if there is none."""
    if answer.response is None:
        return {field_name: {} for field_name in found.fields}
    sample = _sample(job.item, answer.response, answer.finish_reason)
    return {
        field_name: {
            "score": verdict.score,
            "outcome": outcome_of(verdict),
            "answer": verdict.answer,
            "choice": verdict.choice,
            "error": verdict.error,
        }
        for field_name, verdict in values_of(found, sample).items()
    }


def _sample(item: Item, response: str, finish_reason: str | None) -> Answered:
    place = {"gold_index": item.options.index(item.gold)} if item.gold in item.options else {}
    return Answered(
        response=response,
        gold=item.material.get("gold", item.gold),
        question=tuple(item.material.get("turns") or (item.question,)),
        options=item.options,
        material=place | dict(item.material),
        finish_reason=finish_reason,
    )


def _row(job: Job, answer: Answer, scorer: str, manner: Manner) -> dict[str, Any]:
    item = job.item
    row = {name: getattr(answer, name) for name in _COPIED}
    if scorer == STRICT and answer.score is not None and answer.strict is False:
        row |= {"score": 0.0, "outcome": str(Outcome.NO_ANSWER), "answer": None, "choice": None}
    return row | {
        "metric": "acc",
        "scorer": scorer,
        "k": len(item.options) or None,
        "category": job.task.category,
        "tags": ";".join(item.tags) or None,
        "cluster": item.cluster,
        "gold": item.gold or None,
        "question": item.question,
        "options": list(item.options) or None,
        "prompt": job.prompt,
        "material": json.dumps(dict(item.material), ensure_ascii=False) if item.material else None,
        "seed": manner.seed + job.repeat,
    }


_COPIED = (
    "task", "item", "repeat", "score", "outcome", "answer", "choice", "tokens_in", "tokens_out",
    "finish_reason", "logprob_answer", "logprob_gold", "logprob_next", "response",
    "error",
)  # fmt: skip


def _info(who: Examinee, suite: Suite, manner: Manner, fingerprint: str) -> RunInfo:
    tasks = {
        task.name: TaskInfo(
            version=task.version,
            n_shot=0 if task.scorers else manner.shots,
            **_main(task, weighed=manner.by_likelihood),
        )
        for task in suite.tasks
    }
    system = manner.system_prompt
    return RunInfo(
        run_id=who.name,
        model=who.model,
        harness=HarnessInfo(name="forgetmap", version=__version__),
        protocol=f"{manner.protocol} ({manner.style})",
        template_hash=manner.template_hash,
        system_prompt_hash=None if system is None else sha256(system.encode()).hexdigest()[:16],
        decoding=_decoding(suite, manner),
        seeds=[manner.seed + repeat for repeat in range(manner.repeats)],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tasks=tasks,
        metrics=_ranges(suite),
        fingerprint=fingerprint,
    )


def _decoding(suite: Suite, manner: Manner) -> dict[str, Any]:
    """How answers were written; of a suite of both kinds also how long those in free form may be.

    Whatever else is said of the short ones is the same.
    """
    free = [bool(task.scorers) for task in suite.tasks]
    used = manner.free if all(free) else manner.decoding
    longer = {} if all(free) or not any(free) else {"free_tokens": manner.free.max_new_tokens}
    return asdict(used) | {"stop": list(used.stop)} | longer


def _main(task: Task, *, weighed: bool) -> dict[str, str]:
    """The metric a task is compared by."""
    if not task.scorers:
        by_weight = weighed and task.kind == "option"
        return {"main_metric": "acc", "main_scorer": WEIGHED if by_weight else LENIENT}
    first = find_scorer(task.scorers[0])
    return {"main_metric": next(iter(first.fields)), "main_scorer": signed(first)}


def _ranges(suite: Suite) -> dict[str, MetricInfo]:
    """What the values of scorers' fields can be."""
    names = {name for task in suite.tasks for name in task.scorers}
    return {
        field_name: MetricInfo(low=scale.low, high=scale.high)
        for name in sorted(names)
        for field_name, scale in find_scorer(name).fields.items()
    }


def _check_room(out: Path, tokens: int) -> None:
    """Refuse a disk on which not even the prompts fit."""
    folder = out.absolute().parent
    while not folder.exists():
        folder = folder.parent
    free, needed = shutil.disk_usage(folder).free, tokens * BYTES_PER_TOKEN
    if free < needed:
        raise OutputError(
            f"{folder} has {free / 2**20:,.0f} MiB left, and the run needs about "
            f"{needed / 2**20:,.0f} MiB",
            hint="make room, or choose an --out on another disk.",
        )
