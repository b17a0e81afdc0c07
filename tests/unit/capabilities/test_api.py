"""Drift between runs with scores: pairing, counts, means, missing values and messages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, false_discovery_control

import forgetmap as fm
from forgetmap.capabilities.api import drift_pairs
from forgetmap.capabilities.drift_result import DriftResult
from forgetmap.capabilities.result import Cell, MetricCell
from forgetmap.capabilities.taxonomy import Taxonomy, parse_taxonomy
from forgetmap.errors import MetricError, UsageError
from forgetmap.records.run import Run
from scored_runs import TAXONOMY, row, rows_of, run_of, scored

SMALL = parse_taxonomy(TAXONOMY, origin="small.toml")
RNG = np.random.default_rng(8)
SUMS = [(RNG.random(300) < p).astype(float) for p in (0.8, 0.6)]
FACTS = [(RNG.random(200) < p).astype(float) for p in (0.7, 0.7)]


def drift(before: Run, *after: Run, taxonomy: Taxonomy = SMALL, **options: Any) -> DriftResult:
    options.setdefault("draws", 500)
    return fm.drift(before, *after, taxonomy=taxonomy, cached=False, **options)


def metric(result: DriftResult, name: str) -> MetricCell:
    return next(cell for cell in result.metrics if cell.id == name)


def capability(result: DriftResult, name: str) -> Cell:
    return next(cell for cell in result.capabilities if cell.id == name)


def both(**tasks: Any) -> tuple[Run, Run]:
    """Two runs: of each task the scores before and after."""
    return tuple(  # type: ignore[return-value]
        scored(name, {task: {"acc": list(sides[place])} for task, sides in tasks.items()})
        for place, name in enumerate(("old", "new"))
    )


def test_flips_and_exact_test() -> None:
    cell = metric(drift(*both(sums=SUMS)), "maths.sums")
    before, after = SUMS
    lost = int(((before == 1) & (after == 0)).sum())
    gained = int(((before == 0) & (after == 1)).sum())
    assert (cell.forgotten, cell.gained, cell.n) == (lost, gained, 300)
    assert cell.mcnemar_p == pytest.approx(binomtest(lost, lost + gained).pvalue)
    assert cell.points == pytest.approx(100 * (after.mean() - before.mean()))
    points = (cell.points_low or 0.0, cell.points or 0.0, cell.points_high or 0.0)
    assert points[0] < points[1] < points[2] < 0
    assert cell.relative == pytest.approx(100 * (after.mean() / before.mean() - 1))


def test_right_and_wrong_answers_have_the_verdict_of_compare() -> None:
    old, new = both(sums=SUMS)
    cell = metric(drift(old, new), "maths.sums")
    (task,) = fm.compare(old, new).result.tasks
    assert cell.verdict == task.verdict == "lost"
    assert cell.lost_at_least == pytest.approx(task.loss.low)
    assert cell.lost_at_most == pytest.approx(task.loss.high)
    assert metric(drift(old, new), "style.words").verdict is None


def test_endless_answers_are_counted_and_told() -> None:
    """Two of 150 answers are 40 times as long: the typical answer is as before."""
    words = RNG.lognormal(5, 0.3, 150).round() + 1
    long = np.where(np.arange(150) < 2, 40 * words, words)
    old, new = (scored(name, {"chat": {"words": list(side), "emoji": [0.0] * 150}})
                for name, side in (("old", words), ("new", long)))  # fmt: skip
    result = drift(old, new)
    cell = metric(result, "style.words")
    assert cell.value == pytest.approx(2 / 150 * np.log(40), rel=0.01)
    assert cell.relative is not None
    assert cell.relative > 30
    assert (cell.extreme_before, cell.extreme_after) == (0, 2)
    assert "extreme" in {one.code for one in result.cautions}


def test_nothing_is_paired_by_position() -> None:
    old, new = (rows_of({"sums": {"acc": list(side)}}) for side in SUMS)
    straight = drift(run_of(old, "old"), run_of(new, "new"))
    mixed = [new[place] for place in np.random.default_rng(1).permutation(len(new))]
    shuffled = drift(run_of(old, "old"), run_of(mixed, "new"))
    assert shuffled.to_json() == straight.to_json()


def test_averages_of_levels() -> None:
    old, new = both(sums=SUMS, facts=FACTS)
    result = drift(old, new)
    values = [metric(result, name).value for name in ("maths.sums", "knowledge.facts")]
    can = next(cell for cell in result.groups if cell.id == "CAN")
    assert None not in values
    assert can.value == pytest.approx(sum(v for v in values if v is not None) / 2)
    assert can.n == 500
    assert str(can.coverage) == "2 of 3"
    qs = false_discovery_control(
        [cell.p for cell in result.capabilities if cell.p is not None], method="bh"
    )
    assert [cell.q for cell in result.capabilities if cell.q is not None] == pytest.approx(qs)


def test_bug_02_no_data_is_never_a_number() -> None:
    result = drift(*both(sums=SUMS))
    cells: list[Cell | MetricCell] = [*result.capabilities, *result.groups, *result.metrics]
    for cell in cells:
        has = cell.id in {"maths", "maths.sums", "CAN"}
        assert (cell.value is not None) == has, cell.id
        assert (cell.note is None) == has, cell.id
        if not has:
            assert (cell.low, cell.high, cell.std, cell.p) == (None, None, None, None)
    assert capability(result, "liked").note == "no data: its task is in neither run"
    data = json.loads(result.to_json())
    assert [c["value"] for c in data["capabilities"]].count(0.0) == 0


def test_bug_02_a_task_that_failed_on_one_side_is_not_a_loss() -> None:
    old = scored("old", {"sums": {"acc": SUMS[0]}, "facts": {"acc": [1.0, 0.0] * 50}})
    new = scored("new", {"sums": {"acc": SUMS[1]}, "facts": {"acc": [None] * 100}})
    cell = metric(drift(old, new), "knowledge.facts")
    assert (cell.value, cell.n) == (None, 0)
    assert cell.note == "no item has a score on both sides"


def test_items_without_a_score_are_left_out_of_both_sides() -> None:
    new = [None if place < 50 else score for place, score in enumerate(SUMS[1])]
    old = scored("old", {"sums": {"acc": list(SUMS[0])}})
    cell = metric(drift(old, scored("new", {"sums": {"acc": new}})), "maths.sums")
    assert cell.n == 250
    assert cell.before == pytest.approx(SUMS[0][50:].mean())


def test_repeats_of_an_item_stay_together() -> None:
    rows = [
        [row("sums", item, "acc", score, repeat=repeat) for item in range(2) for repeat, score in
         enumerate(scores[item])]
        for scores in ([(1, 1), (1, 0)], [(0, 1, 0, 0), (1, 1, 1, 1)])
    ]  # fmt: skip
    cell = metric(drift(run_of(rows[0], "old"), run_of(rows[1], "new")), "maths.sums")
    assert (cell.n, cell.before, cell.after) == (2, 0.75, 0.625)
    assert (cell.forgotten, cell.gained) == (0.75, 0.5)
    assert cell.mcnemar_p is None


def test_strict_and_lenient_tell_form_from_ability() -> None:
    right = list(SUMS[0])
    formless = [score if item % 2 else 0.0 for item, score in enumerate(right)]
    old = scored("old", {"sums": {"acc": right, "acc_strict": right}})
    new = scored("new", {"sums": {"acc": right, "acc_strict": formless}})
    cell = metric(drift(old, new), "maths.sums")
    assert cell.value == 0.0
    assert cell.form is not None
    lost = 100 * (np.mean(formless) - np.mean(right))
    assert cell.form.points == pytest.approx(lost)
    assert cell.form.high is not None
    assert cell.form.high < 0


def test_bug_27_invariance_is_agreement_with_the_paraphrase() -> None:
    def asked(task: str, answers: str) -> list[dict[str, Any]]:
        gold = "aaaaaa"
        return [
            row(task, item, "acc", float(said == right), answer=said)
            for item, (said, right) in enumerate(zip(answers, gold, strict=True))
        ]

    # Right twice, wrong in the same way twice, wrong in different ways, right only once: 3 agree.
    old = run_of(asked("facts", "aabbca") + asked("facts.again", "aabcab"), "old")
    new = run_of(asked("facts", "aabbca") + asked("facts.again", "aabbca"), "new")
    cell = metric(drift(old, new), "same.facts")
    assert (cell.before, cell.after) == (0.5, 1.0)
    assert (cell.forgotten, cell.gained) == (0.0, 3.0)


def test_paraphrases_are_told_by_id_and_absent_without_the_original() -> None:
    old = scored("old", {"facts.again": {"acc": [1.0, 0.0]}})
    assert metric(drift(old, old), "same.facts").value is None


def test_two_sided_style() -> None:
    words = RNG.lognormal(5, 0.5, 150).round() + 1
    old = scored("old", {"chat": {"words": list(words), "emoji": [1.0, 0.0, 0.0] * 50}})
    new = scored("new", {"chat": {"words": list(words * 2), "emoji": [0.0, 1.0, 0.0] * 50}})
    result = drift(old, new)
    length, emoji = metric(result, "style.words"), metric(result, "style.emoji")
    assert length.value == pytest.approx(np.mean(np.log1p(2 * words) - np.log1p(words)))
    assert (length.points_low, length.points_high) == (None, None)
    assert length.distance is not None
    assert length.distance.value == pytest.approx(np.log(2), rel=0.05)
    assert length.distance.p < 0.01
    assert (emoji.forgotten, emoji.gained, emoji.value) == (50.0, 50.0, 0.0)
    style = capability(result, "style")
    assert style.direction == "more"
    assert style.size is not None
    assert style.size > 0.4


def test_a_cell_is_withheld_if_the_judge_failed_too_often() -> None:
    def rated(failures: int) -> Run:
        rows = [row("chat", item, "rating", 7.0) for item in range(200)]
        for each in rows[:failures]:
            each |= {"score": None, "outcome": "error"}
        return run_of(rows, "m")

    assert metric(drift(rated(2), rated(0)), "liked.chat").n == 198
    cell = metric(drift(rated(0), rated(3)), "liked.chat")
    assert cell.value is None
    assert cell.note == "withheld: the judge failed on 1.5 % of answers"


def test_bug_04_a_metric_below_chance_is_said_first() -> None:
    few = [1.0] * 20 + [0.0] * 180
    old, new = both(facts=(few, few))
    codes = {caution.code for caution in drift(old, new).cautions}
    assert "below_chance" in codes


def test_bug_18_unmatched_items_are_said() -> None:
    old = scored("old", {"sums": {"acc": SUMS[0]}})
    new = scored("new", {"sums": {"acc": SUMS[1][:250]}, "poems": {"acc": [1.0]}})
    said = {caution.code: caution.message for caution in drift(old, new).cautions}
    assert "250 of 300 items before and 250 after" in said["unpaired"]
    assert "poems" in said["unknown_tasks"]


def test_other_cautions() -> None:
    failing = [
        row("sums", item, "acc", 0.0 if item < 30 else 1.0, outcome="no_answer" if item < 30 else
            "correct")
        for item in range(300)
    ]  # fmt: skip
    fine = [row("sums", item, "acc", 1.0, outcome="correct") for item in range(300)]
    result = drift(run_of(fine, "old"), run_of(failing, "new"))
    assert {caution.code for caution in result.cautions} == {"failures"}
    same = drift(run_of(fine, "old"), run_of(fine, "new"))
    assert {caution.code for caution in same.cautions} == {"constant"}
    high = drift(*both(sums=([1.0] * 299 + [0.0], [0.0] + [1.0] * 299)))
    assert {caution.code for caution in high.cautions} == {"ceiling"}
    short = drift(*both(sums=(SUMS[0][:99], SUMS[1][:99])))
    assert {caution.code for caution in short.cautions} == {"few_items"}


def test_bug_06_noise_of_the_model_before() -> None:
    old, new = both(sums=SUMS, facts=FACTS)
    again = scored("again", {"sums": {"acc": SUMS[0]}, "facts": {"acc": FACTS[1][::-1]}})
    result = drift(old, new, noise=again)
    assert capability(result, "maths").within_noise is False
    assert capability(result, "knowledge").within_noise is True
    assert metric(result, "knowledge.facts").noise is not None
    assert capability(result, "style").within_noise is None


def test_noise_marks_the_deep_dive_too() -> None:
    old, new = both(sums=SUMS, facts=FACTS)
    again = scored("again", {"sums": {"acc": SUMS[0]}, "facts": {"acc": FACTS[1][::-1]}})
    facts = next(each for each in SMALL.metrics if each.id == "knowledge.facts")
    deep = replace(SMALL, deep_dive=(replace(facts, id="knowledge_DD.facts"),))
    result = drift(old, new, taxonomy=deep, deep_dive=True, noise=again)
    (cell,) = result.deep_dive
    counted = metric(result, "knowledge.facts")
    assert (cell.noise, cell.within_noise) == (counted.noise, True)
    with pytest.raises(UsageError, match="--noise has no effect: the published method"):
        drift(old, new, noise=again, aggregator="captrack-relative")


def test_target_tasks_are_in_the_same_table() -> None:
    old, new = both(sums=SUMS, law=([0.0] * 80 + [1.0] * 20, [1.0] * 70 + [0.0] * 30))
    result = drift(old, new, target=["law"])
    target = next(cell for cell in result.groups if cell.id == "TARGET")
    assert target.value is not None
    assert target.value > 0.5
    assert "unknown_tasks" not in {caution.code for caution in result.cautions}


def test_several_models_are_listed_one_after_the_other() -> None:
    old, new = both(sums=SUMS)
    result = drift(old, new, old)
    assert result.models == ("new", "old")
    assert [(cell.model, cell.id) for cell in result.groups] == [
        ("new", "CAN"), ("new", "WILL"), ("old", "CAN"), ("old", "WILL"),
    ]  # fmt: skip
    assert [cell.value for cell in result.groups if cell.model == "old"] == [0.0, None]


def test_two_scorers_of_one_metric_are_refused() -> None:
    rows = rows_of({"sums": {"acc": [1.0, 0.0]}})
    rows += [{**each, "scorer": "other"} for each in rows]
    with pytest.raises(MetricError, match="acc/other, acc/s"):
        drift(run_of(rows, "old"), run_of(rows, "new"))


def test_the_scores_of_ones_own_scorer_count_before_others() -> None:
    rows = rows_of({"sums": {"acc": [1.0, 0.0]}})
    rows += [{**each, "scorer": "number@1", "score": 1.0} for each in rows]
    cell = metric(drift(run_of(rows, "old"), run_of(rows, "new")), "maths.sums")
    assert cell.before == 1.0
    assert cell.scorer == ("acc/number@1", "acc/number@1")


def test_a_taxonomy_that_only_lists_tasks(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'groups = [{ id = "G" }]\n'
        'capabilities = [{ id = "a", group = "G", tasks = ["mmlu:law", "facts"] }]\n'
    )
    tasks = {"lighteval|mmlu:law|0": {"extractive_match": FACTS[0]}, "facts": {"em": FACTS[1]}}
    run = scored("old", tasks)
    result = fm.drift(run, run, taxonomy=path, cached=False, draws=100)
    assert str(result.capabilities[0].coverage) == "2 of 2"
    assert [cell.n for cell in result.metrics] == [200, 200]


def test_a_task_that_is_0_throughout_on_one_side_is_said() -> None:
    old, new = both(sums=(SUMS[0], [0.0] * 300))
    cautions = {caution.code: caution for caution in drift(old, new).cautions}
    assert cautions["zero"].metric == "maths.sums"
    assert "exactly 0 for every item after" in cautions["zero"].message
    assert "zero" not in {caution.code for caution in drift(*both(sums=SUMS)).cautions}


def test_pairs_of_several_bases_are_one_table() -> None:
    old, new = both(sums=SUMS)
    other, newer = (replace(run, name=f"other {run.name}") for run in both(sums=SUMS[::-1]))
    result = drift_pairs(
        [(old, new), (other, ("mine", newer))], taxonomy=SMALL, cached=False, draws=500
    )
    assert (result.models, result.bases) == (("new", "mine"), ("old", "other old"))
    values = [cell.value or 0.0 for cell in result.capabilities if cell.id == "maths"]
    assert values[0] == pytest.approx(-values[1])
    assert "mine (from other old): " in repr(result)
    with pytest.raises(UsageError, match="belongs to one model before"):
        drift_pairs([(old, new), (other, newer)], taxonomy=SMALL, noise=old)


def test_a_chain_says_what_was_undone() -> None:
    runs = [
        scored(name, {"sums": {"acc": list(scores)}})
        for name, scores in (("base", SUMS[0]), ("ift", SUMS[1]), ("dpo", SUMS[0]))
    ]
    result = drift(*runs, chain=True)
    assert result.models == ("ift", "ift → dpo", "dpo")
    assert result.bases == ("base", "ift", "base")
    values = [cell.value or 0.0 for cell in result.capabilities if cell.id == "maths"]
    assert values[0] + values[1] == pytest.approx(values[2])  # effects add up along a chain
    (entry,) = result.recoveries
    assert (entry.id, entry.between, entry.model) == ("maths", "ift", "dpo")
    assert entry.undone == pytest.approx(1.0)
    assert entry.low <= 1.0 <= entry.high
    assert result.ranking is not None
    assert [each.model for each in result.ranking.models] == ["ift", "dpo"]
    assert result.ranking.is_certain
