"""The 1->0 penalty: margins, bounds, gradients, and the control of its weight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from forgetmap.errors import EmptyInputError, UsageError
from forgetmap.train import MarginPenalty
from forgetmap.train.mitigations.kl import answered
from forgetmap.train.mitigations.margin import (
    Shape,
    bounds,
    lowest,
    risk_weights,
    token_margins,
)
from forgetmap.train.mitigations.margin_control import PATIENCE, FocusedOrder, Multiplier
from forgetmap.train.mitigations.old_batches import collate, predict
from forgetmap.train.mitigations.sampling import sample_answers
from protected_training import fresh_model, logged, nudge, prompts, protected, slope_gap

pytestmark = pytest.mark.needs_torch
SHAPES: tuple[Shape, ...] = ("relative", "hinge", "smooth")


def test_margins_by_hand() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.5], [0.0, 5.0, 4.0], [1.0, 1.0, 0.0]])
    assert token_margins(logits, torch.tensor([0, 2, 1])).tolist() == [0.5, -1.0, 0.0]


@pytest.mark.parametrize("size", [0.01, 0.03])
def test_an_answer_is_lost_exactly_where_its_margin_is_not_above_zero(
    tmp_path: Path, size: float
) -> None:
    run = protected(tmp_path)
    known = answered(run, run.read(prompts(40)), max_tokens=3, temperature=0.0)
    nudge(run.model, size)
    batch = collate(known)
    margins = lowest(token_margins(predict(run.model, batch), batch.targets), batch)
    said = sample_answers(
        run.model, [one.ids[: one.begin] for one in known], run.tokenizer, max_tokens=3,
        temperature=0.0, seed=0,
    )  # fmt: skip
    kept = [tuple(answer) == one.ids[one.begin :] for answer, one in zip(said, known, strict=True)]
    assert [bool(margin > 0) for margin in margins] == kept
    assert 0 < sum(kept) < 40


@pytest.mark.parametrize("tau", [0.5, 2.0])
def test_the_bounds_bound_what_is_lost(tau: float) -> None:
    generator = torch.Generator().manual_seed(0)
    margins = 3 * torch.randn(1000, generator=generator)
    before = tau + 3 * torch.rand(1000, generator=generator)
    for shape in SHAPES:
        assert (bounds(margins, before, shape, tau) >= (margins <= 0).float()).all()
    assert (bounds(before, before, "relative", tau) == 0).all()
    assert (bounds(margins, before, "smooth", tau) >= bounds(margins, before, "hinge", tau)).all()
    fragile = torch.full_like(margins, 0.1 * tau)
    lost = (margins <= 0).float()
    assert (bounds(margins, fragile, "relative", tau) * 10 >= lost - 1e-5).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tokens", ["min", "all"])
def test_slopes_agree_with_finite_differences(tmp_path: Path, shape: Any, tokens: Any) -> None:
    model = fresh_model(double=True)
    config = MarginPenalty(
        prompts(6), shape=shape, tokens=tokens, tau=4.0, batch_size=6, max_tokens=3
    )
    run = protected(tmp_path, config, model=model)
    nudge(model, 0.05)
    assert slope_gap(lambda: run.penalties[0].function(model), model, 1e-8) < 1e-4  # type: ignore[arg-type,return-value]


def test_slopes_with_kl(tmp_path: Path) -> None:
    model = fresh_model(double=True)
    config = MarginPenalty(prompts(6), weight=0.5, kl=2.0, batch_size=6, max_tokens=3, top_k=20)
    run = protected(tmp_path, config, model=model)
    nudge(model, 0.05)
    assert slope_gap(lambda: run.penalties[0].function(model), model, 1e-8) < 1e-4  # type: ignore[arg-type,return-value]


def test_risk_weighs_what_has_little_margin_left() -> None:
    margins = torch.tensor([9.0, 2.0, 1.0, 0.0, -50.0], requires_grad=True)
    weights = risk_weights(margins, tau=2.0, risk=1.0)
    assert weights.tolist() == [1.0, 1.0, 1.5, 2.0, 3.0]
    assert not weights.requires_grad


def test_nothing_is_penalised_at_the_start(tmp_path: Path) -> None:
    run = protected(tmp_path, MarginPenalty(prompts(12), kl=1.0, risk=1.0, focus=0.5, max_tokens=3))
    run.trainer.train()
    for name in ("margin_penalty", "margin_penalty/lost_share", "margin_penalty/kl"):
        assert logged(run, f"protect/{name}")[0] == pytest.approx(0.0, abs=1e-5)


def test_only_what_the_start_knows_is_kept(tmp_path: Path) -> None:
    run = protected(tmp_path)
    right = answered(run, run.read(prompts(4)), max_tokens=3, temperature=0.0)
    rows = [{"input_ids": list(one.ids), "labels": one.labels} for one in right]
    wrong = {"input_ids": [*rows[0]["input_ids"][:-1], 7], "labels": [*rows[0]["labels"][:-1], 7]}
    run = protected(tmp_path, MarginPenalty([*rows, wrong]))
    assert run.take_metrics()["protect/margin_penalty/known"] == 4
    with pytest.raises(EmptyInputError, match=r"answers none of the examples right \(0 of 1\)"):
        protected(tmp_path, MarginPenalty([wrong]))


def test_a_bound_that_is_met_lets_the_weight_fall() -> None:
    multiplier = Multiplier(1.0, bound=0.1, rate=0.5, most=10.0)
    rising = [multiplier.update(0.5) for _ in range(10)]
    assert rising == sorted(rising)
    falling = [multiplier.update(0.0) for _ in range(100)]
    assert falling[-1] == 0.0
    assert multiplier.bound == 0.1


def test_a_bound_out_of_reach_does_not_wind_up() -> None:
    multiplier = Multiplier(1.0, bound=0.05, rate=0.5, most=5.0)
    values = [multiplier.update(0.4) for _ in range(PATIENCE + 60)]
    assert max(values) == 5.0
    assert multiplier.bound == pytest.approx(0.4, abs=1e-3)
    assert [multiplier.update(0.3) for _ in range(40)][-1] < 5.0


def test_the_weight_follows_the_bound_in_training_and_after_a_resume(tmp_path: Path) -> None:
    config = MarginPenalty(prompts(12), bound=0.05, max_tokens=3, weight=0.5)
    run = protected(tmp_path, config, max_steps=4, save_strategy="steps", save_steps=2)
    run.trainer.train()
    whole = logged(run, "protect/margin_penalty/multiplier")
    again = protected(tmp_path, config, max_steps=4, save_strategy="steps", save_steps=2)
    again.trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert len(whole) == 4
    kept = logged(again, "protect/margin_penalty/multiplier")
    assert kept[:2] == whole[:2]
    assert kept[2] != config.weight


def test_a_focus_on_what_moved() -> None:
    order = FocusedOrder(100, 8, seed=1, focus=0.5)
    assert len(order.at(0)) == 4
    order.learn([3, 5, 7, 9, 11], torch.tensor([1.0, 1.0, 1.0, 1.0, -1.0]))
    chosen = order.at(1)
    assert chosen == order.at(1)
    assert set(chosen[4:]) <= {3, 5, 7, 9}
    assert len(set(chosen)) == len(chosen) > 4
    assert 11 not in chosen[4:]


@pytest.mark.parametrize(
    "options",
    [{"tau": 0.0}, {"shape": "round"}, {"bound": 1.5}, {"focus": 1.0}, {"tokens": "few"}],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        MarginPenalty("r.jsonl", **options)
