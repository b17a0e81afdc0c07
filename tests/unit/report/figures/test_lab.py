"""Figures of the lab and of watched trainings: what is drawn and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

import lab_results
from forgetmap.report.figures.figure import Figure
from forgetmap.report.figures.lab.labels import _box, _common, place_names
from forgetmap.report.figures.panels import follow_page
from forgetmap.report.figures.registry import all_figures, figures_json
from forgetmap.report.figures.story import both_curves
from forgetmap.report.payloads import LabPayload
from forgetmap.report.payloads.watch import peak_of
from forgetmap.report.static import picture
from forgetmap.results import Estimate

WIDE = Estimate(value=0.4, low=-0.7, high=1.9, method="t of two seeds")
NONE = Estimate.missing("t", "no item was known before")


def results() -> list[LabPayload]:
    return [
        lab_results.lab_result(),
        lab_results.repair_result(),
        lab_results.merge_drift_result(),
        lab_results.watch_history(),
    ]


def figure(payload: LabPayload, name: str) -> Figure:
    return next(each for each in all_figures(payload) if each.name == name)


def test_every_result_has_its_figures() -> None:
    names = [[each.name for each in all_figures(result)] for result in results()]
    assert names[0] == [
        "lab_front_near", "lab_front_far", "lab_differences_near", "lab_differences_far",
        "lab_forgotten", "lab_gained", "lab_runs_near", "lab_runs_far", "lab_rates",
        "lab_strengths", "forgetting_against_divergence", "predicted_against_measured",
        "forgetting_against_reverse_kl_new", "forgetting_against_kl_old",
        "forgetting_against_kl_new",
    ]  # fmt: skip
    assert names[1:] == [
        ["repair_recovered", "repair_score"],
        ["merge_drift_recovered", "merge_drift_paths"],
        ["watch_forgotten", "watch_categories", "watch_accuracy", "watch_kl"],
    ]


@pytest.mark.parametrize("index", range(1, 4))
def test_pages_take_them_and_files_can_be_drawn(index: int) -> None:
    payload = results()[index]
    assert figures_json(payload).startswith("[")
    last = all_figures(payload)[-1]
    assert picture(last, [], "svg", "dark").startswith(b"<svg")


def domains(part: Any) -> Iterator[list[float]]:
    """Ends of every axis of shares in a spec."""
    if isinstance(part, dict):
        axis, scale = part.get("axis"), part.get("scale")
        if isinstance(axis, dict) and axis.get("format") == "~%" and isinstance(scale, dict):
            yield from ([scale["domain"]] if "domain" in scale else [])
        for value in part.values():
            yield from domains(value)
    elif isinstance(part, list):
        for value in part:
            yield from domains(value)


def wide_results() -> list[LabPayload]:
    lab = lab_results.lab_result()
    wide = {"lost_near": WIDE, "lost_far": WIDE, "score": WIDE}
    methods = [method.model_copy(update=wide) for method in lab.methods]
    repair = lab_results.repair_result()
    summaries = [
        summary.model_copy(update={"recovered_targeted": WIDE, "score": WIDE})
        for summary in repair.summaries
    ]
    merges = lab_results.merge_drift_result()
    return [
        lab.model_copy(update={"methods": methods, "bridge": None}),
        repair.model_copy(update={"summaries": summaries}),
        merges.model_copy(update={"small": WIDE}),
        lab_results.watch_history(most=1.0),
    ]


@pytest.mark.parametrize("index", range(4))
def test_no_share_outside_0_and_100_percent_is_on_an_axis(index: int) -> None:
    for each in all_figures(wide_results()[index]):
        spec = each.spec or {}
        ends = list(domains(spec))
        assert all(0 <= low < high <= 1 or each.name == "merge_drift_recovered"
                   for low, high in ends), each.name  # fmt: skip
        if "differences" in each.name:
            continue
        values = [
            row[name]
            for row in spec["data"]["values"]
            for name in ("value", "low", "high")
            if row.get(name) is not None and each.name != "watch_kl"
        ]
        assert all(0 <= value <= 1 for value in values), each.name


def test_a_single_seed_without_intervals_is_drawn() -> None:
    lab = lab_results.lab_result(["sft", "replay"])
    alone = Estimate(value=0.2, method="one seed")
    update = {"lost_near": alone, "lost_far": NONE, "differences": []}
    methods = [method.model_copy(update=update) for method in lab.methods]
    payload = lab.model_copy(update={"methods": methods})
    names = [each.name for each in all_figures(payload)]
    assert "lab_front_near" in names
    assert "lab_front_far" not in names
    assert figures_json(payload)


def test_names_do_not_hide_each_other() -> None:
    points = [(100.0, 100.0), (112.0, 104.0), (104.0, 118.0), (120.0, 96.0)]
    names = ["forward KL", "reverse KL", "replay", "1->0 penalty"]
    places = place_names(points, names, 440, 340)
    boxes = [
        _box(x, y, name, place) for (x, y), name, place in zip(points, names, places, strict=True)
    ]
    assert all(not _common(one, other) for one, other in combinations(boxes, 2))


def test_panels_follow_the_page() -> None:
    spec = figure(lab_results.merge_drift_result(), "merge_drift_paths").spec or {}
    vega = {"signals": [{"name": "child_width", "value": 1}], "layout": {"columns": 3}}
    followed = follow_page(spec, vega)
    assert followed["layout"]["columns"] == {"signal": "panel_columns"}
    assert [signal["name"] for signal in followed["signals"]] == ["child_width", "panel_columns"]


def test_a_look_that_is_missing_breaks_the_curve() -> None:
    history = lab_results.watch_history()
    drawn = [figure(history, "watch_forgotten"), both_curves({"plain": history})]
    for each in drawn:
        table = each.table
        at = [step for step, value in zip(table["step"], table["value"], strict=True)
              if value is None]  # fmt: skip
        assert set(at) == {100}  # not 160: there a logger failed, and the look is there


def test_a_peak_is_marked_only_where_damage_reversed() -> None:
    history = lab_results.watch_history()
    peak = peak_of(history)
    assert peak is not None
    assert peak.step == 30
    assert "peak of 32.2% at step 30" in figure(history, "watch_forgotten").alt
    rising = history.model_copy(update={"looks": history.looks[:4]})
    assert peak_of(rising) is None


def test_looks_before_a_return_to_a_checkpoint_are_no_part_of_the_curve() -> None:
    history = lab_results.watch_history()
    left = history.looks[3].model_copy(update={"abandoned": True})
    history = history.model_copy(update={"looks": [*history.looks[:3], left, *history.looks[4:]]})
    drawn = figure(history, "watch_forgotten")
    assert 30 not in drawn.table["step"]
    assert "1 look before a return" in drawn.caption


def test_a_training_without_looks_has_no_figures() -> None:
    assert all_figures(lab_results.watch_history().model_copy(update={"looks": []})) == []
