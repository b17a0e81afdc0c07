"""Logs on the command line: recognised, shown, imported, compared, cached."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import call
from log_writers import lm_eval_row, write_lm_eval, write_lm_eval_results


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("FORGETMAP_CACHE", str(place))
    return place


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs of six items; the second one loses two and has a broken line."""
    sides = []
    for side, scores in (("before", [1] * 6), ("after", [1, 0, 1, 0, 1, 1])):
        folder = write_lm_eval(
            tmp_path / side, [lm_eval_row(n, score) for n, score in enumerate(scores)]
        )
        write_lm_eval_results(
            folder, results={"sums": {}}, config={"model": "hf", "model_args": f"pretrained={side}"}
        )
        sides.append(folder)
    (samples,) = sides[1].glob("*/samples*")
    with samples.open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    return sides[0], sides[1]


def test_show_says_what_it_is_and_what_is_wrong(logs: tuple[Path, Path]) -> None:
    done = call("records", "show", str(logs[1]))
    assert done.code == 0
    for words in ("lm-eval", "sums", "exact_match", "*", "1 problem", "line 7", "not valid JSON"):
        assert words in done.out, words


def test_show_as_json(logs: tuple[Path, Path]) -> None:
    shown = json.loads(call("records", "show", str(logs[1]), "--json").out)
    assert shown["format"] == "lm-eval 0.4.7 or later"
    assert shown["problem_count"] == 1
    assert shown["problems"][0]["line"] == 7
    assert shown["manifest"]["harness"]["name"] == "lm-eval"
    assert shown["manifest"]["tasks"]["sums"]["main_metric"] == "exact_match"


def test_strict_fails_at_the_first_problem(logs: tuple[Path, Path]) -> None:
    done = call("compare", *map(str, logs), "--strict")
    assert done.code == 2
    assert "line 7" in done.err
    assert "--strict" in done.err


def test_compare_counts_and_mentions_the_problem(logs: tuple[Path, Path]) -> None:
    result = compared(logs)
    assert (result["total"]["n10"], result["total"]["n11"]) == (2, 4)
    assert "problems" in {notice["code"] for notice in result["pairing"]["warnings"]}


def test_import_writes_a_run_folder_that_compares_alike(
    logs: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "runs" / "after"
    done = call("records", "import", str(logs[1]), "--out", str(out), "--stage", "sft")
    assert done.code == 0
    assert "1 problem" in done.out
    assert json.loads((out / "manifest.json").read_text())["stage"] == "sft"
    assert compared((logs[0], out))["total"]["n10"] == 2


def test_what_was_read_is_not_read_again(logs: tuple[Path, Path], cache: Path) -> None:
    compared(logs)
    first = {path: path.stat().st_mtime_ns for path in cache.rglob("*.parquet")}
    compared(logs)
    assert first
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.parquet")} == first
    (samples,) = logs[1].glob("*/samples*")
    rows = samples.read_text(encoding="utf-8").splitlines()[:5]
    samples.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert compared(logs)["pairing"]["only_before"] == 1


def test_without_cache_nothing_is_kept(logs: tuple[Path, Path], cache: Path) -> None:
    assert compared(logs, "--no-cache")["total"]["n10"] == 2
    assert not list(cache.rglob("*.parquet"))


def test_an_unwritable_cache_does_no_harm(
    logs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("FORGETMAP_CACHE", str(blocked / "below"))
    assert compared(logs)["total"]["n10"] == 2


def test_instances_are_written_and_read_back(logs: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "after.jsonl"
    form = ["--format", "every-eval-ever"]
    assert call("records", "convert", str(logs[1]), "--out", str(out), *form).code == 0
    assert compared((logs[0], out))["total"]["n10"] == 2
    again = call("records", "convert", str(logs[1]), "--out", str(out), *form)
    assert again.code == 2
    assert "already exists" in again.err


def test_a_map_is_kept_when_asked(tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    table.write_text("number,good\n1,1\n2,0\n")
    given = ["--columns", "item=number,score=good", "--task", "sums"]
    assert call("records", "check", str(table), *given, "--save-map").code == 0
    assert call("records", "check", str(table)).code == 0


def compared(sides: tuple[Path, Path], *options: str) -> dict[str, Any]:
    done = call("compare", *map(str, sides), "--json", *options)
    assert done.code == 0, done.err
    return dict(json.loads(done.out))
