"""Bad run folders: broken manifests, manifests of other versions, incomplete tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bad_tables import Bad, as_parquet, damaged, folder_of, good_rows, refuse
from command_line import call
from forgetmap.errors import (
    ColumnError,
    DuplicateKeyError,
    EmptyInputError,
    FieldError,
    ForgetmapError,
    ManifestError,
    UnreadableError,
)
from forgetmap.records.schema import scores_schema

SCORES = as_parquet(good_rows())


def run_folder(
    manifest: Any = None, scores: bytes = SCORES, **files: bytes
) -> Callable[[Path], None]:
    text = (
        manifest if isinstance(manifest, bytes) else json.dumps(manifest or {"schema_version": 1})
    )
    content = text if isinstance(text, bytes) else text.encode()
    return folder_of(manifest__json=content, scores__parquet=scores, **files)


def without(column: str) -> bytes:
    return as_parquet([{n: c for n, c in row.items() if n != column} for row in good_rows()])


def manifest_case(name: str, manifest: Any, **place: Any) -> Bad:
    return Bad(name, run_folder(manifest), ManifestError, file="manifest.json", **place)


MANIFESTS = [
    manifest_case("empty", b"", line=1),
    manifest_case("cut off", b'{\n"schema_version": 1,\n "run', line=3),
    manifest_case("not UTF-8", b'{"schema_version": 1, "run_id": "caf\xe9"}'),
    manifest_case("a list", [1]),
    manifest_case("nested too deeply", b"[" * 10**5),
    manifest_case("without version", {"run_id": "r"}, field="schema_version"),
    manifest_case("version of a word", {"schema_version": "1"}, field="schema_version"),
    manifest_case("version of yes", {"schema_version": True}, field="schema_version"),
    manifest_case("version 0", {"schema_version": 0}, field="schema_version"),
    manifest_case("newer", {"schema_version": 99}, field="schema_version", says=["upgrade"]),
    manifest_case("a model of words", {"schema_version": 1, "model": "m"}, field="model"),
    manifest_case("seeds of words", {"schema_version": 1, "seeds": ["a"]}, field="seeds.0"),
    manifest_case(
        "a metric of words",
        {"schema_version": 1, "metrics": {"acc": {"low": "none"}}},
        field="metrics.acc.low",
    ),
]


@pytest.mark.parametrize("case", MANIFESTS, ids=lambda case: case.name)
def test_a_bad_manifest(case: Bad, tmp_path: Path) -> None:
    refuse(case, tmp_path)


def scores_case(
    name: str,
    scores: bytes,
    error: type[ForgetmapError],
    line: int | None = None,
    field: str | None = None,
) -> Bad:
    return Bad(name, run_folder(scores=scores), error, line, field, "scores.parquet")


def with_cell(**cells: Any) -> bytes:
    rows = [row | dict.fromkeys(set(cells) - set(row)) for row in good_rows()]
    rows[2] |= cells
    return as_parquet(rows)


TABLES = [
    scores_case("cut off", SCORES[:-9], UnreadableError),
    scores_case("a CSV", b"task,item,score\nt,1,1\n", UnreadableError),
    scores_case("no task", without("task"), ColumnError, None, "task"),
    scores_case("no item", without("item"), ColumnError, None, "item"),
    scores_case("no score", without("score"), ColumnError, None, "score"),
    scores_case("words for scores", with_cell(score="yes"), ColumnError, None, "score"),
    scores_case("words for repeats", with_cell(repeat="one"), ColumnError, None, "repeat"),
    scores_case("a score of 2", with_cell(score=2), FieldError, 3, "score"),
    scores_case("an empty item", with_cell(item=""), FieldError, 3, "item"),
    scores_case("an unknown outcome", with_cell(outcome="fine"), FieldError, 3, "outcome"),
    scores_case("a doubled item", with_cell(item="i0"), DuplicateKeyError, 3, "item"),
    scores_case("a damaged page", damaged("score"), UnreadableError, None, "score"),
    Bad("texts cut off", run_folder(texts__parquet=SCORES[:-9]), UnreadableError,
        file="texts.parquet"),
    Bad("texts without item", run_folder(texts__parquet=without("item")), ColumnError,
        field="item", file="texts.parquet"),
]  # fmt: skip


@pytest.mark.parametrize("case", TABLES, ids=lambda case: case.name)
def test_bad_tables_of_a_run(case: Bad, tmp_path: Path) -> None:
    refuse(case, tmp_path)


def test_a_run_without_results(tmp_path: Path) -> None:
    def write(path: Path) -> None:
        run_folder()(path)
        pq.write_table(scores_schema().empty_table(), path / "scores.parquet")

    refuse(Bad("none", write, EmptyInputError), tmp_path)


def test_a_fault_in_the_second_of_two_seeds_names_its_file(tmp_path: Path) -> None:
    def seeds(path: Path) -> None:
        path.mkdir()
        run_folder()(path / "seed-1")
        run_folder(scores=with_cell(score=7))(path / "seed-2")

    place = ("seed-2/scores.parquet",)
    refuse(Bad("seeds", seeds, FieldError, 3, "score", *place), tmp_path)


def test_damaged_texts_leave_no_half_a_run(tmp_path: Path) -> None:
    rows = [
        {"task": "t", "item": f"i{n}", "repeat": 0, "score": 1, "response": f"r{n**3}"}
        for n in range(5000)
    ]
    run = tmp_path / "run"
    run_folder(scores=as_parquet(rows), texts__parquet=damaged("response", rows))(run)
    done = call("records", "convert", run, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"Error: {run / 'texts.parquet'}, field 'response': ")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
