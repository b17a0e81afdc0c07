"""Scoring the responses of a run: equal in every format, and equal to the scorer alone."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import forgetmap as fm
from forgetmap._workers import WorkerPool
from forgetmap.capabilities import measure as measuring
from forgetmap.capabilities.batches import score_batch
from forgetmap.capabilities.measure import Measuring, judge_at, measure
from forgetmap.capabilities.taxonomy import load_taxonomy
from forgetmap.errors import UsageError
from forgetmap.records.folder import read_run, write_run
from forgetmap.records.run import Run
from forgetmap.records.validate import check_run
from forgetmap.scoring.registry import SCORERS, find_scorer, signature_of
from forgetmap.scoring.scorer import ScorerInput
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run
from judge_server import Answer, best_reply, judge_server
from perfect_rows import ROWS, WRITERS, write_model

CAPTRACK = load_taxonomy("captrack")
Found = dict[tuple[str, str, str], tuple[float | None, str | None]]
NO_BEST = {"words", "bullets", "tables", "emoji"}
"""Fields that are neither good nor bad."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))


def opened(path: Path) -> Run:
    return open_run(path, reading=Reading(cached=False))


def measured(run: Run, **options: Any) -> Run:
    return measure(run, CAPTRACK, Measuring(processes=1, **options))


def found(run: Run) -> Found:
    rows = run.scores.collect().to_arrow().to_pylist()
    return {
        (f"{row['task']}/{row['item']}", row["metric"], row["scorer"]): (
            row["score"],
            row["outcome"],
        )
        for row in rows
    }


@pytest.fixture(scope="module")
def perfect(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """All values of the perfect rows, one item per format, with judge and sandbox."""
    folder = tmp_path_factory.mktemp("perfect") / "model"
    for form in WRITERS:
        write_model(folder, form, id_=form)
    run = opened(folder)
    assert run.problem_count == 0
    with judge_server(lambda asked: Answer(best_reply(asked))) as served:
        return found(
            measured(run, judge=judge_at(served.url, "judge"), allow_exec=True, cached=False)
        )


@pytest.mark.parametrize("form", [form for form in WRITERS if form != "jsonl"])
def test_bugs_20_to_22_every_format_gives_the_same_scores(perfect: Found, form: str) -> None:
    mine, theirs = (
        {
            (place.removesuffix(f"/{each}"), *rest): value
            for (place, *rest), value in perfect.items()
            if place.endswith(f"/{each}")
        }
        for each in (form, "jsonl")
    )
    assert len(mine) > 100
    assert mine == theirs


def test_perfect_rows_get_the_best_value(perfect: Found) -> None:
    checked = set()
    for metric in CAPTRACK.metrics:
        if metric.scorer is None or metric.field in NO_BEST:
            continue
        who = signature_of(find_scorer(metric.judge or metric.scorer))
        for field in filter(None, (metric.field, metric.strict)):
            score, _ = perfect[f"{metric.task}/jsonl", field, who]
            assert score == metric.range.high, metric.id
        checked.add(metric.task)
    assert checked == ROWS.keys() - {"mtbench.turn1", "oasst1.full"}


def test_every_row_gets_what_the_scorer_alone_gives(tmp_path: Path) -> None:
    """The reference: one sample after the other, made by hand from what was written."""
    folder = tmp_path / "m"
    folder.mkdir()
    sums = [
        {"id": str(n), "prompt": f"{n}+1?", "gold": str(n + 1), "outputs": out}
        for n, out in enumerate(["Answer: 1", "2", "It may be 3 or 4", "I can't say.", "5."])
    ]
    WRITERS["jsonl"](folder, "mgsm.subset", sums)
    chats = [
        {"id": str(n), "prompt": f"{n}?", "gold": "", "outputs": out}
        for n, out in enumerate(["- one\n- two", "", "Well \N{GRINNING FACE}, perhaps."])
    ]
    WRITERS["jsonl"](folder, "oasst1.full", chats)
    run = found(measured(opened(folder)))
    for name, task, rows in (("number", "mgsm.subset", sums), ("style", "oasst1.full", chats)):
        rule: Any = find_scorer(name)
        for row in rows:
            sample = ScorerInput(row["outputs"], gold=row["gold"], question=(row["prompt"],))
            for field, judged in rule.score(sample).items():
                key = (f"{task}/{row['id']}", field, signature_of(rule))
                assert run[key] == (judged.score, judged.outcome), key


def many(folder: Path, count: int = 2_400) -> Path:
    folder.mkdir(parents=True)
    sums = [
        {
            "id": str(n),
            "prompt": f"What is {n} + 1?",
            "gold": str(n + 1),
            "outputs": f"Answer: {n + n % 3}",
        }
        for n in range(count)
    ]
    WRITERS["jsonl"](folder, "gsm8k.subset", sums)
    return folder


def test_several_processes_give_the_same(tmp_path: Path) -> None:
    run = opened(many(tmp_path / "m"))
    two = measure(run, CAPTRACK, Measuring(processes=2, cached=False))
    assert found(two) == found(measured(run, cached=False))


def test_a_process_that_dies_costs_nothing_but_time(tmp_path: Path) -> None:
    run = opened(many(tmp_path / "m", 30))
    batches = measuring._Work(run, Measuring())._responses("gsm8k.subset", 100)
    (batch,) = list(batches)
    score = partial(score_batch, "number")
    with WorkerPool(2) as pool:
        first = list(pool.map(score, [batch] * 3))[:1]
        assert pool._workers
        for worker in pool._workers:
            worker._process.kill()
            worker._process.wait()
        again = list(pool.map(score, [batch] * 4))
    assert first == [score(batch)]
    assert again == first * 4


def test_what_was_measured_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = opened(many(tmp_path / "m", 30))
    first = found(measured(run))
    parts = {path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("scores.parquet")}

    def refuse(*_: object) -> None:
        raise AssertionError("it was measured again")

    monkeypatch.setattr(measuring._Work, "_responses", refuse)
    assert found(measured(run)) == first
    moved = opened(many(tmp_path / "elsewhere" / "m", 30))
    assert found(measured(moved)) == first
    assert parts == {p.stat().st_mtime_ns for p in (tmp_path / "cache").rglob("scores.parquet")}
    other = opened(many(tmp_path / "other" / "m", 31))
    with pytest.raises(AssertionError, match="measured again"):
        measured(other)


def test_an_interrupted_measurement_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = opened(write_model(tmp_path / "m", "jsonl"))
    done: list[str] = []
    original = measuring._Work._measured

    def counting(self: Any, unit: Any, pool: Any) -> Any:
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(unit.task)
        return original(self, unit, pool)

    monkeypatch.setattr(measuring._Work, "_measured", counting)
    with pytest.raises(KeyboardInterrupt):
        measured(run)
    first, done[:] = list(done), []
    with pytest.raises(KeyboardInterrupt):
        measured(run)
    assert not set(first) & set(done)


def test_recorded_scores_are_used_as_they_are(tmp_path: Path) -> None:
    run = opened(many(tmp_path / "m", 30))
    rows = run.scores.collect().to_arrow().to_pylist()
    own = [{**row, "scorer": "teacher", "score": 1.0, "outcome": "correct"} for row in rows]
    texts = run.texts
    table = tmp_path / "own.jsonl"
    names = ("task", "item", "repeat", "metric", "scorer", "score", "outcome", "gold")
    assert texts is not None
    said = {row["item"]: row["response"] for row in texts.collect().to_arrow().to_pylist()}
    table.write_text(
        "".join(
            json.dumps({n: row[n] for n in names} | {"response": said[row["item"]]}) + "\n"
            for row in own
        )
    )
    result = fm.drift(table, table, draws=100, cached=False)
    cell = next(cell for cell in result.metrics if cell.id == "C1.gsm8k")
    assert cell.scorer == ("acc/teacher", "acc/teacher")
    assert cell.before == 1.0


def test_the_result_is_a_run_like_any_other(tmp_path: Path) -> None:
    run = measured(opened(write_model(tmp_path / "m", "jsonl")))
    assert check_run(run) > 100
    written = write_run(run, tmp_path / "run")
    again = read_run(written)
    assert found(again) == found(run)
    assert again.info.metrics["words"].high is None
    assert again.info.tasks["gsm8k.subset"].main_scorer == "number@1"
    assert pq.read_table(written / "texts.parquet").num_rows == len(ROWS)
    assert "forgetmap" not in {who for task, _, who in found(run) if task.startswith("gsm8k.sub")}


def test_the_quick_profile_takes_the_same_items_of_every_model(tmp_path: Path) -> None:
    one = many(tmp_path / "one" / "m", 600)
    other = tmp_path / "other" / "m"
    other.mkdir(parents=True)
    lines = (one / "gsm8k_subset.jsonl").read_text().splitlines()
    renamed = [line.replace('"id": "', '"id": "x') for line in reversed(lines)]
    (other / "gsm8k_subset.jsonl").write_text("\n".join(renamed) + "\n")
    result = fm.drift(one, other, profile="quick", draws=100)
    cell = next(cell for cell in result.metrics if cell.id == "C1.gsm8k")
    assert (cell.n, cell.value, cell.forgotten) == (200, 0.0, 0.0)


def test_judge_and_sandbox_are_used_only_if_they_are_allowed(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m", "jsonl")
    result = fm.drift(path, path, draws=100)
    notes = {cell.id: cell.note for cell in result.metrics}
    assert notes["H4.mtbench"] == "needs an LLM judge: --judge URL MODEL"
    assert notes["C1.mbpp"] == "needs to run model-written code: --allow-exec"
    have = sum(cell.value is not None for cell in result.metrics)
    assert have == 40


def test_programs_that_write_their_own_verdict_are_wrong_and_counted(tmp_path: Path) -> None:
    row = ROWS["humaneval.full"]
    tampering = "import os\nfor number in range(3, 64):\n    try: os.write(number, b'failed x')\n"
    source = f"```python\n{tampering}    except OSError: pass\ndef double(x): return 8\n```"
    path = write_model(tmp_path / "m", "jsonl", {"humaneval.full": row | {"outputs": source}})
    run = measured(opened(path), allow_exec=True)
    assert found(run)["humaneval.full/q0", "acc", "code@2"] == (0.0, "incorrect")
    counted = "humaneval.full: 1 model-written program faked its verdict"
    assert [notice for notice in run.notices if notice.startswith(counted)]


def test_bug_19_and_03_a_judge_that_fails_gives_no_value(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m", "jsonl", {"mtbench.turn2": ROWS["mtbench.turn2"]})
    with judge_server(lambda _: Answer("I would rather not say.")) as served:
        result = fm.drift(path, path, judge=(served.url, "judge"), draws=100)
    cell = next(cell for cell in result.metrics if cell.id == "H4.mtbench")
    assert cell.value is None
    assert cell.note == "withheld: the judge failed on 100.0 % of answers"


def test_bug_23_a_file_is_the_task_its_name_says(tmp_path: Path) -> None:
    folder = many(tmp_path / "m", 30)
    (folder / "gsm8k_subset.jsonl").rename(folder / "gsm8k.jsonl")
    with pytest.raises(UsageError, match="has gsm8k; the taxonomy has"):
        fm.drift(folder, folder, draws=100)
    other = write_model(tmp_path / "other", "jsonl", {"oasst1.full": ROWS["oasst1.full"]})
    for path in Path(other).glob("*.jsonl"):
        path.rename(folder / path.name)
    result = fm.drift(folder, folder, draws=100)
    assert {cell.task for cell in result.metrics if cell.value is not None} == {"oasst1.full"}
    said = {caution.code: caution.message for caution in result.cautions}
    assert (
        "the taxonomy does not contain gsm8k; task names must match the taxonomy exactly"
        in said["unknown_tasks"]
    )


def test_bug_25_empty_responses_count(tmp_path: Path) -> None:
    row = {**ROWS["mtbench.turn1"], "outputs": ""}
    path = write_model(tmp_path / "m", "jsonl", {"mtbench.turn1": row})
    run = found(measured(opened(path)))
    assert run["mtbench.turn1/q0", "words", "style@1"] == (0.0, "no_answer")


def test_a_response_that_is_missing_is_not_wrong(tmp_path: Path) -> None:
    row = {**ROWS["gsm8k.subset"], "outputs": None}
    path = write_model(tmp_path / "m", "jsonl", {"gsm8k.subset": row})
    run = found(measured(opened(path)))
    assert run["gsm8k.subset/q0", "acc", "number@1"] == (None, "unscored")


def test_an_item_that_cannot_be_scored_is_an_error_of_its_own(tmp_path: Path) -> None:
    row = {**ROWS["gsm8k.schema"], "schema": {"type": "nonsense"}}
    path = write_model(tmp_path / "m", "jsonl", {"gsm8k.schema": row})
    run = found(measured(opened(path)))
    assert run["gsm8k.schema/q0", "valid", "json_schema@1"] == (None, "error")


def test_registry() -> None:
    for name in SCORERS.names():
        assert find_scorer(name).name == name
    with pytest.raises(UsageError, match="no scorer 'numbr'"):
        find_scorer("numbr")


def test_bug_12_a_response_without_steps_does_not_shift_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    outputs = ["Step 1: 1 + 1 = 2, good.\nAnswer: 2", "", "Step 1: 2 + 2 = 4, poor.\nAnswer: 4"]
    rows = [
        {"id": str(n), "prompt": f"{n}?", "gold": "2", "outputs": output}
        for n, output in enumerate(outputs)
    ]
    WRITERS["jsonl"](folder, "math.subset", rows)
    with judge_server(
        lambda asked: Answer("SCORE: 10" if "good" in asked.user else "SCORE: 3")
    ) as served:
        run = found(measured(opened(folder), judge=judge_at(served.url, "judge")))
    scores = [run[f"math.subset/{n}", "coherence", "reasoning@1"][0] for n in range(3)]
    assert scores[0] == 1.0
    assert scores[1] == 0.0
    assert scores[2] is not None
    assert 0 < scores[2] < 0.5


def test_a_response_that_is_judged_often_gets_the_mean(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    row = {"id": "1", "prompt": "1?", "gold": "2", "outputs": "Step 1: 1 + 1 = 2.\nAnswer: 2"}
    WRITERS["jsonl"](folder, "math.subset", [row])
    with judge_server(lambda asked: Answer(f"SCORE: {4 + asked.body['seed']}")) as served:
        once = found(measured(opened(folder), judge=judge_at(served.url, "judge", cached=False)))
        judge = judge_at(served.url, "judge", cached=False, repeats=3)
        often = found(measured(opened(folder), judge=judge, judge_repeats=3))
    assert {asked.body["temperature"] for asked in served.asked} == {0, 0.7}
    key = ("math.subset/1", "coherence", "reasoning@1")
    low, mean = once[key][0], often[key][0]
    assert low is not None
    assert mean is not None
    # 4, 5 and 6 of ten, against 4.
    assert mean - low == pytest.approx(1 / 10)


def test_a_judge_is_asked_at_least_once(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m", "jsonl", {"mtbench.turn2": ROWS["mtbench.turn2"]})
    with pytest.raises(UsageError, match="judge_repeats is 0"):
        fm.drift(path, path, judge=("http://localhost:1/v1", "judge"), judge_repeats=0)


def test_what_is_kept_is_not_mixed_up_with_other_records(tmp_path: Path) -> None:
    """The same responses beside other scores are another run."""
    seen = []
    for score in (0.25, 0.75):
        run = opened(many(tmp_path / str(score) / "m", 10))
        rows = run.scores.collect().to_arrow().to_pylist()
        texts = run.texts
        assert texts is not None
        said = {row["item"]: row["response"] for row in texts.collect().to_arrow().to_pylist()}
        table = tmp_path / f"{score}.jsonl"
        table.write_text(
            "".join(
                json.dumps(
                    {"task": row["task"], "item": row["item"], "metric": "liked", "score": score,
                     "gold": row["gold"], "response": said[row["item"]]}
                ) + "\n"
                for row in rows
            )
        )  # fmt: skip
        seen.append(found(measured(open_run(table))))
    liked = [
        {value for (_, metric, _), value in each.items() if metric == "liked"} for each in seen
    ]
    assert liked == [{(0.25, None)}, {(0.75, None)}]
    assert ("gsm8k.subset/0", "acc", "number@1") in seen[1]
