"""The 1->0 penalty: keep right answers right.

Known set K: the examples that the start model answers correctly by greedy decoding. For answer
tokens y_1 ... y_n, with logits z_t after the prompt and the preceding tokens, the margin of example
i is

    m_i = min over t of  z_t(y_t) - max over v != y_t of z_t(v)

Greedy decoding gives the whole answer iff every token wins, by induction over t: so i in K is
forgotten iff m_i <= 0 (ties count as forgotten). The aim is to minimise the new loss subject to
mean over K of 1[m_i <= 0] <= eps. The indicator has no gradient, but for every tau > 0

    1[m <= 0]  <=  (1 - m/tau)+          `hinge`: at m <= 0 the right side is at least 1

so the mean hinge bounds the forgotten share; margins above tau cost nothing and have no gradient.
Others:

    (min(tau, m_start) - m)+ / tau       `relative`: 0 at the start; requires no more margin of an
                                         example than it had; bounds the indicator if m_start >= tau
                                         and up to the factor tau / m_start otherwise
    s softplus((1 - m/tau) / s)          `smooth`, s = 1/4: at least the hinge, so a bound too

With `tokens="all"` the sum over tokens replaces the worst token; it is at least as large, so still
a bound, and all tokens at risk get a gradient.

Further terms from the same forward pass:

    kl      adds KL to the start at the same positions: unlike the argmax, distributions carry over
            to examples that are in no list
    risk    weights that KL by w_i = 1 + risk clip(1 - m_i/tau, 0, 2): more if margins are small
    bound   replaces the weight by a multiplier that rises while more than `bound` of K is forgotten
            and falls otherwise (margin_control.py)
    focus   draws that share of each batch from the examples whose margin had fallen most: there new
            training changes old behaviour
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch.nn.functional import softplus

from forgetmap.errors import EmptyInputError
from forgetmap.train.examples import ExampleSource, TokenExample
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.kl import Direction, StartDistributions, answered
from forgetmap.train.mitigations.margin_control import FocusedOrder, Multiplier
from forgetmap.train.mitigations.mitigation import Mitigation, Protection
from forgetmap.train.mitigations.old_batches import (
    OldBatch,
    collate,
    predict,
    survey,
)

Shape = Literal["relative", "hinge", "smooth"]
SMOOTHNESS = 0.25
MOST_RISK = 2.0
"""Margins of -tau and below count the same."""


@dataclass(frozen=True)
class MarginPenalty(Mitigation):
    """Penalise right answers that become wrong.

    Attributes:
        examples: rows with completions; a prompt without one gets the greedy answer of the start
            model.
        weight: weight of the mean hinge.
        shape: `relative`, `hinge` or `smooth`.
        tau: margin in logits above which an answer is safe.
        tokens: `min` uses the worst token of an answer, `all` the sum over tokens.
        kl: weight of KL to the start at the same positions.
        direction: direction of that KL.
        risk: how much more that KL counts for answers with a small margin.
        bound: share of known answers that may be forgotten; the weight then adapts.
        rate: step size of that adaptation.
        most: maximum of the adaptive weight.
        focus: share of a batch that is drawn from answers whose margin fell most.
        batch_size: examples per optimizer step and process.
        max_tokens: maximum length of greedy answers of the start model.
        top_k: number of tokens stored per start distribution, for the KL.
        memory_gib: maximum memory of start distributions.
        eos: end completions with the end-of-sequence token.
        seed: random seed of the order.
    """

    kind: ClassVar[str] = "margin_penalty"

    examples: ExampleSource
    weight: float = 1.0
    shape: Shape = "relative"
    tau: float = 2.0
    tokens: Literal["min", "all"] = "min"
    kl: float = 0.0
    direction: Direction = "forward"
    risk: float = 0.0
    bound: float | None = None
    rate: float = 0.5
    most: float = 10.0
    focus: float = 0.0
    batch_size: int = 16
    max_tokens: int = 32
    top_k: int | None = None
    memory_gib: float = 2.0
    eos: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        base.check_not_negative(weight=self.weight, kl=self.kl, risk=self.risk, focus=self.focus)
        base.check_above_zero(
            tau=self.tau, rate=self.rate, most=self.most, batch_size=self.batch_size,
            max_tokens=self.max_tokens, top_k=self.top_k, memory_gib=self.memory_gib,
        )  # fmt: skip
        base.check_below_one(bound=self.bound, focus=self.focus or None)
        base.check_choice("shape", self.shape, ("relative", "hinge", "smooth"))
        base.check_choice("tokens", self.tokens, ("min", "all"))
        base.check_choice("direction", self.direction, ("forward", "reverse"))

    def apply(self, run: Protection) -> None:
        """Find the known answers of the start model, and add a penalty at each step."""
        examples, start_margins = self._known(run)
        start = None
        if self.kl:
            start = StartDistributions.of(
                run.model, examples, run.device, top_k=self.top_k, memory_gib=self.memory_gib
            )
        _MarginTerm(self, run, examples, start_margins, start).install()

    def _known(self, run: Protection) -> tuple[list[TokenExample], list[torch.Tensor]]:
        """Return the examples that the start model answers correctly, with margins by token.

        Raises:
            EmptyInputError: it answers none correctly.
        """
        examples = run.read(self.examples, eos=self.eos)
        full = answered(run, examples, max_tokens=self.max_tokens, temperature=0.0, seed=self.seed)
        known, margins = [], []
        for example, logits in zip(full, survey(run.model, full, run.device), strict=True):
            targets = torch.tensor(example.ids[-len(logits) :], device=logits.device)
            margin = token_margins(logits, targets)
            if margin.min() > 0:
                known.append(example)
                margins.append(margin)
        if not known:
            raise EmptyInputError(
                f"the start model answers none of the examples right (0 of {len(full)})",
                hint="pass examples that it knows, or prompts without completions.",
                file=full[0].place.file,
            )
        return known, margins


@dataclass
class _MarginTerm:
    """Computes the penalty at each step."""

    config: MarginPenalty
    run: Protection
    examples: list[TokenExample]
    start_margins: list[torch.Tensor]
    start: StartDistributions | None

    def install(self) -> None:
        config = self.config
        self.order = FocusedOrder(len(self.examples), config.batch_size, config.seed, config.focus)
        self.multiplier = (
            None
            if config.bound is None
            else Multiplier(config.weight, config.bound, config.rate, config.most)
        )
        self.name = self.run.add_penalty(config.kind, self.compute, 1.0)
        self.run.record(f"{self.name}/known", float(len(self.examples)))

    def compute(self, model: Any) -> torch.Tensor:
        config, run = self.config, self.run
        chosen = self.order.at(run.step, run.rank, run.processes)
        batch = collate([self.examples[at] for at in chosen], run.device)
        logits = predict(model, batch)
        margins = token_margins(logits, batch.targets)
        before = torch.cat([self.start_margins[at] for at in chosen])
        worst, worst_before = lowest(margins, batch), lowest(before, batch)
        self.order.learn(chosen, (worst_before - worst).detach())
        lost = (worst <= 0).to(logits.dtype).mean()
        hinge = self.hinge(margins, before, batch)
        run.record(f"{self.name}/hinge", hinge)
        run.record(f"{self.name}/lost_share", lost)
        term = self._weight(float(lost)) * hinge
        if self.start is None:
            return term
        kl = self.start.divergence(logits, chosen, config.direction)
        run.record(f"{self.name}/kl", kl.mean())
        weights = risk_weights(worst, config.tau, config.risk)
        return term + config.kl * (weights[batch.rows] * kl).mean()

    def hinge(self, margins: torch.Tensor, before: torch.Tensor, batch: OldBatch) -> torch.Tensor:
        """Return the mean over examples of the bound on 1[m <= 0]."""
        config = self.config
        if config.tokens == "min":
            margins, before = lowest(margins, batch), lowest(before, batch)
        values = bounds(margins, before, config.shape, config.tau)
        return values.sum() / batch.examples

    def _weight(self, lost: float) -> float:
        if self.multiplier is None:
            return self.config.weight
        if self.run.step and not self.multiplier.updates:
            self.multiplier = resumed(self.multiplier, self.run, self.name)
        weight = self.multiplier.update(lost)
        self.run.record(f"{self.name}/multiplier", weight)
        self.run.record(f"{self.name}/bound", self.multiplier.bound)
        return weight


def resumed(multiplier: Multiplier, run: Protection, name: str) -> Multiplier:
    """Restore the multiplier of a resumed training from the log."""
    key = f"protect/{name}/multiplier"
    logged = [line[key] for line in run.trainer.state.log_history if key in line]
    return replace(multiplier, value=float(logged[-1])) if logged else multiplier


# ------------------------------------------------------------------------------------------- terms


def token_margins(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the difference between the logit of each target and the best other one."""
    target = targets.unsqueeze(-1)
    best_other = logits.scatter(-1, target, float("-inf")).amax(-1)
    return logits.gather(-1, target).squeeze(-1) - best_other


def lowest(margins: torch.Tensor, batch: OldBatch) -> torch.Tensor:
    """Return the margin of each example: that of its worst token."""
    none = margins.new_full((batch.examples,), float("inf"))
    return none.scatter_reduce(0, batch.rows, margins, "amin")


def bounds(margins: torch.Tensor, before: torch.Tensor, shape: Shape, tau: float) -> torch.Tensor:
    """Return the bound on 1[m <= 0] for each margin."""
    if shape == "relative":
        return (before.clamp(max=tau) - margins).clamp(min=0) / tau
    if shape == "hinge":
        return (1 - margins / tau).clamp(min=0)
    return SMOOTHNESS * softplus((1 - margins / tau) / SMOOTHNESS)


def risk_weights(margins: torch.Tensor, tau: float, risk: float) -> torch.Tensor:
    """Return 1 for safe answers, and more for smaller margins; without gradient."""
    return 1 + risk * (1 - margins.detach() / tau).clamp(0, MOST_RISK)
