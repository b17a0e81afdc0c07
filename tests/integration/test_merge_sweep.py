"""A whole sweep between two tiny models: merged, evaluated, compared, stopped and resumed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command_line import call
from forgetmap.errors import ModelError, OutputError
from forgetmap.map.sweep_job import merge_sweep
from forgetmap.records.folder import read_run
from tiny_models import WORDS, save_two, sentence, tiny_model, tokenizer

ITEMS = 40


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`base`, `tuned` (other weights of the same shape), and a suite of questions."""
    folder = tmp_path_factory.mktemp("sweep")
    save_two(folder)
    source = random.Random(1)
    lines = []
    for task in ("one", "two"):
        for number in range(ITEMS):
            options = source.sample(WORDS, 4)
            lines.append(
                {
                    "id": f"{task}-{number}", "task": task, "category": task.upper(),
                    "question": sentence(source, 6), "options": options,
                    "gold": source.choice(options),
                }
            )  # fmt: skip
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def arguments(models: Path, out: Path, *more: str) -> list[str]:
    return [
        "merge", "sweep", str(models / "base"), str(models / "tuned"),
        "--suite", str(models / "items.jsonl"), "--methods", "linear,slerp",
        "--weights", "0.5", "--out", str(out), "--threads", "1", *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def swept(models: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("out") / "sweep"
    done = call(*arguments(models, out, "--json"))
    assert done.code == 0, done.err
    return out, json.loads(done.out)


def test_every_merge_is_evaluated_and_the_ends_are_the_parents(
    swept: tuple[Path, dict[str, Any]],
) -> None:
    out, result = swept
    points = result["pairs"][0]["points"]
    assert [(p["method"], p["weight"], p["reused"]) for p in points] == [
        (method, weight, {0.0: "base", 1.0: "tuned"}.get(weight))
        for method in ("linear", "slerp")
        for weight in (0.0, 0.5, 1.0)
    ]
    assert sorted(path.name for path in (out / "runs").iterdir()) == [
        "0-base", "1-tuned", "1-tuned-linear-0.5", "1-tuned-slerp-0.5"
    ]  # fmt: skip
    names = {path.name: read_run(path).info.run_id for path in (out / "runs").iterdir()}
    assert (names["0-base"], names["1-tuned"]) == ("base", "tuned")
    assert names["1-tuned-linear-0.5"] == "linear 0.5 of tuned"
    for point in points:
        run = read_run(out / "runs" / point["run"])
        scores = run.scores.collect()
        assert point["accuracy"] == pytest.approx(float(scores["score"].mean()))


def test_forgetting_is_counted_item_by_item(swept: tuple[Path, dict[str, Any]]) -> None:
    out, result = swept

    def right(name: str) -> dict[str, bool]:
        table = read_run(out / "runs" / name).scores.collect()
        return {row["item"]: row["score"] == 1 for row in table.rows(named=True)}

    base, tuned = right("0-base"), right("1-tuned")
    pair = result["pairs"][0]
    assert pair["lost"] == sum(base[item] and not tuned[item] for item in base)
    assert pair["gained"] == sum(tuned[item] and not base[item] for item in base)
    assert pair["lost"] > 0
    assert pair["gained"] > 0
    for point in pair["points"]:
        here = right(point["run"])
        lost = sum(base[item] and not here[item] for item in base)
        assert point["forgetting"]["value"] == pytest.approx(lost / (2 * ITEMS))
        kept = [here[item] for item in base if tuned[item] and not base[item]]
        assert point["retained"]["value"] == pytest.approx(sum(kept) / len(kept))


def test_weights_are_deleted_and_all_is_written(swept: tuple[Path, dict[str, Any]]) -> None:
    out, result = swept
    assert list((out / "weights").iterdir()) == []
    assert json.loads((out / "sweep.json").read_text()) == result
    for name in ("report.html", "report.md", "compared/from-base", "compared/from-1-tuned"):
        assert (out / name).exists()
    assert result["pairs"][0]["drift"]["total"]["relative"] > 0


def test_what_is_complete_is_not_done_again(
    models: Path, swept: tuple[Path, dict[str, Any]]
) -> None:
    out, result = swept
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}
    told: list[str] = []
    again = merge_sweep(
        str(models / "base"), str(models / "tuned"),
        suite=models / "items.jsonl", methods=["linear", "slerp"], weights=[0.5], out=out,
        report=lambda name, _: told.append(name),
    )  # fmt: skip
    assert told == []
    assert json.loads(again.to_json()) == result
    assert before == {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}


def test_another_question_is_not_mixed_in(
    models: Path, swept: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    lines = (models / "items.jsonl").read_text().splitlines()[:-1]
    (tmp_path / "items.jsonl").write_text("\n".join(lines))
    with pytest.raises(OutputError, match="another model, suite or setting"):
        merge_sweep(models / "base", models / "tuned", suite=tmp_path / "items.jsonl", out=swept[0])


def test_a_model_that_does_not_fit_is_refused_before_anything_is_asked(
    models: Path, tmp_path: Path
) -> None:
    tiny_model("gpt2").save_pretrained(tmp_path / "other")
    tokenizer().save_pretrained(tmp_path / "other")
    with pytest.raises(ModelError):
        merge_sweep(
            models / "base", tmp_path / "other", suite=models / "items.jsonl", out=tmp_path / "out"
        )
    assert not (tmp_path / "out" / "runs").exists()


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_where_it_was_and_may_keep_weights(
    models: Path, swept: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    command = [
        sys.executable, "-c", "from forgetmap.cli.main import main; main()",
        *arguments(models, out),
    ]  # fmt: skip
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not (out / "runs" / "1-tuned-linear-0.5").is_dir():
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    there = {path.name for path in (out / "runs").iterdir() if not path.name.startswith(".")}
    assert "1-tuned-slerp-0.5" not in there
    told: list[str] = []
    found = merge_sweep(
        str(models / "base"), str(models / "tuned"),
        suite=models / "items.jsonl", methods=["linear", "slerp"], weights=[0.5], out=out,
        report=lambda name, _: told.append(name), keep_weights=True,
    )  # fmt: skip
    assert there.isdisjoint(told)
    assert json.loads(found.to_json())["pairs"][0]["points"] == swept[1]["pairs"][0]["points"]
    kept = sorted(path.name for path in (out / "weights").iterdir())
    assert kept == ["1-tuned-linear-0.5", "1-tuned-slerp-0.5"]


def test_drift_is_printed_drawn_and_given_as_json(models: Path, tmp_path: Path) -> None:
    parents = (models / "base", models / "tuned")
    done = call("merge", "drift", *parents, "--figure", tmp_path / "drift.svg")
    assert done.code == 0
    assert "Relative weight change" in done.out
    assert (tmp_path / "drift.svg").read_text().startswith("<svg")
    found = json.loads(call("merge", "drift", *parents, "--json", "--no-ranks").out)
    assert found["total"]["relative"] > 0
    assert found["total"]["effective_rank"] is None
    assert call("merge", "drift", *parents, "--figure", tmp_path / "drift.bmp").code == 2


def test_models_of_a_sweep_are_asked_alike(tmp_path: Path) -> None:
    """A path between models that are asked in different ways would also measure the asking."""
    settings = ("--suite", "world", "--out", tmp_path / "sweep")
    done = call("merge", "sweep", "base,stage=base", "tuned,stage=tuned", *settings)
    assert done.code == 2
    assert "a sweep evaluates all models with the same settings" in done.err
    assert "use base, and set --stage base for all models." in " ".join(done.err.split())
    done = call("merge", "sweep", "base", "tuned", "--protocol", "published", *settings)
    assert "whether a model of the sweep is a base or a tuned model" in done.err
    assert "Hint: add --stage base or --stage tuned.\n" in done.err
    assert not (tmp_path / "sweep").exists()


def test_a_base_asked_in_a_chat_is_noted(models: Path, tmp_path: Path) -> None:
    done = call(*arguments(models, tmp_path / "sweep", "--stage", "base", "--chat", "--dry-run"))
    assert "Note: a base model was evaluated in a chat" in done.err
