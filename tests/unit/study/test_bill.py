"""Cost estimates of studies: what runs would take, and what is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import UsageError
from forgetmap.study import (
    bill_of,
    choose_speed,
    make_rates,
    parse_study,
    plan_runs,
    study_template,
    tell_bill,
)
from forgetmap.study.run_files import FinishedRun, RunEffort, write_finished
from forgetmap.study.speed import MeasuredRun
from forgetmap.text import blocks_to_text
from run_folders import results, write

BILLIONS = {
    "few-shot": 2 * (3 + 7 + 14 + 32) + 8 + 7,
    "chat": 2 * (3 + 7 + 14 + 32) + 8,
    "thinking": 7 + 32 + 7 + 8 + 32 + 7 + 14 + 32 + 32 + 32 + 32 + 8 + 7 + 7 + 7 + 14 + 32,
}
"""Parameters of the 36 models by kind of answer, counted by hand: base models, Coder and Math;
instruct models; reasoning models."""


def test_the_bill_of_31_pairs_is_that_of_a_back_of_the_envelope(tmp_path: Path) -> None:
    study = parse_study(study_template("post-forget"), "post-forget.toml")
    plans = [plan for plan in plan_runs(study, tmp_path) if plan.merge is None]
    assert (len(study.pairs), len(plans)) == (31, 36)
    bills = [bill_of(study, plan) for plan in plans]
    answers = 3 * 44_900
    # A100: 2.0 TB/s x 64 answers x 0.4 write 2 bytes a parameter; half of 312 TFLOPS read.
    written = {"few-shot": 150, "chat": 350, "thinking": 3000}
    read = {"few-shot": 1000, "chat": 250, "thinking": 250}
    hours = sum(
        answers * billions * 1e9 * (2 * written[kind] / (2.039e12 * 25.6) + 2 * read[kind] / 156e12)
        for kind, billions in BILLIONS.items()
    )
    assert sum(bill.gpu_hours or 0 for bill in bills) == pytest.approx(hours / 3600, rel=1e-6)
    assert 1000 < hours / 3600 < 2500
    small = bills[[plan.id for plan in plans].index("Qwen2.5-7B")]
    assert small.answers == answers
    assert small.disk == pytest.approx(14e9 + 4 * answers * 1150)
    assert sum(bill.disk or 0 for bill in bills) == pytest.approx(1.2e12, rel=0.1)


def test_a_bill_says_what_it_rests_on(tmp_path: Path) -> None:
    study = parse_study(study_template("post-forget"), "post-forget.toml")
    plans = plan_runs(study, tmp_path)
    text = blocks_to_text(tell_bill(study, plans), 120)
    assert "48 models to evaluate, about" in text
    assert "from the data sheet of a100, not measured" in text
    fast = make_rates(study, plans, tmp_path, gpu="H100")
    slow = make_rates(study, plans, tmp_path, tokens_per_second="7B=1000")
    bills = [bill_of(study, plans[1], rates).gpu_hours or 0 for rates in (fast, slow)]
    assert bills[1] == pytest.approx(3 * 44_900 * 1150 / 1000 / 3600)
    assert bills[0] < (bill_of(study, plans[1]).gpu_hours or 0) < bills[1]
    assert "as given" in blocks_to_text(tell_bill(study, plans, slow), 120)


def test_writing_is_bound_by_memory_and_reading_by_arithmetic() -> None:
    speed = choose_speed("a100")
    # 2,039 / 14 steps a second, 64 x 0.4 tokens in each; measured by others: 3,363.
    assert 1000 / speed.seconds(7, 0, 1000) == pytest.approx(3728, rel=0.01)
    assert 1000 / speed.seconds(7, 1000, 0) == pytest.approx(11_143, rel=0.01)
    assert [speed.gpus(billions * 2e9) for billions in (7, 32, 80)] == [1, 1, 3]


def test_measured_runs_scale_the_speed() -> None:
    guess = choose_speed("a100")
    runs = [
        MeasuredRun(size, 10_000, 5_000, factor * guess.seconds(size, 10_000, 5_000))
        for size, factor in ((1.0, 2.0), (7.0, 8.0))
    ]
    speed = choose_speed("a100", runs=[*runs, MeasuredRun(1.0, 0, 0, 0.0)])
    assert speed.measured == 2
    assert speed.slower == pytest.approx(4.0)
    assert "2 runs of this study" in speed.sentence


@pytest.mark.parametrize("text", ["", "fast", "0", "7X=3", "7B=", "unknown=3"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a speed"):
        choose_speed(tokens_per_second=text)


def test_unknown_gpus_are_refused() -> None:
    with pytest.raises(UsageError, match="no GPU 'abacus'"):
        choose_speed("abacus")


STUDY = """name = "two"
suite = "questions.csv"
[[model]]
id = "a"
hub = "o/a"
size = "1B"
[[model]]
id = "b"
hub = "o/b"
size = "2B"
parent = "a"
"""


def test_items_of_a_file_are_counted_and_runs_of_the_study_measured(tmp_path: Path) -> None:
    lines = ["task,question,gold", *(f"t{n % 2},q{n},g" for n in range(10))]
    (tmp_path / "questions.csv").write_text("\n".join(lines))
    study = parse_study(STUDY, str(tmp_path / "study.toml"))
    plan = plan_runs(study, tmp_path)[0]
    write(tmp_path / "a", results([1.0]))
    effort = RunEffort(answers=10, tokens=600, written=100, seconds=2.0)
    write_finished(tmp_path, "a", FinishedRun(plan.mark, plan.stamp, effort))
    plans = plan_runs(study, tmp_path)
    assert [plan.state for plan in plans] == ["done", "missing"]
    rates = make_rates(study, plans, tmp_path)
    bill = bill_of(study, plans[1], rates)
    assert (bill.answers, bill.tokens) == (10, 600)
    assert bill.gpu_hours == pytest.approx(2 * 2.0 / 3600)
    assert "measured in this study" in blocks_to_text(tell_bill(study, plans, rates), 120)


def test_without_the_number_of_items_only_weights_are_known(tmp_path: Path) -> None:
    text = study_template("empty").replace('"basics"', '"hub:o/items"')
    study = parse_study(text, "x")
    plan = plan_runs(study, tmp_path)[0]
    bill = bill_of(study, plan)
    assert (bill.answers, bill.gpu_hours, bill.disk) == (None, None, 2e9)
    text = blocks_to_text(tell_bill(study, [plan]), 100)
    assert "2 models" not in text
    assert "Set `items`" in text
