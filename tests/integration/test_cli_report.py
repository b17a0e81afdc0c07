"""`forgetmap report`: every format, from runs and from a written comparison."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from command_line import call, results, write
from report_files import payload_in


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    said = {"question": "Who is ann@example.org?", "gold": "Ann", "response": "Ann, of course."}
    scores = {"base": [1, 1, 0, 0], "sft": [1, 0, 1, 0], "rl": [1, 1, 0, 0]}
    return [
        write(
            tmp_path / f"{name}.jsonl",
            [row | said | {"question": f"{row['item']} {said['question']}"} for row in rows],
        )
        for name, rows in ((name, results(each)) for name, each in scores.items())
    ]


@pytest.mark.parametrize(
    ("arguments", "kind"), [((0, 1), "pair"), ((0, 1, 2), "many"), ((0, 1, 2, "--chain"), "chain")]
)
def test_a_page_of_every_kind(
    runs: list[Path], tmp_path: Path, arguments: tuple[Any, ...], kind: str
) -> None:
    out = tmp_path / "report.html"
    given = [runs[each] if isinstance(each, int) else each for each in arguments]
    done = call("report", *given, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"Report: {out}\n"
    payload = payload_in(out.read_text(encoding="utf-8"))
    assert payload["kind"] == kind
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", payload["made"])
    numbers = json.loads(call("compare", *given, "--json").out)
    first = numbers["comparisons"][0] if kind == "many" else numbers
    assert payload["comparisons"][0] == first


def test_options_of_compare_hold(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    call(
        "report", *runs[:2], "--out", out, "--title", "Mine", "--limit", 1, "--estimator", "upper",
        "--correct-at", 0.9,
    )  # fmt: skip
    payload = payload_in(out.read_text(encoding="utf-8"))
    assert payload["title"] == "Mine"
    assert payload["comparisons"][0]["rule"]["estimator"] == "upper"
    assert payload["comparisons"][0]["rule"]["correct_at"] == 0.9
    assert payload["items"][0]["columns"]["item"] == ["i1"]


def test_reports_that_leave_the_house(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    call("report", *runs[:2], "--out", out, "--no-text")
    columns = payload_in(out.read_text(encoding="utf-8"))["items"][0]["columns"]
    assert set(columns) == {
        "task", "item", "repeat", "transition", "reason", "score_before", "score_after"
    }  # fmt: skip
    call(
        "report", *runs[:2], "--out", out, "--overwrite", "--redact", r"\S+@\S+", "--redact", "Ann"
    )
    payload = payload_in(out.read_text(encoding="utf-8"))
    assert payload["redacted"] is True
    assert payload["items"][0]["columns"]["question"][0] == f"i1 Who is {'█' * 16}"
    assert payload["items"][0]["columns"]["response_after"][0] == "███, of course."
    assert "ann@" not in json.dumps(payload).lower()
    assert str(tmp_path) not in json.dumps(payload)


def test_a_written_comparison(runs: list[Path], tmp_path: Path) -> None:
    call("compare", *runs[:2], "--out", tmp_path / "result")
    done = call("report", tmp_path / "result", "--out", tmp_path / "report.html")
    assert done.code == 0
    assert "contains no questions, options, prompts or responses" in done.err
    payload = payload_in((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert payload["items"][0]["columns"]["item"] == ["i1", "i2"]
    assert "question" not in payload["items"][0]["columns"]


def test_markdown_is_printed_or_written(runs: list[Path], tmp_path: Path) -> None:
    printed = call("report", *runs[:2], "--format", "markdown")
    assert (printed.code, printed.err) == (0, "")
    assert printed.out.startswith("# sft against base\n")
    out = tmp_path / "report.md"
    assert call("report", *runs[:2], "--format", "markdown", "--out", out).out == f"Report: {out}\n"
    assert out.read_text(encoding="utf-8") == printed.out


@pytest.mark.parametrize(
    ("form", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_figures_without_a_browser(
    runs: list[Path], tmp_path: Path, form: str, start: bytes
) -> None:
    done = call("report", *runs[:2], "--format", form, "--out", tmp_path / "figures")
    assert (done.code, done.err) == (0, "")
    files = list((tmp_path / "figures").iterdir())
    assert len(files) >= 2
    for file in files:
        assert file.suffix == f".{form}"
        assert file.read_bytes().lstrip().startswith(start)


def test_one_source_must_be_a_written_comparison(runs: list[Path]) -> None:
    done = call("report", runs[0])
    assert done.code == 2
    assert "give BEFORE and AFTER" in done.err


def test_nothing_is_replaced_unless_asked(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("mine")
    done = call("report", *runs[:2], "--out", out)
    assert done.code == 2
    assert "already exists" in done.err
    assert out.read_text() == "mine"
    assert call("report", *runs[:2], "--out", out, "--overwrite").code == 0
    assert payload_in(out.read_text(encoding="utf-8"))["kind"] == "pair"


def test_the_runs_themselves_are_never_replaced(runs: list[Path]) -> None:
    content = runs[0].read_bytes()
    done = call("report", *runs[:2], "--out", runs[0], "--overwrite")
    assert done.code == 2
    assert runs[0].read_bytes() == content


def test_a_pattern_that_is_none_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    done = call("report", tmp_path / "no", tmp_path / "run", "--redact", "([")
    assert done.code == 2
    assert "is not a valid regular expression" in done.err
