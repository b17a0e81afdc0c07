"""The served runs, their ids and their parents."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import ChecksumError, MissingInputError, UnknownFormatError
from forgetmap.serve.runs import describe, find_runs, require_undamaged
from log_writers import inspect_sample, write_inspect
from served_runs import AFTER, BEFORE, results, write_folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three checkpoints, one of them deeper in the folder."""
    write_folder(tmp_path / "runs" / "base", results(BEFORE), run_id="base")
    write_folder(tmp_path / "runs" / "sft", results(AFTER), run_id="sft", parent="base")
    write_folder(tmp_path / "runs" / "more" / "rl", results(AFTER), run_id="rl", parent="sft")
    return tmp_path / "runs"


def test_run_folders_below_a_folder_are_runs_of_their_own(runs: Path) -> None:
    found = {each.run.name: each for each in find_runs([str(runs)])}
    assert set(found) == {"base", "sft", "rl"}
    assert found["base"].parent is None
    assert found["sft"].parent == found["base"].id
    assert found["rl"].parent == found["sft"].id


def test_ids_are_stable_and_say_nothing(runs: Path) -> None:
    first, again = ({each.run.name: each.id for each in find_runs([str(runs)])} for _ in range(2))
    direct = find_runs([str(runs / "base")])[0]
    assert first == again
    assert direct.id == first["base"]
    for known in find_runs([str(runs)]):
        assert str(runs) not in f"{describe(known)}{known.run.origin}"
        assert len(known.id) == 16


def test_the_same_run_is_served_once(runs: Path) -> None:
    assert len(find_runs([str(runs), str(runs / "base"), str(runs / "." / "sft")])) == 3


def test_equal_names_are_told_apart(tmp_path: Path) -> None:
    for place in ("one", "two"):
        write_folder(tmp_path / place / "run", results(BEFORE), run_id="same", parent="same")
    found = find_runs([str(tmp_path)])
    assert [each.run.name for each in found] == ["same", "same (2)"]
    assert [each.parent for each in found] == [None, None]


def test_tables_of_a_folder_are_runs(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("task,item,score\nt,a,1\nt,b,0\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("nothing here", encoding="utf-8")
    found = find_runs([str(tmp_path / "one.csv"), str(tmp_path / "two.csv")])
    assert [each.run.name for each in found] == ["one", "two"]
    assert find_runs([str(tmp_path / "one.csv")])[0].run.scores.collect().shape[0] == 2


def test_nothing_to_serve_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnknownFormatError):
        find_runs([str(tmp_path / "empty")])
    with pytest.raises(MissingInputError):
        find_runs([str(tmp_path / "absent")])


def test_damaged_texts_are_found_before_they_are_shown(runs: Path) -> None:
    """Not when all runs are listed: texts can be large."""
    (texts,) = list(runs.rglob("texts.parquet"))[:1]
    content = bytearray(texts.read_bytes())
    content[8] ^= 1  # of the first page, not of the description at the end
    texts.write_bytes(content)
    (damaged,) = (run for run in find_runs([str(runs)]) if run.location == str(texts.parent))
    with pytest.raises(
        ChecksumError, match=r"texts.parquet of \w+ was changed after it was written"
    ) as raised:
        require_undamaged(damaged)
    assert str(runs) not in str(raised.value)


def test_logs_of_two_models_side_by_side_are_two_runs(tmp_path: Path) -> None:
    """Inspect writes every log into one folder: one run for each model, not for each file."""
    for place, model in enumerate(("z/base", "a/tuned"), start=1):
        for task in ("sums", "words"):
            log = write_inspect(
                tmp_path / f"2026-01-0{place}T00-00-00+00-00_{task}_x.json",
                [inspect_sample(1, "C")],
                task=task,
            )
            text = log.read_text().replace("provider/model", model)
            log.write_text(text.replace("2026-01-01T", f"2026-01-0{place}T"))
    assert [run.run.name for run in find_runs([str(tmp_path)])] == ["z/base", "a/tuned"]
