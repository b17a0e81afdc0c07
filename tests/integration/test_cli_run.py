"""`forgetmap run` and `forgetmap map`, with a tiny model in a folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

import forgetmap as fm
from command_line import call, write
from hub_copies import write_copies
from tiny_models import tiny_model, tokenizer

TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model("llama").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def chatty(model: Path) -> Path:
    folder = model.parent / "chatty"
    tiny_model("llama").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    set_template(folder, TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def smaller_model(model: Path) -> Path:
    """The same weights with half the context."""
    folder = model.parent / "smaller"
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] //= 2
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def set_template(folder: Path, template: str) -> None:
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text()) | {"chat_template": template}
    path.write_text(json.dumps(config))


def questions(path: Path) -> Path:
    rows = [
        {"question": f"Say {word}", "gold": word, "task": "words", "id": str(place)}
        for place, word in enumerate(("cat", "dog", "bird"))
    ]
    return write(path / "questions.jsonl", rows)


def choices(path: Path) -> Path:
    words = ("cat", "dog", "bird", "mat")
    rows = [
        {"question": f"Which is {place}?", "gold": words[place % 4], "options": words}
        | {"task": "choices", "id": str(place)}
        for place in range(20)
    ]
    return write(path / "choices.jsonl", rows)


def test_the_same_model_twice_lost_nothing(model: Path, tmp_path: Path) -> None:
    ask = ("--suite", choices(tmp_path))
    done = call("map", model, model, *ask, "--out", tmp_path / "map")
    assert done.code == 0, done.err
    assert "CANNOT TELL" in done.out or "NO LOSS BEYOND" in done.out
    assert (tmp_path / "map" / "result" / "comparison.json").is_file()
    report = tmp_path / "map" / "report.html"
    assert done.out.splitlines()[-1] == f"Report: {report}"
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    runs = sorted(path.name for path in (tmp_path / "map" / "runs").iterdir())
    assert runs == ["0-tiny", "1-tiny"]
    stamp = (tmp_path / "map" / "runs" / "0-tiny").stat().st_mtime_ns
    again = call("map", model, model, *ask, "--out", tmp_path / "map")
    assert again.out == done.out
    assert (tmp_path / "map" / "runs" / "0-tiny").stat().st_mtime_ns == stamp


def test_a_file_of_questions(model: Path, tmp_path: Path) -> None:
    path = questions(tmp_path)
    done = call("run", model, "--suite", path, "--out", tmp_path / "run", "--max-new-tokens", "4")
    assert done.code == 0, done.err
    run = fm.open_run(tmp_path / "run")
    assert run.info.decoding["temperature"] == 0
    assert run.info.protocol == "same (plain)"
    assert len(run.scores.collect()) == 2 * 3
    assert call("records", "check", tmp_path / "run").code == 0


def test_a_dry_run_writes_nothing(model: Path, tmp_path: Path) -> None:
    path = choices(tmp_path)
    done = call("map", model, model, "--suite", path, "--out", tmp_path / "map", "--dry-run")
    assert done.code == 0, done.err
    assert "20 answers" in done.out
    assert "minutes" in done.out
    assert list(tmp_path.iterdir()) == [path]


def test_prompts_that_differ_are_warned_about(model: Path, chatty: Path, tmp_path: Path) -> None:
    path = questions(tmp_path)
    ask = ("--suite", path, "--protocol", "published", "--shots", "0", "--max-new-tokens", "4")
    for place, each in (("base", model), ("tuned", chatty)):
        assert call("run", each, *ask, "--stage", place, "--out", tmp_path / place).code == 0
    warnings = fm.compare(tmp_path / "base", tmp_path / "tuned").result.pairing.warnings
    assert {"protocol", "prompts", "sampled"} <= {notice.code for notice in warnings}


@pytest.fixture(scope="module")
def stages(chatty: Path) -> Path:
    """A base and a tuned model, both with a chat template and room for worked examples."""
    folder = chatty.parent / "stages"
    for name in ("base", "tuned"):
        shutil.copytree(chatty, folder / name)
        config = json.loads((folder / name / "config.json").read_text())
        (folder / name / "config.json").write_text(
            json.dumps(config | {"max_position_embeddings": 6000})
        )
    return folder


PUBLISHED = (
    "--suite", "post-forget", "--tasks", "arc:easy,gpqa:diamond", "--limit", "1",
    "--protocol", "published", "--repeats", "1",
)  # fmt: skip


def test_published_asks_by_the_stage_of_each_model(stages: Path, tmp_path: Path) -> None:
    ask = (*PUBLISHED, "--data-root", write_copies(tmp_path / "copies"))
    base, tuned = stages / "base", stages / "tuned"
    done = call(
        "map", f"{base},stage=base,max_tokens=5", f"{tuned},stage=tuned,max_tokens=7", *ask,
        "--out", tmp_path / "map",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "Note:" not in done.err
    runs = [fm.open_run(tmp_path / "map" / "runs" / name) for name in ("0-base", "1-tuned")]
    assert [run.info.protocol for run in runs] == ["published (few-shot)", "published (chat)"]
    assert [run.info.stage for run in runs] == ["base", "tuned"]
    assert [run.info.decoding["max_new_tokens"] for run in runs] == [5, 7]
    assert [run.info.decoding["stop"] for run in runs] == [["\nQuestion:"], []]
    shots = [{name: task.n_shot for name, task in run.info.tasks.items()} for run in runs]
    assert shots == [{"arc:easy": 2, "gpqa:diamond": 5}, {"arc:easy": 0, "gpqa:diamond": 0}]
    for run, counts in zip(runs, shots, strict=True):
        assert run.texts is not None
        texts = run.texts.collect()
        for task, prompt in zip(texts["task"], texts["prompt"], strict=True):
            assert prompt.count("Question:") == (counts[task] or 0) + 1
            assert prompt.endswith("[assistant]") == (run is runs[1])


def test_published_does_not_guess_the_stage(stages: Path, tmp_path: Path) -> None:
    models = (f"{stages / 'base'},stage=base", stages / "tuned")
    done = call("map", *models, *PUBLISHED, "--out", tmp_path / "map")
    assert done.code == 2
    assert "whether tuned is a base or a tuned model" in done.err
    assert "--stage" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "forced", "said"),
    [
        ("base", "chat", "base model was evaluated in a chat"),
        ("tuned", "few-shot", "tuned model was"),
    ],
)
def test_a_model_asked_otherwise_than_its_stage_warns(
    name: str, forced: str, said: str, stages: Path, tmp_path: Path
) -> None:
    ask = (*PUBLISHED, "--data-root", write_copies(tmp_path / "copies"))
    model = f"{stages / name},stage={name},style={forced},max_tokens=3"
    done = call("run", model, *ask, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert f"Note: a {said}" in done.err
    run = fm.open_run(tmp_path / "run")
    assert run.info.protocol == f"published ({forced})"
    assert [said in note for note in run.info.notes] == [True]
    other = shutil.copytree(tmp_path / "run", tmp_path / "other")
    warnings = fm.compare(tmp_path / "run", other).result.pairing.warnings
    assert any(said in notice.message for notice in warnings)


def test_two_models_do_not_share_random_numbers(model: Path, tmp_path: Path) -> None:
    """The same weights under two names answer differently, under one name alike."""
    twin = shutil.copytree(model, tmp_path / "twin")
    ask = ("--suite", questions(tmp_path), "--temperature", "1", "--max-new-tokens", "6")
    said = {}
    for out, name in (("a", model), ("again", f"{model}/"), ("b", twin)):
        assert call("run", name, *ask, "--out", tmp_path / out).code == 0
        texts = fm.open_run(tmp_path / out).texts
        assert texts is not None
        said[out] = texts.collect().sort("item")["response"].to_list()
    assert said["a"] == said["again"] != said["b"]
    stamp = (tmp_path / "a").stat().st_mtime_ns
    assert call("run", model, *ask, "--out", tmp_path / "a").code == 0
    assert (tmp_path / "a").stat().st_mtime_ns == stamp


def test_the_chat_template_is_recorded_where_it_is_used(chatty: Path, tmp_path: Path) -> None:
    other = shutil.copytree(chatty, tmp_path / "other")
    set_template(other, f"Chat:\n{TEMPLATE}")
    ask = ("--suite", questions(tmp_path), "--max-new-tokens", "4")
    runs = {"plain": (chatty,), "chat": (chatty, "--chat"), "other": (other, "--chat")}
    for name, given in runs.items():
        assert call("run", *given, *ask, "--out", tmp_path / f"run-{name}").code == 0
    found = {name: fm.open_run(tmp_path / f"run-{name}").info.template_hash for name in runs}
    assert found["plain"] is None
    assert found["chat"] == hashlib.sha256(TEMPLATE.encode()).hexdigest()[:16]
    assert found["other"] not in (None, found["chat"])
    warnings = fm.compare(tmp_path / "run-chat", tmp_path / "run-other").result.pairing.warnings
    assert "template" in {notice.code for notice in warnings}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["no/such/folder/here"], "There is no model"),
        (["{model}", "--suite", "basic"], "did you mean basics"),
        (["{model}", "--tasks", "arithmetics"], "has no task 'arithmetics'"),
        (["{model}", "--chat"], "no chat template"),
        (["{model}", "--repeats", "3"], "greedy answers"),
        (["{model}", "--temperature", "-1"], "out of range"),
        (["{model}", "--suite", "{questions}", "--columns", "question=nothing"], "nothing"),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(
    model: Path, tmp_path: Path, args: list[str], said: str
) -> None:
    given = [arg.format(model=model, questions=questions(tmp_path)) for arg in args]
    suite = [] if "--suite" in given else ["--suite", "basics"]
    done = call("run", *given, *suite, "--limit", "1", "--out", tmp_path / "run")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "Hint: " in done.err
    assert not (tmp_path / "run").exists()


def test_what_does_not_fit_is_left_out_on_request_and_said(
    model: Path, smaller_model: Path, tmp_path: Path
) -> None:
    """Both models of a map leave out what does not fit into the smaller context."""
    rows = [
        {"question": f"Which is {n}?" + " cat" * (4 * n), "gold": "cat", "options": ["cat", "dog"]}
        | {"task": "choices", "id": str(n)}
        for n in range(40)
    ]
    suite = write(tmp_path / "long.jsonl", rows)
    ask = ("--suite", suite, "--shots", "0")
    refused = call("map", model, smaller_model, *ask, "--out", tmp_path / "refused")
    assert refused.code == 2
    assert "--skip-too-long" in refused.err
    done = call("map", model, smaller_model, *ask, "--skip-too-long", "--out", tmp_path / "map")
    assert done.code == 0, done.err
    runs = [fm.open_run(path) for path in sorted((tmp_path / "map" / "runs").iterdir())]
    (left_out,) = {tuple(run.info.left_out.items()) for run in runs}
    ((task, count),) = left_out
    assert task == "choices"
    assert 0 < count < 40
    assert all(len(run.scores.collect()) == 40 - count for run in runs)
    result = json.loads((tmp_path / "map" / "result" / "comparison.json").read_text())
    notices = [each for each in result["pairing"]["warnings"] if each["code"] == "left_out"]
    assert len(notices) == 2
    assert all(f"{count} items left out" in notice["message"] for notice in notices)
    assert f"{count} items left out" in " ".join(done.out.split())
    alone = call("run", smaller_model, *ask, "--skip-too-long", "--out", tmp_path / "run")
    assert f"{count} items left out" in alone.err
