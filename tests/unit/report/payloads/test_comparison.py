"""The payload: every number from the counts, the right items, and no private data."""

from __future__ import annotations

import base64
import json
import random
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import forgetmap as fm
from command_line import results, write
from forgetmap.comparison import TONES, headline, verdict_words
from forgetmap.comparison.export import write_result
from forgetmap.errors import UnknownFormatError, UnreadableError, UsageError
from forgetmap.records.problem import Problem
from forgetmap.report.payloads.comparison import assemble, make_payload, payload_from_folder
from forgetmap.report.payloads.schema import FLIPS, PROVEN, Payload
from forgetmap.report.payloads.texts import shortened
from forgetmap.results import Notice
from forgetmap.sources import open_run
from reports import column, find, payload_of, two_runs, with_texts

COUNTS = {"a": {"n11": 50, "n10": 10, "n01": 20, "n00": 20}}


def value(payload: Payload, **wanted: Any) -> float | None:
    ((found, _, _),) = find(payload.rows, comparison=0, level="total", **wanted)
    return found


def test_rows_of_open_items_are_shares_of_all_and_of_what_there_was(tmp_path: Path) -> None:
    payload = payload_of(tmp_path, COUNTS)
    expected = {
        ("forgetting", "items"): 10 / 100,
        ("forgetting", "right_before"): 10 / 60,
        ("backward_transfer", "items"): 20 / 100,
        ("backward_transfer", "right_before"): 20 / 40,
    }
    for (direction, scale), share in expected.items():
        found = value(payload, estimator="flips", direction=direction, scale=scale)
        assert found == pytest.approx(share)
    chosen = {"level": "task", "estimator": "flips", "direction": "forgetting"}
    (items,) = find(payload.rows, scale="items", **chosen)
    (right,) = find(payload.rows, scale="right_before", **chosen)
    assert [part * 100 / 60 for part in items if part] == pytest.approx(right)


def test_every_estimator_has_the_same_denominators(tmp_path: Path) -> None:
    payload = payload_of(tmp_path, COUNTS, k=4)
    for name in ("latent", "upper", "published"):
        for direction, there in (("forgetting", 0.6), ("backward_transfer", 0.4)):
            of_items = value(payload, estimator=name, direction=direction, scale="items")
            of_right = value(payload, estimator=name, direction=direction, scale="right_before")
            assert of_items is not None
            assert of_right == pytest.approx(of_items / there)


def test_what_is_proven_has_limits_and_no_value(tmp_path: Path) -> None:
    payload = payload_of(tmp_path, {"a": {"n11": 500, "n10": 60, "n01": 10, "n00": 100}})
    total = payload.comparisons[0].total
    low, high = total.loss.low or 0.0, total.loss.high or 0.0
    assert low > 0 > (total.gain.low or 0.0)
    chosen = {"comparison": 0, "level": "total", "estimator": PROVEN}
    for scale, by in (("items", 1.0), ("right_before", 560 / 670)):
        (found,) = find(payload.rows, direction="forgetting", scale=scale, **chosen)
        assert found[0] is None
        assert found[1:] == pytest.approx((low / by, high / by))
    (gained,) = find(payload.rows, direction="backward_transfer", scale="items", **chosen)
    assert gained == (None, 0.0, total.gain.high)


def test_nothing_right_is_nothing_to_divide_by(tmp_path: Path) -> None:
    payload = payload_of(tmp_path, {"a": {"n01": 5, "n00": 35}})
    assert value(payload, estimator="flips", direction="forgetting", scale="items") == 0
    assert value(payload, estimator="flips", direction="forgetting", scale="right_before") is None
    assert value(
        payload, estimator="flips", direction="backward_transfer", scale="right_before"
    ) == pytest.approx(5 / 40)


def test_estimators_are_the_counts_the_proof_and_what_rests_on_assumptions(tmp_path: Path) -> None:
    found = list(dict.fromkeys(payload_of(tmp_path, COUNTS).rows.estimator))
    assert found == [FLIPS, PROVEN, "latent", "upper", "published"]  # no options, no repeats


def test_every_group_has_the_words_of_its_verdict(tmp_path: Path) -> None:
    counts = {"a": {"n11": 500, "n10": 90, "n00": 60}, "b": {"n11": 9, "n10": 1}}
    payload = payload_of(tmp_path, counts, category="c")
    (shown,), (result,) = payload.verdicts, payload.comparisons
    groups = {"total": [result.total], "category": result.categories, "task": result.tasks}
    for level, own in groups.items():
        assert [(each.words, each.tone) for each in shown[level]] == [  # type: ignore[index]
            (verdict_words(group), TONES[group.verdict]) for group in own
        ]
    assert [each.tone for each in shown["task"]] == ["bad", "open"]


def test_every_level_has_rows_with_its_names(tmp_path: Path) -> None:
    payload = payload_of(tmp_path, COUNTS | {"b": COUNTS["a"]}, category="c", tags="x;y")
    rows = payload.rows
    found = {(level, group) for level, group in zip(rows.level, rows.group, strict=True)}
    assert {name for level, name in found if level == "task"} == {"a", "b"}
    assert {name for level, name in found if level == "tag"} == {"x", "y"}
    assert {level for level, _ in found} == {"total", "macro", "category", "tag", "task"}
    assert len({len(getattr(rows, name)) for name in type(rows).model_fields}) == 1


def test_items_are_the_flips_with_their_texts(tmp_path: Path) -> None:
    payload = make_payload(fm.compare(*with_texts(tmp_path, question="Why?", response="No.")))
    (items,) = payload.items
    assert items.total == {"forgotten": 1, "gained": 0}
    assert items.columns == {
        "task": ["t"], "item": ["i"], "repeat": [0], "transition": ["forgotten"],
        "reason": ["refused"], "gold": ["yes"], "score_before": [1.0], "score_after": [0.0],
        "outcome_after": ["refused"], "answer_before": ["A"], "answer_after": ["A"],
        "question": ["Why?"], "prompt_before": ["Q"], "prompt_after": ["Q"],
        "response_before": ["No."], "response_after": ["No."],
    }  # fmt: skip


def test_a_forgotten_item_without_outcome_is_lost_for_unknown_reasons(tmp_path: Path) -> None:
    payload = payload_of(tmp_path, {"a": {"n11": 1, "n10": 1, "n01": 1}})
    assert column(payload, "transition") == ["forgotten", "gained"]
    assert column(payload, "reason") == ["unknown", None]


def test_where_nothing_flipped_the_columns_are_there_and_empty(tmp_path: Path) -> None:
    (items,) = payload_of(tmp_path, {"a": {"n11": 3}}).items
    assert items.total == {"forgotten": 0, "gained": 0}
    assert items.columns == {"task": [], "item": [], "repeat": [], "transition": []}


@pytest.mark.parametrize("library", [pa.table, pd.DataFrame, pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize("limit", [100, 5])
def test_items_are_the_same_from_every_library(tmp_path: Path, library: Any, limit: int) -> None:
    def rows(scores: list[int]) -> list[dict[str, Any]]:
        more: dict[str, Any] = {
            "k": 2,
            "question": "Q?",
            "options": ["x", "y"],
            "gold": "x",
            "response": "R",
        }
        return [row | {"question": f"{row['item']}?"} for row in results(scores, **more)]

    before, after = rows([1] * 6 + [0] * 6), rows([0] * 6 + [1] * 6)
    paths = write(tmp_path / "a.jsonl", before), write(tmp_path / "b.jsonl", after)
    frames = (
        library({name: [r[name] for r in side] for name in side[0]}) for side in (before, after)
    )
    expected = make_payload(fm.compare(*paths), limit=limit).items[0]
    found = make_payload(fm.compare(*frames), limit=limit).items[0]
    assert found == expected
    assert len(found.columns["item"]) == min(limit, 12)


def test_where_not_all_fit_every_task_has_its_share(tmp_path: Path) -> None:
    counts = {"big": {"n10": 50, "n01": 50}, "mid": {"n10": 6}, "small": {"n10": 2}}
    payload = make_payload(fm.compare(*two_runs(tmp_path, counts)), limit=20)
    tasks = [
        task
        for task, how in zip(column(payload, "task"), column(payload, "transition"), strict=True)
        if how == "forgotten"
    ]
    assert {task: tasks.count(task) for task in counts} == {"big": 4, "mid": 4, "small": 2}
    assert column(payload, "transition").count("gained") == 10
    assert payload.items[0].total == {"forgotten": 58, "gained": 50}


def test_a_text_that_is_too_long_loses_its_middle() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("ab12345yz", 4) == "ab\n[... 5 characters left out ...]\nyz"
    assert shortened("日本" * 9, 12) == "日本\n[... 14 characters left out ...]\n日本"
    assert shortened("日本" * 9, 11) == "日\n[... 16 characters left out ...]\n本"


def test_texts_of_a_report_fit_into_a_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forgetmap.report.payloads.comparison.MAX_PACKED_BYTES", 3_000)
    noise = base64.b64encode(random.Random(1).randbytes(100_000)).decode()
    payload = make_payload(fm.compare(*with_texts(tmp_path, response=noise)))
    rows = [list(row) for row in zip(*payload.items[0].columns.values(), strict=True)]
    assert 1_500 < len(zlib.compress(json.dumps(rows).encode())) < 3_100
    for side in ("before", "after"):
        (text,) = column(payload, f"response_{side}")
        assert text.startswith(noise[:1_000])
        assert text.endswith(noise[-1_000:])
        assert "characters left out" in text
    assert column(payload, "question") == ["What?"]
    assert payload.items[0].shortened == 2


def test_what_packs_well_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forgetmap.report.payloads.comparison.MAX_PACKED_BYTES", 3_000)
    noise = base64.b64encode(random.Random(1).randbytes(1_500)).decode()
    payload = make_payload(fm.compare(*with_texts(tmp_path, prompt=noise, response=noise)))
    assert column(payload, "prompt_after") == column(payload, "response_before") == [noise]
    assert payload.items[0].shortened == 0


SECRET = "ann@example.org"


def test_without_texts_nothing_that_was_asked_or_said_is_left(tmp_path: Path) -> None:
    texts = dict.fromkeys(("question", "gold", "prompt", "response", "answer"), SECRET)
    comparison = fm.compare(*with_texts(tmp_path, **texts))
    assert SECRET in make_payload(comparison).to_json()
    payload = make_payload(comparison, texts=False)
    assert payload.redacted
    assert SECRET not in payload.to_json()
    assert column(payload, "outcome_after") == ["refused"]


def test_redaction_blackens_what_matches_and_keeps_its_length(tmp_path: Path) -> None:
    texts = dict.fromkeys(("question", "gold", "prompt", "response", "answer"), f"to {SECRET}!")
    comparison = fm.compare(*with_texts(tmp_path, **texts))
    payload = make_payload(comparison, redact=[r"(?i)[A-Z.]+@[a-z.]+", "nothing"])
    assert payload.redacted
    assert SECRET not in payload.to_json()
    assert column(payload, "response_after") == [f"to {'█' * len(SECRET)}!"]


@pytest.mark.parametrize("options", [{"texts": False}, {"redact": ["x"]}])
def test_a_report_that_leaves_the_house_names_no_folder_of_it(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    comparison = fm.compare(*two_runs(tmp_path, COUNTS))
    assert str(tmp_path) in make_payload(comparison).to_json()
    assert str(tmp_path) not in make_payload(comparison, **options).to_json()


def test_rows_quoted_from_logs_do_not_leave_the_house(tmp_path: Path) -> None:
    """Warnings give the number of unusable rows, not their content."""
    base, tuned = two_runs(tmp_path, COUNTS)
    run = open_run(base)
    problem = Problem(str(base), 3, "score", f"{SECRET} is no number")
    broken = replace(run, problems=(problem,), problem_count=2)
    payload = make_payload(fm.compare(broken, tuned), texts=False)
    (found,) = payload.comparisons[0].pairing.warnings
    assert found.code == "problems"
    assert "2 problems" in found.message
    assert SECRET not in payload.to_json()


def test_a_contradiction_is_redacted_in_the_verdict_too(tmp_path: Path) -> None:
    comparison = fm.compare(*two_runs(tmp_path, COUNTS))
    result = comparison.result
    notice = Notice("total_contradicted", f"{tmp_path}/base.jsonl of {SECRET} states 3 right")
    pairing = replace(result.pairing, contradictions=[notice])
    total = replace(result.total, verdict="cannot_tell", undecided="contradicted")
    said = headline("tuned", total, pairing)
    changed = replace(result, total=total, pairing=pairing, headline=said)
    assert SECRET in said
    payload = assemble([changed], [], redact=[r"\w+@[\w.]+"])
    assert "states 3 right" in payload.comparisons[0].headline
    assert "states 3 right" in payload.summaries[0].sentence
    assert SECRET not in payload.to_json()
    assert str(tmp_path) not in payload.to_json()


def test_a_pattern_that_is_none_is_refused(tmp_path: Path) -> None:
    comparison = fm.compare(*with_texts(tmp_path))
    with pytest.raises(UsageError, match=r"not a valid regular expression"):
        make_payload(comparison, redact=["(["])


def stages(folder: Path) -> list[Path]:
    scores = {"base": [1, 1, 0, 0], "sft": [1, 0, 1, 0], "rl": [1, 1, 0, 0]}
    return [write(folder / f"{name}.jsonl", results(each)) for name, each in scores.items()]


def test_a_chain_has_its_ends_every_stage_and_histories(tmp_path: Path) -> None:
    first, *later = stages(tmp_path)
    payload = make_payload(fm.chain(first, *later))
    assert (payload.kind, payload.title) == ("chain", "base → sft → rl")
    assert [result.after.name for result in payload.comparisons] == ["rl", "sft", "rl"]
    assert [each.comparison for each in payload.items] == [0, 1]
    assert column(payload, "item", 1) == ["i1", "i2"]
    assert payload.histories is not None
    assert payload.histories.stages == ["base", "sft", "rl"]
    ways = dict(zip(payload.histories.item, payload.histories.path, strict=True))
    assert ways == {"i0": "111", "i1": "101", "i2": "010", "i3": "000"}
    chosen = {"comparison": 0, "estimator": "flips", "direction": "forgetting", "scale": "items"}
    assert [found[0] for found in find(payload.rows, level="stage", **chosen)] == [1 / 4, 1 / 4]
    assert [found[0] for found in find(payload.rows, level="since_first", **chosen)] == [1 / 4, 0]


def test_many_pairs_have_one_comparison_each(tmp_path: Path) -> None:
    payload = make_payload(fm.compare(*stages(tmp_path)))
    assert (payload.kind, payload.title) == ("many", "2 models against base")
    assert [result.after.name for result in payload.comparisons] == ["sft", "rl"]
    assert [each.total["forgotten"] for each in payload.items] == [1, 0]
    assert payload.histories is None


def test_a_payload_survives_being_written_and_read(tmp_path: Path) -> None:
    payload = make_payload(fm.chain(*stages(tmp_path)), title="T", made="2026-01-02")
    assert Payload.model_validate_json(payload.model_dump_json()) == payload


@pytest.mark.parametrize("form", ["pair", "many", "chain"])
def test_a_written_comparison_gives_the_same_report_without_its_texts(
    tmp_path: Path, form: str
) -> None:
    runs = stages(tmp_path)[: 2 if form == "pair" else 3]
    result = fm.chain(*runs) if form == "chain" else fm.compare(*runs)
    write_result(result, tmp_path / "out")
    found, live = payload_from_folder(tmp_path / "out"), make_payload(result)
    assert found.comparisons[0] == live.comparisons[0]
    assert found.items[0] == live.items[0]
    assert (found.kind, found.title, found.histories) == (live.kind, live.title, live.histories)
    if form != "chain":
        assert found == live


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match=r"no comparison\.json"):
        payload_from_folder(tmp_path)
    (tmp_path / "comparison.json").write_text('{"schema_version": 1}')
    with pytest.raises(UnreadableError, match="not a comparison of this version"):
        payload_from_folder(tmp_path)
