"""EWC: a quadratic penalty for every weight, scaled by its Fisher information on old answers.

    penalty = 1/2 sum_i F_i (w_i - w_i(start))^2
    F_i = mean over old texts of (d log p(y|x) / d w_i)^2

(Kirkpatrick et al. 2017, arXiv 1612.00796.) F is the diagonal of the Fisher information if the
answers were sampled from the start model: prompts without completions get such answers, and without
examples the model generates whole texts. For given completions it is the empirical Fisher. Setting
up costs a forward and backward pass per text; a step costs no pass, only one operation per weight.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from forgetmap.errors import ModelError
from forgetmap.train.examples import ExampleSource, TokenExample
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.kl import answered
from forgetmap.train.mitigations.l2sp import half_distance, trained_weights
from forgetmap.train.mitigations.mitigation import Mitigation, Protection
from forgetmap.train.mitigations.old_batches import collate, predict
from forgetmap.train.mitigations.replay import SyntheticReplay, write_texts


@dataclass(frozen=True)
class EWC(Mitigation):
    """Penalise distance to the start weights by their importance for old texts.

    Attributes:
        examples: old prompts, with or without completions; by default texts of the start model.
        weight: weight of the penalty.
        rows: maximum number of texts for the importance; a random sample if there are more.
        normalise: scale importances to a mean of 1, so that `weight` is comparable with that of
            L2-SP.
        max_tokens: maximum length of an answer or text of the start model.
        temperature: sampling temperature; 1 gives the Fisher information.
        eos: end given completions with the end-of-sequence token.
        seed: random seed of answers and texts.
    """

    kind: ClassVar[str] = "ewc"

    examples: ExampleSource | None = None
    weight: float = 1.0
    rows: int = 200
    normalise: bool = False
    max_tokens: int = 32
    temperature: float = 1.0
    eos: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        base.check_not_negative(weight=self.weight)
        base.check_above_zero(
            rows=self.rows, max_tokens=self.max_tokens, temperature=self.temperature
        )

    def apply(self, run: Protection) -> None:
        """Compute importances now, and add a penalty at each step."""
        start = trained_weights(run.model)
        importance = fisher_diagonal(run.model, self._texts(run), run.device)
        if self.normalise:
            importance = _with_mean_one(importance)

        def penalty(model: Any) -> torch.Tensor:
            return half_distance(model, start, importance)

        run.add_penalty(self.kind, penalty, self.weight)

    def _texts(self, run: Protection) -> list[TokenExample]:
        if self.examples is None:
            free = SyntheticReplay(
                rows=self.rows, max_tokens=self.max_tokens, temperature=self.temperature,
                seed=self.seed,
            )  # fmt: skip
            return write_texts(run, free)
        rows = run.read(self.examples, eos=self.eos)
        if self.rows < len(rows):
            # At random, as files are often sorted: their first rows may be of one kind.
            rows = random.Random(self.seed).sample(rows, self.rows)  # noqa: S311
        return answered(
            run, rows, max_tokens=self.max_tokens, temperature=self.temperature, seed=self.seed
        )


def fisher_diagonal(
    model: Any, examples: Sequence[TokenExample], device: torch.device | str
) -> dict[str, torch.Tensor]:
    """Return the mean squared gradient of the log-likelihood of texts, for each trained weight.

    Raises:
        ModelError: it is not finite.
    """
    names = [name for name, weight in model.named_parameters() if weight.requires_grad]
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    sums = [torch.zeros_like(weight) for weight in weights]
    was_training = model.training
    model.eval()
    try:
        for example in examples:
            batch = collate([example], device)
            loss = torch.nn.functional.cross_entropy(
                predict(model, batch), batch.targets, reduction="sum"
            )
            slopes = torch.autograd.grad(loss, weights, allow_unused=True)
            for total, slope in zip(sums, slopes, strict=True):
                if slope is not None:
                    total.addcmul_(slope, slope, value=1 / len(examples))
    finally:
        model.train(was_training)
    if not all(torch.isfinite(total).all() for total in sums):
        raise ModelError(
            "the importances of the weights are not finite",
            hint="load the model again; its weights are broken, or overflow in float16.",
        )
    return dict(zip(names, sums, strict=True))


def _with_mean_one(importance: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    count = sum(value.numel() for value in importance.values())
    mean = sum(float(value.sum()) for value in importance.values()) / count
    return {name: value / (mean or 1.0) for name, value in importance.items()}
