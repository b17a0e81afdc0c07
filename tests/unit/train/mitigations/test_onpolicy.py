"""Replay under reverse KL: the gradient of the theory, bounded weights, and training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from forgetmap.errors import UsageError
from forgetmap.theory.mixtures import Mixture
from forgetmap.theory.objectives import ReverseKL
from forgetmap.train import OnPolicyReplay
from forgetmap.train.mitigations.onpolicy import answer_log_probs, replay_terms
from protected_training import fresh_model, logged, pairs, prompts, protected, slope_gap
from two_modes import GRID, STEP, log_density, make_state, normal, slope

pytestmark = pytest.mark.needs_torch


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("baseline", [0.0, 1.3])
def test_the_gradient_is_that_of_reverse_kl_to_the_target(share: float, baseline: float) -> None:
    state, target = make_state(0.05, 0.4, 4.5), make_state(0.5, 0.0, 5.0).detach()
    log_q, log_old = log_density(state), normal(GRID, 0.0)
    terms, weights = replay_terms(
        log_q, log_q.detach(), log_old, log_density(target), share, baseline
    )
    behaviour = (1 - share) * log_q.detach().exp() + share * log_old.exp()
    exact = ReverseKL(Mixture.of_state(target.numpy())).gradient(state.detach().numpy())
    assert slope((behaviour * terms).sum() * STEP, state) == pytest.approx(exact, abs=1e-6)
    assert float(weights.max()) <= 1 / (1 - share) + 1e-12
    old_region = weights[(GRID - 0.0).abs() < 0.5]
    beta = float(torch.sigmoid(state[0].detach()))
    assert float(old_region.max()) < 1.3 * beta / ((1 - share) * beta + share)


def test_weights_of_a_lagged_sampler_are_cut_at_the_bound() -> None:
    log_q = torch.tensor([0.0, -5.0], requires_grad=True)
    terms, weights = replay_terms(
        log_q, torch.tensor([-9.0, -5.0]), torch.tensor([-9.0, -5.0]), torch.zeros(2), 0.2
    )
    assert weights.tolist() == pytest.approx([1.25, 1.0])
    assert terms.requires_grad
    assert not weights.requires_grad


def test_log_probabilities_of_whole_answers(tmp_path: Path) -> None:
    model = fresh_model(double=True)
    examples = protected(tmp_path, model=model).read(pairs(5))
    found = answer_log_probs(model, examples, "cpu").detach()
    for value, example in zip(found, examples, strict=True):
        logs = model(torch.tensor([example.ids])).logits[0].log_softmax(-1).detach()
        plain = sum(
            float(logs[at - 1, example.ids[at]]) for at in range(example.begin, len(example.ids))
        )
        assert float(value) == pytest.approx(plain, rel=1e-9)


def test_slopes_of_the_surrogate_agree_with_finite_differences(tmp_path: Path) -> None:
    model = fresh_model(double=True)
    examples = protected(tmp_path, model=model).read(pairs(5))
    fixed = answer_log_probs(model, examples, "cpu").detach()
    start = fixed + torch.tensor([0.3, -0.2, 0.1, 0.5, -0.4], dtype=torch.float64)
    _, weights = replay_terms(fixed, fixed, start, start, 0.25)
    factors = weights * (fixed - start)

    def value() -> torch.Tensor:
        log_q = answer_log_probs(model, examples, "cpu")
        with_slope = replay_terms(log_q, fixed, start, start, 0.25)[0].sum()
        held = (factors * log_q).sum()  # the same with the factors that count as constants held
        return with_slope if torch.is_grad_enabled() else held

    assert slope_gap(value, model) < 1e-5


@pytest.mark.parametrize("refresh", [1, 3])
def test_training_with_it(tmp_path: Path, refresh: int) -> None:
    config = OnPolicyReplay(prompts(10), batch_size=6, max_tokens=3, refresh=refresh, weight=0.05)
    run = protected(tmp_path, config)
    run.trainer.train()
    values = logged(run, "protect/on_policy_replay")
    assert len(values) == 4
    assert values[0] == pytest.approx(0.0, abs=1e-4)
    assert max(logged(run, "protect/on_policy_replay/weight")) <= 6 / 4 + 1e-6
    assert np.isfinite(values).all()


def test_it_pulls_back_to_the_start(tmp_path: Path) -> None:
    from forgetmap.train.mitigations.kl import answered
    from forgetmap.train.mitigations.old_batches import collate, predict

    def distance(*more: OnPolicyReplay) -> float:
        run = protected(tmp_path, *more, max_steps=12, learning_rate=3e-3)
        batch = collate(answered(run, run.read(prompts(30)), max_tokens=3, seed=7))
        with torch.no_grad():
            before = predict(run.model, batch).log_softmax(-1)
        run.trainer.train()
        with torch.no_grad():
            after = predict(run.model.eval(), batch).log_softmax(-1)
        return float((after.exp() * (after - before)).sum(-1).mean())

    own = OnPolicyReplay(prompts(30), batch_size=32, max_tokens=3, weight=2.0, refresh=2)
    assert distance(own) < 0.8 * distance()


def test_options_that_make_no_sense() -> None:
    for options in ({"share": 0.0}, {"batch_size": 1}, {"refresh": 0}):
        with pytest.raises(UsageError):
            OnPolicyReplay("p.jsonl", **options)
