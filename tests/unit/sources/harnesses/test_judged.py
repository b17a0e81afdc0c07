"""Judgments of many models in one file: MT-Bench, AlpacaEval, LiveBench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.errors import UsageError
from forgetmap.records.run import Run
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run
from log_writers import opened, write_lines


def rating(model: str, question: object, score: object, turn: int = 1) -> dict[str, Any]:
    return {
        "question_id": question,
        "model": model,
        "judge": ["gpt-4", "single-v1"],
        "score": score,
        "turn": turn,
    }


def game(question: int, winners: tuple[str, str], turn: int = 1) -> dict[str, Any]:
    return {
        "question_id": question,
        "model_1": "bee",
        "model_2": "ant",
        "g1_winner": winners[0],
        "g2_winner": winners[1],
        "judge": ["gpt-4", "pair-v2"],
        "turn": turn,
    }


def of_model(path: Path, model: str) -> Run:
    return open_run(path, reading=Reading(cached=False, run=model))


def scores(run: Run) -> dict[str, float | None]:
    return dict(run.scores.collect().select("item", "score").iter_rows())


def test_models_in_one_file_are_listed_and_chosen_by_their_exact_names(tmp_path: Path) -> None:
    rows = [rating(m, q, 10 if m == "bee" else 1) for m in ("bee", "bee-2") for q in (81, 82)]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with pytest.raises(UsageError, match="2 models: bee, bee-2") as raised:
        opened(path)
    assert "--run bee" in str(raised.value.hint)
    assert scores(of_model(path, "bee")) == {"81/1": 1.0, "82/1": 1.0}
    assert scores(of_model(path, "bee-2")) == {"81/1": 0.0, "82/1": 0.0}
    both = [
        fm.compare(path, path, run=["bee", "bee-2"], cached=False),
        fm.compare(f"{path}#bee", f"{path}#bee-2", cached=False),
    ]
    for total in (comparison.result.total for comparison in both):
        assert (total.n11, total.n10, total.n01, total.n00) == (0, 2, 0, 0)


@pytest.mark.parametrize(
    ("score", "share", "problems"),
    [(1, 0.0, 0), (5.5, 0.5, 0), (10, 1.0, 0), (-1, None, 0), (11, None, 1), ("9", None, 1)],
)
def test_ratings_are_shares_of_the_scale(
    tmp_path: Path, score: object, share: float | None, problems: int
) -> None:
    path = write_lines(tmp_path / "x.jsonl", [rating("bee", 81, 10), rating("bee", 82, score)])
    run = opened(path)
    assert scores(run) == {"81/1": 1.0, "82/1": share}
    assert [(p.line, p.field) for p in run.problems] == [(2, "score")] * problems


def test_two_games_with_different_winners_are_a_tie(tmp_path: Path) -> None:
    games = [
        game(1, ("model_1", "model_1")),
        game(2, ("model_1", "model_2")),
        game(3, ("tie", "tie")),
        game(4, ("model_2", "model_2")),
        game(5, ("error", "model_1")),
    ]
    path = write_lines(tmp_path / "x.jsonl", games)
    bee, ant = of_model(path, "bee"), of_model(path, "ant")
    assert scores(bee) == {"1/1": 1.0, "2/1": 0.5, "3/1": 0.5, "4/1": 0.0, "5/1": None}
    assert scores(ant) == {"1/1": 0.0, "2/1": 0.5, "3/1": 0.5, "4/1": 1.0, "5/1": None}
    assert bee.scores.collect()["task"].unique().to_list() == ["mt_bench_against_ant"]


def annotation(instruction: str, preference: object, model: str = "bee") -> dict[str, Any]:
    return {
        "instruction": instruction,
        "output_1": "a",
        "output_2": "b",
        "generator_1": "reference",
        "generator_2": model,
        "annotator": "judge",
        "preference": preference,
    }


def test_preferences_become_shares_of_the_model(tmp_path: Path) -> None:
    values = [1, 2, 1.5, 0, 1.1, None, 3, "x"]
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps([annotation(f"Do {n}.", p) for n, p in enumerate(values)]))
    run = opened(path)
    texts = run.texts
    assert texts is not None
    questions = dict(texts.collect().select("item", "question").iter_rows())
    shares = {questions[item]: score for item, score in scores(run).items()}
    expected = [0.0, 1.0, 0.5, 0.5, pytest.approx(0.1), None, None, None]
    assert [shares[f"Do {n}."] for n in range(len(values))] == expected
    assert [p.field for p in run.problems] == ["preference", "preference"]


def test_an_instruction_that_comes_again_is_a_repeat(tmp_path: Path) -> None:
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps([annotation("Do.", 1), annotation("Do.", 2)]))
    assert opened(path).scores.collect().select("repeat", "score").rows() == [(0, 0.0), (1, 1.0)]


def judgment(model: str, question: str, score: object) -> dict[str, Any]:
    return {
        "question_id": question,
        "task": "zebra",
        "model": model,
        "score": score,
        "category": "reasoning",
    }


def test_livebench_judgments_of_one_of_two_models(tmp_path: Path) -> None:
    rows = [judgment(m, q, float(m == "bee")) for q in ("q1", "q2") for m in ("bee", "ant")]
    path = write_lines(tmp_path / "zebra/model_judgment/ground_truth_judgment.jsonl", rows)
    assert scores(of_model(tmp_path, "bee")) == {"q1": 1.0, "q2": 1.0}
    assert scores(of_model(path, "ant")) == {"q1": 0.0, "q2": 0.0}


def test_livebench_rows_without_id_are_problems(tmp_path: Path) -> None:
    rows = [judgment("bee", "q1", 1), {**judgment("bee", "q2", 1), "question_id": None}]
    run = opened(write_lines(tmp_path / "x.jsonl", rows))
    assert scores(run) == {"q1": 1.0}
    assert [p.line for p in run.problems] == [2]
