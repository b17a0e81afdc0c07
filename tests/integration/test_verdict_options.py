"""Options of verdicts work the same in every command with a verdict, and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import decide_oracle
import forgetmap as fm
from command_line import call, write
from forgetmap.errors import UsageError

BAD = [
    ("--margin", "0"), ("--margin", "1"), ("--margin", "-0.1"), ("--margin", "nan"),
    ("--noise-floor", "0.51"), ("--noise-floor", "-0.01"), ("--noise-floor", "nan"),
    ("--level", "0.5"), ("--level", "1"), ("--level", "nan"),
]  # fmt: skip
RANGES = {
    "--margin": "share of all items between 0 and 1",
    "--noise-floor": "share of all answers from 0 to 0.5",
    "--level": "confidence level above 0.5 and up to 0.9999",
}


def rows(lost: int, items: int = 1000) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Open-ended items, of which one in ten was never right, and so many wrong after."""
    before, after = (
        [
            {
                "task": "t",
                "item": f"{n}",
                "score": float(n < items - 100 and (not side or n >= lost)),
            }
            for n in range(items)
        ]
        for side in (0, 1)
    )
    return before, after


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    before, after = rows(15)
    return write(tmp_path / "before.jsonl", before), write(tmp_path / "after.jsonl", after)


def total(runs: tuple[Path, Path], *options: object) -> dict[str, Any]:
    done = call("compare", *runs, *options, "--json")
    assert done.code == 0, done.err
    group: dict[str, Any] = json.loads(done.out)["total"]
    return group


@pytest.mark.parametrize("command", ["compare", "report", "serve", "map", "plan"])
@pytest.mark.parametrize(("name", "value"), BAD)
def test_values_out_of_range(
    command: str, name: str, value: str, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    if (command, name) == ("plan", "--noise-floor"):
        return  # a plan takes the noise of reruns
    more = {
        "map": ("--suite", "basics", "--out", tmp_path / "map"),
        "report": ("--out", tmp_path / "r"),
    }
    done = call(command, *runs, *more.get(command, ()), name, value)
    assert (done.code, done.out) == (2, "")
    assert f"{name} is {float(value)!r}" in done.err
    assert f"Hint: give a {RANGES[name]}" in done.err


@pytest.mark.parametrize(
    "options", [{"margin": 0.0}, {"noise_floor": 0.6}, {"level": 1.0}, {"margin": float("nan")}]
)
def test_values_out_of_range_in_python(options: Any) -> None:
    before, after = map(pa.Table.from_pylist, rows(3))
    with pytest.raises(UsageError) as refused:
        fm.compare(before, after, **options)
    assert refused.value.hint


def test_the_verdict_is_against_the_margin(runs: tuple[Path, Path]) -> None:
    loose, strict = total(runs, "--margin", 0.05), total(runs, "--margin", 0.02)
    assert (loose["verdict"], strict["verdict"]) == ("small_loss", "lost")
    assert (loose["margin"], strict["margin"]) == (0.05, 0.02)
    assert loose["loss"] == strict["loss"]


def test_a_stated_noise_floor_adds_a_limit_that_says_so(runs: tuple[Path, Path]) -> None:
    usual, stated = total(runs), total(runs, "--noise-floor", 0)
    assert (usual["loss"]["carried_by"], usual["loss"]["assumes"]) == ("drop", None)
    assert stated["loss"]["carried_by"] == "stated"
    assert "reruns flip at most 0.0% " in stated["loss"]["assumes"]
    # One limit more: each has half of the error.
    n10, n = stated["n10"], stated["n"]
    assert stated["loss"]["low"] == pytest.approx(decide_oracle.lower_flips(n10, n, 0.0125))
    assert stated["loss"]["high"] == usual["loss"]["high"]


def test_a_lower_level_narrows_every_interval(runs: tuple[Path, Path]) -> None:
    usual, narrow = total(runs), total(runs, "--level", 0.8)
    for group in ("forgetting", "backward_transfer", "conditional_forgetting", "drop", "loss"):
        assert narrow[group]["high"] < usual[group]["high"], group
    assert narrow["loss"]["low"] > usual["loss"]["low"]


def test_later_looks_and_chosen_checkpoints_are_judged_more_strictly(
    runs: tuple[Path, Path],
) -> None:
    usual = total(runs)["loss"]
    later = total(runs, "--look", 3)["loss"]
    assert later["low"] < usual["low"]
    assert later["high"] > usual["high"]
    chosen = total(runs, "--chosen-among", 20)["loss"]
    assert chosen["low"] == usual["low"]
    assert chosen["high"] > usual["high"]


def test_python_and_command_line_agree(runs: tuple[Path, Path]) -> None:
    options: Any = {"margin": 0.01, "noise_floor": 0.002, "level": 0.9, "selected": False}
    result = fm.compare(*runs, **options).result
    line = total(runs, "--margin", 0.01, "--noise-floor", 0.002, "--level", 0.9, "--not-selected")
    assert json.loads(result.to_json())["total"] == line
    assert (result.rule.margin, result.rule.noise_floor, result.rule.level) == (0.01, 0.002, 0.9)


def test_a_written_comparison_keeps_its_margin_in_a_report(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    assert call("compare", *runs, "--out", tmp_path / "out").code == 0
    done = call("report", tmp_path / "out", "--margin", 0.01, "--out", tmp_path / "r.html")
    assert done.code == 2
    assert "--margin does not change the verdicts saved in" in done.err
    assert not (tmp_path / "r.html").exists()
