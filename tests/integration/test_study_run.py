"""A study of tiny models: evaluated once each, stopped, resumed, compared."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from command_line import call
from forgetmap.errors import UsageError
from forgetmap.evaluation import Step, open_model
from forgetmap.study import plan_runs, read_study, run_study, single_run
from forgetmap.study.run_files import read_finished
from tiny_models import WORDS, save_two, sentence

STUDY = """name = "tiny"
suite = "items.jsonl"
[protocol]
limit = 6
[[model]]
id = "base"
path = "base"
family = "tiny"
size = "1M"
[[model]]
id = "tuned"
path = "tuned"
family = "tiny"
size = "1M"
stage = "tuning"
parent = "base"
[[model]]
id = "again"
path = "tuned"
family = "tiny"
size = "1M"
stage = "tuning"
parent = "tuned"
limit = 4
[[merge]]
id = "half"
method = "linear"
models = ["base", "tuned"]
weight = 0.5
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models of one shape, a suite of questions, and a study of them."""
    path = tmp_path_factory.mktemp("study")
    save_two(path)
    source = random.Random(1)
    lines = []
    for number in range(8):
        options = source.sample(WORDS, 4)
        lines.append(
            {"id": f"i{number}", "task": "one", "question": sentence(source, 6),
             "options": options, "gold": options[0]}
        )  # fmt: skip
    (path / "items.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (path / "study.toml").write_text(STUDY)
    return path


def test_every_model_is_evaluated_once_and_never_loaded_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_study(folder / "study.toml")
    opened: list[str] = []

    def open_and_count(source: Any, **options: Any) -> Any:
        opened.append(options["name"])
        if opened == ["base", "tuned"]:
            raise KeyboardInterrupt
        return open_model(source, **options)

    monkeypatch.setattr(single_run, "open_model", open_and_count)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path)
    assert [plan.state for plan in plan_runs(study, tmp_path)] == ["done", *["missing"] * 3]
    runs = run_study(study, tmp_path)
    assert (runs.done, runs.failed) == (("base", "tuned", "again", "half"), {})
    assert opened == ["base", "tuned", "tuned", "again", "half"]
    assert not (tmp_path / "weights" / "half").exists()
    run_study(study, tmp_path)
    assert len(opened) == 5


def test_the_command_runs_compares_and_says_what_failed(folder: Path, tmp_path: Path) -> None:
    text = STUDY.replace('path = "base"', 'path = "gone"')
    (folder / "faulty.toml").write_text(text)
    done = call("study", "run", folder / "faulty.toml", "--out", tmp_path, "--only", "base")
    assert done.code == 2
    assert "base failed" in done.err
    assert "0 of 1 models are evaluated. To resume: forgetmap study run" in done.out
    done = call("study", "run", folder / "study.toml", "--out", tmp_path)
    assert done.code == 0
    result = json.loads(
        call("study", "compare", folder / "study.toml", "--runs", tmp_path, "--json").out
    )
    assert [pair["items"] for pair in result["pairs"]] == [6, 4]
    assert result["findings"]["findings"][-1]["id"] == "merging"
    shown = call("study", "run", folder / "study.toml", "--out", tmp_path, "--dry-run").out
    assert "0 models to evaluate." in shown


def test_a_merge_that_was_stopped_goes_on_even_if_it_is_made_again(
    folder: Path, tmp_path: Path
) -> None:
    study = read_study(folder / "study.toml")

    def stop(_: str, step: Step) -> None:
        if step.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path, only=["half"], on_progress=stop)
    shutil.rmtree(tmp_path / "weights")
    assert run_study(study, tmp_path, only=["half"]).done == ("half",)
    finished = read_finished(tmp_path, "half")
    assert finished is not None
    assert finished.effort.answers == 4


def test_a_run_stays_done_where_its_model_is_gone_and_is_looked_at_where_it_changed(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "study")
    study = read_study(tmp_path / "study" / "study.toml")
    assert run_study(study, tmp_path / "runs", only=["base"]).done == ("base",)
    weights = next((tmp_path / "study" / "base").glob("*.safetensors"))
    os.utime(weights, ns=(1, 1))
    changed = run_study(study, tmp_path / "runs", only=["base"])
    assert f"remove {tmp_path / 'runs' / 'base'}" in changed.failed["base"].hint
    shutil.rmtree(tmp_path / "study" / "base")
    assert plan_runs(study, tmp_path / "runs", ["base"])[0].state == "done"


def test_a_study_without_a_suite_and_unknown_names_are_refused(folder: Path) -> None:
    study = read_study(folder / "study.toml")
    with pytest.raises(UsageError, match="no model 'other'"):
        plan_runs(study, folder, ["other"])
    with pytest.raises(UsageError, match="has no suite"):
        plan_runs(study.model_copy(update={"suite": None}), folder)


def test_settings_are_those_of_the_model_then_of_the_protocol(folder: Path) -> None:
    text = f'{STUDY}\n[[model]]\nid = "chat"\nhub = "o/c"\nstyle = "chat"\ntemperature = 0.5\n'
    (folder / "chat.toml").write_text(text.replace("limit = 6", "limit = 6\ntemperature = 0.2"))
    plans = {plan.id: plan for plan in plan_runs(read_study(folder / "chat.toml"), folder)}
    assert (plans["chat"].settings.chat, plans["chat"].settings.temperature) == (True, 0.5)
    assert (plans["base"].settings.chat, plans["base"].settings.temperature) == (None, 0.2)
    assert (plans["again"].limit, plans["half"].limit) == (4, 6)
