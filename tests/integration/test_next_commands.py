"""Commands that messages suggest as the next step work."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
from click.core import ParameterSource

from command_line import Done, call
from forgetmap.cli.compare import command as compare_command
from forgetmap.cli.next_commands import next_commands
from log_writers import lm_eval_row, write_lm_eval

NESTED = [
    {"uuid": n, "eval": {"grade": n % 2, "by": "rule"}, "q": f"What is {n}?"} for n in range(4)
]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def refused(*args: object) -> str:
    """What stands on the screen, in one line."""
    done = call(*args, columns=1000)
    assert (done.code, done.out) == (2, "")
    return done.err


def command_in(text: str) -> list[str]:
    """The command between backticks, as a shell takes it apart."""
    (command,) = re.findall(r"`(.+?)`", text)
    return shlex.split(command)


def type_next(text: str) -> Done:
    words = command_in(text)
    assert words[0] == "forgetmap"
    done = call(*words[1:])
    assert done.code == 0, done.err
    return done


def show(path: object) -> dict[str, Any]:
    done = call("records", "show", path, "--json")
    assert done.code == 0, done.err
    shown: dict[str, Any] = json.loads(done.out)
    return shown


@pytest.mark.parametrize("is_document", [False, True])
def test_unknown_json_is_read_and_says_how(is_document: bool, tmp_path: Path) -> None:
    path = tmp_path / "my answers.json"
    if is_document:
        write(path, {"about": "x", "answers": NESTED})
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in NESTED))
    shown = show(path)
    assert shown["notices"] == ["score = eval.grade, item = uuid, 4 rows."]
    (task,) = shown["tasks"]
    assert (task["items"], task["mean_score"]) == (4, 0.5)


def test_nearest_formats_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [{"doc": {}, "target": "x", "arguments": [], "resps": []}])
    text = refused("records", "show", path)
    assert "nearest: lm-eval samples (here without doc_id)" in text


def test_object_without_any_list_is_unknown(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"seed": 1, "note": "hello"})
    text = refused("records", "show", path)
    assert "unknown format: one JSON object with seed (" in text
    # There is nothing to map either, and that is said without a command that ends in a circle.
    assert "`" not in text.partition("Hint")[2]
    assert "without a list of results" in refused("records", "map", path)


@pytest.mark.parametrize("given", ["file", "folder", "nested folder"])
def test_results_without_samples(given: str, tmp_path: Path) -> None:
    folder = tmp_path / "out" / ("model" if given == "nested folder" else "")
    results = {"results": {"sums": {"acc,none": 0.5}}, "configs": {"sums": {}}, "n-shot": {}}
    path = write(folder / "results_2026-01-01.json", results)
    text = refused("records", "show", path if given == "file" else tmp_path / "out")
    assert "these results of lm-eval contain averages of tasks, but no single items" in text
    assert "evaluate again with --log_samples" in text
    write_lm_eval(tmp_path / "out", [lm_eval_row(n, 1) for n in range(3)])
    assert "3 results" in type_next(text).out


def test_averages_of_lighteval(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", {"config_general": {}, "results": {"all": {"acc": 1}}})
    assert "evaluate again with --save-details" in refused("records", "show", path)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with pointers, and a `git-lfs` that fetches what they stand for."""
    root = tmp_path / "clone"
    (root / "logs" / "base").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", root], check=True)
    for name in ("samples_a.jsonl", "samples_b.jsonl"):
        (root / "logs" / "base" / name).write_bytes(POINTER)
    fetch = tmp_path / "bin" / "git-lfs"
    fetch.parent.mkdir()
    row = json.dumps({"task": "t", "item": "a", "score": 1})
    fetch.write_text(
        '#!/bin/sh\n[ "$1 $2" = "pull --include" ] || exit 1\n'
        f"for file in $3; do [ -f \"$file\" ] && printf '%s\\n' '{row}' > \"$file\"; done\n"
    )
    fetch.chmod(fetch.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{fetch.parent}{os.pathsep}{os.environ['PATH']}")
    return root


def test_pointer_of_git_lfs(clone: Path) -> None:
    path = clone / "logs" / "base" / "samples_a.jsonl"
    text = refused("records", "show", path)
    assert "this is a pointer of Git LFS, not the file itself of 12,345 bytes" in text
    include = "logs/base/samples_a.jsonl"
    expected = ["git", "-C", str(clone), "lfs", "pull", "--include", include]
    assert command_in(text) == expected
    subprocess.run(expected, check=True)
    assert show(path)["rows"] == 1


def test_folder_of_pointers(clone: Path) -> None:
    text = refused("compare", clone / "logs" / "base", clone / "logs" / "base")
    assert "2 files here are pointers of Git LFS, not the files themselves" in text
    assert command_in(text)[-1] == "logs/base/**"
    (clone / "logs" / "base" / "samples_b.jsonl").unlink()
    subprocess.run(command_in(text), check=True)
    assert show(clone / "logs" / "base")["rows"] == 1


def test_pointer_beside_logs_is_told(tmp_path: Path) -> None:
    folder = write_lm_eval(tmp_path / "out", [lm_eval_row(n, 1) for n in range(3)])
    (folder / "samples_other.jsonl").write_bytes(POINTER)
    assert "1 files here are pointers of Git LFS" in show(folder)["notices"][0]


def test_empty_folder_lists_what_is_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    text = refused("records", "show", folder)
    assert "this folder is empty" in text
    for words in ("manifest.json", "lm-eval, ", "inspect, ", "CSV", "Parquet"):
        assert words in text
    (folder / "t.csv").write_text("task,item,score\nt,a,1\n")
    assert "1 result" in type_next(text).out


@pytest.mark.parametrize("shape", ["long", "wide", "nested"])
def test_several_models_are_listed_with_what_to_type(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    shapes: dict[str, list[dict[str, Any]]] = {
        "long": [{"model": m, "id": n, "score": n % 2} for m in ("a b", "c") for n in range(3)],
        "wide": [{"id": n, "a b": 1, "c": n % 2} for n in range(3)],
        "nested": [{"id": n, "a b": {"is_correct": True}, "c": {"is_correct": n % 2 == 0}}
                   for n in range(3)],
    }  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in shapes[shape]))
    text = refused("records", "show", path)
    assert "2 models: a b, c" in text or "2 columns contain scores: a b, c" in text
    choices = shlex.split(text.partition("choose one: ")[2].replace(",", " "))
    assert choices[:2] == [f"{path}#a b", f"{path}#c"]
    for choice in choices[:2]:
        assert show(choice)["rows"] == 3


def test_percents_are_told_of_the_range(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,score\na,100\nb,30\n")
    text = refused("records", "show", tmp_path / "t.csv")
    (words,) = re.findall(r"(--range [^`]+)`", text)
    done = call("records", "show", tmp_path / "t.csv", *words.split(), "--save-map", "--json")
    assert json.loads(done.out)["tasks"][0]["mean_score"] == pytest.approx(0.65)
    assert show(tmp_path / "t.csv")["tasks"][0]["mean_score"] == pytest.approx(0.65)


def test_task_of_several_is_refused_and_of_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("task,item,score\nt,a,1\nu,b,0\n")
    text = refused("records", "show", tmp_path / "t.csv", "--task", "x")
    assert "--task x names a single task, but t has 2: t, u" in text
    assert "remove --task" in text
    assert {task["task"] for task in show(tmp_path / "t.csv")["tasks"]} == {"t", "u"}
    logs = write_lm_eval(tmp_path / "out", [lm_eval_row(n, 1) for n in range(3)])
    done = call("records", "show", logs, "--task", "x", "--json")
    assert {task["task"] for task in json.loads(done.out)["tasks"]} == {"x"}


def test_mapping_is_read_from_any_place(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in NESTED))
    target = tmp_path / "maps" / "mine.toml"
    target.parent.mkdir()
    done = call("records", "map", path, "--out", target, columns=300)
    assert done.code == 0
    assert 'score = "eval.grade"' in target.read_text()
    (step,) = re.findall(r"Next: (.*)", done.out)
    assert call(*shlex.split(step)[1:]).code == 0
    copy = tmp_path / "b.jsonl"
    copy.write_bytes(path.read_bytes())
    compared = call("compare", path, copy, "--mapping", target, "--json")
    assert json.loads(compared.out)["total"]["n11"] == 2
    out = tmp_path / "run"
    assert call("records", "convert", path, "--mapping", target, "--out", out).code == 0
    assert call("records", "map", path, "--out", target).code == 2
    assert call("records", "map", path, "--out", target, "--overwrite").code == 0


@pytest.mark.parametrize("completion", ["", []])
def test_old_rows_of_verifiers_are_read(completion: Any, tmp_path: Path) -> None:
    rows = [
        {"prompt": [{"role": "user", "content": f"{n} + 1?"}], "completion": completion,
         "answer": str(n + 1), "reward": float(n % 2), "task": "default"}
        for n in range(4)
    ]  # fmt: skip
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = show(path)
    assert shown["format"] == "verifiers"
    assert (shown["tasks"][0]["items"], shown["tasks"][0]["mean_score"]) == (4, 0.5)


def test_rows_of_verifiers_without_id_and_prompt_are_explained(tmp_path: Path) -> None:
    rows = [{"prompt": [], "completion": [], "answer": f"a{n}", "reward": 1.0, "uid": n}
            for n in range(3)]  # fmt: skip
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = refused("records", "show", path)
    assert "no id and no question" in text
    type_next(text)
    assert show(path)["tasks"][0]["items"] == 3


def test_models_of_a_log_are_chosen_as_the_hint_says(tmp_path: Path) -> None:
    """By --run, and by #NAME of the file or of its folder."""
    rows = [
        {"question_id": n, "model": model, "judge": ["gpt-4", "single-v1"], "score": score,
         "turn": 1, "user_prompt": "?", "judgment": "", "tstamp": 1.0}
        for model, score in (("base", 10), ("tuned", 1))
        for n in range(3)
    ]  # fmt: skip
    path = tmp_path / "judged" / "gpt-4_single.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = refused("records", "show", path)
    assert "contains results of 2 models: base, tuned" in text
    (words,) = re.findall(r"choose one: (--run \S+)\.", text)
    assert words == "--run base"
    done = call("records", "show", path, *words.split(), "--json")
    assert json.loads(done.out)["tasks"][0]["mean_score"] == 1
    for source in (f"{path}#tuned", f"{path.parent}#tuned"):
        assert show(source)["tasks"][0]["mean_score"] == 0
    assert "matches 'other'; the runs are base" in refused(
        "records", "show", f"{path.parent}#other"
    )
    compared = call("compare", path, path, "--run", "base", "--run", "tuned", "--json")
    result = json.loads(compared.out)
    assert result["total"]["n10"] == 3
    assert (result["before"]["name"], result["after"]["name"]) == ("base", "tuned")


def test_scores_of_bfcl_alone_are_not_sent_to_a_map(tmp_path: Path) -> None:
    """They hold failures only: a map would count all as wrong. With the answers beside, they do."""
    fixture = Path(__file__).parents[1] / "fixtures" / "logs" / "bfcl"
    scores = next(fixture.rglob("score"))
    away = tmp_path / "runs" / "score"
    shutil.copytree(scores, away)
    text = refused("records", "show", away)
    assert "lists only the failures" in text
    assert "keep its folders result/MODEL and score/MODEL side by side" in text
    assert "records map" not in text
    shutil.copytree(scores.with_name("result"), away.with_name("result"))
    assert show(away)["rows"] > 0


@pytest.mark.parametrize(("wide", "wanted"), [(True, ("row2", "col2")), (False, ("col1", "row1"))])
def test_matrices_say_what_to_type(wide: bool, wanted: tuple[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "my scores"
    folder.mkdir()
    rows = ["1,0,1,1,0,1", "0,0,1,1,1,1"] if wide else ["1,0", "0,0", "1,1"]
    (folder / "m.csv").write_text("\n".join(rows) + "\n")
    path = str(folder / "m.csv")
    text = refused("records", "show", f"{path}#2" if wide else path)
    choices = [word.rstrip(",.") for word in shlex.split(text.partition("Hint: ")[2])]
    typed = [word for word in choices if "#" in word]
    assert typed == [f"{path}#{place}" for place in wanted]
    for choice in typed:
        assert show(choice)["rows"] > 1


def test_folder_of_folders_says_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "all" / "run 1").mkdir(parents=True)
    (tmp_path / "all" / "run 1" / "t.csv").write_text("task,item,score\nt,a,1\n")
    text = refused("records", "show", tmp_path / "all")
    assert "this folder is not a run and contains no table" in text
    assert "1 result" in type_next(text).out


def test_a_folder_of_tables_has_one_map(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(2):
        rows = ({"uid": f"{part}-{n}", "grade": n % 2, "note": "x"} for n in range(3))
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"p{part}.jsonl").write_text(text)
    done = call("records", "map", folder, columns=300)
    assert done.code == 0
    assert not (folder / "forgetmap.toml").exists()  # nothing is written unless asked
    (step,) = re.findall(r"Next: (.*)", done.out)
    assert "6 results of 1 task" in call(*shlex.split(step)[1:]).out
    done = call("records", "map", folder, "--save-map", columns=300)
    assert (folder / "forgetmap.toml").is_file()
    (step,) = re.findall(r"Next: (.*)", done.out)
    assert step == f"forgetmap records show {folder}"
    assert "6 results of 1 task" in call(*shlex.split(step)[1:]).out
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "notes").write_text("nothing here")
    assert "this folder contains no table" in refused("records", "map", tmp_path / "none")


def test_a_map_without_a_score_does_not_lead_in_a_circle(tmp_path: Path) -> None:
    rows = [{"idx": n, "text": f"answer {n}"} for n in range(3)]
    done = call("records", "map", write(tmp_path / "a.json", rows), columns=300)
    assert done.code == 0
    assert "name it with --columns score=COLUMN" in done.out
    assert "`forgetmap records map" not in done.out


def test_words_are_not_told_of_a_range(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,score\na,pass\nb,fail\n")
    text = refused("records", "show", path, "--task", "t")
    assert "score is 'pass'" in text
    assert "use 1 for right and 0 for wrong" in text
    assert "--range" not in text
    path.write_text(path.read_text().replace("pass", "1").replace("fail", "0"))
    assert "2 results" in call("records", "show", path, "--task", "t").out


def test_an_object_as_score_is_told_of_a_path(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", [{"item": n, "score": {"my acc": n}} for n in range(2)])
    text = refused("records", "show", path, "--task", "t")
    assert "such as --columns 'score=COLUMN.my acc'." in text
    assert call("records", "show", path, "--task", "t", "--columns", "score=score.my acc").code == 0


def write_scores(path: Path, scores: list[int]) -> Path:
    rows = [f"{number},{score}\n" for number, score in enumerate(scores)]
    path.write_text("".join(["q,ok\n", *rows]), encoding="utf-8")
    return path


def test_next_steps_have_the_inputs_and_options_that_were_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = write_scores(tmp_path / "model before.csv", [1] * 99 + [0])
    after = write_scores(tmp_path / "after.csv", [0] * 30 + [1] * 69 + [0])
    options = ["--columns", "item=q,score=ok", "--task", "my task", "--range", "0:1"]
    out = call("compare", before.name, after.name, *options, columns=1000).out
    report, replay = re.findall(r"^- .+? \(`(.+?)`\) *$", out, re.MULTILINE)
    assert shlex.split(report) == ["forgetmap", "report", before.name, after.name, *options]
    assert shlex.split(replay)[-4:] == ["--pool", "POOL", "--out", "FILE"]
    assert type_next(f"`{report}`").out.startswith("Report: report.html")
    small = [write_scores(tmp_path / name, [1] * 20) for name in ("a.csv", "b.csv")]
    out = call("compare", *small, *options, "--margin", "0.03", columns=1000).out
    (step,) = re.findall(r"^What next: (.+)", out, re.MULTILINE)
    assert "--margin 0.03" in step
    type_next(step)
    flipped = [[1] * 60 + [0] * 40, [0] * 10 + [1] * 60 + [0] * 30]
    pair = [write_scores(tmp_path / f"{n}.csv", scores) for n, scores in enumerate(flipped)]
    out = call("compare", *pair, *options, "--margin", "0.01", columns=1000).out
    confirm, _ = re.findall(r"^- .+? \(`(.+?)`\) *$", out, re.MULTILINE)
    expected = ["forgetmap", "confirm", *map(str, pair), *options, "--margin", "0.01"]
    assert shlex.split(confirm)[:4] == expected[:4]
    assert sorted(shlex.split(confirm)) == sorted(expected)
    assert "items.jsonl" in type_next(f"`{confirm}`").out


def test_next_steps_keep_a_selected_model_and_no_password(tmp_path: Path) -> None:
    rows = [f"{model},{n},{n and (model == 'a' or n > 30)}\n" for model in "ab" for n in range(99)]
    path = tmp_path / "models.csv"
    path.write_text("".join(["model,item,score\n", *rows]), encoding="utf-8")
    out = call("compare", f"{path}#a", f"{path}#b", "--task", "t", columns=1000).out
    assert f"forgetmap report '{path}#a' '{path}#b'" in out
    context = click.Context(compare_command, info_name="compare")
    context.params = {"noise": "https://me:password@host/again.csv"}
    context.set_parameter_source("noise", ParameterSource.COMMANDLINE)
    with context:
        assert next_commands([f"{path}#a", f"{path}#b"]) == {}
    context.params = {"noise": "https://host/again.csv"}
    with context:
        assert "report" in next_commands([f"{path}#a", "https://host/b.csv"])
        assert next_commands([f"{path}#a", "https://host/b.csv?sig=secret"]) == {}


def test_next_steps_of_the_gate_can_be_typed(tmp_path: Path) -> None:
    before = write_scores(tmp_path / "before.csv", [1] * 90 + [0] * 10)
    after = write_scores(tmp_path / "after.csv", [0] * 30 + [1] * 60 + [0] * 10)
    options = ["--columns", "item=q,score=ok", "--task", "t"]
    out = call("gate", "check", before, after, *options, columns=1000).out
    report, *_ = re.findall(r"^- .+? \(`(.+?)`\) *$", out, re.MULTILINE)
    type_next(f"`{report} --out {tmp_path / 'page.html'}`")
    # Other commands cannot read a baseline, and a backtick would end the command too early.
    odd = after.rename(tmp_path / "a`b.csv")
    out = call("gate", "check", before, odd, *options, columns=1000).out
    assert "(command: report)" in out
    assert "`forgetmap" not in out


def test_plan_has_complete_commands_and_not_itself(tmp_path: Path) -> None:
    flipped = [[1] * 60 + [0] * 40, [0] * 10 + [1] * 60 + [0] * 30]
    pair = [write_scores(tmp_path / f"{n}.csv", scores) for n, scores in enumerate(flipped)]
    options = ["--columns", "item=q,score=ok", "--task", "t"]
    done = call("plan", *pair, *options, columns=1000)
    assert done.out.startswith("1 group open"), done.err
    (step,) = re.findall(r"`(.+)`", done.out.partition("Next:")[2])
    assert shlex.split(step)[:4] == ["forgetmap", "confirm", *map(str, pair)]
    made = call("compare", *pair, *options, "--out", tmp_path / "out", columns=1000)
    assert made.code == 0, made.err
    read = call("plan", tmp_path / "out", columns=1000).out
    assert "(command: confirm)" in read
    assert "`" not in read


def steps(*args: object) -> list[str]:
    """The commands under "What next", on a narrow screen."""
    out = call(*args, columns=60).out
    return re.findall(r"`(.+?)`", out.partition("What next")[2].partition("How we know")[0])


def test_next_steps_are_exact_and_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_scores(tmp_path / "-before.csv", [12345678] * 99 + [0])
    write_scores(tmp_path / "-the long name of after.csv", [0] * 30 + [12345678] * 69 + [0])
    options = ["--columns", "item=q,score=ok", "--task", "t", "--range", "0:12345678.0"]
    output = ["--out", "result", "--limit", "3"]
    report, *_ = steps(
        "compare", *options, *output, "--", "-before.csv", "-the long name of after.csv"
    )
    sources = ["./-before.csv", "./-the long name of after.csv"]
    assert shlex.split(report) == ["forgetmap", "report", *sources, *options]
    type_next(f"`{report}`")


def test_next_steps_choose_the_same_runs(tmp_path: Path) -> None:
    for model in ("base", "tuned"):
        folder = write_lm_eval(tmp_path, [lm_eval_row(n, 1.0) for n in range(20)])
        (folder / "model").rename(tmp_path / model)
        shutil.move(tmp_path / model, tmp_path / "logs" / model)
    logs = tmp_path / "logs"
    (plan,) = steps(
        "compare", logs, logs, "--run", "base", "--run", "tuned", "--metric", "exact_match"
    )
    assert shlex.split(plan)[-6:] == ["--metric", "exact_match", "--run", "base", "--run", "tuned"]
    type_next(f"`{plan}`")
    store = tmp_path / "my store"
    options = ["--run", "base", "--run", "tuned", "--margin", "0.5", "--store", store]
    (accept,) = steps("gate", "check", logs, logs, *options)
    assert "baseline main" in type_next(f"`{accept}`").out
    assert store.is_dir()


def test_the_policy_that_was_written_can_be_used(tmp_path: Path) -> None:
    sources = [write_scores(tmp_path / name, [1] * 20) for name in ("my a.csv", "my b.csv")]
    options = ["--columns", "item=q,score=ok", "--task", "t", "--margin", "0.5"]
    out = call("gate", "init", *sources, *options, "--out", tmp_path / "my policy.toml").out
    type_next(f"`{out.partition('Next: ')[2].strip()}`")


def test_one_folder_with_two_models_names_the_command_that_compares_them(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for model in ("base", "tuned"):
        folder = write_lm_eval(tmp_path, [lm_eval_row(n, 1.0) for n in range(3)])
        (folder / "model").rename(tmp_path / "logs" / model)
    error = refused("compare", tmp_path / "logs")
    assert "contains results of 2 models: base, tuned" in error
    type_next(f"`forgetmap {error.split(': forgetmap ')[1].strip().removesuffix('.')}`")


def test_an_empty_path_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = write_scores(tmp_path / "a.csv", [1])
    assert "the path of a run is empty" in refused("compare", "", run)


def test_a_single_source_has_one_run(tmp_path: Path) -> None:
    run = write_scores(tmp_path / "a.csv", [1])
    error = refused("records", "show", run, "--run", "a", "--run", "b c")
    assert "--run is given 2 times" in error
    assert "choose one run: --run 'b c'." in error


def test_one_run_is_no_comparison(tmp_path: Path) -> None:
    error = refused("compare", write_scores(tmp_path / "a.csv", [1]))
    assert "there is nothing to compare" in error
    assert f"forgetmap compare {tmp_path / 'a.csv'} AFTER" in error
    error = refused("compare", "https://me:password@host/a.csv?sig=password")
    assert "forgetmap compare https://host/a.csv AFTER" in error
    assert "password" not in error


def test_each_model_of_a_fan_out_has_its_own_commands(tmp_path: Path) -> None:
    """Each with the model that was chosen for its source."""
    flipped = {"base": [1] * 60 + [0] * 40, "sft": [0] * 10 + [1] * 60 + [0] * 30,
               "dpo": [0] * 12 + [1] * 60 + [0] * 28}  # fmt: skip
    rows = [f"{model},{n},{score}\n" for model, own in flipped.items()
            for n, score in enumerate(own)]  # fmt: skip
    path = tmp_path / "models.csv"
    path.write_text("".join(["model,item,score\n", *rows]), encoding="utf-8")
    options = ["--task", "t", "--margin", "0.01"]
    sources = [f"{path}#{model}" for model in flipped]
    typed = steps("compare", *sources, *options)
    confirms = [shlex.split(step) for step in typed if step.startswith("forgetmap confirm")]
    assert [words[:4] for words in confirms] == [
        ["forgetmap", "confirm", sources[0], after] for after in sources[1:]
    ]
    assert all(sorted(words[4:]) == sorted(options) for words in confirms)
    chain = steps("compare", *sources, *options, "--chain")
    assert f"forgetmap confirm '{sources[0]}' '{sources[2]}'" in " ".join(chain)


def test_items_that_are_all_right_before_are_easy_or_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_scores(tmp_path / "before.csv", [1] * 100)
    write_scores(tmp_path / "after.csv", [0] * 30 + [1] * 70)
    typed = ["before.csv", "after.csv", "--columns", "item=q,score=ok", "--task", "t"]
    confirm, easy = steps("compare", *typed)
    assert shlex.split(confirm) == ["forgetmap", "confirm", *typed]
    assert "items.jsonl" in type_next(f"`{confirm}`").out
    assert shlex.split(easy) == ["forgetmap", "compare", *typed, "--not-selected"]
    assert "LOST" in type_next(f"`{easy}`").out
    decided = steps("gate", *typed)
    assert shlex.split(decided[-1]) == ["forgetmap", "gate", *typed, "--not-selected"]
    again = call(*shlex.split(decided[-1])[1:])
    assert again.code == 1
    assert "FAIL" in again.out
