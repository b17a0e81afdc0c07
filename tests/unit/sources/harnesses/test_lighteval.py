"""lighteval's details: layouts, names, settings matched by content, seeds, broken files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.errors import ForgetmapError, UsageError
from forgetmap.pairing.alignment import align
from forgetmap.pairing.matching import match, prepare
from forgetmap.records.run import Run
from forgetmap.sources.adapter import Problems
from forgetmap.sources.files import find_files
from forgetmap.sources.harnesses.lighteval import Lighteval, bare_question
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run

FIRST, SECOND, THIRD = (f"2025-0{month}-01T00-00-00.000001" for month in (1, 2, 3))
QUESTIONS = ("Is ice cold?", "Is fire wet?", "Is tea a drink?", "Is a stone soft?")


def details(scores: list[Any], *, questions: tuple[str, ...] = QUESTIONS) -> list[dict[str, Any]]:
    """Rows since 0.11, one per score."""
    return [
        {
            "doc": {
                "id": str(place),
                "task_name": "facts|0",
                "query": f"Question: {question}\nAnswer:",
                "choices": [" yes", " no"],
                "gold_index": place % 2,
            },
            "metric": {"acc": score},
            "model_response": {"text": ["yes"], "logprobs": [], "input": "?"},
        }
        for place, (question, score) in enumerate(zip(questions, scores, strict=False))
    ]


def flat(scores: list[Any], *, query: str = "Question: {}\nAnswer:") -> list[dict[str, Any]]:
    """Rows up to 0.10, one per score."""
    return [
        {
            "example": query.format(question),
            "full_prompt": query.format(question),
            "instruction": "",
            "choices": [" yes", " no"],
            "gold_index": [place % 2],
            "gold": [],
            "metrics": {"acc": score},
            "predictions": [-0.5, -1.5],
        }
        for place, (question, score) in enumerate(zip(QUESTIONS, scores, strict=False))
    ]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def write_results(
    path: Path,
    scores: dict[str, Any],
    *,
    model: str = "acme/bee",
    seed: int | None = None,
    temperature: float = 0.6,
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    generation = {"seed": seed, "temperature": temperature, "stop_tokens": None}
    general = {"lighteval_sha": "abc", "model_name": model, "generation_parameters": generation}
    document = {"config_general": general, "results": scores, "versions": dict.fromkeys(scores, 2)}
    path.write_text(json.dumps(document), encoding="utf-8")


def opened(path: Path, **options: Any) -> Run:
    return open_run(path, reading=Reading(cached=False, **options))


def scores_of(run: Run) -> list[tuple[str, str, int, float | None]]:
    rows = run.scores.collect().rows(named=True)
    return sorted((r["task"], r["item"], r["repeat"], r["score"]) for r in rows)


def cells(before: Path, after: Path) -> tuple[int, int, int, int]:
    """n11, n10, n01 and n00."""
    sides = align([prepare(opened(path)) for path in (before, after)])
    pairs = match(*sides, correct_at=1.0)
    rows = pairs.frame.select("state_before", "state_after").collect().rows()
    n11, n10, n01, n00 = (rows.count(pair) for pair in ((1, 1), (1, 0), (0, 1), (0, 0)))
    return n11, n10, n01, n00


@pytest.mark.parametrize(
    ("name", "task", "shots"),
    [
        ("community|arc:easy|0", "arc:easy", 0),
        ("gsm8k|5", "gsm8k", 5),
        ("leaderboard|mmlu:anatomy|5|0", "mmlu:anatomy", 5),
        ("arc", "arc", None),
    ],
)
def test_names_of_tasks_lose_suite_and_shots(
    tmp_path: Path, name: str, task: str, shots: int | None
) -> None:
    write(tmp_path / f"details_{name}_{FIRST}.parquet", flat([1, 0]))
    run = opened(tmp_path)
    assert {found for found, *_ in scores_of(run)} == {task}
    assert run.info.tasks[task].n_shot == shots


def test_same_task_with_two_numbers_of_shots_stays_two(tmp_path: Path) -> None:
    write(tmp_path / f"details_lighteval|arc|0_{FIRST}.parquet", flat([1, 0]))
    write(tmp_path / f"details_lighteval|arc|5_{FIRST}.parquet", flat([0, 0]))
    run = opened(tmp_path)
    assert {task for task, *_ in scores_of(run)} == {"lighteval|arc|0", "lighteval|arc|5"}
    assert not run.problem_count


def test_settings_belong_by_time(tmp_path: Path) -> None:
    write(tmp_path / f"details/acme/bee/{FIRST}/details_s|facts|0_{FIRST}.parquet", flat([1, 0]))
    write_results(tmp_path / f"results/acme/bee/results_{FIRST}.json", {"s|facts|0": {}}, seed=7)
    info = opened(tmp_path).info
    assert (info.model.name, info.seeds, info.decoding) == ("acme/bee", [7], {"temperature": 0.6})
    assert (info.harness.name, info.harness.version) == ("lighteval", "abc")
    assert (info.created, info.tasks["facts"].version) == (f"{FIRST[:10]}T00:00:00.000001", "2")


def test_the_only_settings_belong_to_renamed_details(tmp_path: Path) -> None:
    write(tmp_path / "one.parquet", flat([1, 0, 0, 0]))
    write_results(tmp_path / "a.json", {"s|rare|3": {"acc": 0.25}, "all": {"acc": 0.25}}, seed=1)
    run = opened(tmp_path)
    assert {task for task, *_ in scores_of(run)} == {"rare"}
    assert run.info.tasks["rare"].n_shot == 3
    assert (run.info.model.name, run.info.seeds) == ("acme/bee", [1])


def test_folder_of_the_model_counts_without_settings(tmp_path: Path) -> None:
    write(tmp_path / f"details/acme/bee/{FIRST}/details_x_{FIRST}.parquet", details([1]))
    assert opened(tmp_path).info.model.name == "acme/bee"


def test_two_models_are_refused(tmp_path: Path) -> None:
    for model in ("ant", "bee"):
        write(tmp_path / f"details/{model}/{FIRST}/details_x_{FIRST}.parquet", details([1]))
    with pytest.raises(UsageError, match="2 models"):
        opened(tmp_path)
    assert opened(tmp_path, run="ant").info.model.name == "ant"


def seeds(folder: Path, *stamps: tuple[int, str, list[int]], temperature: float = 0.6) -> None:
    for seed, stamp, scores in stamps:
        write(folder / f"details/m/{stamp}/details_s|facts|0_{stamp}.parquet", flat(scores))
        average = {"s|facts|0": {"acc": sum(scores) / len(scores)}}
        path = folder / f"results/m/results_{stamp}.json"
        write_results(path, average, seed=seed, temperature=temperature)


def test_seeds_are_repeats_in_their_order(tmp_path: Path) -> None:
    seeds(tmp_path, (4, FIRST, [1, 1]), (2, SECOND, [0, 1]))
    run = opened(tmp_path)
    assert run.info.seeds == [2, 4]
    repeats = [(repeat, score) for _, _, repeat, score in scores_of(run)]
    assert sorted(repeats) == [(0, 0.0), (0, 1.0), (1, 1.0), (1, 1.0)]
    rows = run.scores.collect().rows(named=True)
    assert {(row["repeat"], row["seed"]) for row in rows} == {(0, 2), (1, 4)}


def test_newest_run_of_a_seed_counts(tmp_path: Path) -> None:
    seeds(tmp_path, (0, FIRST, [0, 0]), (0, SECOND, [1, 1]), (1, THIRD, [1, 0]))
    run = opened(tmp_path)
    assert [score for *_, repeat, score in scores_of(run) if repeat == 0] == [1.0, 1.0]
    assert len(scores_of(run)) == 4
    assert FIRST in run.notices[0]


def test_other_settings_are_no_repeats(tmp_path: Path) -> None:
    seeds(tmp_path, (0, FIRST, [0, 0]), temperature=1.0)
    seeds(tmp_path, (1, SECOND, [1, 1]), temperature=0.0)
    run = opened(tmp_path)
    assert [(repeat, score) for _, _, repeat, score in scores_of(run)] == [(0, 1.0), (0, 1.0)]
    assert run.info.seeds == [1]


def test_split_and_gzipped_details_are_united(tmp_path: Path) -> None:
    rows = details([1, 0, 1, 1])
    whole = write(tmp_path / "whole" / f"details_facts|0_{FIRST}.parquet", rows)
    write(tmp_path / "split" / "x.parquet", rows[2:])
    packed = write(tmp_path / "split" / "y.parquet", rows[:2])
    packed.with_suffix(".gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    split = opened(tmp_path / "split")
    assert scores_of(split) == scores_of(opened(whole))
    assert not split.problem_count


def test_metric_without_any_value_is_none(tmp_path: Path) -> None:
    rows = details([1, 0, None])
    for row in rows:
        row["metric"] |= {"never": None, "parts": [1, 0], "judgement": "8"}
    run = opened(write(tmp_path / "d.parquet", rows))
    found = run.scores.collect().rows(named=True)
    assert [(r["metric"], r["score"], r["outcome"] == "unscored") for r in found] == [
        ("acc", 1.0, False),
        ("acc", 0.0, False),
        ("acc", None, True),
    ]


def test_ids_that_repeat_across_splits_stay_apart(tmp_path: Path) -> None:
    rows = details([1, 0, 0, 1])
    for place, row in enumerate(rows):
        row["doc"]["id"] = str(place % 2)
    before = write(tmp_path / "before" / "d.parquet", rows)
    after = write(tmp_path / "after" / "d.parquet", rows[::-1])
    assert cells(before, after) == (2, 0, 0, 2)


def test_rows_without_id_pair_by_content_and_count_twice_if_they_occur_twice(
    tmp_path: Path,
) -> None:
    rows = flat([1, 0, 1, 1])
    before = write(tmp_path / "before" / "d.parquet", [*rows, rows[0]])
    after = write(tmp_path / "after" / "d.parquet", [rows[0], *rows[::-1]])
    assert cells(before, after) == (4, 0, 0, 1)


def test_examples_and_chat_template_pair(tmp_path: Path) -> None:
    shown = "Decide.\n\nQuestion: Is it?\nA) yes\nB) no\nReasoning: So.\nAnswer: A\n\nQuestion: {}"
    chat = (
        'Decide.\n\n    On the very last line, write "Answer: $LETTER".\n    Question: "{}"\n    \n'
    )
    before = write(tmp_path / "before" / "d.parquet", flat([1, 1, 0], query=shown + "\nReasoning:"))
    after = write(tmp_path / "after" / "d.parquet", flat([1, 0, 0], query=chat)[::-1])
    assert cells(before, after) == (1, 1, 0, 1)


def test_choice_agrees_with_a_metric_that_divides_by_length(tmp_path: Path) -> None:
    rows = details([1])
    rows[0]["doc"] |= {"choices": [" a long answer", " no"], "gold_index": [0]}
    rows[0]["model_response"]["logprobs"] = [-4.0, -2.0]
    run = opened(write(tmp_path / "d.parquet", rows))
    row = run.scores.collect().rows(named=True)[0]
    assert (row["choice"], row["gold"]) == ("a long answer", "a long answer")
    assert (row["logprob_answer"], row["logprob_gold"], row["k"]) == (-4.0, -4.0, 2)


@pytest.mark.parametrize("golds", [1, [1], [1, 0]])
def test_right_answers_by_number_or_list(tmp_path: Path, golds: Any) -> None:
    rows = details([1])
    rows[0]["doc"] |= {"choices": [" one", " two", " three"], "gold_index": golds}
    row = opened(write(tmp_path / "d.parquet", rows)).scores.collect().rows(named=True)[0]
    assert (row["gold"], row["gold_index"], row["k"]) == ("two", 1, 3)


def test_row_without_query_is_a_problem_with_its_place(tmp_path: Path) -> None:
    rows = details([1, 0, 1])
    rows[1]["doc"]["query"] = None
    rows[2]["metric"] = None
    path = write(tmp_path / "d.parquet", rows)
    run = opened(path)
    assert [(each.file, each.line, each.field) for each in run.problems] == [
        (str(path), 2, "query"),
        (str(path), 3, "metrics"),
    ]
    assert scores_of(run) == [("facts", "0", 0, 1.0), ("facts", "2", 0, None)]
    with pytest.raises(ForgetmapError, match="no query"):
        opened(path, strict=True)


def test_one_row_renames_no_task(tmp_path: Path) -> None:
    rows = details([1, 0, 1])
    rows[0]["doc"]["task_name"] = "x"
    run = opened(write(tmp_path / "d.parquet", rows))
    assert {task for task, *_ in scores_of(run)} == {"facts"}


def test_broken_file_among_details_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path / f"details_a|0_{FIRST}.parquet", details([1, 0]))
    broken = tmp_path / f"details_b|0_{FIRST}.parquet"
    broken.write_bytes(b"PAR1" + bytes(40))
    run = opened(tmp_path)
    assert len(scores_of(run)) == 2
    assert [each.file for each in run.problems] == [str(broken)]


def test_settings_of_the_wrong_types_count_for_nothing(tmp_path: Path) -> None:
    write(tmp_path / "d.parquet", details([1, 0]))
    wrong = {"config_general": {"model_name": 3, "generation_parameters": [1]}, "results": []}
    (tmp_path / "r.json").write_text(json.dumps(wrong), encoding="utf-8")
    (tmp_path / "s.json").write_text('{"config_general": {"model_name": ', encoding="utf-8")
    run = opened(tmp_path)
    assert run.info.model.name is None
    assert len(scores_of(run)) == 2


WRONG: list[Any] = [None, "text", 7, 0.5, [], ["x", "y"], {"a": 1}, [[1]], "['open", "[-1]"]


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_fields_of_any_type_give_a_sample_or_a_problem(tmp_path: Path, value: Any) -> None:
    for rows in (details([1, 0]), flat([1, 0])):
        for column, held in rows[0].items():
            for name in held if isinstance(held, dict) else [""]:
                changed = json.loads(json.dumps(rows))
                for row in changed:
                    place, key = (row[column], name) if name else (row, column)
                    place[key] = value
                logs = Lighteval().sniff(find_files(write(tmp_path / "d.parquet", changed)))
                problems = Problems()
                found = [
                    each for log in logs for each in Lighteval().read(log, problems, texts=True)
                ]
                lines = [each.line for each in found] + [each.line for each in problems.kept]
                assert len(set(lines)) == 2


def test_plain_tables_are_not_claimed(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", [{"task": "a", "item": "1", "score": 1.0, "metrics": 2}])
    assert not Lighteval().sniff(find_files(tmp_path))


@pytest.mark.parametrize(
    ("query", "instruction", "question", "options"),
    [
        ("Question: Why?\nAnswer:", None, "Why?", []),
        ("Q: One?\nA: Yes.\n\nQ: Two?\nA:", None, "Two?", []),
        ("Passage: Rain.\nQuestion: Wet?\nAnswer:", None, "Passage: Rain.\nQuestion: Wet?", []),
        ("Be brief.\n\nWhy?\nA. x\nB. y\nAnswer:", "Be brief.\n\n", "Why?", ["x", "y"]),
        ("When?\nOptions:\n(A) now\n(B) later", None, "When?", ["now", "later"]),
        ("Which?\n\nA) one\n\nB) two\nor more", None, "Which?", ["one", "two\nor more"]),
        (
            "End with 'Answer: $LETTER' please.\n\nWhat is pi?\n\nA) 3\nB) 4",
            None,
            "What is pi?",
            ["3", "4"],
        ),
        ("Plan A. is fine. Why?", None, "Plan A. is fine. Why?", []),
        ("Read.\nA. alone", None, "Read.\nA. alone", []),
        ("Same.", "Same.", "Same.", []),
    ],
)
def test_bare_question(
    query: str, instruction: str | None, question: str, options: list[str]
) -> None:
    assert bare_question(query, instruction) == (question, options)
