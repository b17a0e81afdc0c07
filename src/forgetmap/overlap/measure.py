"""Let two models write, and weigh what either wrote with both."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from forgetmap.errors import UsageError
from forgetmap.evaluation import Journal, Step
from forgetmap.overlap.estimate import Asked, estimate_overlap
from forgetmap.overlap.models import Completion, Model, Tokens, Weighed, encode_alike
from forgetmap.overlap.prompts import Prompt
from forgetmap.overlap.result import OverlapResult
from forgetmap.overlap.samples import SIDES, Sample, Side
from forgetmap.theory import token_kl

CHUNK = 512
"""Completions written before they are weighed and kept."""
AT_ONCE = 2**21
"""Most entries of two distributions compared at a time."""

Report = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class Manner:
    """How completions are had: always at temperature 1, from the whole distribution.

    Attributes:
        samples: completions of each prompt by each model.
        limit: most tokens of a completion.
        chat: put prompts into the chat template.
        seed: of the random numbers.
    """

    samples: int = 16
    limit: int = 64
    chat: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples < 1 or self.limit < 1:
            raise UsageError(
                f"{self.samples} samples of up to {self.limit} tokens",
                hint="take at least one sample and one token.",
            )


@dataclass(frozen=True, slots=True)
class _Job:
    """One completion to be written."""

    prompt: Prompt
    tokens: Tokens
    side: Side
    number: int
    seed: int

    @property
    def key(self) -> tuple[str, str, int]:
        return self.prompt.id, self.side, self.number


def measure_overlap(
    before: Model,
    after: Model,
    prompts: Sequence[Prompt],
    manner: Manner | None = None,
    *,
    asked: Asked | None = None,
    expert: Model | None = None,
    journal: Path | None = None,
    report: Report | None = None,
) -> OverlapResult:
    """Sample both models, weigh everything with both, and estimate.

    Args:
        before: the model before.
        after: the model after.
        prompts: what they continue.
        manner: how.
        asked: what is estimated.
        expert: a model of the new behaviour alone, for the old mass.
        journal: where samples are kept as they come; what is there already is not done again.
        report: called after every completion.
    """
    manner = manner or Manner()
    samples = draw(before, after, prompts, manner, expert=expert, journal=journal, report=report)
    return estimate_overlap(samples, before=before.name, after=after.name, asked=asked)


def draw(
    before: Model,
    after: Model,
    prompts: Sequence[Prompt],
    manner: Manner,
    *,
    expert: Model | None = None,
    journal: Path | None = None,
    report: Report | None = None,
) -> list[Sample]:
    """Completions of both models, weighed by both."""
    encoded = encode_alike(before, after, prompts, chat=manner.chat, limit=manner.limit)
    if expert is not None:
        encode_alike(before, expert, prompts, chat=manner.chat, limit=manner.limit)
    jobs = _jobs(prompts, encoded, manner)
    models: dict[Side, Model] = dict(zip(SIDES, (before, after), strict=True))
    known = _open(journal, _fingerprint(models, expert, encoded, manner))
    done: dict[tuple[str, str, int], Sample] = {} if known is None else known.done
    progress = _Progress(sum(job.key in done for job in jobs), len(jobs), report)
    with contextlib.nullcontext() if known is None else contextlib.closing(known):
        for side in SIDES:
            left = [job for job in jobs if job.side == side and job.key not in done]
            for start in range(0, len(left), CHUNK):
                for sample in _some(models, expert, left[start : start + CHUNK], manner):
                    if known is not None:
                        known.add(sample)
                    done[sample.key] = sample
                    progress.add(len(sample.before))
    return [done[job.key] for job in jobs]


def _open(path: Path | None, fingerprint: str) -> Journal[Sample] | None:
    return None if path is None else Journal(path, fingerprint, Sample)


def _jobs(prompts: Sequence[Prompt], encoded: Sequence[Tokens], manner: Manner) -> list[_Job]:
    return [
        _Job(prompt, tokens, side, number, _seed(manner.seed, side, prompt.id, number))
        for prompt, tokens in zip(prompts, encoded, strict=True)
        for side in SIDES
        for number in range(manner.samples)
    ]


def _seed(*parts: object) -> int:
    """A number of its own for every completion, whatever else is asked for."""
    return int.from_bytes(sha256("\0".join(map(str, parts)).encode()).digest()[:7], "big")


def _fingerprint(
    models: dict[Side, Model], expert: Model | None, encoded: Sequence[Tokens], manner: Manner
) -> str:
    """The same where more samples may be added to those that are there."""
    parts = [models[side].stamp for side in SIDES]
    parts += ["" if expert is None else expert.stamp, str(list(encoded))]
    parts += [f"{manner.limit} {manner.chat} {manner.seed}"]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def _some(
    models: dict[Side, Model], expert: Model | None, jobs: Sequence[_Job], manner: Manner
) -> Iterator[Sample]:
    """Write some completions by one model and weigh them by both."""
    side = jobs[0].side
    # Whatever ends a completion for one of the two ends it for both, or they would not be alike.
    ends = models["before"].ends | models["after"].ends
    written: dict[int, Completion] = dict(
        models[side].sample([(job.tokens, job.seed) for job in jobs], manner.limit, ends)
    )
    completions = [written[place] for place in range(len(jobs))]
    rows = [(job.tokens, each.tokens) for job, each in zip(jobs, completions, strict=True)]
    weighed = [
        _said(completions) if each == side and completions[0].logprobs else model.weigh(rows)
        for each, model in models.items()
    ]
    experts = (None for _ in rows) if expert is None else expert.weigh(rows)
    for job, completion, first, second, third in zip(
        jobs, completions, *weighed, experts, strict=True
    ):
        yield Sample(
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


def _said(completions: Sequence[Completion]) -> Iterator[Weighed]:
    """What the writer said itself."""
    for each in completions:
        yield Weighed(each.logprobs or ())


def _divergence(writer: Weighed, other: Weighed) -> tuple[float, ...] | None:
    """KL of the writer from the other at every token."""
    if writer.whole is None or other.whole is None:
        return None
    step = max(1, AT_ONCE // writer.whole.shape[1])
    parts = [
        token_kl(writer.whole[start : start + step], other.whole[start : start + step])
        for start in range(0, len(writer.whole), step)
    ]
    return tuple(np.concatenate(parts).tolist())


class _Progress:
    """Counts completions and tells."""

    def __init__(self, done: int, total: int, report: Report | None) -> None:
        self._done, self._total, self._report = done, total, report
        self._tokens, self._started = 0, time.perf_counter()

    def add(self, tokens: int) -> None:
        self._done += 1
        self._tokens += tokens
        if self._report is not None:
            seconds = time.perf_counter() - self._started
            self._report(Step(self._done, self._total, self._tokens, seconds, 0))
