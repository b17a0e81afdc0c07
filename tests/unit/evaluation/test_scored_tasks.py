"""Tasks with scorers: unchanged prompts, scores by field, second turns after the first."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.capabilities.measure import Measuring, judge_at, measure
from forgetmap.capabilities.taxonomy import parse_taxonomy
from forgetmap.errors import UsageError
from forgetmap.evaluation import ModelIdentity, Step, estimate_run, run_model
from forgetmap.evaluation.backends.base import Failure
from forgetmap.evaluation.backends.transformers.backend import TransformersBackend
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.settings import Settings
from forgetmap.evaluation.suites.catalogue import _with_limit
from forgetmap.records.validate import check_run
from forgetmap.scoring.registry import find_scorer
from forgetmap.scoring.scorer import ScorerInput
from judge_server import Answer, best_reply, judge_server
from tiny_models import tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch

N = 5
TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"
SHORT = Settings(max_new_tokens=6)
SCHEMA = {"type": "object", "required": ["answer"]}
TAXONOMY = b"""
name = "turns"
groups = [{ id = "ALL" }]
tasks = [{ name = "sums" }, { name = "second" }, { name = "code" }]
capabilities = [{ id = "c", group = "ALL" }, { id = "s", group = "ALL" }]

[[metrics]]
id = "c.sums"
capability = "c"
task = "sums"
scorer = "number"
field = "acc"

[[metrics]]
id = "c.code"
capability = "c"
task = "code"
scorer = "code"
field = "acc"
needs = "sandbox"

[[metrics]]
id = "s.words"
capability = "s"
task = "second"
scorer = "style"
field = "words"
polarity = "both"
scale = "count"

[[metrics]]
id = "s.rating"
capability = "s"
task = "second"
scorer = "rating"
field = "rating"
scale = "rating"
needs = "judge"
"""


def sums() -> list[Item]:
    return [
        Item(str(n), f"{n} + {n}?", str(2 * n), request=f"What is {n} + {n}?\n\nSay  it.")
        for n in range(N)
    ]


def first_turns() -> list[Item]:
    return [Item(str(n), f"Name bird {n}.", "") for n in range(N)]


def second_turns() -> list[Item]:
    return [
        Item(
            str(n),
            f"Where does it live, {n}?",
            "",
            material={"turns": [f"Name bird {n}.", f"Where does it live, {n}?"]},
        )
        for n in range(N)
    ]


def programs() -> list[Item]:
    return [Item("0", "Write one().", "", material={"tests": ["assert one() == 1"]})]


def objects() -> list[Item]:
    return [Item(str(n), f"{n} as JSON.", str(n), material={"schema": SCHEMA}) for n in range(N)]


SUITE = Suite(
    "turns",
    (
        Task("sums", "maths", "text", sums, "Not shown.", scorers=("number", "style")),
        Task("second", "talk", "text", second_turns, scorers=("style", "rating"), follows="first"),
        Task("first", "talk", "text", first_turns, scorers=("style",)),
        Task("code", None, "text", programs, scorers=("code",)),
        Task("json", None, "text", objects, scorers=("json_schema",)),
    ),
)
ANSWERS = 4 * N + 1


def backend(template: str | None = None, kind: str = "llama") -> TransformersBackend:
    made = deepcopy(tokenizer())
    made.chat_template = template
    return TransformersBackend(tiny_model(kind), made)


def run(out: Path, settings: Settings = SHORT, suite: Suite = SUITE, **options: Any) -> Path:
    who = options.pop("backend", None) or backend()
    return run_model(who, suite, out, ModelIdentity(out.name), settings, **options)


def texts_of(path: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    texts = fm.open_run(path).texts
    assert texts is not None
    rows = texts.collect().rows(named=True)
    found = {(row["task"], row["item"], row["repeat"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def scores_of(path: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = fm.open_run(path).scores.collect().rows(named=True)
    found = {(f"{row['task']}/{row['item']}", row["metric"], row["scorer"]): row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("scored") / "plain")


def test_a_request_is_shown_as_it_is(done: Path, tmp_path: Path) -> None:
    plain = texts_of(done)
    assert plain["sums", "3", 0]["prompt"] == "What is 3 + 3?\n\nSay  it.\n\n"
    assert plain["first", "3", 0]["prompt"] == "Name bird 3.\n\n"
    settings = Settings(max_new_tokens=6, chat=True, system_prompt="Be brief.")
    chat = texts_of(run(tmp_path / "chat", settings, backend=backend(TEMPLATE)))
    prompt = chat["sums", "3", 0]["prompt"]
    assert prompt == "[system] Be brief.\n[user] What is 3 + 3?\n\nSay  it.\n[assistant]"


def test_a_second_turn_follows_the_answer_of_the_model_itself(done: Path, tmp_path: Path) -> None:
    plain = texts_of(done)
    said = plain["first", "2", 0]["response"]
    assert said.strip()
    assert plain["second", "2", 0]["prompt"] == (
        f"Name bird 2.\n\n{said}\n\nWhere does it live, 2?\n\n"
    )
    assert json.loads(plain["second", "2", 0]["material"])["first_response"] == said
    sampled = Settings(max_new_tokens=6, chat=True, temperature=1.0, repeats=2)
    chat = texts_of(run(tmp_path / "chat", sampled, backend=backend(TEMPLATE)))
    firsts = [chat["first", "2", repeat]["response"] for repeat in (0, 1)]
    assert firsts[0] != firsts[1]
    for repeat, first in enumerate(firsts):
        assert chat["second", "2", repeat]["prompt"] == (
            f"[user] Name bird 2.\n[assistant] {first}\n[user] Where does it live, 2?\n[assistant]"
        )


class BreaksOnce(TransformersBackend):
    """Fails on one prompt, which no real model does on command."""

    def __init__(self) -> None:
        super().__init__(tiny_model("llama"), tokenizer())

    def generate(self, prompts: Any, decoding: Any) -> Iterator[tuple[int, Any]]:
        for place, found in super().generate(prompts, decoding):
            broken = prompts[place].text == "Name bird 1.\n\n"
            yield place, Failure("broken on purpose") if broken else found


def test_without_a_first_answer_the_second_is_missing(tmp_path: Path) -> None:
    steps: list[Step] = []
    path = run(tmp_path / "a", backend=BreaksOnce(), on_progress=steps.append)
    rows = scores_of(path)
    assert texts_of(path)["first", "1", 0]["error"] == "broken on purpose"
    missing = {key for key, row in rows.items() if row["outcome"] == "error"}
    assert {place for place, _, _ in missing} == {"first/1", "second/1"}
    assert len(missing) == 18 + 18 + 1  # all fields of style twice, and the rating
    assert all(rows[key]["score"] is None for key in missing)
    assert texts_of(path)["second", "1", 0]["error"] == "the first turn has no answer"
    assert rows["second/2", "words", "style@1"]["score"] is not None
    assert (steps[-1].done, steps[-1].failed) == (ANSWERS, 2)
    check_run(fm.open_run(path))


def test_progress_counts_both_turns(tmp_path: Path) -> None:
    steps: list[Step] = []
    run(tmp_path / "a", on_progress=steps.append)
    assert [step.done for step in steps] == list(range(1, ANSWERS + 1))
    assert {step.total for step in steps} == {ANSWERS}
    assert all(a.tokens < b.tokens for a, b in pairwise(steps))
    assert all(a.seconds <= b.seconds for a, b in pairwise(steps))


class StoppedError(Exception):
    """Stands for whatever ends a run early."""


@pytest.mark.parametrize("stop", [2, ANSWERS - N, ANSWERS - N + 2])
def test_a_run_stopped_between_turns_goes_on(done: Path, tmp_path: Path, stop: int) -> None:
    def report(step: Step) -> None:
        if step.done == stop:
            raise StoppedError

    with pytest.raises(StoppedError):
        run(tmp_path / "plain", on_progress=report)
    steps: list[Step] = []
    path = run(tmp_path / "plain", on_progress=steps.append)
    assert len(steps) == ANSWERS - stop
    assert texts_of(path) == texts_of(done)
    assert scores_of(path) == scores_of(done)


def test_a_run_killed_after_the_first_turns_goes_on(done: Path, tmp_path: Path) -> None:
    out = tmp_path / "plain"
    marker = tmp_path / "first turns are done"

    def wait(step: Step) -> None:
        if step.done == ANSWERS - N:
            marker.touch()
            time.sleep(60)

    child = os.fork()
    if not child:
        try:
            run(out, on_progress=wait)
        finally:
            os._exit(0)
    while not marker.exists():
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not out.exists()
    assert texts_of(run(out)) == texts_of(done)


def test_every_field_of_every_scorer_is_a_metric(done: Path) -> None:
    rows = scores_of(done)
    of_sums = {metric for place, metric, _ in rows if place == "sums/0"}
    assert of_sums <= {"acc", "acc_strict", *find_scorer("style").fields}
    assert {"acc", "acc_strict", "words", "bullets", "directness"} <= of_sums
    for n in range(N):
        response = texts_of(done)["sums", str(n), 0]["response"]
        sample = ScorerInput(response, gold=str(2 * n), finish_reason="length")
        expected = find_scorer("number").score(sample)["acc"]  # type: ignore[attr-defined]
        row = rows[f"sums/{n}", "acc", "number@1"]
        assert (row["score"], row["outcome"]) == (expected.score, expected.outcome)
        assert (row["category"], row["gold"]) == ("maths", str(2 * n))


def test_material_and_ranges_are_in_the_run_folder(done: Path) -> None:
    info = fm.open_run(done).info
    assert (info.metrics["words"].low, info.metrics["words"].high) == (0, None)
    assert (info.metrics["rating"].low, info.metrics["rating"].high) == (1, 10)
    assert info.tasks["sums"].main_metric == "acc"
    assert info.tasks["sums"].main_scorer == "number@1"
    assert info.tasks["sums"].n_shot == 0
    assert json.loads(texts_of(done)["json", "2", 0]["material"]) == {"schema": SCHEMA}
    assert texts_of(done)["sums", "2", 0]["material"] is None
    check_run(fm.open_run(done))


def test_texts_are_written_once(done: Path) -> None:
    assert len(texts_of(done)) == ANSWERS
    rows = scores_of(done)
    assert len(rows) > 5 * ANSWERS
    hashes = {row["question_hash"] for key, row in rows.items() if key[0] == "sums/1"}
    assert len(hashes) == 1
    assert None not in hashes


def test_answers_in_free_form_have_room(tmp_path: Path) -> None:
    """Lines do not end them, and unless told otherwise they may be long."""
    found = fm.open_run(run(tmp_path / "a", Settings(temperature=1.0))).info.decoding
    assert (found["stop"], found["max_new_tokens"]) == ([], 1024)
    texts = texts_of(tmp_path / "a")
    assert any("\n" in (row["response"] or "") for row in texts.values())
    task = Task("short", None, "number", lambda: [Item("0", "1 + 1?", "2")])
    both = Suite("both", (SUITE.tasks[0], task))
    found = fm.open_run(run(tmp_path / "b", Settings(), both)).info.decoding
    assert (found["stop"], found["max_new_tokens"], found["free_tokens"]) == (["\n"], 64, 1024)
    assert "\n" not in texts_of(tmp_path / "b")["short", "0", 0]["response"]
    counted = estimate_run(backend(), Suite("one", (task,)), Settings())
    assert counted.most_tokens_out == 64


def test_a_first_answer_that_fills_the_context_leaves_the_second_missing(tmp_path: Path) -> None:
    talk = Suite("talk", SUITE.tasks[1:3])
    path = run(tmp_path / "a", Settings(), talk)
    texts, scores = texts_of(path), scores_of(path)
    full = [
        n for n in range(N) if "context length 256" in (texts["second", str(n), 0]["error"] or "")
    ]
    assert full
    for n in full:
        assert scores[f"second/{n}", "words", "style@1"]["score"] is None


@pytest.mark.parametrize(("name", "needs"), [("second", "judge"), ("code", "sandbox")])
def test_what_needs_help_is_unscored(done: Path, name: str, needs: str) -> None:
    metric = {"judge": "rating", "sandbox": "acc"}[needs]
    rows = [row for key, row in scores_of(done).items() if key[0].startswith(f"{name}/")]
    waiting = [row for row in rows if row["metric"] == metric]
    assert waiting
    assert all(row["score"] is None and row["outcome"] == "unscored" for row in waiting)


def test_what_needs_help_is_scored_later(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    taxonomy = parse_taxonomy(TAXONOMY, origin="t")
    with judge_server(lambda asked: Answer(best_reply(asked))) as served:
        how = Measuring(judge=judge_at(served.url, "judge"), allow_exec=True, processes=1)
        measured = measure(fm.open_run(done), taxonomy, how)
    check_run(measured)
    rows = measured.scores.collect().rows(named=True)
    ratings = [row["score"] for row in rows if row["metric"] == "rating"]
    assert len(ratings) == N
    assert set(ratings) <= {1.0, 10.0}  # 1 for a response that goes round in circles
    codes = [row["score"] for row in rows if row["task"] == "code" and row["metric"] == "acc"]
    assert codes == [0.0]


def test_an_item_that_cannot_be_scored_is_an_error_of_its_own(tmp_path: Path) -> None:
    items = [Item("0", "As JSON.", "", material={"schema": {"type": "nonsense"}}), objects()[1]]
    suite = Suite("s", (Task("json", None, "text", lambda: items, scorers=("json_schema",)),))
    rows = scores_of(run(tmp_path / "a", suite=suite))
    broken = rows["json/0", "valid", "json_schema@1"]
    assert (broken["score"], broken["outcome"]) == (None, "error")
    assert rows["json/1", "valid", "json_schema@1"]["score"] == 0


def test_a_task_that_continues_another_needs_it(tmp_path: Path) -> None:
    alone = Suite("s", tuple(task for task in SUITE.tasks if task.name != "first"))
    with pytest.raises(UsageError, match="continues the conversations of 'first'") as caught:
        run(tmp_path / "a", suite=alone)
    assert "add first to --tasks" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_scorer_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    suite = Suite("s", (Task("t", None, "text", sums, scorers=("numbr",)),))
    with pytest.raises(UsageError, match="no scorer 'numbr'"):
        run(tmp_path / "a", suite=suite)
    assert list(tmp_path.iterdir()) == []


def test_a_limit_keeps_turns_and_paraphrases_together() -> None:
    def many(start: str) -> Sequence[Item]:
        return [Item(f"i{n}", f"{start} {n}?", "") for n in range(50)]

    def task(name: str) -> Task:
        return Task(name, None, "text", partial(many, name), scorers=("style",))

    kept = [[item.id for item in _with_limit(task(name), 7).load()] for name in ("a", "b")]
    assert kept[0] == kept[1]
    assert len(kept[0]) == 7


def test_drift_between_two_such_runs(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    other = run(tmp_path / "gpt2", backend=backend(kind="gpt2"))
    taxonomy = parse_taxonomy(TAXONOMY, origin="t")
    result = fm.drift(done, other, taxonomy=taxonomy, draws=50, processes=1)
    cells = {cell.id: cell for cell in result.metrics}
    words = [
        [row["score"] for key, row in scores_of(path).items() if key[1] == "words"
         and key[0].startswith("second/")]
        for path in (done, other)
    ]  # fmt: skip
    assert cells["s.words"].n == N
    assert cells["s.words"].before == pytest.approx(sum(words[0]) / N)
    assert cells["s.words"].after == pytest.approx(sum(words[1]) / N)
    assert cells["s.rating"].value is None
    assert cells["c.code"].value is None
    same = fm.drift(done, done, taxonomy=taxonomy, draws=50, processes=1)
    assert {cell.id: cell.value for cell in same.metrics}["c.sums"] in (0.0, None)


def test_what_is_neither_right_nor_wrong_is_left_out_of_a_comparison(
    done: Path, tmp_path: Path
) -> None:
    other = run(tmp_path / "gpt2", backend=backend(kind="gpt2"))
    result = fm.compare(done, other).result
    assert {task.name for task in result.tasks} == {"sums", "code", "json"}
    said = [notice.message for notice in result.pairing.warnings if notice.code == "log"]
    assert said == [
        f"{name}: first, second left out: the answers are not scored right or wrong; `forgetmap "
        "drift` compares them."
        for name in ("plain", "gpt2")
    ]
    style = Suite("style", SUITE.tasks[2:3])
    alone = [run(tmp_path / name, suite=style) for name in ("a", "b")]
    assert fm.compare(alone[0], alone[1], correct_at=3).result.total.n == N
