"""Records and manifest of a finished run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from forgetmap import __version__
from forgetmap.evaluation.backends.base import Backend, Service, Usage
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.jobs import Job
from forgetmap.evaluation.journal import Answer, Journal
from forgetmap.evaluation.settings import ResolvedSettings, Settings
from forgetmap.records import (
    AskedInfo,
    HarnessInfo,
    MetricInfo,
    ModelInfo,
    Outcome,
    RunInfo,
    ServiceInfo,
    TaskInfo,
    TrainingInfo,
)
from forgetmap.scoring import (
    Scorer,
    ScorerInput,
    load_scorer,
    outcome_of,
    score_sample,
    signature_of,
)

WEIGHTS, LENIENT, STRICT = "loglikelihood", "lenient", "strict"
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Identity of the evaluated model.

    Attributes:
        name: name of the run.
        info: description of the weights.
        stamp: text that changes with the weights.
        salt: separates the random numbers of this run from those of other models.
        parent: name of the run of the previous checkpoint, if any.
        training: training progress of a checkpoint, if any.
        source: the model as users type it; empty for a live model.
    """

    name: str
    info: ModelInfo = field(default_factory=ModelInfo)
    stamp: str = ""
    salt: str = ""
    parent: str | None = None
    training: TrainingInfo | None = None
    source: str = ""


def record_columns(
    jobs: Sequence[Job], journal: Journal[Answer], settings: ResolvedSettings
) -> dict[str, list[Any]]:
    """Return the records of a run; generated answers are scored leniently and strictly."""
    columns: dict[str, list[Any]] = {}
    for job in jobs:
        for row in _rows(job, journal.done[job.key], settings):
            for name, cell in row.items():
                columns.setdefault(name, []).append(cell)
    return columns


def _rows(job: Job, answer: Answer, settings: ResolvedSettings) -> Iterator[dict[str, Any]]:
    if job.task.scorers:
        yield from _scored_rows(job, answer, settings)
        return
    for how in (WEIGHTS,) if job.is_weighed(settings) else (LENIENT, STRICT):
        yield _row(job, answer, how, settings)


def _scored_rows(job: Job, answer: Answer, settings: ResolvedSettings) -> Iterator[dict[str, Any]]:
    """Yield one row per field of each scorer; fields that need a judge or sandbox stay unscored."""
    row = _row(job, answer, "", settings)
    for name in job.task.scorers:
        scorer = load_scorer(name)
        for field_name, own in _values(job, answer, scorer).items():
            yield row | own | {"metric": field_name, "scorer": signature_of(scorer)}


def _values(job: Job, answer: Answer, scorer: Scorer) -> dict[str, dict[str, Any]]:
    """Return the values that differ between rows of one answer; unscored if there is no answer."""
    if answer.response is None:
        return {field_name: {} for field_name in scorer.fields}
    sample = _sample(job.item, answer.response, answer.finish_reason)
    return {
        field_name: {
            "score": verdict.score,
            "outcome": outcome_of(verdict),
            "answer": verdict.answer,
            "choice": verdict.choice,
            "error": verdict.error,
        }
        for field_name, verdict in score_sample(scorer, sample).items()
    }


def _sample(item: Item, response: str, finish_reason: str | None) -> ScorerInput:
    gold_index = {"gold_index": item.options.index(item.gold)} if item.gold in item.options else {}
    return ScorerInput(
        response=response,
        gold=item.material.get("gold", item.gold),
        question=tuple(item.material.get("turns") or (item.question,)),
        options=item.options,
        material=gold_index | dict(item.material),
        finish_reason=finish_reason,
    )


_COPIED = (
    "task", "item", "repeat", "score", "outcome", "answer", "choice", "tokens_in", "tokens_out",
    "finish_reason", "logprob_answer", "logprob_gold", "logprob_next", "response",
    "error",
)  # fmt: skip


def _row(job: Job, answer: Answer, scorer: str, settings: ResolvedSettings) -> dict[str, Any]:
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
        "seed": settings.seed + job.repeat,
    }


def asked_info(
    identity: ModelIdentity, suite: Suite, settings: Settings, backend: Backend, *, again: bool
) -> AskedInfo | None:
    """Return how a model was asked; None if it cannot be named."""
    if not identity.source:
        return None
    chosen = asdict(settings)
    return AskedInfo(
        model=identity.source,
        suite=suite.source,
        columns=dict(suite.columns),
        settings={
            name: value for name, value in chosen.items() if value != getattr(Settings(), name)
        },
        weights=sha256(identity.stamp.encode()).hexdigest()[:16] if identity.stamp else None,
        setup=getattr(backend, "setup", None),
        again=again,
    )


def run_info(
    identity: ModelIdentity, suite: Suite, settings: ResolvedSettings, fingerprint: str
) -> RunInfo:
    """Return the manifest of the run."""
    tasks = {
        task.name: TaskInfo(
            version=task.version,
            n_shot=_shots(task, settings),
            **_main_metric(task, weighed=settings.by_likelihood),
        )
        for task in suite.tasks
    }
    system = settings.system_prompt
    return RunInfo(
        run_id=identity.name,
        model=identity.info,
        stage=settings.stage,
        parent=identity.parent,
        training=identity.training,
        harness=HarnessInfo(name="forgetmap", version=__version__),
        protocol=f"{settings.protocol} ({settings.style})",
        template_hash=settings.template_hash,
        system_prompt_hash=None if system is None else sha256(system.encode()).hexdigest()[:16],
        decoding=_decoding(suite, settings),
        seeds=[settings.seed + repeat for repeat in range(settings.repeats)],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tasks=tasks,
        metrics=_ranges(suite),
        fingerprint=fingerprint,
        left_out=dict(suite.left_out),
        chosen_by=list(suite.chosen_by),
        notes=list(settings.notes),
    )


def _shots(task: Task, settings: ResolvedSettings) -> int:
    """Return the number of worked examples before the items of a task."""
    if task.scorers:
        return 0
    own = len(task.examples) if settings.style == "few-shot" else settings.shots
    return min(own, settings.shots)


def _decoding(suite: Suite, settings: ResolvedSettings) -> dict[str, Any]:
    """Return the decoding; in a mixed suite also the maximum length of free-form answers.

    The other parameters are the same for both kinds.
    """
    free = [bool(task.scorers) for task in suite.tasks]
    used = settings.free if all(free) else settings.decoding
    longer = {} if all(free) or not any(free) else {"free_tokens": settings.free.max_new_tokens}
    return asdict(used) | {"stop": list(used.stop)} | longer


def _main_metric(task: Task, *, weighed: bool) -> dict[str, str]:
    """Return the main metric of a task."""
    if not task.scorers:
        by_weight = weighed and task.kind == "option"
        return {"main_metric": "acc", "main_scorer": WEIGHTS if by_weight else LENIENT}
    first = load_scorer(task.scorers[0])
    return {"main_metric": next(iter(first.fields)), "main_scorer": signature_of(first)}


def _ranges(suite: Suite) -> dict[str, MetricInfo]:
    """Return the ranges of the fields of scorers."""
    names = {name for task in suite.tasks for name in task.scorers}
    return {
        field_name: MetricInfo(low=scale.low, high=scale.high)
        for name in sorted(names)
        for field_name, scale in load_scorer(name).fields.items()
    }


def service_info(service: Service, usage: Sequence[Sequence[int]]) -> ServiceInfo:
    """Return the total usage of the server, including earlier attempts."""
    total = Usage(*map(sum, zip(*usage, strict=True))) if usage else Usage()
    counts = service.abilities.get("counts", True)
    cost = cost_of(service, total.tokens_in, total.tokens_out) if counts else None
    return ServiceInfo(
        address=service.address,
        abilities=service.abilities,
        notes=list(service.notes),
        cost=cost,
        **asdict(total),
    )


def cost_of(service: Service, tokens_in: float, tokens_out: int) -> float | None:
    """Return the price of tokens; None without prices."""
    if service.price_in is None and service.price_out is None:
        return None
    return (tokens_in * (service.price_in or 0) + tokens_out * (service.price_out or 0)) / MILLION
