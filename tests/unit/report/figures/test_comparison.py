"""Figures of comparisons: numbers known by hand appear in the marks that Vega draws."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import vl_convert

from drawings import CHAIN, MANY, PAIR, Groups, axis_labels, figure, marks, report
from forgetmap.comparison.result import PathResult
from forgetmap.report.figures import look
from forgetmap.report.figures.comparison.flow import moves_of
from forgetmap.report.figures.data import rows_as_records
from forgetmap.report.figures.registry import all_figures
from forgetmap.report.figures.svg import shortened
from forgetmap.report.payloads.schema import Payload

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["');alert(1)//", "datum.x", '"]', "</script><script>alert(1)</script>", "__proto__"]


@cache
def pair() -> Payload:
    return report(PAIR)


@cache
def many() -> Payload:
    return report(MANY)


@cache
def chain() -> Payload:
    return report(CHAIN, chain=True)


def names(payload: Payload) -> list[str]:
    return [each.name for each in all_figures(payload)]


def test_which_figures_there_are_depends_on_what_was_compared() -> None:
    common = {"cells", "categories", "directions", "conventional"}
    assert set(names(pair())) == common
    assert set(names(many())) == common | {"heat_forgetting", "heat_backward_transfer", "radar"}
    assert set(names(chain())) == common | {
        "heat_forgetting", "heat_backward_transfer", "flow", "histories",
    }  # fmt: skip


def test_reasons_are_drawn_where_they_were_recorded() -> None:
    payload = report({"maths": {"10": 3, "11": 2}, "law": {"10": 2, "01": 1}}, ended="refused")
    bars = {_said(each)["group"]: _said(each) for each in marks(payload, "reasons", "rect")}
    assert {name: (bar["reason"], bar["results"]) for name, bar in bars.items()} == {
        "maths": ("refused", "3"),
        "law": ("refused", "2"),
    }
    assert figure(payload, "reasons").alt == "Of 5 forgotten results: refused 5."


def test_without_a_single_scored_pair_no_cells_are_drawn() -> None:
    payload = pair()
    first = payload.comparisons[0]
    nothing = replace(first.total, n=0, n00=0, n01=0, n10=0, n11=0)
    empty = replace(first, total=nothing)
    assert "cells" not in names(payload.model_copy(update={"comparisons": [empty]}))


def test_records_are_the_rows_and_no_number_is_null() -> None:
    rows = pair().rows
    records = rows_as_records(rows.model_copy(update={"low": [math.nan, *rows.low[1:]]}))
    assert records[0]["low"] is None
    assert [each["value"] for each in records] == rows.value
    assert [each["group"] for each in records] == rows.group


def test_the_forest_has_a_line_per_category_sorted_by_proven_loss() -> None:
    groups = {
        "proven": {"11": 400, "10": 50, "00": 50},  # 10% forgotten, none gained
        "more": {"11": 20, "10": 8, "01": 7, "00": 5},  # 20% forgotten, nothing proven
        "most": {"11": 4, "10": 2, "01": 2, "00": 0},  # 25% forgotten, nothing proven
    }
    assert axis_labels(report(groups), "categories") == ["all items", "proven", "most", "more"]


def test_points_of_the_forest_stand_where_their_values_are() -> None:
    lost = {"all items": 35 / 250, "maths": 0.2, "art": 0.2, "law": 0.05}
    drawn = [
        each for each in marks(pair(), "categories", "symbol") if each["fill"] == look.FORGOTTEN
    ]
    found = {_said(each)["label"]: each["x"] for each in drawn}
    assert found.keys() == lost.keys()
    scale = (found["maths"] - found["law"]) / (lost["maths"] - lost["law"])
    for name, value in lost.items():
        assert found[name] - found["law"] == pytest.approx(scale * (value - lost["law"]), abs=0.01)


def _said(mark: dict[str, Any]) -> dict[str, str]:
    return dict(part.split(": ", 1) for part in mark["description"].split("; "))


def test_switches_change_what_is_drawn() -> None:
    # of what was right before: maths 20/60, art 10/40, law 5/75
    drawn = marks(pair(), "categories", "symbol", estimator="flips", scale="right_before")
    shares = {
        _said(each)["label"]: float(_said(each)["value"].rstrip("%")) / 100
        for each in drawn
        if each["fill"] == look.FORGOTTEN
    }
    assert shares == pytest.approx(
        {"all items": 35 / 175, "maths": 20 / 60, "art": 10 / 40, "law": 5 / 75}, abs=1e-6
    )


@pytest.mark.parametrize("estimator", ["flips", "latent"])
def test_the_wide_bars_of_the_forest_are_what_is_proven(estimator: str) -> None:
    """Whatever estimate the points show."""
    payload = report(PAIR)
    drawn = marks(payload, "categories", "rule", estimator=estimator)
    bars = [each for each in drawn if each.get("strokeWidth") == 9]
    assert len(bars) == 8
    found = {
        (said["group"], said["direction"]): (said["at least"], said["at most"])
        for said in map(_said, bars)
    }
    total = payload.comparisons[0].total
    for name, limits in (("forgetting", total.loss), ("backward_transfer", total.gain)):
        low, high = max(limits.low or 0.0, 0.0), limits.high or 0.0
        assert found["all items", name] == (f"{low:.1%}", f"{high:.1%}")


def test_of_very_many_groups_the_worst_are_drawn_and_the_rest_is_told() -> None:
    groups = {f"g{place:02}": {"10": place + 1, "11": 50 - place} for place in range(43)}
    payload = report(groups)
    labels = axis_labels(payload, "categories")
    assert labels == ["all items", *(f"g{place:02}" for place in range(42, 2, -1))]
    assert "The 40 with the largest losses are drawn, 3 more are not." in (
        figure(payload, "categories").caption
    )


def test_areas_of_the_mosaic_are_shares() -> None:
    shares = {"kept": 140 / 250, "forgotten": 35 / 250, "gained": 25 / 250, "never right": 50 / 250}
    drawn = {_said(each)["cell"]: each for each in marks(pair(), "cells", "rect")}
    for name, share in shares.items():
        area = drawn[name]["width"] * drawn[name]["height"]
        assert area / (240 * 200) == pytest.approx(share, abs=0.02)  # less the seams
    assert figure(pair(), "cells").table["count"] == [140, 35, 25, 50]


def test_averages_hide_what_was_lost_in_law() -> None:
    # maths falls 60 -> 50, art 40/50 -> 30/50, law rises; lost are 20%, 20% and 5%
    drawn = {_said(each)["group"]: _said(each) for each in marks(pair(), "conventional", "symbol")}
    assert {name: each["accuracy drop"] for name, each in drawn.items()} == {
        "task of maths": "10%", "task of art": "20%", "task of law": "\N{MINUS SIGN}10%",
    }  # fmt: skip
    assert {name: each["forgotten"] for name, each in drawn.items()} == {
        "task of maths": "20.0%", "task of art": "20.0%", "task of law": "5.0%",
    }  # fmt: skip
    assert figure(pair(), "conventional").alt.startswith("1 of 3 tasks forgot items although")


def test_above_the_diagonal_more_was_forgotten_than_gained() -> None:
    points = {_said(each)["group"]: each for each in marks(pair(), "directions", "symbol")}
    (line,) = (each for each in marks(pair(), "directions", "rule") if "strokeDash" in each)
    slope = (line["y2"] - line["y"]) / (line["x2"] - line["x"])

    def above(name: str) -> bool:
        point = points[f"task of {name}"]
        return bool(point["y"] < line["y"] + slope * (point["x"] - line["x"]))

    assert [above(name) for name in ("maths", "law", "art")] == [True, False, True]
    assert figure(pair(), "directions").alt == "2 of 3 tasks forgot more than they gained."


def test_no_data_is_an_empty_cell_of_the_heat_map() -> None:
    drawn = [_said(each) for each in marks(many(), "heat_forgetting", "rect")]
    cells = {(each["model"], each["group"]): each["forgotten"] for each in drawn}
    assert cells == {
        ("after 1", "maths"): "20.0%", ("after 1", "law"): "5.0%", ("after 1", "art"): "20.0%",
        ("after 1", "music"): "0.0%", ("after 2", "maths"): "0.0%", ("after 2", "art"): "20.0%",
        ("after 2", "music"): "33.3%",
    }  # fmt: skip


def test_numbers_on_the_heat_map_can_be_read() -> None:
    for name in ("heat_forgetting", "heat_backward_transfer"):
        cells, texts = marks(many(), name, "rect"), marks(many(), name, "text")
        assert len(cells) == len(texts)
        for cell, text in zip(cells, texts, strict=True):
            assert _contrast(_rgb(cell["fill"]), _rgb(text["fill"])) >= 4.5


def _rgb(colour: str) -> list[float]:
    named = {"white": "#ffffff", "black": "#000000"}
    colour = named.get(colour, colour)
    if colour.startswith("#"):
        return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return [float(part) for part in re.findall(r"[\d.]+", colour)]


def _contrast(one: list[float], other: list[float]) -> float:
    def light(rgb: list[float]) -> float:
        parts = [part / 255 for part in rgb]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_words_can_be_read_on_both_grounds() -> None:
    for theme in ("light", "dark"):
        assert _contrast(_rgb(look.TEXT[theme]), _rgb(look.GROUND[theme])) >= 4.5


def test_a_category_without_data_is_a_gap_in_the_radar() -> None:
    # spokes: art, law, maths, music; the second model has no law: its ring lacks two sides
    points = [each for each in marks(many(), "radar", "symbol") if each["size"]]
    assert len(points) == 2 * (4 + 3)
    sides = [each for each in marks(many(), "radar", "rule") if each.get("strokeWidth") == 1.8]
    assert len(sides) == 2 * (4 + 2)


def test_the_radar_holds_every_value() -> None:
    centre = 120
    for point in marks(many(), "radar", "symbol"):
        assert math.hypot(point["x"] - centre, point["y"] - centre) <= 120.01


def test_moves_between_stages_are_counted_by_hand() -> None:
    paths = [
        PathResult(path="101", n=3, kind="regained"), PathResult(path="001", n=2, kind="gained"),
        PathResult(path="110", n=4, kind="forgotten"), PathResult(path="000", n=1, kind="never"),
    ]  # fmt: skip
    assert [tuple(each) for each in moves_of(paths)] == [
        (0, "stays right", 4), (0, "forgotten", 3), (0, "stays wrong", 3),
        (1, "forgotten", 4), (1, "regained", 3), (1, "gained", 2), (1, "stays wrong", 1),
    ]  # fmt: skip


def _words(svg: str | None) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg or "").iter() if each.text]


def test_the_flow_tells_what_moves_between_stages() -> None:
    drawn = figure(chain(), "flow")
    rows = list(zip(*(drawn.table[name] for name in ("from", "what", "results")), strict=True))
    # 0 -> 1: 1000 and 1010 lose; 0111 and 0101 gain. 1 -> 2: 1101 and 0101 lose, 1010 regains.
    assert ("before", "forgotten", 9) in rows
    assert ("before", "gained", 8) in rows
    assert ("after 1", "forgotten", 9) in rows
    assert ("after 1", "regained", 8) in rows
    assert ("after 2", "regained", 9) in rows  # 1101 and 0101
    assert ("after 2", "forgotten", 10) in rows  # 1110 and 1010
    assert "9 forgotten" in _words(drawn.svg)
    assert "53.3% right" in _words(drawn.svg)  # 24 of 45 before


def test_strips_stand_together_by_path_with_the_count_of_all() -> None:
    payload = report({"maths": {"111": 60, "101": 500, "010": 3, "000": 5}}, chain=True)
    drawn = figure(payload, "histories")
    words = _words(drawn.svg)
    assert "500 regained" in words
    assert "60 kept" in words
    strips = [each for each in words if ": right, " in each or ": wrong, " in each]
    assert 100 < len(strips) <= 144
    assert sum(each.endswith("right, wrong, right") for each in strips) < 200
    assert f"{len(strips)} of 568 items are drawn" in drawn.caption


def test_long_names_keep_what_tells_them_apart() -> None:
    assert shortened("checkpoint-1000", 8) == "chec…000"
    assert shortened("base", 4) == "base"


def hostile(groups: Groups) -> Groups:
    """The same with other names."""
    return dict(zip(HOSTILE, groups.values(), strict=False))


def skeleton(value: Any) -> Any:
    """A spec without its data and its words for screen readers."""
    if isinstance(value, dict):
        inner = value.items()
        return {key: skeleton(each) for key, each in inner if key not in {"values", "description"}}
    return [skeleton(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("groups", "is_chain"), [(PAIR, False), (MANY, False), (CHAIN, True)])
def test_names_are_data_and_nothing_else_in_a_spec(groups: Groups, is_chain: bool) -> None:
    innocent = all_figures(report(groups, chain=is_chain))
    guilty = all_figures(report(hostile(groups), chain=is_chain))
    assert [each.name for each in guilty] == [each.name for each in innocent]
    for one, other in zip(guilty, innocent, strict=True):
        assert skeleton(one.spec) == skeleton(other.spec)


def test_hostile_names_are_drawn_as_they_are() -> None:
    payload = report({name: {"10": place + 1, "11": 9} for place, name in enumerate(HOSTILE)})
    labels = axis_labels(payload, "categories")
    assert {each.strip() for each in labels} == {"all items", *(each.strip() for each in HOSTILE)}


def test_own_pictures_hold_hostile_text_as_text_only() -> None:
    payload = chain()
    assert payload.histories is not None
    named = payload.histories.model_copy(
        update={"stages": HOSTILE[:4], "task": ["<script>alert(1)</script>\x1b"] * 45}
    )
    svg = figure(payload.model_copy(update={"histories": named}), "histories").svg or ""
    root = ET.fromstring(svg)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg", "title", "g", "rect", "text", "path",
    }  # fmt: skip
    assert any("<script>alert(1)</script>\ufffd" in word for word in _words(svg))


def test_every_figure_has_words_for_those_who_cannot_see_it() -> None:
    for payload in (pair(), many(), chain()):
        for each in all_figures(payload):
            assert each.alt.endswith(".")
            assert re.search(r"\d", each.alt)
            assert len({len(column) for column in each.table.values()}) == 1


def test_vega_finds_nothing_to_complain_about(capfd: pytest.CaptureFixture[str]) -> None:
    for payload in (pair(), many(), chain()):
        for each in all_figures(payload):
            if each.spec is not None and "params" in each.spec:
                spec = each.spec | {"width": 600, "datasets": {"rows": []}}
                vl_convert.vegalite_to_vega(spec, show_warnings=True)
    assert capfd.readouterr() == ("", "")
