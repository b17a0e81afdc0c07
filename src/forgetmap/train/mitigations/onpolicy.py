"""On-policy training toward the start, with old samples mixed in: replay under reverse KL.

The objective is KL(q || s) on old prompts over whole answers: q is the trained model, s the start.
Its gradient is an expectation under q itself, E_q[log(q/s) grad log q]. An answer that q rarely
gives is rarely sampled, so it cannot be recovered (starvation). So a share rho of each batch are
answers of the start model, and every answer is weighted by

    w = q / b,    b = (1 - rho) q + rho s,    w <= 1 / (1 - rho)

which leaves the objective unchanged, as E_b[w f] = E_q[f], with bounded weights (docs/theory.md,
replay under reverse KL). The loss of an answer is w (log(q/s) - baseline) log q. The first two
factors are constants, and the baseline is the running mean of log(q/s) over earlier steps:
constants leave the gradient unchanged, as E_b[w grad log q] = 0.

Answers of the model are sampled for `refresh` steps at a time. They come from a model up to that
many steps old, whose q is in b; weights are then clipped at the bound. A step costs one forward and
backward pass, plus, spread over `refresh` steps, generation, one pass of the start model and one of
the sampling model. Log-ratios of long answers have a high variance: use it for short answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from forgetmap.train.examples import ExampleSource, TokenExample
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.kl import answered
from forgetmap.train.mitigations.mitigation import Mitigation, Protection
from forgetmap.train.mitigations.old_batches import (
    ExampleOrder,
    OldBatch,
    collate,
    predict,
    sum_by_example,
)
from forgetmap.train.mitigations.sampling import sample_answers
from forgetmap.train.mitigations.start import StartModel


@dataclass(frozen=True)
class OnPolicyReplay(Mitigation):
    """Reverse KL to the start on old prompts, from answers of the model and of the start model.

    Attributes:
        prompts: old prompts; completions are ignored.
        weight: weight of the KL in nats per answer.
        share: share of each batch that are answers of the start model.
        batch_size: answers per optimizer step and process.
        refresh: number of steps for which answers of the model are sampled at once.
        max_tokens: maximum length of an answer.
        seed: random seed of answers and order.
    """

    kind: ClassVar[str] = "on_policy_replay"

    prompts: ExampleSource
    weight: float = 0.1
    share: float = 0.25
    batch_size: int = 16
    refresh: int = 4
    max_tokens: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        base.check_not_negative(weight=self.weight)
        base.check_below_one(share=self.share)
        base.check_above_zero(refresh=self.refresh, max_tokens=self.max_tokens)
        base.check_above_zero(batch_size=self.batch_size - 1)  # at least one of each kind

    def apply(self, run: Protection) -> None:
        """Generate answers of the start model now, and add a penalty at each step."""
        old = answered(
            run, run.read(self.prompts), again=True, max_tokens=self.max_tokens, temperature=1.0,
            seed=self.seed,
        )  # fmt: skip
        term = _OnPolicyTerm(self, run, old, StartModel(run.model))
        run.add_penalty(self.kind, term.compute, self.weight)


@dataclass
class _ScoredBatch:
    examples: list[TokenExample]
    start: torch.Tensor
    lagged: torch.Tensor


class _OnPolicyTerm:
    """Computes the penalty at each step, with answers sampled in advance."""

    def __init__(
        self, config: OnPolicyReplay, run: Protection, old: list[TokenExample], start: StartModel
    ) -> None:
        self.config, self.run, self.old, self.start = config, run, old, start
        self.replayed = min(max(1, round(config.batch_size * config.share)), config.batch_size - 1)
        self.fresh = config.batch_size - self.replayed
        self.order = ExampleOrder(len(old), config.batch_size, config.seed)
        self.baseline = 0.0
        self._ahead: dict[int, _ScoredBatch] = {}

    def compute(self, model: Any) -> torch.Tensor:
        run = self.run
        if run.step not in self._ahead:
            self._refresh(model)
        scored = self._ahead.pop(run.step)
        log_q = answer_log_probs(model, scored.examples, run.device)
        share = self.replayed / len(scored.examples)
        terms, weights = replay_terms(
            log_q, scored.lagged, scored.start, scored.start, share, self.baseline
        )
        run.record("on_policy_replay/weight", weights.max())
        estimate = (weights * (log_q.detach() - scored.start)).mean()
        self.baseline = 0.9 * self.baseline + 0.1 * float(estimate)
        surrogate = terms.mean()
        return surrogate - surrogate.detach() + estimate  # with gradient of the surrogate

    def _refresh(self, model: Any) -> None:
        """Sample and score answers for the next steps."""
        config, run = self.config, self.run
        steps = range(run.step, run.step + config.refresh)
        chosen = [self.order.at(step, run.rank, run.processes) for step in steps]
        prompts = [self.old[at] for step in chosen for at in step[self.replayed :]]
        seed = (config.seed * 1_000_003 + run.step) * run.processes + run.rank
        own = iter(_answers(model, prompts, run, config.max_tokens, seed))
        batches = []
        for step in chosen:
            replayed = [self.old[at] for at in step[: self.replayed]]
            batches.append([*replayed, *(next(own) for _ in step[self.replayed :])])
        with torch.no_grad():
            lagged = [answer_log_probs(model, batch, run.device) for batch in batches]
        with self.start.use() as start:
            started = [answer_log_probs(start, batch, run.device) for batch in batches]
        self._ahead = {
            step: _ScoredBatch(batch, first, lag)
            for step, batch, first, lag in zip(steps, batches, started, lagged, strict=True)
        }


def _answers(
    model: Any, asked: Sequence[TokenExample], run: Protection, max_tokens: int, seed: int
) -> list[TokenExample]:
    prompts = [example.ids[: example.begin] for example in asked]
    answers = sample_answers(
        model, prompts, run.tokenizer, max_tokens=max_tokens, temperature=1.0, seed=seed
    )
    return [
        replace(example, ids=prompt + tuple(answer))
        for example, prompt, answer in zip(asked, prompts, answers, strict=True)
    ]


def answer_log_probs(
    model: Any, examples: Sequence[TokenExample], device: torch.device | str
) -> torch.Tensor:
    """Return the log-probability of each whole answer: (examples,)."""
    batch = collate(examples, device)
    return _log_probs(predict(model, batch), batch)


def _log_probs(logits: torch.Tensor, batch: OldBatch) -> torch.Tensor:
    each = logits.log_softmax(-1).gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1)
    return sum_by_example(each, batch)


def replay_terms(
    log_q: torch.Tensor,
    log_lagged: torch.Tensor,
    log_old: torch.Tensor,
    log_target: torch.Tensor,
    share: float,
    baseline: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return losses, whose mean has the gradient of KL(q || target), and weights of samples.

    Args:
        log_q: log-density of the trained model at each sample, with gradient.
        log_lagged: log-density of the sampling model; equal to `log_q` if it has not changed.
        log_old: log-density of the distribution of old samples.
        log_target: log-density of the target, up to a constant.
        share: share of old samples.
        baseline: any constant; an estimate of the mean log(q / target) lowers the variance.
    """
    fixed = log_q.detach()
    behaviour = torch.logaddexp(math.log1p(-share) + log_lagged, math.log(share) + log_old)
    weights = (fixed - behaviour).exp().clamp(max=1 / (1 - share))
    excess = fixed - log_target
    return weights * (excess - baseline) * log_q, weights
