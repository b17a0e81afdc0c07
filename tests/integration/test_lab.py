"""The lab on the command line, with a model of a few thousand weights."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import TrainerCallback

from command_line import call
from forgetmap._disk import only_writer
from forgetmap.errors import UnreadableError
from forgetmap.lab import (
    METHODS,
    LabResult,
    LabRun,
    RepairPlan,
    merge_under_drift,
    read_recipe,
    repair_model,
    supervised_trainer,
)
from forgetmap.lab.arms import Arm, Bench
from forgetmap.lab.methods import ArmSetting
from tiny_lab import RECIPE, write_lab

pytestmark = pytest.mark.needs_torch

ONE_RATE = RECIPE.replace("rates = [0.003, 0.01]", "rates = [0.003]", 1)
COMPARE = ("--methods", "replay", "--strengths", "0.5", "--seeds", "2")
SECONDS = 120.0


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lab(tmp_path_factory.mktemp("small-lab"), ONE_RATE)


@pytest.fixture(scope="module")
def finished(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison that was not disturbed."""
    out = tmp_path_factory.mktemp("lab") / "out"
    finish(recipe, out)
    return out


def finish(recipe: Path, out: Path) -> None:
    done = call("lab", "compare", recipe, *COMPARE, "--out", out, "--json")
    assert done.code == 0, done.err
    assert "6 of 6 runs" in done.err
    assert json.loads(done.out) == json.loads((out / "lab.json").read_text())


@pytest.fixture
def resumed(recipe: Path, tmp_path: Path) -> Path:
    """A comparison that was killed after its first run, and then went on."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "forgetmap", "lab", "compare", recipe, *COMPARE, "--out", out]
    with subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
    ) as process:
        until = time.monotonic() + SECONDS
        while not list(out.glob("*/result.json")):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/result.json")}
    half = out / "replay-0.5-rate0.003-seed0"
    half.mkdir(exist_ok=True)
    (half / "model").mkdir(exist_ok=True)
    finish(recipe, out)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items())
    return out


@pytest.mark.slow
def test_a_comparison_that_was_killed_goes_on(resumed: Path) -> None:
    check_result(resumed)


def test_a_comparison_has_all_its_runs(finished: Path) -> None:
    check_result(finished)


def check_result(out: Path) -> None:
    result = LabResult.model_validate_json((out / "lab.json").read_text())
    assert {method.method for method in result.methods} == {"sft", "replay"}
    assert (result.seeds, result.development_seed) == ([1, 2], 0)
    assert len(result.runs) == 6
    for run in result.runs:
        assert run.lost("near") is not None
        # The development seed is not watched.
        assert (run.peak is None) == (run.seed == 0)
        if run.peak_step is not None:
            assert 0 < run.peak_step <= run.steps
    assert result.known_near > 0
    replay = next(method for method in result.methods if method.method == "replay")
    assert [row.baseline for row in replay.differences[::2]] == [
        "best learning rate",
        "equal compute",
    ]


def test_another_recipe_in_the_same_folder_is_refused(
    finished: Path, tmp_path: Path, recipe: Path
) -> None:
    other = recipe.with_name("other.toml")
    other.write_text(ONE_RATE.replace("target = 0.75", "target = 0.5"))
    done = call("lab", "compare", other, *COMPARE, "--out", finished)
    assert done.code == 2
    assert f"{finished} contains runs of another recipe: target changed" in done.err
    assert not list(tmp_path.iterdir())


def test_a_second_process_is_refused(finished: Path, recipe: Path) -> None:
    with only_writer(finished / ".lock", of=finished):
        done = call("lab", "compare", recipe, *COMPARE, "--out", finished)
    assert done.code == 2
    assert "is already being written" in done.err


def test_repair_reuses_the_forgotten_models(finished: Path, recipe: Path) -> None:
    plan = RepairPlan(rows=6, steps=4, domains=1, written=30)
    stamps = {path: path.stat().st_mtime_ns for path in finished.glob("sft-*/result.json")}
    result = repair_model(read_recipe(recipe), finished, plan=plan, seeds=2)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert {(run.kind, run.seed) for run in result.runs} == {
        (kind, seed) for kind in ("targeted", "random", "none") for seed in (1, 2)
    }
    assert len(result.domains) == 1
    rows = {(run.kind, run.seed): run.rows for run in result.runs}
    assert all(rows["random", seed] == rows["targeted", seed] for seed in (1, 2))
    more = replace(plan, domains=2)  # another suite is asked for these
    assert len(repair_model(read_recipe(recipe), finished, plan=more, seeds=2).domains) == 2
    measured = {row["prompt"].strip() for row in read_recipe(recipe).old_rows}
    pool = [json.loads(line) for line in (finished / "pool-30.jsonl").read_text().splitlines()]
    assert pool
    assert not measured & {row["prompt"].strip() for row in pool}


def test_merging_under_drift(recipe: Path, tmp_path: Path) -> None:
    shares = (0.25, 0.5, 0.75, 1.0)
    world = read_recipe(recipe)
    result = merge_under_drift(world, tmp_path, shares=shares, seeds=2)
    assert [(level.seed, level.share) for level in result.levels] == [
        (seed, share) for seed in (1, 2) for share in shares
    ]
    for level in result.levels:
        assert [point.weight for point in level.points] == pytest.approx(
            [number / 10 for number in range(1, 11)]
        )
        assert level.distance > 0
    again = merge_under_drift(world, tmp_path, shares=shares, seeds=2)
    assert again == result


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "RECIPE", "--methods", "fowardkl"), "there is no method 'fowardkl'"),
        (("compare", "RECIPE", "--seeds", "1"), "needs at least 2 seeds, not 1"),
        (
            ("compare", "RECIPE", "--methods", "lora,ema", "--strengths", "1"),
            "does not name a method",
        ),
        (("compare", "RECIPE", "--methods", "lora", "--strengths", "a"), "not a list of numbers"),
        (("compare", "RECIPE", "--strengths", "sft=1"), "'sft' has no strengths"),
        (("compare", "RECIPE", "--start", "x"), "--start works only with the recipe tiny"),
        (("compare", "nothing.toml"), "the file does not exist"),
        (("compare", "tiny", "--start", "no/such/model"), "There is no model no/such/model"),
        (("repair", "RECIPE", "--seeds", "1"), "needs at least 2 seeds, not 1"),
        (("merge-drift", "RECIPE", "--levels", "0.5,1"), "2 levels of drift cannot show a trend"),
        (("merge-drift", "RECIPE", "--levels", "1,2,3,4"), "a level must be a share"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_trained(
    words: tuple[str, ...], message: str, recipe: Path, tmp_path: Path
) -> None:
    given = [recipe if word == "RECIPE" else word for word in words]
    done = call("lab", *given, "--out", tmp_path / "out")
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "out").exists()


def test_a_dry_run_lists_the_arms(recipe: Path, tmp_path: Path) -> None:
    done = call(
        "lab", "compare", recipe, "--methods", "lora", "--strengths", "1,2,4", "--dry-run",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    *arms, total = done.out.splitlines()
    assert [arm.rpartition("-rate")[0] for arm in arms] == ["sft-0", "lora-1", "lora-2", "lora-4"]
    assert total.startswith("10 training runs: 4 to choose settings")
    assert not (tmp_path / "out").exists()


class _Breaking(TrainerCallback):  # type: ignore[misc]
    """Makes weights infinite, as a loss that explodes does."""

    def on_step_end(self, *_: Any, model: Any, **__: Any) -> None:
        with torch.no_grad():
            next(model.parameters()).fill_(math.nan)


def _breaking_trainer(setting: ArmSetting, model: Any, tokenizer: Any) -> Any:
    trainer = supervised_trainer(
        setting.recipe, model, tokenizer, rate=1e-3, seed=1, folder=setting.folder
    )
    trainer.add_callback(_Breaking())
    return trainer


def test_a_training_that_diverges_is_a_run_without_answers(
    finished: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking = replace(METHODS["ema"], trainer=_breaking_trainer, mitigations=lambda _: ())
    monkeypatch.setitem(METHODS, "ema", breaking)
    run = Bench(read_recipe(recipe), finished).run(Arm("ema", 0.5, 1e-3, 1))
    assert run.diverged
    assert (run.reached, run.score, run.kl, run.steps) == (False, None, None, 10)
    assert (run.lost("near"), run.lost("far"), run.gained("near")) == (None, None, None)
    assert LabRun.model_validate_json(run.to_json()) == run


def test_a_penalty_that_is_no_number_ends_its_own_run_only(finished: Path, recipe: Path) -> None:
    run = Bench(read_recipe(recipe), finished).run(Arm("forward-kl", 1.0, 1e30, 1))
    assert (run.diverged, run.score, run.cells) == (True, None, [])


def test_an_unreadable_result_is_an_error_that_names_it(finished: Path, recipe: Path) -> None:
    file = finished / "ema-0.5-rate0.5-seed1" / "result.json"
    file.parent.mkdir()
    file.write_text('{"method": "ema"}')
    with pytest.raises(UnreadableError, match="not a result of this version") as error:
        Bench(read_recipe(recipe), finished).run(Arm("ema", 0.5, 0.5, 1))
    assert error.value.file == str(file)


@pytest.mark.slow
def test_two_workers_find_what_one_finds(finished: Path, recipe: Path, tmp_path: Path) -> None:
    done = call(
        "lab", "compare", recipe, *COMPARE, "--workers", "2", "--capabilities",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    one, two = (
        LabResult.model_validate_json((folder / "lab.json").read_text())
        for folder in (finished, tmp_path / "out")
    )
    assert [run.model_copy(update={"seconds": 0.0}) for run in one.runs] == [
        run.model_copy(update={"seconds": 0.0}) for run in two.runs
    ]
    assert {row.method for row in two.capabilities} == {"sft", "replay"}
    assert {row.group for row in two.capabilities} >= {"CAN", "WILL", "HOW"}


@pytest.mark.filterwarnings("ignore:You are importing from 'trl.experimental'")
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(name, marks=() if name in {"grpo", "sdft"} else pytest.mark.slow)
        for name, method in METHODS.items()
        if method.is_slow
    ],
)
def test_methods_that_sample_train_and_are_measured(
    recipe: Path, tmp_path: Path, method: str
) -> None:
    short = replace(read_recipe(recipe), max_steps=2)
    strength = METHODS[method].strengths[0]
    run = Bench(short, tmp_path).run(Arm(method, strength, 0.003, 1))
    assert (run.method, run.steps, run.diverged) == (method, 2, False)
    assert run.compute > 0
    assert sum(cell.known for cell in run.cells) > 0


@pytest.mark.slow
def test_ranks_of_adapters_are_a_curve(recipe: Path, tmp_path: Path) -> None:
    done = call(
        "lab", "compare", recipe, "--methods", "lora", "--strengths", "1,4", "--seeds", "2",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert (tmp_path / "out" / "lab.html").is_file()
    result = LabResult.model_validate_json((tmp_path / "out" / "lab.json").read_text())
    tried = {run.strength for run in result.runs if (run.method, run.seed) == ("lora", 0)}
    assert tried == {1, 4}
    assert len({run.compute for run in result.runs}) > 1
