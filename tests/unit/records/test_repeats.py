"""Several seeds of one model and decoding are repeats of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import DuplicateKeyError, ManifestError
from forgetmap.records.tables import survey
from forgetmap.records.validate import check_run
from forgetmap.sources.open import open_run
from run_folders import results, scores_of, write

ALIKE: dict[str, Any] = {
    "model": {"name": "m", "revision": "1"},
    "stage": "sft",
    "harness": {"name": "h", "version": "2"},
    "template_hash": "abc",
    "decoding": {"temperature": 0.7},
}


def test_seeds_become_repeats_in_the_order_of_their_folders(tmp_path: Path) -> None:
    for seed, scores in enumerate([[1, 0], [0, 0], [1, 1]]):
        write(tmp_path / f"seed-{seed}", results(scores), seeds=[40 + seed], **ALIKE)
    run = open_run(tmp_path)
    assert scores_of(run) == [
        ("t", "i0", 0, 1.0),
        ("t", "i0", 1, 0.0),
        ("t", "i0", 2, 1.0),
        ("t", "i1", 0, 0.0),
        ("t", "i1", 1, 0.0),
        ("t", "i1", 2, 1.0),
    ]
    assert (run.info.seeds, survey(run).repeats) == ([40, 41, 42], 3)


def test_repeats_of_seeds_follow_one_another(tmp_path: Path) -> None:
    twice = results([1], repeat=0) + results([0], repeat=1)
    write(tmp_path / "a", twice, **ALIKE)
    write(tmp_path / "b", twice, **ALIKE)
    assert [row[2:] for row in scores_of(open_run(tmp_path))] == [(0, 1), (1, 0), (2, 1), (3, 0)]


def test_texts_follow_their_seeds(tmp_path: Path) -> None:
    for seed in range(2):
        write(tmp_path / f"s{seed}", results([1], response=f"said {seed}"), **ALIKE)
    texts = open_run(tmp_path).texts
    assert texts is not None
    said = texts.select("item", "repeat", "response").collect().rows()
    assert sorted(said) == [("i0", 0, "said 0"), ("i0", 1, "said 1")]


def test_texts_of_some_seeds_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "a", results([1]), **ALIKE)
    write(tmp_path / "b", results([1], response="said"), **ALIKE)
    texts = open_run(tmp_path).texts
    assert texts is not None
    assert texts.select("repeat", "response").collect().rows() == [(1, "said")]


def test_one_seed_is_a_run(tmp_path: Path) -> None:
    write(tmp_path / "only", results([1]), run_id="r")
    assert (open_run(tmp_path).name, len(scores_of(open_run(tmp_path)))) == ("r", 1)


def test_seeds_may_cover_different_tasks(tmp_path: Path) -> None:
    write(tmp_path / "a", results([1], "t"), tasks={"t": {"version": "1"}}, **ALIKE)
    write(tmp_path / "b", results([0], "u"), tasks={"u": {"version": "5"}}, **ALIKE)
    run = open_run(tmp_path)
    assert {name: task.version for name, task in run.info.tasks.items()} == {"t": "1", "u": "5"}
    assert scores_of(run) == [("t", "i0", 0, 1.0), ("u", "i0", 1, 0.0)]


def test_a_seed_among_the_decoding_parameters_may_differ(tmp_path: Path) -> None:
    for seed in range(2):
        write(tmp_path / f"s{seed}", results([1]), decoding={"temperature": 1, "seed": seed})
    assert survey(open_run(tmp_path)).repeats == 2


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("model", {"name": "m", "revision": "2"}),
        ("model", {"name": "m", "revision": "1", "adapter": "lora"}),
        ("stage", "dpo"),
        ("harness", {"name": "h", "version": "3"}),
        ("template_hash", "def"),
        ("system_prompt_hash", "xyz"),
        ("protocol", "chat"),
        ("decoding", {"temperature": 1.0}),
        ("decoding", {}),
        ("simulated", True),
        ("tasks", {"t": {"version": "2"}}),
        ("metrics", {"acc": {"high": 100}}),
    ],
)
def test_other_runs_are_no_repeats(field: str, other: Any, tmp_path: Path) -> None:
    ours = ALIKE | {"tasks": {"t": {"version": "1"}}, "metrics": {"acc": {"high": 1}}}
    write(tmp_path / "a", results([1]), **ours)
    write(tmp_path / "b", results([1]), **(ours | {field: other}))
    with pytest.raises(ManifestError) as caught:
        open_run(tmp_path)
    assert (caught.value.file, caught.value.field) == (str(tmp_path), field)


def test_metrics_are_not_mixed_up_where_one_seed_names_none(tmp_path: Path) -> None:
    write(tmp_path / "a", results([1]), **ALIKE)
    write(tmp_path / "b", results([1], metric="f1") + results([0], metric="acc"), **ALIKE)
    run = open_run(tmp_path)
    rows = run.scores.select("metric", "repeat", "score").collect().rows()
    assert sorted(rows) == [("acc", 1, 0.0), ("f1", 1, 1.0), ("score", 0, 1.0)]
    check_run(run, unique=True)


def test_a_double_within_a_seed_is_found(tmp_path: Path) -> None:
    write(tmp_path / "a", results([1, 0]), **ALIKE)
    write(tmp_path / "b", [*results([1, 0]), *results([1])], **ALIKE)
    run = open_run(tmp_path)
    assert check_run(run) == 5
    with pytest.raises(DuplicateKeyError) as caught:
        check_run(run, unique=True)
    assert caught.value.file == str(tmp_path / "b" / "scores.parquet")
    assert caught.value.line == 3
