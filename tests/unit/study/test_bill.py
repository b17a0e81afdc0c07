"""Bills: what runs would take, and what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.study import bill_of, parse_study, plan_runs, study_template, tell_bill
from forgetmap.text import blocks_to_text


def test_the_bill_of_the_first_paper_is_believable(tmp_path: Path) -> None:
    study = parse_study(study_template("post-forget"), "post-forget.toml")
    plans = plan_runs(study, tmp_path)
    bills = {plan.id: bill_of(study, plan) for plan in plans}
    assert len(bills) == 48
    small, large = bills["Qwen2.5-7B"], bills["Qwen2.5-32B-Instruct"]
    assert small.answers == 129_000
    assert small.disk == pytest.approx(14e9, rel=0.01)
    assert small.gpu_hours is not None
    assert large.gpu_hours is not None
    assert 1 < small.gpu_hours < 10 < large.gpu_hours < 200
    hours = sum(bill.gpu_hours or 0 for bill in bills.values())
    assert 200 < hours < 3000
    assert "48 models to evaluate, about" in blocks_to_text(tell_bill(study, plans), 100)


def test_without_the_number_of_items_only_weights_are_known(tmp_path: Path) -> None:
    study = parse_study(study_template("empty"), "x")
    plan = plan_runs(study, tmp_path)[0]
    bill = bill_of(study, plan)
    assert (bill.answers, bill.gpu_hours, bill.disk) == (None, None, 2e9)
    text = blocks_to_text(tell_bill(study, [plan]), 100)
    assert "2 models" not in text
    assert "Give `items`" in text
