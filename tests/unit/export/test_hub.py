"""A data set of transitions that `datasets` loads."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import forgetmap as fm
from command_line import results, write
from forgetmap.comparison import Comparison, ComparisonResult
from forgetmap.errors import OutputError, UsageError
from forgetmap.export import write_hub

TEXTS = {"question": "SECRET question?", "gold": "SECRET", "response": "SECRET", "answer": "SECRET"}


def compared(folder: Path) -> Comparison:
    rows = results([1, 1, 0, 0, 1], **TEXTS)
    changed = results([1, 0, 1, 0], **TEXTS)
    pair = write(folder / "base.jsonl", rows), write(folder / "tuned.jsonl", changed)
    return fm.compare(*pair)


def test_the_folder_has_every_transition_and_a_card(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    out = tmp_path / "set"
    comparison = compared(tmp_path)
    summary = write_hub(comparison, out, license="cc-by-4.0", name='What: it\'s "forgot"')
    table = pq.read_table(out / "data" / "transitions.parquet")
    assert summary.rows == len(table) == comparison.result.total.n == 4
    assert table["transition"].to_pylist() == ["kept", "forgotten", "gained", "never"]
    assert pq.read_table(out / "data" / "unpaired.parquet").to_pylist()[0]["why"] == "only before"
    head, text = (
        (out / "README.md").read_text(encoding="utf-8").removeprefix("---\n").split("\n---\n")
    )
    header = yaml.safe_load(head)
    assert header["license"] == "cc-by-4.0"
    assert header["pretty_name"] == 'What: it\'s "forgot"'
    assert header["size_categories"] == ["n<1K"]
    for config in header["configs"]:
        (files,) = config["data_files"]
        assert (out / files["path"]).is_file()
    assert "## Forgetting" in text
    ComparisonResult.from_json((out / "comparison.json").read_bytes())


def test_datasets_loads_it(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    write_hub(compared(tmp_path), tmp_path / "set")
    cache = str(tmp_path / "cache")
    loaded = datasets.load_dataset(str(tmp_path / "set"), split="train", cache_dir=cache)
    assert sorted(loaded["transition"]) == ["forgotten", "gained", "kept", "never"]
    more = datasets.load_dataset(str(tmp_path / "set"), "unpaired", split="train", cache_dir=cache)
    assert len(more) == 1


def test_texts_and_paths_stay_at_home_unless_asked_for(tmp_path: Path) -> None:
    comparison = compared(tmp_path)
    write_hub(comparison, tmp_path / "public")
    for path in (tmp_path / "public").rglob("*"):
        if path.is_file():
            assert b"SECRET" not in path.read_bytes()
            assert str(tmp_path).encode() not in path.read_bytes()
    assert "SECRET" not in str(
        pq.read_table(tmp_path / "public/data/transitions.parquet").to_pylist()
    )
    write_hub(comparison, tmp_path / "private", texts=True)
    table = pq.read_table(tmp_path / "private/data/transitions.parquet")
    assert table["question"].to_pylist() == ["SECRET question?"] * 4
    assert "can no longer be" in (tmp_path / "private/README.md").read_text(encoding="utf-8")


def test_nothing_is_replaced_unasked_and_nothing_of_others_at_all(tmp_path: Path) -> None:
    comparison, out = compared(tmp_path), tmp_path / "set"
    write_hub(comparison, out)
    with pytest.raises(OutputError, match="already exists"):
        write_hub(comparison, out)
    write_hub(comparison, out, overwrite=True)
    assert json.loads((out / "comparison.json").read_bytes())["before"]["origin"] == "base"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    with pytest.raises(OutputError, match="not written by forgetmap"):
        write_hub(comparison, tmp_path / "other", overwrite=True)


def test_a_license_is_one_word(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a license identifier"):
        write_hub(compared(tmp_path), tmp_path / "set", license="mit\nevil: yes")
