"""The writer of samples: the size of batches changes nothing; duplicates and equal ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from forgetmap.records import SCORES, TEXTS, text_hash
from forgetmap.sources import gather
from forgetmap.sources.adapter import Problems, Sample, Score
from forgetmap.sources.gather import RunWriter, in_batches


def sample(item: str, question: str, *metrics: str, **fields: Any) -> Sample:
    return Sample(
        "t", item, [Score(m, 1.0) for m in metrics or ("acc",)], question=question, **fields
    )


def samples() -> list[Sample]:
    return [
        sample("1", "a  b?", "acc", "f1", response="so"),
        sample("2", "c?", options=["x", "\u00bd"], gold="B", choice="A"),
        sample("1", "a b?", "acc", line=3),  # a duplicate: white space does not matter
        sample("2", "another?", prompt_key="f" * 64),
        sample("3", "again?", repeat=None),
        sample("3", "again?", repeat=None),
        sample("3", "again?", repeat=None, tokens_out=3),
        sample("4", "half \ud800"),
        Sample("u", "1", []),
        Sample("u", "2", [Score("acc", None), Score("acc_norm", 3.0, "last")]),
    ]


def written(folder: Path, size: int) -> tuple[list[dict[str, Any]], ...]:
    folder.mkdir()
    problems = Problems()
    with RunWriter(folder, texts=True, problems=problems) as writer:
        every = samples()
        for at in range(0, len(every), size):
            writer.add(every[at : at + size])
    assert [(p.line, "duplicate result of item '1'" in p.message) for p in problems.kept] == [
        (3, True)
    ]
    assert writer.samples == 8
    assert writer.measures["u"] == {("acc", "default"): None, ("acc_norm", "last"): None}
    assert writer.ranges["acc_norm"] == (3.0, 3.0)
    return tuple(pq.read_table(folder / name).to_pylist() for name in (SCORES, TEXTS))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_of_any_size_come_to_the_same(tmp_path: Path, size: int) -> None:
    assert written(tmp_path / "parts", size) == written(tmp_path / "whole", 100)


def test_rows_are_those_of_the_samples(tmp_path: Path) -> None:
    scores, texts = written(tmp_path / "run", 100)
    keys = [(row["item"].split("~")[0], row["repeat"], row["metric"]) for row in scores]
    assert keys[:4] == [("1", 0, "acc"), ("1", 0, "f1"), ("2", 0, "acc"), ("2", 0, "acc")]
    assert [row["repeat"] for row in scores if row["item"] == "3"] == [0, 1, 2]
    assert scores[0]["question_hash"] == text_hash("a b?")
    assert (scores[2]["gold"], scores[2]["choice"], scores[2]["k"]) == ("\u00bd", "x", 2)
    assert scores[3]["item"].startswith("2~")
    assert scores[3]["prompt_hash"] == int("f" * 15, 16)
    assert (scores[-2]["score"], scores[-2]["outcome"]) == (None, "unscored")
    assert [row["response"] for row in texts].count("so") == 1
    assert len(texts) == 8


def test_long_texts_make_short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "SAMPLES_PER_BATCH", 20)
    monkeypatch.setattr(gather, "MIN_BYTES", 100)
    long = [sample(str(number), "q?", response="x" * 60) for number in range(10)]
    assert [len(batch) for batch in in_batches(iter(long))] == [2] * 5
    short = [sample(str(number), "q?") for number in range(50)]
    assert [len(batch) for batch in in_batches(iter(short))] == [20, 20, 10]
