"""The payload of a drift report: numbers known by hand, and no number without data."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from jsonschema import Draft202012Validator

import forgetmap as fm
from drifting_runs import ITEMS, deep_chain, drifted
from forgetmap.report.figures.figure import Figure
from forgetmap.report.figures.registry import all_figures, records_of
from forgetmap.report.markdown import as_markdown
from forgetmap.report.payloads.drift import make_drift_payload
from forgetmap.report.payloads.drift_rows import make_drift_rows
from forgetmap.report.payloads.schema import Capabilities, Payload
from forgetmap.report.static import draw

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "payload.schema.json"


@cache
def report(models: int = 2) -> Payload:
    return make_drift_payload(drifted(models))


def section(payload: Payload) -> Capabilities:
    assert payload.capabilities is not None
    return payload.capabilities


def rows(payload: Payload, **wanted: Any) -> list[dict[str, Any]]:
    return [
        row
        for row in records_of(payload)
        if all(row[name] == value for name, value in wanted.items())
    ]


def one(payload: Payload, **wanted: Any) -> dict[str, Any]:
    (row,) = rows(payload, **wanted)
    return row


def figure(payload: Payload, name: str) -> Figure:
    return next(each for each in all_figures(payload) if each.name == name)


def test_the_sentence_says_what_how_far_and_how_sure() -> None:
    first = section(report()).headlines[1]
    assert first.startswith("model-2: Mathematics [maths] drifted most: it got worse (effect")
    assert "95% interval" in first
    assert "3 of 4 capabilities and 4 of 5 metrics have data" in section(report()).leads[1]


def test_points_are_those_of_the_metric() -> None:
    row = one(report(), comparison=1, level="metric", id="maths.sums", scale="points")
    assert row["value"] == pytest.approx(-100 * 48 / ITEMS)
    assert row["low"] < row["value"] < row["high"] < 0
    assert row["shown"] == "\N{MINUS SIGN}40.0*"
    above = one(report(), comparison=1, level="capability", id="maths", scale="points")
    assert (above["value"], above["low"]) == (row["value"], row["low"])


def test_what_has_no_data_is_no_number() -> None:
    empty = rows(report(), level="capability", id="tools")
    assert len(empty) == 2 * 3
    for row in empty:
        assert (row["value"], row["shade"], row["shown"]) == (None, None, "no data")
        assert row["state"] == "none"
    off = one(report(), comparison=0, level="metric", id="style.words", scale="points")
    assert (off["value"], off["shown"], off["state"]) == (None, "n/a", "off")
    (calls,) = [each for each in section(report()).withheld if "tools.calls" in each.ids]
    assert calls.note == "no data: its task is in neither run"
    assert calls.models == ["model-1", "model-2"]


def test_less_is_better_is_turned_on_every_scale() -> None:
    result = drifted(1).result
    turned = replace(
        result, metrics=tuple(replace(cell, polarity="down") for cell in result.metrics)
    )
    for scale in ("points", "relative"):
        for place, sign in ((result, 1), (turned, -1)):
            found = make_drift_rows(place)[0]
            at = next(
                number
                for number, id_ in enumerate(found.id)
                if id_ == "maths.sums" and found.scale[number] == scale
            )
            assert sign * (found.value[at] or 0.0) < 0
            low, high = found.low[at], found.high[at]
            assert (low is None and scale == "relative") or (low or 0.0) < (high or 0.0)


def test_items_of_every_metric() -> None:
    first, second = report().items
    changes = Counter(zip(second.columns["metric"], second.columns["transition"], strict=True))
    assert changes["maths.sums", "forgotten"] == 48
    assert changes["maths.sums", "gained"] == 0
    assert changes["style.words", "less"] == 2 * 20
    assert first.total["forgotten"] == 24 + 24
    place = second.columns["metric"].index("maths.sums")
    assert second.columns["capability"][place] == "maths"
    assert second.columns["response_after"][place] == "The answer to sums 12 is 0. "


def test_every_metric_has_its_share_of_few_items() -> None:
    few = make_drift_payload(drifted(1), limit=12)
    (items,) = few.items
    counts = Counter(items.columns["metric"])
    assert sum(counts.values()) <= 12 + 2
    assert set(counts) == {"maths.sums", "facts.facts", "style.words", "target.law"}
    assert items.total["forgotten"] == 48


def test_nothing_that_was_asked_or_said_leaves_the_house() -> None:
    bare = make_drift_payload(drifted(1), texts=False)
    assert bare.redacted
    assert (
        not {"question", "response_before", "answer_after", "gold"} & bare.items[0].columns.keys()
    )
    black = make_drift_payload(drifted(1), redact=["answer"])
    assert "answer" not in str(black.items[0].columns["response_before"])


@pytest.mark.parametrize("models", [1, 2])
def test_the_schema_holds(models: int) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(json.loads(report(models).to_json()))


def test_names_of_models_are_whole_in_figures() -> None:
    names = [f"a-model-with-a-name-of-some-length-that-ends-in-{end}" for end in ("dpo", "ift")]
    result = drifted(2).result
    renamed = dict(zip(result.models, names, strict=True))

    def called(cells: Any) -> Any:
        return tuple(replace(cell, model=renamed[cell.model]) for cell in cells)

    result = replace(
        result,
        models=tuple(names),
        groups=called(result.groups),
        capabilities=called(result.capabilities),
        metrics=called(result.metrics),
        cautions=(),
    )
    payload = make_drift_payload(replace(drifted(2), result=result, runs=()))
    for which in ("drift", "drift_of_models"):
        picture = draw(figure(payload, which), records_of(payload), "light")
        assert all(f">{name}</text>" in picture for name in names), which
    # Leaning, the last would end beyond the right edge.
    across = draw(figure(payload, "drift"), records_of(payload), "light")
    assert len(re.findall(r"rotate\((?:-90|270)\)", across)) == len(names)


@pytest.mark.parametrize("models", [1, 2])
def test_every_figure_is_drawn(models: int) -> None:
    payload = report(models)
    records = records_of(payload)
    names = [each.name for each in all_figures(payload)]
    assert names[0] == ("drift_of_model" if models == 1 else "drift")
    assert {"plasticity", "drift_of_metrics", "form_and_ability"} <= set(names)
    assert ("drift_of_models" in names) == ("drift" in names) == (models > 1)
    assert ("drift_metrics" in names) != ("drift_each_metric" in names)
    for each in all_figures(payload):
        for theme in ("light", "dark"):
            assert "<path" in draw(each, records, theme)
        assert each.spec is not None
        vl_convert.vegalite_to_vega(each.spec)


@pytest.mark.parametrize("models", [1, 2])
def test_a_deep_dive_is_drawn_apart_and_counts_nowhere(models: int) -> None:
    payload = make_drift_payload(deep_chain(models))
    plain = {each.name for each in all_figures(report(models))}
    named = {each.name for each in all_figures(payload)}
    overview = "drift_each_deep_dive" if models == 1 else "drift_deep_dive"
    assert named - plain == {overview, "drift_of_deep_dive"}
    drawn = figure(payload, overview)
    assert set(drawn.table["id"]) == {"style_DD.characters"}
    assert "they do not count in any average" in drawn.caption
    picture = draw(drawn, records_of(payload), "light")
    assert "style_DD.characters" in picture
    assert "maths.sums" not in picture
    for other in named - {overview, "drift_of_deep_dive", "form_and_ability"}:
        assert "_DD" not in draw(figure(payload, other), records_of(payload), "light"), other
    steps = one(payload, id="maths_DD.steps", scale="effect", comparison=0)
    assert (steps["level"], steps["capability"], steps["shown"]) == (
        "deep_dive", "maths", "no data",
    )  # fmt: skip


def test_the_heat_map_shows_both_directions_and_no_data() -> None:
    payload = report()
    picture = draw(figure(payload, "drift"), records_of(payload), "light")
    assert "// no data //" in picture
    shown = {row["shown"] for row in rows(payload, level="capability", scale="effect")}
    assert all(each in picture for each in shown - {"no data"})
    states = {row["state"] for row in rows(payload, level="capability", scale="effect")}
    assert {"sure", "none"} <= states
    (learnt,) = rows(payload, level="group", id="TARGET", comparison=1, scale="effect")
    (forgotten,) = rows(payload, level="group", id="CAN", comparison=1, scale="effect")
    assert learnt["shade"] > 0 > forgotten["shade"]


def test_within_noise_is_said() -> None:
    payload = make_drift_payload(drifted(1, noise=0))
    floors = {row["id"]: row["noise"] for row in rows(payload, level="metric", scale="effect")}
    assert floors["maths.sums"] is not None
    assert floors["tools.calls"] is None
    alone = make_drift_payload(drifted(1, noise=1))
    state = one(alone, level="capability", id="maths", scale="effect")
    assert (state["state"], state["shown"][-1]) == ("noise", "~")
    assert section(alone).headlines[0].startswith("model-1: no significant drift")


def test_markdown_and_numbers_alone() -> None:
    result = drifted(2).result
    words = as_markdown(result)
    assert "drifted most" in words
    assert "| tools Tool use | no data | no data |" in words
    one_model = as_markdown(drifted(1).result)
    assert "95% interval" in one_model


def test_markdown_says_who_drifted_most_and_what_steps_undid() -> None:
    words = as_markdown(make_drift_payload(deep_chain()))
    assert "**model-1 drifted most (size " in words
    assert "|  | model-1 | model-2 |" in words
    assert "| Probability of being largest | 1.00 | 0.00 |" in words
    assert "**What the step model-1 → model-2 undid**" in words
    assert re.search(r"\| Mathematics \\\[maths\\\] \| .* \| \+100% \|", words)
    assert "- **undone**: " in words
    assert "**Deep dive (not in any average)**" in words


def test_written_as_one_file(tmp_path: Path) -> None:
    path = fm.write_report(drifted(1).result, tmp_path / "drift.html")
    assert "model-1" in path.read_text(encoding="utf-8")
    folder = tmp_path / "figures"
    written = fm.write_figures(report(), folder, "svg")
    assert {path.name for path in written} >= {"drift.svg", "plasticity.svg"}
    assert "drift_of_metrics.svg" not in {path.name for path in written}
