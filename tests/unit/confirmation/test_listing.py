"""Items and commands for other programs, with the ids of their logs."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import results, write
from forgetmap.confirmation import Confirmation, ItemFormat
from forgetmap.errors import FieldError, OutputError, UsageError

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
LM_EVAL = LOGS / "lm-eval" / "0.4.13" / "log"


def lm_eval_logs(folder: Path, score: Callable[[int], float], **config: Any) -> Path:
    """A log of lm-eval whose answers are right as given by the id."""
    shutil.copytree(LM_EVAL, folder)
    for path in folder.rglob("samples_*.jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        write(path, [row | dict.fromkeys(row["metrics"], score(row["doc_id"])) for row in rows])
    (document,) = folder.rglob("results_*.json")
    content = json.loads(document.read_text(encoding="utf-8"))
    document.write_text(
        json.dumps(content | {"config": content["config"] | config}), encoding="utf-8"
    )
    return folder


def inspect_logs(folder: Path, right: set[str], **spec: Any) -> Path:
    """A log of Inspect with these samples right."""
    folder.mkdir()
    source = LOGS / "inspect" / "0.3.285-json-choices" / "log" / "json-choices.json"
    log = json.loads(source.read_text(encoding="utf-8"))
    for sample in log["samples"]:
        sample["scores"]["choice"]["value"] = "C" if sample["id"] in right else "I"
    log["eval"] |= spec
    (folder / "log.json").write_text(json.dumps(log), encoding="utf-8")
    return folder


def tables(folder: Path, ids: list[str], **same: Any) -> tuple[Path, Path]:
    """Everything was right, and nothing is."""
    rows = [{"task": "t", "item": item, "score": 1.0} | same for item in ids]
    changed = [row | {"score": 0.0} for row in rows]
    return write(folder / "a.jsonl", rows), write(folder / "b.jsonl", changed)


def listed(pair: tuple[Path, Path], out: Path, form: ItemFormat | None = None) -> Confirmation:
    return fm.confirm(*pair, out=out, item_format=form, selected=False)


def words(command: str) -> dict[str, str]:
    """The options of a command."""
    parts = shlex.split(command)
    return {name: value for name, value in pairwise(parts) if name.startswith("-")}


# ---------------------------------------------------------------------- lm-eval


def test_lm_eval_gets_positions_that_its_log_has_in_rising_order(tmp_path: Path) -> None:
    base = lm_eval_logs(tmp_path / "base", lambda _: 1.0)
    tuned = lm_eval_logs(tmp_path / "tuned", lambda doc: float(doc == 1))
    done = listed((base, tuned), tmp_path / "out")
    assert done.comparison is None
    samples = [json.loads(file.read_text(encoding="utf-8")) for file in done.files]
    wanted = {"tiny_choices": [0, 2, 3], "tiny_repeats": [0, 2], "tiny_sums": [0, 2]}
    assert samples == [wanted, wanted]
    for task, positions in wanted.items():
        (log,) = tmp_path.glob(f"base/*/samples_{task}_*.jsonl")
        ids = {json.loads(line)["doc_id"] for line in log.read_text().splitlines()}
        assert ids.issuperset(positions)
    assert len(done.plan.items) == 7


def test_the_command_of_lm_eval_is_that_of_the_log_with_another_seed(tmp_path: Path) -> None:
    base = lm_eval_logs(
        tmp_path / "base", lambda _: 1.0, model_args={"pretrained": "org/base"}, batch_size="8",
        gen_kwargs={"temperature": 0.7}, use_cache="answers.db", torch_seed=7,
    )  # fmt: skip
    tuned = lm_eval_logs(
        tmp_path / "tuned", lambda _: 0.0, model="local-completions", batch_size=1,
        model_args="model=tuned,seed=3,base_url=http://localhost/v1", device=None,
    )  # fmt: skip
    out = tmp_path / "out"
    first, second = (words(command) for command in listed((base, tuned), out).commands)
    assert first["--model"] == "hf"
    assert json.loads(first["--model_args"]) == {"pretrained": "org/base"}
    assert first["--seed"] == "0,1234,8,1234"
    assert (first["--batch_size"], second["--batch_size"]) == ("7", "2")
    assert (first["--device"], "--device" in second) == ("cpu", False)
    assert json.loads(first["--gen_kwargs"]) == {"temperature": 0.7}
    assert "--use_cache" not in first
    assert first["--num_fewshot"] == "0"
    assert second["--model_args"] == "model=tuned,base_url=http://localhost/v1,seed=1235"
    assert second["--samples"] == str(out / "samples-after.json")
    assert second["--output_path"] == str(out / "rerun-after")
    assert first["--tasks"] == "tiny_choices,tiny_repeats,tiny_sums"


@pytest.mark.parametrize(
    ("recorded", "other"),
    [
        ({"batch_size": None}, "2"),
        ({"batch_size": "auto", "batch_sizes": [64]}, "63"),
        ({"batch_size": "auto:4", "batch_sizes": []}, "2"),
    ],
)
def test_every_command_of_lm_eval_has_another_batch_size(
    recorded: dict[str, Any], other: str, tmp_path: Path
) -> None:
    """And copies are warned of, also where only log-probabilities were asked for."""
    base = lm_eval_logs(tmp_path / "base", lambda _: 1.0, **recorded)
    tuned = lm_eval_logs(tmp_path / "tuned", lambda _: 0.0, **recorded)
    done = listed((base, tuned), tmp_path / "out")
    assert [words(command)["--batch_size"] for command in done.commands] == [other, other]
    assert "copies do not count" in done.notices[0]


def test_lm_eval_0_3_cannot_choose_items(tmp_path: Path) -> None:
    for name, path in zip(("b", "a"), tables(tmp_path, ["1", "2"]), strict=True):
        run = fm.open_run(path)
        harness = run.info.harness.model_copy(update={"name": "lm-eval", "version": "0.3"})
        own = replace(run, info=run.info.model_copy(update={"harness": harness}))
        fm.write_run(own, tmp_path / name)
    done = listed((tmp_path / "b", tmp_path / "a"), tmp_path / "out")
    assert (done.files[0].name, done.commands) == ("items.jsonl", ())
    assert "lm-eval 0.3 cannot choose items" in done.notices[0]
    again = listed((tmp_path / "b", tmp_path / "a"), tmp_path / "more", "lm-eval")
    assert "--samples" in again.commands[0]


def test_positions_rise_as_numbers_not_as_texts(tmp_path: Path) -> None:
    done = listed(tables(tmp_path, ["10", "9", "100", "2"]), tmp_path / "out", "lm-eval")
    assert json.loads(done.files[0].read_text()) == {"t": [2, 9, 10, 100]}
    assert words(done.commands[0])["--model"] == "MODEL"


def test_lm_eval_knows_no_other_ids_and_no_repeats(tmp_path: Path) -> None:
    pair = tables(tmp_path, ["q-1", "q-2"])
    with pytest.raises(FieldError, match="not a position") as caught:
        listed(pair, tmp_path / "out", "lm-eval")
    assert caught.value.field == "item"
    assert "--format jsonl" in caught.value.hint
    with pytest.raises(UsageError, match="several times"):
        fm.confirm(*pair, out=tmp_path / "more", item_format="lm-eval", repeats=2, selected=False)


# ---------------------------------------------------------------------- Inspect


def test_inspect_gets_the_ids_and_the_command_of_its_log(tmp_path: Path) -> None:
    every = {"circle", "even", "red"}
    spec = {
        "model": "openai/gpt",
        "model_base_url": "http://h/v1",
        "task_args_passed": {"n": 3},
        "model_generate_config": {"temperature": 0.5, "cache": True, "seed": 4, "top_p": None},
    }
    base = inspect_logs(tmp_path / "base", every, **spec)
    tuned = inspect_logs(tmp_path / "tuned", {"even"}, model_args={"device": "cpu", "n": 1.5})
    done = fm.confirm(base, tuned, out=tmp_path / "out", repeats=2, selected=False)
    ids = [sorted(file.read_text(encoding="utf-8").strip().split(",")) for file in done.files]
    assert ids == [["circle", "red"], ["circle", "red"]]
    first, second = done.commands
    assert f'--sample-id "$(cat {tmp_path}/out/ids-before.txt)"' in first
    assert shlex.split(first)[:3] == ["inspect", "eval", "shapes"]
    options = words(first)
    assert (options["--model"], options["--model-base-url"]) == ("openai/gpt", "http://h/v1")
    assert (options["-T"], options["--temperature"], options["--epochs"]) == ("n=3", "0.5", "2")
    assert options["--seed"] == "5"
    assert "--cache" not in options
    assert "--top-p" not in options
    assert "-M device=cpu -M n=1.5" in second
    assert words(second)["--log-dir"] == str(tmp_path / "out" / "rerun-after")


def test_inspect_takes_ids_for_patterns(tmp_path: Path) -> None:
    ids = ["a*", "b[1]", "c,d", " e", "t:7", "plain"]
    done = listed(tables(tmp_path, ids), tmp_path / "out", "inspect")
    patterns = done.files[0].read_text(encoding="utf-8").strip("\n").split(",")
    assert len(patterns) == len(ids)
    for pattern in patterns:
        bare = pattern.removeprefix("t:") if pattern.startswith("t:t:") else pattern
        assert sum(fnmatch(item, bare) for item in ids) == 1
    clash = tables(tmp_path, ["c,d", "c-d"])
    with pytest.raises(FieldError, match="other ids match"):
        listed(clash, tmp_path / "clash", "inspect")


def test_inspect_gets_the_task_before_the_id_where_there_are_several(tmp_path: Path) -> None:
    rows = [*results([1, 1], "one"), *results([1, 1], "two")]
    changed = [row | {"score": 0.0} for row in rows]
    pair = write(tmp_path / "a.jsonl", rows), write(tmp_path / "b.jsonl", changed)
    done = listed(pair, tmp_path / "out", "inspect")
    text = done.files[0].read_text().strip()
    assert sorted(text.split(",")) == ["one:i0", "one:i1", "two:i0", "two:i1"]


def test_a_list_that_no_shell_takes_is_said_to_be_one(tmp_path: Path) -> None:
    ids = [f"{n:06d}-{'x' * 60}" for n in range(2_000)]
    done = listed(tables(tmp_path, ids), tmp_path / "out", "inspect")
    assert "too long for a command" in done.notices[0]


# ---------------------------------------------------------------------- JSONL


def test_others_get_a_plain_file(tmp_path: Path) -> None:
    same = {"question": "Which is a metal?", "options": ["iron", "wood"], "gold": "iron"}
    done = listed(tables(tmp_path, ["x", "y"], category="c", **same), tmp_path / "out")
    (file,) = done.files
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert sorted(row.pop("id") for row in rows) == ["x", "y"]
    assert rows[0] == {"task": "t", "flip": "forgotten", "category": "c", **same}
    assert done.commands == ()
    assert str(tmp_path / "out" / "rerun-before.jsonl") in done.notices[0]
    assert fm.load_suite(file).tasks[0].load()[0].question == "Which is a metal?"


def test_lighteval_is_said_to_be_unable(tmp_path: Path) -> None:
    for name, path in zip(("b", "a"), tables(tmp_path, ["1", "2"]), strict=True):
        run = fm.open_run(path)
        harness = run.info.harness.model_copy(update={"name": "lighteval"})
        own = replace(run, info=run.info.model_copy(update={"harness": harness}))
        fm.write_run(own, tmp_path / name)
    done = listed((tmp_path / "b", tmp_path / "a"), tmp_path / "out")
    assert "lighteval cannot choose items" in done.notices[0]
    assert done.files[0].name == "items.jsonl"


def test_models_of_another_harness_are_not_asked(tmp_path: Path) -> None:
    base = inspect_logs(tmp_path / "base", {"circle", "red"})
    tuned = inspect_logs(tmp_path / "tuned", set())
    with pytest.raises(UsageError, match="inspect asked the model") as caught:
        fm.confirm(base, tuned, out=tmp_path / "out", models=("a", "b"), selected=False)
    assert "remove --models" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_what_is_asked_is_fixed_before(tmp_path: Path) -> None:
    """The same again is the same; other items or answers are refused."""
    pair = tables(tmp_path, [f"{n}" for n in range(30)])
    first = listed(pair, tmp_path / "out")
    assert listed(pair, tmp_path / "out").plan == first.plan
    for other in ({"limit": 10}, {"repeats": 3}, {"seed": 1}):
        with pytest.raises(OutputError, match="fixed before") as caught:
            fm.confirm(*pair, out=tmp_path / "out", selected=False, **other)  # type: ignore[arg-type]
        assert "--look 2" in caught.value.hint
    assert len(fm.confirm(*pair, out=tmp_path / "out", limit=10, overwrite=True).plan.items) == 10


def test_the_json_says_all_of_it(tmp_path: Path) -> None:
    pair = tables(tmp_path, [f"{n}" for n in range(30)])
    done = fm.confirm(*pair, out=tmp_path / "out", limit=20, selected=False)
    said = json.loads(done.to_json())
    assert (said["forgotten"], said["gained"], said["asked"], said["answers"]) == (30, 0, 20, 40)
    assert 0 < said["provable"] < 1
    assert said["comparison"] is None
    assert said["files"] == [str(tmp_path / "out" / "items.jsonl")]
