"""A sweep over mixtures of two models with known truth, from runs to report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forgetmap.comparison.api import FanOut
from forgetmap.report.folders import write_sweep
from forgetmap.sweep.api import Sweep, compare_runs
from merged_runs import write_mixtures

WEIGHTS = (0.25, 0.5)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sweep]:
    folder = tmp_path_factory.mktemp("mixed")
    path = write_mixtures(folder / "runs", WEIGHTS)
    found = compare_runs(folder / "runs", ("models/base", "base"), [path], suite="simulated")
    return folder, found


def test_mixing_answers_forgets_in_proportion_and_has_no_benefit(
    mixed: tuple[Path, Sweep],
) -> None:
    (pair,) = mixed[1].result.pairs
    *_, tuned = pair.points
    assert tuned.forgetting.value is not None
    for point in pair.points[1:-1]:
        part = point.weight * tuned.forgetting.value
        truths = ((point.benefit_all, 0.0), (point.retained_all, point.weight),
                  (point.forgetting_all, part))  # fmt: skip
        for each, truth in truths:
            assert each.low is not None
            assert each.high is not None
            assert each.low < truth < each.high
    assert "It is unclear whether it is better than mixing the answers" in pair.best.words


def test_both_parents_are_compared_with_every_merge(mixed: tuple[Path, Sweep]) -> None:
    _, found = mixed
    one, two = found.from_base, found.from_tuned["tuned"]
    assert isinstance(one, FanOut)
    assert isinstance(two, FanOut)
    from_base = {each.after.name: each.result.total for each in one}
    from_tuned = {each.after.name: each.result.total for each in two}
    assert set(from_base) == {"tuned", "mixed-0.25", "mixed-0.5"}
    assert set(from_tuned) == {"base", "mixed-0.25", "mixed-0.5"}
    for point in found.result.pairs[0].points[1:-1]:
        assert point.forgetting.value == pytest.approx(from_base[point.run].forgetting.value)
        assert point.lost_from_tuned.value == pytest.approx(from_tuned[point.run].forgetting.value)
        whole = point.groups[0]
        assert whole.loss == from_base[point.run].loss
        assert whole.verdict == from_base[point.run].verdict
    assert {each.result.rule.chosen_among for each in one} == {2}


def test_everything_is_written(mixed: tuple[Path, Sweep]) -> None:
    folder, found = mixed
    write_sweep(found, folder)
    written = json.loads((folder / "sweep.json").read_text())
    assert written == json.loads(found.to_json())
    assert (folder / "compared" / "from-base" / "comparison.json").is_file()
    assert (folder / "compared" / "from-tuned" / "comparison.json").is_file()
    told = (folder / "report.md").read_text()
    assert "# Merging base with tuned" in told
    assert "| linear | 0.5 |" in told
    page = (folder / "report.html").read_text()
    assert "<h1>Best merge" in page
    assert page.count("<tr class=best>") == 1
    assert "http://" not in page.split("<script")[0]
