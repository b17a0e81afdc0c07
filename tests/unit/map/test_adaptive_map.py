"""`--repeats auto` with real models that have given probabilities of answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import call, write
from forgetmap.map.adaptive import Auto
from letter_models import save_letter_model

pytestmark = pytest.mark.needs_torch

ASK = ("--temperature", "1", "--max-new-tokens", "4")
MOST = 6
LEVEL = 0.9
LOOKS = 4
"""After 2, 3, 4 and 6 answers."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("letters")
    save_letter_model(folder / "base", {"A": 0.6, "B": 0.1, "C": 0.3})
    save_letter_model(folder / "same", {"A": 0.6, "B": 0.1, "C": 0.3})
    save_letter_model(folder / "worse", {"A": 0.05, "B": 0.75, "C": 0.2})
    rows = [
        {"question": f"Which one is {place}?", "options": ["x", "y", "z"], "id": f"{gold}{place}"}
        | {"gold": gold, "task": f"task-{gold}", "category": {"x": "first", "z": "third"}[gold]}
        for gold in "xz"
        for place in range(40)
    ]
    write(folder / "items.jsonl", rows)
    return folder


@pytest.fixture(scope="module")
def mapped(models: Path) -> dict[str, Any]:
    out = models / "map"
    done = call("map", models / "base", models / "worse", *ask(models, out))
    assert done.code == 0, done.err
    told = json.loads((out / "repeats.json").read_text())
    return {"out": out, "said": done.out, "told": told}


def ask(models: Path, out: Path, *more: str) -> tuple[Any, ...]:
    auto = ("--repeats", "auto", "--max-repeats", str(MOST), "--level", str(LEVEL))
    return ("--suite", models / "items.jsonl", *ASK, *auto, "--out", out, *more)


def by_category(told: dict[str, Any]) -> dict[str, Any]:
    return {each["category"]: each for each in told["categories"]}


def answers(folder: Path) -> dict[tuple[str, str, int], str]:
    texts = fm.open_run(folder).texts
    assert texts is not None
    return {
        (row["task"], row["item"], row["repeat"]): row["response"]
        for row in texts.collect().rows(named=True)
    }


def test_a_clear_loss_is_found_early_and_the_rest_goes_on(mapped: dict[str, Any]) -> None:
    found = by_category(mapped["told"])
    assert found["first"]["verdict"] == "lost"
    assert found["first"]["why"] == "decided"
    assert found["first"]["repeats"] < MOST
    assert found["first"]["low"] > 0
    assert found["third"]["verdict"] == "cannot_tell"
    assert found["third"]["repeats"] > found["first"]["repeats"]
    assert mapped["told"]["schedule"] == [2, 3, 4, 6]
    assert mapped["told"]["answers"] == sum(2 * 40 * each["repeats"] for each in found.values())
    assert mapped["told"]["full"] == 2 * 80 * MOST
    assert "Repeats:" in mapped["said"]
    assert "first: lost after" in mapped["said"]
    for each in mapped["told"]["categories"]:
        assert f"{each['category']}: {each['words']} after" in mapped["said"]


def test_the_verdicts_hold_over_all_looks(mapped: dict[str, Any]) -> None:
    result = json.loads((mapped["out"] / "result" / "comparison.json").read_text())
    found = by_category(mapped["told"])
    assert result["rule"] | {"level": LEVEL, "looks": LOOKS} == result["rule"]
    for group in result["categories"]:
        decision = found[group["name"]]
        assert group["verdict"] == decision["verdict"]
        assert (group["loss"]["low"], group["loss"]["high"]) == (decision["low"], decision["high"])
    runs = [mapped["out"] / "runs" / name for name in ("0-base", "1-worse")]
    at_once = fm.compare(runs[0], runs[1], level=LEVEL).result.total
    assert at_once.loss.low is not None
    assert at_once.loss.high is not None
    assert result["total"]["verdict"] == "lost"
    assert result["total"]["loss"]["low"] < at_once.loss.low
    assert result["total"]["loss"]["high"] > at_once.loss.high


def test_the_answers_are_those_of_a_fixed_number_of_repeats(
    models: Path, mapped: dict[str, Any]
) -> None:
    fixed = models / "fixed"
    done = call(
        "map", models / "base", models / "worse", "--suite", models / "items.jsonl", *ASK,
        "--repeats", str(MOST), "--out", fixed,
    )  # fmt: skip
    assert done.code == 0, done.err
    for name in ("0-base", "1-worse"):
        some, all_of_them = answers(mapped["out"] / "runs" / name), answers(fixed / "runs" / name)
        assert len(some) < len(all_of_them)
        assert some == {key: all_of_them[key] for key in some}
        for each in mapped["told"]["categories"]:
            task = {"first": "task-x", "third": "task-z"}[each["category"]]
            assert {key[2] for key in some if key[0] == task} == set(range(each["repeats"]))
    again = call("map", models / "base", models / "worse", *ask(models, fixed))
    assert again.code == 2
    assert "fixed number of repeats" in again.err


def test_the_same_command_does_nothing_again(models: Path, mapped: dict[str, Any]) -> None:
    stamps = {path: path.stat().st_mtime_ns for path in mapped["out"].glob("*/*/**/scores.parquet")}
    assert len(stamps) >= 6
    done = call("map", models / "base", models / "worse", *ask(models, mapped["out"]))
    assert done.code == 0, done.err
    assert done.out == mapped["said"]
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}


def test_a_map_that_was_stopped_goes_on(
    models: Path, mapped: dict[str, Any], tmp_path: Path
) -> None:
    """Stopped within the second look, as by Ctrl-C, and asked for again."""

    def stop(name: str, step: Any) -> None:
        if "3-3" in name and step.done == 20:
            raise KeyboardInterrupt

    given = (str(models / "base"), str(models / "worse"))
    how: dict[str, Any] = {
        "suite": models / "items.jsonl",
        "out": tmp_path / "map",
        "settings": fm.Settings(temperature=1.0, max_new_tokens=4),
        "repeats": Auto(most=MOST),
        "level": LEVEL,
    }
    with pytest.raises(KeyboardInterrupt):
        fm.map_models(*given, **how, on_progress=stop)
    assert not (tmp_path / "map" / "runs").exists()
    seen: list[str] = []
    fm.map_models(*given, **how, on_progress=lambda name, _: seen.append(name))
    assert not any("answers-1-2" in name for name in seen)
    for name in ("0-base", "1-worse"):
        whole = answers(mapped["out"] / "runs" / name)
        assert answers(tmp_path / "map" / "runs" / name) == whole


@pytest.mark.slow
def test_an_unchanged_model_is_not_called_worse(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "map"
    done = call("map", models / "base", models / "same", *ask(models, out, "--budget", "800"))
    assert done.code == 0, done.err
    told = json.loads((out / "repeats.json").read_text())
    assert told["answers"] <= 800
    assert {each["verdict"] for each in told["categories"]} == {"cannot_tell"}


@pytest.mark.parametrize(
    ("command", "more", "said"),
    [
        ("map", ["--repeats", "auto", "--temperature", "0"], "greedy answers"),
        ("map", ["--repeats", "auto", "--budget", "10"], "more than the budget of 10"),
        ("map", ["--repeats", "auto", "--chain"], "remove --chain"),
        ("map", ["--repeats", "3", "--budget", "1000"], "add --repeats auto"),
        ("map", ["--repeats", "auto", "--max-repeats", "1"], "--max-repeats"),
        ("run", ["--repeats", "auto"], "forgetmap map"),
    ],
)
def test_what_cannot_be_is_refused(
    models: Path, tmp_path: Path, command: str, more: list[str], said: str
) -> None:
    given = [models / "base", models / "same"][: 1 + (command == "map")]
    done = call(
        command, *given, "--suite", models / "items.jsonl", *ASK, *more, "--out", tmp_path / "out"
    )
    assert done.code == 2
    assert said in done.err
    assert list(tmp_path.iterdir()) == []
