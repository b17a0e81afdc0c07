"""`forgetmap simulate` and `forgetmap records`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from command_line import (
    SIMULATED,
    call,
    first_column,
    json_of,
    results,
    write,
)


def test_simulate_writes_two_runs_and_their_truth(tmp_path: Path) -> None:
    out = tmp_path / "sim"
    done = call("simulate", "--out", out, "--tasks", 2, "--items", 10, "--k", "open", "--lost", 0.5)
    assert "Simulated (not measured)" in done.out
    assert f"forgetmap compare {out / 'before'} {out / 'after'}" in done.out
    truth = pq.read_table(out / "truth.parquet").to_pylist()
    lost = {(row["task"], row["item"]) for row in truth if row["class"] == "lost"}
    call("compare", out / "before", out / "after", "--out", tmp_path / "result")
    flips = pq.read_table(tmp_path / "result" / "flips.parquet").to_pylist()
    forgotten = {(f["task"], f["item"]) for f in flips if f["transition"] == "forgotten"}
    assert forgotten == lost
    assert len(lost) == 6


@pytest.mark.parametrize("lost", [0.0, 0.15, 0.8, 1.0])
def test_simulate_loses_as_much_as_asked_on_average(tmp_path: Path, lost: float) -> None:
    call("simulate", "--out", tmp_path / "s", "--tasks", 5, "--items", 100, "--lost", lost)
    truth = pq.read_table(tmp_path / "s" / "truth.parquet")["class"].to_pylist()
    known = truth.count("lost") + truth.count("kept")
    assert truth.count("lost") / known == pytest.approx(lost, abs=0.01)


def test_simulate_overwrites_only_when_asked(tmp_path: Path) -> None:
    args = ["simulate", "--out", tmp_path / "s", "--tasks", 1, "--items", 5]
    assert [call(*args).code, call(*args).code, call(*args, "--overwrite").code] == [0, 2, 0]


def test_records_check_counts(pair: tuple[Path, Path], tmp_path: Path) -> None:
    out = call("records", "check", pair[0]).out
    assert out == f"{pair[0]}: valid. 4 results of 1 task.\n"
    some = write(tmp_path / "s.jsonl", results([1, None], "a") + results([0], "b"))
    assert "3 results of 2 tasks; 1 without score." in call("records", "check", some).out
    found = json.loads(call("records", "check", some, "--json").out)
    assert (found["valid"], found["rows"], len(found["tasks"])) == (True, 3, 2)


def test_records_check_names_file_line_and_field(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.jsonl", [*results([1]), {"task": "t", "item": "x", "score": 7}])
    done = call("records", "check", path)
    assert done.code == 2
    assert done.err.startswith(f"Error: {path}, line 2, field 'score': score is 7")


def test_records_check_deep_reads_every_file(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    call("records", "convert", pair[0], "--out", tmp_path / "run")
    done = call("records", "check", tmp_path / "run", "--deep")
    assert "scores.parquet: as written" in done.out
    found = json.loads(call("records", "check", tmp_path / "run", "--deep", "--json").out)
    assert found["files"] == {
        "scores.parquet": "as written", "manifest.json": "as written",
    }  # fmt: skip
    (tmp_path / "run" / "mine.txt").touch()
    assert "mine.txt: no checksum" in call("records", "check", tmp_path / "run", "--deep").out
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"stage": null', '"stage": "rl"'))
    done = call("records", "check", tmp_path / "run", "--deep")
    assert done.code == 2
    assert "manifest.json: checksum check failed: the file is changed" in done.err
    assert "not a run folder" in call("records", "check", pair[0], "--deep").err


def test_records_show(demo: Path) -> None:
    out = call("records", "show", demo / "before", columns=200).out
    assert out.startswith("simulated-base: 360 results of 9 tasks.")
    assert "model     simulated-base" in out
    assert "decoding  temperature 0.0" in out
    assert len(first_column(out, "task")) == 9
    assert first_column(out[out.index("First results") :], "task") == ["knowledge-1"] * 3
    assert "First results" not in call("records", "show", demo / "before", "--limit", 0).out
    found = json.loads(call("records", "show", demo / "before", "--json").out)
    assert found["manifest"]["run_id"] == "simulated-base"


def test_records_show_prints_a_mean_score_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", results([0.25, 0.5]))
    assert re.search(
        r"^t +score +2 +2 +2 +0\.375$", call("records", "show", path).out, re.MULTILINE
    )


@pytest.fixture(scope="module")
def compared(demo: Path) -> str:
    """What `compare --json` says of the run folders."""
    return json.dumps(json_of(demo / "before", demo / "after"))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_records_convert_to_a_table_and_back(
    demo: Path, compared: str, tmp_path: Path, ending: str
) -> None:
    flat = [tmp_path / f"{side}.{ending}" for side in ("before", "after")]
    for side, path in zip(("before", "after"), flat, strict=True):
        done = call("records", "convert", demo / side, "--out", path)
        assert done.out == f"Written to {path}. 360 results of 9 tasks.\n"
        assert call("records", "check", path).code == 0
    want, found = json.loads(compared), json_of(*flat)
    for name in ("tasks", "categories"):
        for ours, theirs in zip(found[name], want[name], strict=True):
            assert ours == theirs


def test_records_convert_describes_the_run(pair: tuple[Path, Path], tmp_path: Path) -> None:
    facts = ["--run-id", "r1", "--model", "my/model", "--stage", "sft", "--parent", "r0"]
    done = call("records", "convert", pair[0], "--out", tmp_path / "run", *facts)
    assert done.code == 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["run_id"], manifest["parent"], manifest["stage"]) == ("r1", "r0", "sft")
    assert manifest["model"]["name"] == "my/model"
    assert call("records", "convert", pair[0], "--out", tmp_path / "run").code == 2
    assert call("records", "convert", pair[0], "--out", tmp_path / "run", "--overwrite").code == 0


def test_the_recorded_lineage_orders_a_chain(pair: tuple[Path, Path], tmp_path: Path) -> None:
    parents = {"base": None, "sft": "base", "rl": "sft"}
    for name, parent in parents.items():
        facts = ["--run-id", name, *(["--parent", parent] if parent else [])]
        call("records", "convert", pair[0], "--out", tmp_path / name, *facts)
    found = json_of(*(tmp_path / name for name in ("rl", "base", "sft")), "--chain")
    assert [found["before"]["name"], *(stage["name"] for stage in found["stages"])] == [*parents]


def test_a_run_folder_converted_to_another_keeps_its_mark(demo: Path, tmp_path: Path) -> None:
    assert call("records", "convert", demo / "before", "--out", tmp_path / "copy").code == 0
    assert SIMULATED in call("records", "show", tmp_path / "copy").out
