"""Sampling of completions from two models, and their log-probabilities under both."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from forgetmap._disk import only_writer
from forgetmap.errors import UsageError
from forgetmap.evaluation import Journal, Step
from forgetmap.overlap.estimate import OverlapSettings, estimate_overlap
from forgetmap.overlap.models.base import (
    Completion,
    LanguageModel,
    TokenLogprobs,
    Tokens,
    encode_alike,
)
from forgetmap.overlap.prompts import SamplingPrompt
from forgetmap.overlap.result import OverlapResult
from forgetmap.overlap.samples import SIDES, CompletionSample, Side
from forgetmap.records import writable
from forgetmap.theory import token_kl

CHUNK = 512
"""Completions that are sampled before their log-probabilities are computed and saved."""
AT_ONCE = 2**21
"""Maximum number of entries of two distributions compared at a time."""

OnProgress = Callable[[Step], None]
"""Called after every completion."""


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """How completions are sampled: always at temperature 1, from the whole distribution.

    Attributes:
        samples: number of completions of each prompt by each model.
        limit: maximum number of tokens of a completion.
        chat: apply the chat template to prompts.
        seed: seed of the random numbers.
    """

    samples: int = 16
    limit: int = 64
    chat: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples < 1 or self.limit < 1:
            raise UsageError(
                f"{self.samples} samples of up to {self.limit} tokens",
                hint="use at least one sample and one token.",
            )


@dataclass(frozen=True, slots=True)
class _Job:
    """One completion to sample."""

    prompt: SamplingPrompt
    tokens: Tokens
    side: Side
    number: int
    seed: int

    @property
    def key(self) -> tuple[str, str, int]:
        return self.prompt.id, self.side, self.number


def measure_overlap(
    before: LanguageModel,
    after: LanguageModel,
    prompts: Sequence[SamplingPrompt],
    plan: SamplingPlan | None = None,
    *,
    settings: OverlapSettings | None = None,
    expert: LanguageModel | None = None,
    journal: Path | None = None,
    on_progress: OnProgress | None = None,
) -> OverlapResult:
    """Sample both models, compute log-probabilities under both, and estimate.

    Args:
        before: the model before.
        after: the model after.
        prompts: the prompts to continue.
        plan: number and length of completions.
        settings: settings of the estimates.
        expert: a model of the new behaviour alone, for the old mass.
        journal: file in which samples are saved; an existing file is resumed.
        on_progress: called after every completion.
    """
    plan = plan or SamplingPlan()
    samples = sample_completions(
        before, after, prompts, plan, expert=expert, journal=journal, on_progress=on_progress
    )
    return estimate_overlap(samples, before=before.name, after=after.name, settings=settings)


def sample_completions(
    before: LanguageModel,
    after: LanguageModel,
    prompts: Sequence[SamplingPrompt],
    plan: SamplingPlan,
    *,
    expert: LanguageModel | None = None,
    journal: Path | None = None,
    on_progress: OnProgress | None = None,
) -> list[CompletionSample]:
    """Sample completions of both models, with log-probabilities under both."""
    encoded = encode_alike(before, after, prompts, chat=plan.chat, limit=plan.limit)
    if expert is not None:
        encode_alike(before, expert, prompts, chat=plan.chat, limit=plan.limit)
    jobs = _jobs(prompts, encoded, plan)
    models: dict[Side, LanguageModel] = dict(zip(SIDES, (before, after), strict=True))
    if journal is None:
        return _all_samples(models, expert, jobs, plan, None, on_progress)
    with writable(journal):
        journal.parent.mkdir(parents=True, exist_ok=True)
    with only_writer(journal.with_name(f".{journal.name}.lock"), of=journal):
        known = Journal(journal, _fingerprint(models, expert, encoded, plan), CompletionSample)
        with contextlib.closing(known):
            return _all_samples(models, expert, jobs, plan, known, on_progress)


def _all_samples(
    models: dict[Side, LanguageModel],
    expert: LanguageModel | None,
    jobs: Sequence[_Job],
    plan: SamplingPlan,
    known: Journal[CompletionSample] | None,
    on_progress: OnProgress | None,
) -> list[CompletionSample]:
    """Return the samples of all jobs: those in the journal, and new ones."""
    done: dict[tuple[str, str, int], CompletionSample] = {} if known is None else known.done
    progress = _Progress(sum(job.key in done for job in jobs), len(jobs), on_progress)
    for side in SIDES:
        remaining = [job for job in jobs if job.side == side and job.key not in done]
        # In chunks, so that an interrupted run loses little.
        for start in range(0, len(remaining), CHUNK):
            for sample in _sample_and_weigh(models, expert, remaining[start : start + CHUNK], plan):
                if known is not None:
                    known.add(sample)
                done[sample.key] = sample
                progress.add(len(sample.before))
    return [done[job.key] for job in jobs]


def _jobs(
    prompts: Sequence[SamplingPrompt], encoded: Sequence[Tokens], plan: SamplingPlan
) -> list[_Job]:
    return [
        _Job(prompt, tokens, side, number, _seed(plan.seed, side, prompt.id, number))
        for prompt, tokens in zip(prompts, encoded, strict=True)
        for side in SIDES
        for number in range(plan.samples)
    ]


def _seed(*parts: object) -> int:
    """Return a seed for each completion that does not depend on other completions."""
    return int.from_bytes(sha256("\0".join(map(str, parts)).encode()).digest()[:7], "big")


def _fingerprint(
    models: dict[Side, LanguageModel],
    expert: LanguageModel | None,
    encoded: Sequence[Tokens],
    plan: SamplingPlan,
) -> str:
    """Return a hash of everything that must be equal for samples to be added."""
    parts = [models[side].stamp for side in SIDES]
    parts += ["" if expert is None else expert.stamp, str(list(encoded))]
    parts += [f"{plan.limit} {plan.chat} {plan.seed}"]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def _sample_and_weigh(
    models: dict[Side, LanguageModel],
    expert: LanguageModel | None,
    jobs: Sequence[_Job],
    plan: SamplingPlan,
) -> Iterator[CompletionSample]:
    """Sample completions of one model and compute their log-probabilities under both."""
    side = jobs[0].side
    # A token that ends a completion for one model ends it for both, so that they are comparable.
    ends = models["before"].ends | models["after"].ends
    by_index: dict[int, Completion] = dict(
        models[side].sample([(job.tokens, job.seed) for job in jobs], plan.limit, ends)
    )
    completions = [by_index[index] for index in range(len(jobs))]
    rows = [(job.tokens, out.tokens) for job, out in zip(jobs, completions, strict=True)]
    weighed = [
        _own_logprobs(completions)
        if reader == side and completions[0].logprobs
        else model.weigh(rows)
        for reader, model in models.items()
    ]
    experts = (None for _ in rows) if expert is None else expert.weigh(rows)
    for job, completion, first, second, third in zip(
        jobs, completions, *weighed, experts, strict=True
    ):
        yield CompletionSample(
            prompt=job.prompt.id,
            side=side,
            number=job.number,
            before=first.logprobs,
            after=second.logprobs,
            kl=_divergence(first, second) if side == "before" else _divergence(second, first),
            ended=completion.ended,
            group=job.prompt.group,
            expert=None if third is None else sum(third.logprobs),
            tokens=completion.tokens,
        )


def _own_logprobs(completions: Sequence[Completion]) -> Iterator[TokenLogprobs]:
    """Return the log-probabilities of the tokens under the model that sampled them."""
    for completion in completions:
        yield TokenLogprobs(completion.logprobs or ())


def _divergence(writer: TokenLogprobs, other: TokenLogprobs) -> tuple[float, ...] | None:
    """Return the KL of the writer from the other model at every token."""
    if writer.whole is None or other.whole is None:
        return None
    step = max(1, AT_ONCE // writer.whole.shape[1])
    parts = [
        token_kl(writer.whole[start : start + step], other.whole[start : start + step])
        for start in range(0, len(writer.whole), step)
    ]
    return tuple(np.concatenate(parts).tolist())


class _Progress:
    """Counts completions and reports them."""

    def __init__(self, done: int, total: int, on_progress: OnProgress | None) -> None:
        self._done, self._total, self._on_progress = done, total, on_progress
        self._tokens, self._started = 0, time.perf_counter()

    def add(self, tokens: int) -> None:
        self._done += 1
        self._tokens += tokens
        if self._on_progress is not None:
            seconds = time.perf_counter() - self._started
            self._on_progress(Step(self._done, self._total, self._tokens, seconds, 0))
